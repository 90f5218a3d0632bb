"""Where KV memory fills up: who is resident, and what is computed again."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.memory import (
    block_tokens,
    kv_bytes,
    kv_bytes_per_token,
    kv_pool_bytes,
    sequences_of_lengths,
)
from planner.model.queueing import capacity
from planner.model.queueing.resident import resident
from planner.model.queueing.saturation import saturation
from planner.model.queueing.service import service
from planner.model.workload import Workload, workload
from tests.model.queueing_candidates import PARAMETERS, server, with_layout
from tests.random_candidates import Kinds, parameters, random_candidates

NORMAL = NormalDist()
KINDS = Kinds(engines=(0, 1, 2), draft_tokens=(0, 0, 3))


def constant(prompt: float, output: float) -> Workload:
    return workload(lambda _: prompt, lambda _: output)


def log_normal(mean: float, sigma: float):
    return lambda rank: mean * np.exp(sigma * NORMAL.inv_cdf(min(rank, 0.999)) - sigma**2 / 2)


def held_in(tokens: float, **columns: float):
    """One server of one byte a token and that many bytes; a step of 10 ms + 0.1 ms a token."""
    c = server(token_time=1e-4, launch=0.01, token_budget=1e5, **columns)
    c = replace(
        c, model=replace(c.model, full_kv=np.ones(1), attention_parameters=np.array([0.5e-4]))
    )
    spare = kv_pool_bytes(c)[0] - c.chip.memory[0]
    return replace(c, chip=replace(c.chip, memory=np.array([tokens - spare])))


def with_engine(c, **values: float):
    columns = {name: np.full(len(c), float(value)) for name, value in values.items()}
    return replace(c, engine=replace(c.engine, **columns))


@pytest.mark.parametrize(("tokens", "spread"), [(100, 60), (40, 39), (777, 300), (5, 3)])
def test_sequences_of_many_lengths_hold_the_mean_of_their_whole_blocks(tokens, spread):
    c = random_candidates(40, 3, KINDS)
    plain = np.flatnonzero((c.model.window == 0) & (c.model.state_elements == 0))
    c = c.take(plain)
    lengths = np.arange(tokens - spread, tokens + spread + 1)
    held = np.mean([np.ceil(length / block_tokens(c)) * block_tokens(c) for length in lengths], 0)
    np.testing.assert_allclose(
        sequences_of_lengths(c, np.array([float(tokens)]), np.array([spread + 0.5])),
        kv_pool_bytes(c) / (held * kv_bytes_per_token(c)),
    )


def test_sequences_of_one_length_hold_the_blocks_of_it():
    c = random_candidates(40, 3, KINDS)
    got = sequences_of_lengths(c, np.array([1001.0]), np.zeros(1))
    np.testing.assert_allclose(got, kv_pool_bytes(c) / kv_bytes(c, np.full(len(c), 1001.0)))


def test_memory_holds_sequences_of_all_ages_and_half_a_prompt_is_unused():
    # 300,000 tokens; prompts of 1000 and 401 tokens more: (300,000 - 500) / 1200.
    got = resident(service(held_in(300_000.0), PARAMETERS, constant(1000, 401)))
    assert got.memory[0] == pytest.approx(299_500 / 1200, rel=1e-3)
    assert got.held[0] == pytest.approx(got.memory[0], rel=1e-6)
    assert got.growing[0] == pytest.approx(1)


def test_engines_that_reserve_the_output_hold_final_lengths_and_compute_nothing_again():
    c = with_engine(held_in(300_000.0), full_length=1)
    got = saturation(service(c, PARAMETERS, constant(1000, 401)))
    assert got.slots[0] == pytest.approx(300_000 / 1401, rel=1e-3)
    assert got.rework[0] == 0


@pytest.mark.parametrize("apart", [-2.0, -0.5, 0.0, 1.0, 3.0])
def test_near_the_batch_limit_the_number_resident_is_the_mean_of_the_smaller_one(apart):
    w = workload(log_normal(500, 0.8), log_normal(400, 0.8))
    free = resident(service(held_in(300_000.0), PARAMETERS, w))
    fits = free.memory[0]
    unused = w.prompt_square / (2 * w.prompt_mean) / w.context
    deviation = np.sqrt(fits * w.context_cv2 + unused**2 / 3)
    limit = fits + apart * deviation
    drawn = np.random.default_rng(1).normal(fits, deviation, 200_000)
    got = resident(service(held_in(300_000.0, max_sequences=limit), PARAMETERS, w))
    assert got.held[0] == pytest.approx(np.minimum(drawn, limit).mean(), rel=1e-3)
    assert got.growing[0] == pytest.approx((drawn < limit).mean(), abs=5e-3)


@pytest.mark.parametrize(("prompt", "output"), [(2000, 101), (1000, 1001), (100, 2001)])
def test_as_many_tokens_are_computed_again_as_grow_but_for_steps_in_which_a_sequence_ends(
    prompt, output
):
    # Memory of 50 sequences, a room that prompts never fill.
    steps = output - 1
    w = constant(prompt, output)
    got = saturation(service(held_in(50.0 * (prompt + steps / 2)), PARAMETERS, w))
    assert got.prompts[0] * steps < got.slots[0] == pytest.approx(50, rel=0.03)
    expected = steps / prompt * np.exp(-got.prompts[0])
    assert got.rework[0] == pytest.approx(expected, rel=0.01)


def test_nothing_is_computed_again_where_prompts_that_would_fit_wait_for_tokens():
    # 2000 tokens of 101 steps: 50 sequences bring 1000 prompt tokens a step.
    w = constant(2000, 101)
    c = held_in(50.0 * 2050)
    budgets = np.array([1e5, 3000.0, 2000.0, 1500.0, 1200.0, 1050.0])
    c = with_layout(c.take(np.zeros(len(budgets), dtype=int)), token_budget=budgets)
    got = saturation(service(c, PARAMETERS, w)).rework
    assert (np.diff(got) < 0).all()
    assert got[0] == pytest.approx(0.05 * np.exp(-0.5), rel=0.05)
    assert got[-1] < 0.15 * got[0]


def random_workload(rng: np.random.Generator) -> Workload:
    prompt, output = np.exp(rng.uniform(np.log([50, 30]), np.log([12_000, 3_000])))
    return workload(
        log_normal(prompt, rng.choice([0, 0.5, 1])), log_normal(output, rng.choice([0, 0.5, 1]))
    )


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_a_little_more_of_anything_changes_capacity_a_little_and_memory_only_helps(seed):
    rng = np.random.default_rng(seed)
    w = random_workload(rng)
    one = random_candidates(1, seed, KINDS)
    fits = max(resident(service(one, parameters(), w)).memory[0], 2.0)
    steps = 1.001 ** np.arange(-600, 600)
    c = one.take(np.zeros(len(steps), dtype=int))
    # Engines set memory aside for the largest batch.
    c = with_engine(c, startup_sequences=256)
    limits = capacity(with_layout(c, max_sequences=fits * steps), parameters(), w)
    memory = c.chip.memory * 1.0005 ** np.arange(-600, 600)
    c = with_layout(c, max_sequences=fits)
    richer = replace(c, chip=replace(c.chip, memory=memory))
    pools = capacity(richer, parameters(), w)
    held = resident(service(richer, parameters(), w)).memory >= 2
    assert np.abs(np.diff(np.log(limits[limits > 0]))).max(initial=0) <= 0.01
    assert (np.diff(pools) >= -1e-9 * pools[1:]).all()
    # Where memory is nearly all weights, a little more of it is much more for sequences.
    grown = np.diff(np.log(np.maximum(kv_pool_bytes(richer), 1.0)))
    jump = np.diff(np.log(np.maximum(pools, 1e-12)))
    assert (jump <= np.maximum(0.01, 3 * grown))[held[:-1]].all()
