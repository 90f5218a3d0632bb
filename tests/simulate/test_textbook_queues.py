"""Made to degenerate into textbook queues, the fleet gives their textbook values."""

from dataclasses import replace
from math import factorial

import numpy as np
import pytest

from planner.simulate import Arrivals, Deployment, simulate

REQUESTS = 200_000


def single_server(longest):
    """One prompt a step, a millisecond a token: service times are prompt lengths."""
    table = tuple((np.arange(longest + 1) * 1e-3).tolist())
    return Deployment(
        decode=(0.0, 1.0),
        decode_context=(0.0, 0.0),
        stall=table,
        alone=table,
        sequences=1,
        budget=longest,
    )


def poisson(rate, prompt, output, seed):
    gaps = np.random.default_rng(seed).exponential(1.0 / rate, len(prompt))
    return Arrivals(np.cumsum(gaps), prompt, output)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_constant_prompts_wait_as_in_m_d_1(load):
    ones = np.ones(REQUESTS, dtype=np.int64)
    run = simulate(single_server(100), poisson(load / 0.1, 100 * ones, ones, 1))
    # Pollaczek-Khinchine: wait = load * service / (2 (1 - load)).
    expected = 0.1 + load * 0.1 / (2 * (1 - load))
    assert run.mean("ttft") == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_exponential_prompts_stay_as_in_m_m_1(load):
    stream = np.random.default_rng(2)
    prompt = np.maximum(np.rint(stream.exponential(200.0, REQUESTS)), 1).astype(np.int64)
    ones = np.ones(REQUESTS, dtype=np.int64)
    run = simulate(single_server(8000), poisson(load / 0.2, prompt, ones, 3))
    # The stay is exponential with mean 1 / (service rate - rate).
    mean = 0.2 / (1 - load)
    assert run.mean("ttft") == pytest.approx(mean, rel=0.06)
    assert run.percentiles("ttft", [0.95])[0] == pytest.approx(3.0 * mean, rel=0.08)


def erlang_c(servers, work):
    full = work**servers / factorial(servers) * servers / (servers - work)
    return full / (sum(work**k / factorial(k) for k in range(servers)) + full)


@pytest.mark.parametrize(("servers", "load"), [(2, 0.7), (5, 0.8), (10, 0.8)])
def test_slots_of_equal_steps_wait_as_in_m_m_c(servers, load):
    stream = np.random.default_rng(4)
    steps = stream.geometric(1 / 2000, REQUESTS // 2)
    table = (0.0,) * (servers + 2)
    d = Deployment(
        decode=(0.0, *(1e-3,) * servers),
        decode_context=table,
        stall=table,
        alone=table,
        sequences=servers,
        budget=servers + 1,
    )
    run = simulate(d, poisson(load * servers / 2.0, np.ones_like(steps), steps + 1, 5))
    waited = run.admitted[run.measured] - run.arrival[run.measured]
    # An idle server begins at once, a busy one within its step of 1 ms.
    expected = erlang_c(servers, load * servers)
    assert (waited > 1e-3).mean() == pytest.approx(expected, rel=0.06)
    assert waited.mean() == pytest.approx(expected * 2.0 / (servers * (1 - load)), rel=0.12)
    assert run.batch == pytest.approx(load * servers, rel=0.02)


def test_random_routing_makes_each_replica_an_m_d_1_queue_of_its_share():
    ones = np.ones(REQUESTS, dtype=np.int64)
    d = replace(single_server(100), replicas=4, routing="random")
    run = simulate(d, poisson(4 * 0.6 / 0.1, 100 * ones, ones, 6), seed=1)
    assert run.mean("ttft") == pytest.approx(0.1 + 0.6 * 0.1 / (2 * 0.4), rel=0.03)


def test_no_waiting_below_capacity_with_even_arrivals():
    ones = np.ones(1000, dtype=np.int64)
    run = simulate(single_server(100), Arrivals(0.11 * np.arange(1000), 100 * ones, ones))
    np.testing.assert_allclose(run.ttft, 0.1, rtol=1e-9)
    assert run.utilization == pytest.approx(0.1 / 0.11, rel=2e-3)
