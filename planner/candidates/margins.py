"""How much a prediction is raised so that it holds with the confidence that slo.yaml asks."""

from __future__ import annotations

import math
from statistics import NormalDist

from planner.candidates.efficiency import error_entry, evidence
from planner.spec.accelerator import Accelerator
from planner.spec.efficiency import Efficiency, ErrorEntry
from planner.spec.record import Margin

METRICS = {"ttft": "ttft", "tpot": "tpot", "e2e": "time"}
"""Latency of a target -> metric of the error table; ITL takes the margin of TPOT."""
_Z90 = NormalDist().inv_cdf(0.9)


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
    metric: str,
    confidence: float,
) -> float:
    if not any(entry.metric == metric for entry in efficiency.default_errors):
        return 1.0
    return error_quantile(error_entry(efficiency, generation, accelerator, metric), confidence)


def error_quantile(entry: ErrorEntry, confidence: float) -> float:
    """Return the quantile of measured / predicted at a confidence, at least 1.

    Two halves of log-normals meet at the median: ln q = ln q50 + z/z90 * ln(q90/q50), and the
    same below with q10. A model that measured as pessimistic is not trusted to be so again, hence
    the floor of 1; a confidence of 0.5 asks for no margin.
    """
    if confidence <= 0.5:
        return 1.0
    share = NormalDist().inv_cdf(confidence) / _Z90
    return max(1.0, math.exp(math.log(entry.q50) + share * math.log(entry.q90 / entry.q50)))
