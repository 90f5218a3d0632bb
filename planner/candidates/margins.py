"""How much a prediction is raised so that it holds with the confidence that slo.yaml asks."""

from __future__ import annotations

from planner.candidates.efficiency import evidence, interval
from planner.spec.accelerator import Accelerator
from planner.spec.archive import Margin
from planner.spec.efficiency import Efficiency, Metric

METRICS: dict[str, Metric] = {"ttft": "ttft", "tpot": "tpot", "e2e": "time"}
"""Latency of a target -> metric of the error table; ITL takes the margin of TPOT."""


def margin(
    efficiency: Efficiency, generation: str, accelerator: Accelerator, confidence: float
) -> Margin:
    """Return the factors on predictions for an engine generation on an accelerator."""
    factors = {
        name: _factor(efficiency, generation, accelerator, metric, confidence)
        for name, metric in METRICS.items()
    }
    known = evidence(efficiency, generation, accelerator)
    return Margin(generation=generation, evidence=known, **factors)


def _factor(
    efficiency: Efficiency,
    generation: str,
    accelerator: Accelerator,
    metric: Metric,
    confidence: float,
) -> float:
    if not any(entry.metric == metric for entry in efficiency.default_errors):
        return 1.0
    quantile = interval(efficiency, generation, accelerator, metric, confidence)
    return error_factor(quantile, confidence)


def error_factor(quantile: float, confidence: float) -> float:
    """Return a quantile of measured / predicted as a margin, at least 1.

    A model that measured as pessimistic is not trusted to be so again; a confidence of 0.5 asks
    for no margin.
    """
    return 1.0 if confidence <= 0.5 else max(1.0, quantile)
