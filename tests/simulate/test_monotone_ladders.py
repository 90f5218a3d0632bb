"""Up a ladder of rates nobody is ever served better, down one of replicas neither.

The deployments are drawn as those that the formulas are compared with the simulator on.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np
import pytest

from planner.model.arrays import Floats
from planner.model.queueing import OpenLoop, capacity, percentile, steady_state
from planner.model.workload import workload
from planner.simulate import deployment, random_arrivals, simulate
from tests.model.queueing_candidates import PARAMETERS, server, with_layout
from tests.random_candidates import parameters
from tests.simulate.test_formula_against_simulator import Scenario, scenarios

METRICS = ("ttft", "tpot", "e2e")
SHARES = (0.5, 0.95, 0.99)
ROUTINGS = ("random", "least_loaded")
RUNGS = 24
# Where one fell: seed, number, bursty, engines. E2E p95 as a log-normal grew wider than that of a
# request alone; TTFT p50, twice, as more met another's prompt, and waited shorter than others;
# E2E p99 at a kink of the decode step; TPOT p50 where bursts took all slots.
FELL = [
    (80030, 15, False, (2,)),
    (91138, 15, False, (2,)),
    (91120, 8, False, (2,)),
    (111105, 10, True, (2,)),
    (111036, 10, True, (2,)),
]
DEPLOYMENTS = {"mixed": 120, "prompts first": 60, "bursty": 60}
ROUNDING = 1e-9
# The wait of those that meet others' prompts is known by two moments: under bursts few pairs fall.
RARELY = ("bursty", "ttft", 0.99)
RARE, LARGEST = 1e-3, 3e-3


def drawn(kind: str) -> list[Scenario]:
    engines = (2,) if kind == "prompts first" else (0, 0, 1)
    return scenarios(DEPLOYMENTS[kind], seed=17, bursty=kind == "bursty", engines=engines)


def ladders(s: Scenario, routing: str) -> list[OpenLoop]:
    """Replicas from 2 to 80 % of their capacity, and the rate of 0.8 on more and more of them."""
    w, p = s.workload, parameters()
    rungs = s.candidates.take(np.zeros(RUNGS, dtype=np.intp))
    one = capacity(s.candidates, p, w)[0]
    rates = np.linspace(0.02, 0.8, RUNGS) * one * rungs.layout.replicas
    fleets = with_layout(rungs, replicas=np.arange(1.0, RUNGS + 1.0))
    return [
        steady_state(rungs, p, w, rates, routing=routing),
        steady_state(fleets, p, w, np.full(RUNGS, 0.8 * one), routing=routing).take(
            np.arange(RUNGS)[::-1]
        ),
    ]


@lru_cache(maxsize=3)
def falls(kind: str) -> dict[tuple[str, float], Floats]:
    """By how much each percentile falls from a rung to the next busier one, as a share."""
    return falls_of(drawn(kind))


def falls_of(deployments: list[Scenario]) -> dict[tuple[str, float], Floats]:
    found: dict[tuple[str, float], list[Floats]] = {}
    for s in deployments:
        for routing in ROUTINGS:
            for states in ladders(s, routing):
                for metric, share in product(METRICS, SHARES):
                    x = percentile(states, s.workload, metric, share)
                    found.setdefault((metric, share), []).append(1.0 - x[1:] / x[:-1])
    return {key: np.concatenate(parts) for key, parts in found.items()}


@pytest.mark.parametrize(
    ("kind", "metric", "share"), sorted({*product(DEPLOYMENTS, METRICS, SHARES)} - {RARELY})
)
def test_no_percentile_is_lower_on_a_busier_rung(kind, metric, share):
    fall = falls(kind)[metric, share]
    assert len(fall) == DEPLOYMENTS[kind] * len(ROUTINGS) * 2 * (RUNGS - 1)
    assert fall.max() <= ROUNDING


@pytest.mark.parametrize(("seed", "number", "bursty", "engines"), FELL)
def test_no_percentile_is_lower_where_one_was(seed, number, bursty, engines):
    fell = scenarios(20, seed, bursty=bursty, engines=engines)[number]
    for fall in falls_of([fell]).values():
        assert fall.max() <= ROUNDING


def test_under_bursts_hardly_any_tail_of_ttft_is_lower_on_a_busier_rung_and_then_hardly():
    kind, metric, share = RARELY
    fall = falls(kind)[metric, share]
    assert (fall > ROUNDING).mean() <= RARE
    assert fall.max() <= LARGEST


@pytest.mark.parametrize("slots", [4.0, 6.0, 8.0])
@pytest.mark.parametrize("use", [0.1, 0.5])
def test_with_few_slots_a_second_replica_harms_no_percentile_either(slots, use):
    c = server(token_time=2e-3, launch=0.005, max_sequences=slots)
    w = workload(lambda rank: 2000.0, lambda rank: 100.0 + 200.0 * rank, burstiness=20.0)
    rate = use * capacity(c, PARAMETERS, w)
    one, two = (
        steady_state(with_layout(c, replicas=np.full(1, n)), PARAMETERS, w, rate)
        for n in (1.0, 2.0)
    )
    for metric, share in product((*METRICS, "itl"), SHARES):
        x, y = (percentile(state, w, metric, share)[0] for state in (one, two))
        assert y <= x * (1.0 + ROUNDING), (metric, share)


def test_the_law_is_none_of_a_server_that_prompts_wake():
    # A prompt takes 40 ms on an idle server, and holds up next to nobody while others decode.
    c = server(token_time=1e-5, launch=0.02, max_sequences=64)
    c = replace(c, engine=replace(c.engine, mixed=np.zeros(1), prefill_layer=np.full(1, 0.04)))

    def prompt(rank: float) -> float:
        return 10.0

    def output(rank: float) -> float:
        return 15.0

    one = deployment(c, PARAMETERS, workload(prompt, output))
    few, more = (
        simulate(one, random_arrivals(rate, 20_000, prompt, output, seed=1), seed=1)
        for rate in (4.0, 16.0)
    )
    # Where nobody decodes a second one waits for the first's 40 ms, else for a step of 20 ms.
    assert few.percentiles("ttft", [0.99])[0] > 0.065
    assert 0.059 < more.percentiles("ttft", [0.99])[0] < 0.061
