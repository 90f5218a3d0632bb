"""slo.yaml -> the load as the model sees it."""

from __future__ import annotations

import numpy as np

from planner.model.workload import Workload, workload
from planner.spec.lengths import Lengths
from planner.spec.slo import Slo

RANKS = (np.arange(200) + 0.5) / 200
"""Ranks at which the sum of prompt and output is tabulated."""


def lengths_of(slo: Slo) -> tuple[Lengths, Lengths]:
    """Return the lengths of prompt and output (one pair; not for classes or traces)."""
    prompt, output = slo.traffic.prompt_tokens, slo.traffic.output_tokens
    if prompt is None or output is None:
        raise ValueError("the traffic has no single pair of lengths")
    return prompt, output


def both_quantile(prompt: Lengths, output: Lengths, share: float) -> float:
    """Return the quantile of prompt + output [tokens], drawn independently."""
    p = np.array([prompt.quantile(float(rank)) for rank in RANKS])
    o = np.array([output.quantile(float(rank)) for rank in RANKS])
    return float(np.quantile((p[:, None] + o).ravel(), share))


def slo_workload(slo: Slo) -> Workload:
    """Return the statistics of the lengths and arrivals that slo.yaml states."""
    prompt, output = lengths_of(slo)
    return workload(
        prompt.quantile,
        output.quantile,
        burstiness=slo.traffic.burstiness,
        prefix_hit=slo.traffic.prefix_hit_rate,
    )


def sized_rate(slo: Slo) -> float:
    """Return the requests per second that are sized for; offline: the mean over the deadline."""
    rate = slo.traffic.rate_per_s or slo.traffic.average_rate_per_s
    if rate is None:
        raise ValueError("the traffic states no rate")
    return rate
