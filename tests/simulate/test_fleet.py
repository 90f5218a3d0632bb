"""Laws of a fleet: nothing is lost, more is never worse, the same seed gives the same bytes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.simulate import Arrivals, Deployment, random_arrivals, simulate


def small(**changes):
    batch, tokens = np.arange(33), np.arange(513)
    plain = Deployment(
        decode=tuple((0.010 + 2e-4 * batch).tolist()),
        decode_context=(1e-7,) * 33,
        stall=tuple((1e-3 + 1e-4 * tokens).tolist()),
        alone=tuple((9e-3 + 1e-4 * tokens).tolist()),
        full_prefill=1e-8,
        blocks=1500,
        sequences=32,
        budget=512,
    )
    return replace(plain, **changes)


def chat(rate, requests=4000, seed=0, burstiness=1.0):
    return random_arrivals(
        rate,
        requests,
        lambda u: 50 + 500 * u**3,
        lambda u: 1 + 120 * u,
        burstiness=burstiness,
        seed=seed,
    )


@settings(max_examples=60, deadline=None)
@given(
    rate=st.floats(1.0, 200.0),
    blocks=st.integers(20, 300),
    replicas=st.integers(1, 4),
    routing=st.sampled_from(["least_loaded", "round_robin", "random"]),
    seed=st.integers(0, 1000),
)
def test_every_request_that_fits_finishes_in_order_of_its_events(
    rate, blocks, replicas, routing, seed
):
    arrivals = chat(rate, 300, seed)
    d = small(blocks=blocks, replicas=replicas, routing=routing)
    run = simulate(d, arrivals, seed=seed, warm_up=0, cool_down=0)
    fits = -(-(arrivals.prompt + arrivals.output) // 16) <= blocks
    assert run.rejected == (~fits).sum()
    assert np.isfinite(run.e2e[fits]).all()
    assert np.isinf(run.ttft[~fits]).all()
    assert (run.admitted[fits] >= run.arrival[fits]).all()
    assert (run.arrival + run.ttft > run.admitted)[fits].all()
    several = fits & (arrivals.output > 1)
    assert (run.e2e[several] > run.ttft[several]).all()
    # Each token but a request's first ends one gap.
    assert run.gaps.sum() == (arrivals.output[fits] - 1).sum()


@pytest.mark.parametrize("routing", ["least_loaded", "round_robin", "random"])
def test_the_same_seed_gives_the_same_bytes(routing):
    d = small(replicas=3, routing=routing)
    one, two = (simulate(d, chat(30.0), seed=7) for _ in range(2))
    for name in ("ttft", "tpot", "e2e", "admitted", "gap", "gaps"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


def test_another_seed_routes_at_random_otherwise():
    d = small(replicas=3, routing="random")
    one, two = (simulate(d, chat(30.0), seed=seed) for seed in (1, 2))
    assert (one.ttft != two.ttft).any()


@pytest.mark.parametrize("routing", ["least_loaded", "round_robin", "random"])
def test_one_more_replica_never_waits_longer(routing):
    waits = [
        np.mean(
            [
                simulate(small(replicas=n, routing=routing), chat(20.0, seed=s), seed=s).mean(
                    "ttft"
                )
                for s in range(4)
            ]
        )
        for n in (1, 2, 3, 4)
    ]
    assert waits == sorted(waits, reverse=True)


def test_a_higher_rate_never_lowers_p95():
    rates = [
        [simulate(small(), chat(rate, seed=seed)) for seed in range(4)]
        for rate in (2.0, 5.0, 8.0, 11.0, 20.0)
    ]
    for metric in ("ttft", "tpot", "e2e", "itl"):
        values = [np.mean([run.percentiles(metric, [0.95]) for run in runs]) for runs in rates]
        assert values == sorted(values), metric


def test_the_shortest_queue_waits_less_than_a_random_one():
    least, drawn = (
        simulate(small(replicas=4, routing=r), chat(40.0), seed=3).percentiles("ttft", [0.95])[0]
        for r in ("least_loaded", "random")
    )
    assert least < 0.9 * drawn


def test_bursts_wait_longer():
    even, bursty = (
        simulate(small(), chat(8.0, burstiness=b)).percentiles("ttft", [0.95])[0]
        for b in (1.0, 6.0)
    )
    assert bursty > 1.5 * even


def test_no_request_runs_nowhere():
    run = simulate(small(), Arrivals(np.array([]), np.array([], int), np.array([], int)))
    assert run.rejected == 0
    assert np.isnan(run.percentiles("ttft", [0.5])[0])


def test_without_kv_memory_everything_is_rejected_and_misses_every_limit():
    run = simulate(small(blocks=0), chat(5.0, 100))
    assert run.rejected == 100
    assert run.percentiles("e2e", [0.01]) == (np.inf,)
    assert run.attainment({"ttft": 10.0}) == 0.0
