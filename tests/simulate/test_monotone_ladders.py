"""Up a ladder of rates nobody is ever served better, down one of replicas neither.

The deployments are those that the formulas are compared with the simulator on.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from planner.model.arrays import Floats
from planner.model.queueing import OpenLoop, capacity, percentile, steady_state
from tests.model.queueing_candidates import with_layout
from tests.random_candidates import parameters
from tests.simulate.test_formula_against_simulator import Scenario, scenarios

METRICS = ("ttft", "tpot", "e2e")
ROUTINGS = ("random", "least_loaded")
RUNGS = 24
DEPLOYMENTS = 200
ROUNDING = 1e-6
# A p99 rests on tails that two moments describe: 1 pair in 10,000 by at most this much.
P99_RARE, P99_FALL = 1e-4, 2e-3


def ladders(s: Scenario, routing: str) -> list[OpenLoop]:
    """One server from 20 to 80 % of its capacity, and that rate on more and more replicas."""
    w, p = s.workload, parameters()
    rungs = s.candidates.take(np.zeros(RUNGS, dtype=np.intp))
    one = capacity(s.candidates, p, w)[0]
    rates = np.linspace(0.2, 0.8, RUNGS) * one * rungs.layout.replicas
    fleets = with_layout(rungs, replicas=np.arange(1.0, RUNGS + 1.0))
    return [
        steady_state(rungs, p, w, rates, routing=routing),
        steady_state(fleets, p, w, np.full(RUNGS, 0.8 * one), routing=routing).take(
            np.arange(RUNGS)[::-1]
        ),
    ]


@lru_cache(maxsize=1)
def falls() -> dict[tuple[str, float], Floats]:
    """By how much each percentile falls from a rung to the next busier one, as a share."""
    found: dict[tuple[str, float], list[Floats]] = {}
    for s in scenarios(DEPLOYMENTS, seed=17):
        for routing in ROUTINGS:
            for states in ladders(s, routing):
                for metric in METRICS:
                    for share in (0.5, 0.95, 0.99):
                        x = percentile(states, s.workload, metric, share)
                        found.setdefault((metric, share), []).append(1.0 - x[1:] / x[:-1])
    return {key: np.concatenate(parts) for key, parts in found.items()}


@pytest.mark.parametrize("share", [0.5, 0.95])
@pytest.mark.parametrize("metric", METRICS)
def test_no_p50_or_p95_is_lower_on_a_busier_rung(metric, share):
    fall = falls()[metric, share]
    assert len(fall) == DEPLOYMENTS * len(ROUTINGS) * 2 * (RUNGS - 1)
    assert fall.max() <= ROUNDING


@pytest.mark.parametrize("metric", METRICS)
def test_hardly_any_p99_is_lower_on_a_busier_rung_and_then_hardly(metric):
    fall = falls()[metric, 0.99]
    assert (fall > ROUNDING).mean() <= P99_RARE
    assert fall.max() <= P99_FALL
