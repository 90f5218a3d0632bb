"""Open loop: requests arrive at a given rate; their waiting and latency percentiles.

A closed form in named stages, each with its source: what steps cost (``service``), how much fits
(``resident``) and is carried (``saturation``), how bursts reach one server (``bursts``), the
decoding batch (``steady``), the wait for a step and for other prompts (``cycle``), decoding beside
them (``decoding``, ``variance``), the wait for a slot or KV memory (``slots``), and the
distributions that follow (``latency``). All of it is per attention-data-parallel rank, which
schedules on its own; only the public functions speak of whole deployments.
"""

from planner.model.queueing.latency import percentile, survival
from planner.model.queueing.open_loop import capacity, steady_state
from planner.model.queueing.state import Gates, Metric, OpenLoop, gates, safe_share

__all__ = [
    "Gates",
    "Metric",
    "OpenLoop",
    "capacity",
    "gates",
    "percentile",
    "safe_share",
    "steady_state",
    "survival",
]
