"""Open-loop candidates a second: capacity, steady state and three survivals, kinds mixed."""

from __future__ import annotations

import os
import time
from statistics import NormalDist

import pytest

from planner.model.queueing import capacity, steady_state, survival
from planner.model.workload import workload
from tests.random_candidates import Kinds, parameters, random_candidates

BLOCK = 5_000
LIMITS = {"ttft": 1.0, "tpot": 0.05, "e2e": 20.0}


@pytest.fixture(scope="module")
def block():
    normal = NormalDist()
    w = workload(
        lambda rank: 800 * 2.0 ** normal.inv_cdf(rank),
        lambda rank: 200 * 2.0 ** normal.inv_cdf(rank),
    )
    c = random_candidates(BLOCK, 0, Kinds(engines=(0, 1, 2)))
    return c, parameters(), w, 0.6 * capacity(c, parameters(), w)


def score(c, p, w, rate):
    state = steady_state(c, p, w, rate)
    return [survival(state, w, metric, limit) for metric, limit in LIMITS.items()]


def test_a_block_of_open_loop_candidates(benchmark, block):
    assert len(block[0]) == BLOCK
    benchmark(score, *block)


@pytest.mark.skipif(
    "PLANNER_SPEED" not in os.environ, reason="set PLANNER_SPEED on a quiet machine"
)
def test_a_core_scores_100_000_open_loop_candidates_a_second(block):
    times = []
    for _ in range(25):
        begin = time.process_time()
        score(*block)
        times.append(time.process_time() - begin)
    assert BLOCK / min(times) >= 100_000
