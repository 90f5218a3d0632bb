from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.arrays import Candidates
from planner.model.batching import bulk_prefill, closed_loop, offline_batch
from planner.model.forward import decode_step, prefill
from planner.model.terms import terms
from tests.model.by_hand import UNIFORM, candidate, floats, load, value
from tests.random_candidates import Kinds, parameters, random_candidates

KINDS = Kinds(engines=(0, 1, 2), replicas=(1, 2))
SEEDS = st.integers(0, 10_000)


def loads(rng, rows):
    identical = rng.integers(0, 2, rows).astype(float)
    return replace(
        load(rows),
        prompt=rng.uniform(10, 20_000, rows),
        output=rng.uniform(2, 4000, rows),
        concurrency=rng.uniform(1, 400, rows),
        identical=identical,
        waves=rng.choice([1.0, 10.0, np.inf], rows),
        requests=rng.uniform(400, 4000, rows),
    )


def test_one_request_alone_waits_for_nobody():
    out = closed_loop(candidate(), UNIFORM, load(concurrency=1))
    t = terms(candidate(), UNIFORM)
    alone = value(prefill(t, UNIFORM, floats(1000)).alone)
    step = value(decode_step(t, UNIFORM, floats(1), floats(1100)))
    # Half a step until the engine looks for new prompts.
    assert value(out.ttft) == pytest.approx(alone + 0.5 * step)
    assert value(out.tpot) == pytest.approx(step)


@given(seed=SEEDS)
def test_littles_law_closes(seed):
    c = random_candidates(8, seed, KINDS)
    asked = loads(np.random.default_rng(seed), len(c))
    out = closed_loop(c, parameters(), asked)
    np.testing.assert_allclose(out.output_rate * out.e2e / asked.output, asked.concurrency)


@given(seed=SEEDS)
def test_the_prefill_work_of_the_others_is_paid_once(seed):
    """In a steady loop that memory does not limit: waited for, or as slower steps."""
    c, p = random_candidates(8, seed, KINDS), parameters()
    asked = replace(loads(np.random.default_rng(seed), len(c)), concurrency=np.full(len(c), 8.0))
    out = closed_loop(c, p, asked)
    t = terms(c, p)
    step = decode_step(t, p, out.batch, asked.prompt + 0.5 * asked.output)
    stall = prefill(t, p, asked.prompt, 0.0, c.layout.token_budget).stall
    others = np.maximum(out.resident - 1, 0) * stall
    in_steps = (out.tpot - step) * asked.output
    assert (in_steps >= -1e-9).all()
    assert (in_steps <= others * (1 + 1e-9)).all()


@settings(max_examples=25)
@given(seed=SEEDS)
def test_rows_do_not_know_of_each_other(seed):
    c, p = random_candidates(6, seed, KINDS), parameters()
    asked = loads(np.random.default_rng(seed), len(c))
    together = closed_loop(c, p, asked)
    order = np.random.default_rng(seed).permutation(len(c))
    shuffled = closed_loop(c.take(order), p, asked.take(order))
    for i in range(len(c)):
        row = np.array([i])
        single = closed_loop(c.take(row), p, asked.take(row))
        place = int(np.flatnonzero(order == i)[0])
        for name in ("ttft", "tpot", "e2e", "output_rate"):
            expected = getattr(together, name)[i]
            assert getattr(single, name)[0] == pytest.approx(expected, rel=1e-12)
            assert getattr(shuffled, name)[place] == pytest.approx(expected, rel=1e-12)


@given(seed=SEEDS, factor=st.floats(1.01, 3))
def test_more_bandwidth_never_makes_a_request_slower(seed, factor):
    c, p = random_candidates(8, seed, KINDS), parameters()
    asked = loads(np.random.default_rng(seed), len(c))
    faster = replace(c, chip=replace(c.chip, bandwidth=c.chip.bandwidth * factor))
    before, after = closed_loop(c, p, asked).e2e, closed_loop(faster, p, asked).e2e
    assert (after <= before * (1 + 1e-3)).all()


@given(seed=SEEDS, factor=st.floats(1.05, 3))
def test_a_longer_prompt_is_never_answered_sooner(seed, factor):
    c, p = random_candidates(8, seed, KINDS), parameters()
    asked = replace(loads(np.random.default_rng(seed), len(c)), concurrency=np.full(len(c), 4.0))
    longer = replace(asked, prompt=asked.prompt * factor)
    before, after = closed_loop(c, p, asked), closed_loop(c, p, longer)
    assert (after.ttft >= before.ttft * (1 - 1e-3)).all()
    assert (after.e2e >= before.e2e * (1 - 1e-3)).all()


def doubled(c: Candidates) -> Candidates:
    return replace(c, layout=replace(c.layout, replicas=c.layout.replicas * 2))


@given(seed=SEEDS)
def test_twice_the_replicas_serve_twice_the_requests_as_fast(seed):
    """But for the front end, of which each replica has one."""
    c, p = random_candidates(8, seed, KINDS), parameters()
    asked = loads(np.random.default_rng(seed), len(c))
    twice = replace(asked, concurrency=asked.concurrency * 2)
    np.testing.assert_allclose(
        closed_loop(doubled(c), p, twice).e2e, closed_loop(c, p, asked).e2e, rtol=1e-9
    )


def test_requests_beyond_the_cache_wait_for_whole_lives():
    c = candidate(chip={"memory": 16e9 + 10 * 1100 * 131_072})
    asked = load(concurrency=20)
    out = closed_loop(c, UNIFORM, asked)
    assert value(out.fits) == pytest.approx(10, rel=0.02)
    resident = value(out.resident)
    served = closed_loop(c, UNIFORM, load(concurrency=resident))
    life = value(served.ttft) + 200 * value(served.tpot)
    expected = value(served.ttft) + (20 / resident - 1) * life
    assert value(out.ttft) == pytest.approx(expected, rel=0.02)


def test_an_offline_batch_takes_its_prefills_and_then_its_steps():
    out = offline_batch(candidate(), UNIFORM, load(requests=32, concurrency=np.inf))
    t = terms(candidate(), UNIFORM)
    prompts = value(bulk_prefill(t, UNIFORM, floats(1000), floats(32)))
    step = value(decode_step(t, UNIFORM, floats(32), floats(1100)))
    assert value(out.run) == pytest.approx(prompts + 199 * step)
    assert value(out.output_rate) == pytest.approx(32 * 200 / value(out.run))


def test_a_job_of_fewer_requests_than_replicas_is_as_fast_as_one_request():
    one = offline_batch(candidate(), UNIFORM, load(requests=1, concurrency=np.inf))
    many = candidate(layout={"replicas": 8})
    for requests in (1, 3, 8):
        spread = offline_batch(many, UNIFORM, load(requests=requests, concurrency=np.inf))
        assert value(spread.run) == pytest.approx(value(one.run))
    # Nine requests on eight replicas: one of them serves two.
    two = offline_batch(candidate(), UNIFORM, load(requests=2, concurrency=np.inf))
    nine = offline_batch(many, UNIFORM, load(requests=9, concurrency=np.inf))
    assert value(nine.run) == pytest.approx(value(two.run))


def test_an_offline_batch_beyond_memory_runs_in_waves():
    c = candidate(chip={"memory": 16e9 + 10 * 1100 * 131_072})
    small = offline_batch(c, UNIFORM, load(requests=10, concurrency=np.inf))
    large = offline_batch(c, UNIFORM, load(requests=40, concurrency=np.inf))
    assert value(large.run) == pytest.approx(4 * value(small.run), rel=0.05)
