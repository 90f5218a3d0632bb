"""The steady batch, and how prompts in a request's steps lengthen its later ones."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.arrays import Floats
from planner.model.queueing.bursts import burst_size
from planner.model.queueing.decoding import echo_squares, shared_by_mates
from planner.model.queueing.saturation import saturation
from planner.model.queueing.service import Service, company, mean_step, prompts, service
from planner.model.queueing.steady import Arrivals, steady_batch
from planner.model.queueing.variance import _mates_variance
from planner.model.workload import Workload, workload
from tests.model.by_hand import constant
from tests.random_candidates import Kinds, parameters, random_candidates

KINDS = Kinds(engines=(0, 1, 2), draft_tokens=(0, 0, 3))
WORKLOADS = {
    "chat": workload(lambda rank: 200 + 2000 * rank, lambda rank: 100 + 400 * rank),
    "short outputs": constant(300, 8),
    "long prompts": constant(6000, 60),
}


def consistent_step(s: Service, held: Floats, arrivals: Arrivals) -> Floats:
    """By bisection: prompts cost what they do beside those that arrive in that very step."""
    rate, low, high = arrivals.rate, np.full_like(held, 1e-6) * np.minimum(s.steps, 1.0), held
    for _ in range(50):
        batch = (low + high) / 2
        size = burst_size(arrivals.burstiness, batch / s.steps)
        step = mean_step(s, prompts(s, company(s, batch / s.steps, size)), batch, size)
        short = rate * s.steps * step.time > batch
        low, high = np.where(short, batch, low), np.where(short, high, batch)
    return step.time


@pytest.mark.parametrize("burstiness", [1.0, 4.0])
@pytest.mark.parametrize("kind", sorted(WORKLOADS))
def test_prompts_cost_what_they_do_beside_those_that_arrive_with_them(kind, burstiness):
    w: Workload = WORKLOADS[kind]
    c = random_candidates(2000, 11, KINDS)
    s = service(c, parameters(), w)
    full = saturation(s)
    rate = np.random.default_rng(11).uniform(0.1, 0.98, len(c)) * full.rate
    bursts = np.full(len(c), burstiness)
    arrivals = Arrivals(rate, bursts, 1 + (bursts - 1) * w.peakedness, np.ones_like(rate))
    found = steady_batch(s, full, arrivals).step.time
    plain = consistent_step(s, np.maximum(full.slots, 1.0), arrivals)
    error = np.abs(found / plain - 1)
    assert np.quantile(error, 0.99) < 0.0005
    assert error.max() < 0.02


@pytest.mark.parametrize("size", [1.0, 3.0])
def test_the_company_of_a_prompt_is_what_comes_with_it_in_a_step(size):
    # Groups of `size` at random; the mean over steps with prompts, those of a group together.
    s = service(random_candidates(1, 1, KINDS), parameters(), constant(100, 50))
    groups = np.random.default_rng(1).poisson(0.7, 200_000)
    others = groups[groups > 0].mean() * size - 1
    found = company(s, np.array([0.7 * size]), size)[0] / 100
    assert found == pytest.approx(others, rel=0.01)


@settings(max_examples=200)
@given(response=st.floats(0, 0.97), steps=st.integers(1, 300))
def test_echoes_end_with_the_request(response, steps):
    # A prompt in the first step lengthens the second by `response` as much, that the third ...
    echoes = np.cumsum(response ** np.arange(steps))
    first, mean = echo_squares(np.array([response]), np.array([[float(steps)]]))
    assert first[0, 0] == pytest.approx(echoes[-1] ** 2, rel=1e-6)
    assert mean[0, 0] == pytest.approx(np.mean(echoes**2), rel=1e-6)


@pytest.mark.parametrize("mates", [0.3, 4.0])
def test_late_mates_share_the_fixed_part_of_the_steps_they_come_in(mates):
    # Drawn: a geometric number in each of 5 steps, each with mates paying 0.02 s once.
    steps = 5
    came = np.random.default_rng(2).geometric(1 / (1 + mates / steps), (200_000, steps)) - 1
    paid = 0.02 * (came > 0).sum() / came.sum()
    found = shared_by_mates(np.array([0.02]), np.array([[mates]]), np.array([[float(steps)]]))
    assert found[0, 0] == pytest.approx(paid, rel=0.01)


@pytest.mark.parametrize("mates", [0.3, 4.0])
def test_late_mates_vary_as_a_geometric_number_of_prompts(mates):
    # Drawn: exponential prompts of 0.1 s, and 0.05 s of the fixed part each.
    rng = np.random.default_rng(3)
    number = rng.geometric(1 / (1 + mates), 400_000) - 1
    time = 0.05 * number + rng.gamma(np.maximum(number, 1e-12), 0.1)
    one, two = np.array([0.1]), np.array([2 * 0.1**2])
    many = SimpleNamespace(mates=np.array([[mates]]), steps=np.array([[1e9]]))
    found = _mates_variance(many, (one, two), np.array([0.05]))
    assert found[0, 0] == pytest.approx(time.var(), rel=0.02)
