"""Requests that are routed to one of several servers, against plain step-by-step versions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from planner.model.arrays import Floats
from planner.model.queueing.bursts import timed_share
from planner.model.queueing.cycle import Cycle, _chain, _moments
from planner.model.queueing.variance import _evenness

FIXED, RATE, PROMPT = 1.0, 0.8, 0.75
STEPS = 100_000


def prompts_for(open_: Floats, rng: np.random.Generator) -> Floats:
    """Total time of exponential prompts that come at random in so long a time."""
    return np.array([rng.exponential(PROMPT, n).sum() for n in rng.poisson(RATE * open_)])


def cycle(timed: float) -> Cycle:
    """The chain of steps of fixed length plus the prompts that came in the step before."""
    one, fixed = np.ones(1), np.full(1, FIXED)
    second, third = 2 * RATE * PROMPT**2 * one, 6 * RATE * PROMPT**3 * one
    prompt = PROMPT * one, RATE * PROMPT * one, timed * one
    server = SimpleNamespace(mixed=one)
    return _chain(server, (fixed, fixed), prompt, (second, third), 0.5 * one)


def plain_steps(timed: float) -> tuple[Floats, Floats]:
    """Steps drawn one after the other, and the time for which prompts come in each."""
    rng, mean = np.random.default_rng(8), FIXED / (1 - RATE * PROMPT)
    steps = np.full(STEPS, mean)
    counts, times = rng.random(STEPS), rng.exponential(PROMPT, 64 * STEPS)
    at = 0
    for i in range(1, STEPS):
        open_ = (1 - timed) * mean + timed * steps[i - 1]
        # Poisson by inversion.
        number, term, below = 0, np.exp(-RATE * open_), np.exp(-RATE * open_)
        while counts[i] > below and number < 60:
            number += 1
            term *= RATE * open_ / number
            below += term
        steps[i] = FIXED + times[at : at + number].sum()
        at += number
    return steps, (1 - timed) * mean + timed * steps


@pytest.fixture(scope="module", params=[0.0, 0.5, 1.0])
def chain(request) -> tuple[Cycle, Floats, Floats]:
    return cycle(request.param), *plain_steps(request.param)


def test_a_step_met_is_that_of_steps_drawn_one_after_the_other(chain):
    found, steps, open_ = chain
    met, square = (np.average(steps**power, weights=open_) for power in (1, 2))
    assert found.mean[0] == pytest.approx(steps.mean(), rel=0.01)
    assert found.met[0] == pytest.approx(met, rel=0.02)
    assert found.met_square[0] == pytest.approx(square, rel=0.05)
    assert found.open[0] == pytest.approx(np.average(open_, weights=open_), rel=0.02)


@pytest.mark.parametrize("fit", [0.0, 1.0])
def test_the_wait_for_others_is_that_of_arrivals_drawn_at_random(chain, fit):
    found, steps, open_ = chain
    rng = np.random.default_rng(9)
    at = rng.choice(STEPS, STEPS, p=open_ / open_.sum())
    left = rng.random(STEPS)
    before = prompts_for(open_[at] * (1 - left), rng)
    wait = steps[at] * left + before + fit * prompts_for(open_[at] * left, rng)
    cost = SimpleNamespace(work_mean=np.full(1, PROMPT), work=np.full((1, 1), PROMPT))
    workload = SimpleNamespace(mean=lambda values: np.mean(values, axis=0))
    server, one = SimpleNamespace(workload=workload), np.ones(1)
    moments = _moments(server, SimpleNamespace(cost=cost), found, one, fit * one)
    assert moments.mean[0] == pytest.approx(wait.mean(), rel=0.02)
    assert moments.square[0] == pytest.approx((wait**2).mean(), rel=0.05)


@pytest.mark.parametrize(
    ("burstiness", "outputs", "servers", "routing", "share"),
    [
        (1.0, 0.5, 1.0, "least_loaded", 1.0),
        (0.0, 0.5, 1.0, "least_loaded", 1.0),
        (1.0, 0.5, 16.0, "least_loaded", 0.5),
        (1.0, 0.3, 16.0, "least_loaded", 0.5),
        (1.0, 0.0, 16.0, "least_loaded", 1.0),
        (1.0, 0.1, 16.0, "least_loaded", 0.8),
        (4.0, 0.5, 64.0, "least_loaded", 0.5),
        (9.0, 0.5, 4.0, "least_loaded", 1.0),
        (1.0, 0.5, 16.0, "round_robin", 1.0),
        (1.0, 0.5, 16.0, "random", 1.0),
    ],
)
def test_share_of_the_requests_that_come_by_the_clock(burstiness, outputs, servers, routing, share):
    found = timed_share(burstiness, outputs, np.array([servers]), routing)
    assert found == pytest.approx(share)


@pytest.mark.parametrize("part", [0.25, 1.0])
def test_while_outputs_of_one_length_last_each_other_sequence_ends_at_most_once(part):
    phases = np.random.default_rng(10).random((20_000, 40))
    ends = (phases < part).sum(axis=1)
    server = SimpleNamespace(steps=np.full(1, 300.0), workload=SimpleNamespace(steps_cv2=0.0))
    alike = SimpleNamespace(spread=np.zeros(1))
    others = SimpleNamespace(met=np.full((1, 1), 40.0 * part), none=np.full((1, 1), 1e-9))
    share = _evenness(server, alike, np.full((1, 1), 300.0 * part), others)[0, 0]
    assert 1 - share == pytest.approx(ends.var() / ends.mean(), abs=0.02)


@pytest.mark.parametrize(("spread", "cv2", "share"), [(1.0, 0.0, 0.0), (0.5, 0.5, 0.25), (0, 2, 0)])
def test_prompts_met_are_poisson_where_numbers_or_lengths_vary_so_much(spread, cv2, share):
    server = SimpleNamespace(steps=np.full(1, 300.0), workload=SimpleNamespace(steps_cv2=cv2))
    arrivals = SimpleNamespace(spread=np.full(1, spread))
    many = SimpleNamespace(met=np.full((1, 1), 40.0), none=np.full((1, 1), 1e-9))
    found = _evenness(server, arrivals, np.full((1, 1), 900.0), many)
    assert found[0, 0] == pytest.approx(share)


@pytest.mark.parametrize("met", [0.001, 0.1, 1.0, 3.0])
def test_where_some_meet_no_prompt_numbers_vary_at_least_as_if_the_others_met_the_same(met):
    none = np.exp(-met)
    same = met / (1 - none)
    variance = none * met**2 + (1 - none) * (same - met) ** 2
    server = SimpleNamespace(steps=np.full(1, 300.0), workload=SimpleNamespace(steps_cv2=0.0))
    others = SimpleNamespace(met=np.full((1, 1), met), none=np.full((1, 1), none))
    alike = SimpleNamespace(spread=np.zeros(1))
    share = _evenness(server, alike, np.full((1, 1), 900.0), others)[0, 0]
    assert 1 - share == pytest.approx(variance / met)
