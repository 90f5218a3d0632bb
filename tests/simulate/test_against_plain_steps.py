"""Leaps, phases and heaps change nothing: the same times as stepping through every token."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.simulate import Arrivals, Deployment, simulate


@st.composite
def deployments(draw):
    budget = draw(st.integers(4, 60))
    sequences = draw(st.integers(1, 12))
    batch = np.arange(sequences + 1)
    tokens = np.arange(budget + 1)
    draft = draw(st.sampled_from([0, 0, 0, 2]))
    return Deployment(
        decode=tuple((0.010 + 0.0007 * batch).tolist()),
        decode_context=tuple((1e-5 / np.maximum(batch, 1) + 3e-5).tolist()),
        stall=tuple((0.001 + 0.0005 * tokens).tolist()),
        alone=tuple(np.maximum(0.009, 0.0006 * tokens).tolist()),
        full_prefill=2e-6,
        window_prefill=5e-6,
        top_k=draw(st.sampled_from([20.0, np.inf])),
        window=draw(st.sampled_from([8.0, np.inf])),
        lag=draw(st.sampled_from([0.0, 1.0])),
        accepted=draw(st.sampled_from([1.37, 2.5, 3.0])) if draft else 1.0,
        draft_tokens=draft,
        blocks=draw(st.integers(4, 60)),
        block=draw(st.sampled_from([1, 4, 16])),
        sequences=sequences,
        budget=budget,
        reserve_all=draw(st.booleans()),
        prefill_first=draw(st.booleans()),
        poll_steps=draw(st.sampled_from([1, 1, 3])),
        replicas=draw(st.integers(1, 3)),
        ranks=draw(st.sampled_from([1, 1, 2])),
        routing=draw(st.sampled_from(["least_loaded", "round_robin"])),
        prefix_hit=draw(st.sampled_from([0.0, 0.4, 1.0])),
    )


@st.composite
def requests(draw):
    count = draw(st.integers(1, 40))
    stream = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rate = draw(st.sampled_from([2.0, 10.0, 40.0, 400.0]))
    return Arrivals(
        np.cumsum(stream.exponential(1.0 / rate, count)),
        stream.integers(1, draw(st.sampled_from([20, 90])), count),
        stream.integers(1, draw(st.sampled_from([5, 60])), count),
    )


@settings(max_examples=400, deadline=None)
@given(d=deployments(), a=requests())
def test_every_token_time_is_that_of_the_plain_simulator(plain_fleet, d, a):
    run = simulate(d, a, warm_up=0.0, cool_down=0.0)
    plain, servers = plain_fleet(d, a)
    first = np.array([r.first + r.lag for r in plain]) - a.time
    done = np.array([r.done + r.lag for r in plain]) - a.time
    np.testing.assert_allclose(run.ttft, first, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.e2e, done, rtol=0, atol=1e-9)
    assert run.preemptions == sum(r.preemptions for r in plain)
    assert max(s.most_blocks for s in servers) <= d.blocks
    assert max(s.most_tokens for s in servers) <= max(d.budget, d.slots * (1 + d.draft_tokens))


@settings(max_examples=150, deadline=None)
@given(d=deployments(), a=requests())
def test_gaps_between_tokens_are_those_of_the_plain_simulator(plain_fleet, d, a):
    run = simulate(d, a, warm_up=0.0, cool_down=0.0)
    plain, _ = plain_fleet(d, a)
    gaps = np.concatenate([[], *(r.gaps for r in plain)])
    assume(not (d.prefill_first and run.preemptions))
    np.testing.assert_allclose((run.gap * run.gaps).sum(), gaps.sum(), rtol=1e-9)
    assert run.gaps.sum() == len(gaps)
