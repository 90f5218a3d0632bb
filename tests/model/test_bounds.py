from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from planner.candidates.efficiency import global_parameters
from planner.catalog import load_catalog
from planner.measured.values import GLOBALS
from planner.model.batching import closed_loop, offline_batch
from planner.model.bounds import MOST_SKEWED, bound_prefill, bound_tpot
from planner.model.forward import decode_step
from planner.model.terms import terms
from tests.model.by_hand import candidate, floats, load, value
from tests.random_candidates import Kinds, parameters, random_candidates

COUNT = 1_000_000 if "PLANNER_SPEED" in os.environ else 20_000
BLOCK = 20_000
ROUNDING = 1 - 1e-9


def test_the_decode_bound_is_the_slower_of_reading_and_computing():
    # 16e9 B of weights and 100 x 1000 x 131,072 B of cache at 3e12 B/s.
    few = value(bound_tpot(candidate(), floats(100), floats(1000)))
    assert few == pytest.approx((16e9 + 100 * 1000 * 131_072) / 3e12, rel=1e-4)
    # 2 x 8e9 FLOP a token, and 4 x 32 x 128 x 32 a cached token, at 990e12 FLOP/s.
    many = value(bound_tpot(candidate(), floats(4000), floats(1)))
    assert many == pytest.approx(4000 * (16e9 + 524_288) / 990e12, rel=1e-3)


def test_the_prefill_bound_of_a_long_prompt_is_its_arithmetic():
    found = value(bound_prefill(candidate(), floats(4000)))
    expected = 4000 * (2 * (8e9 - 64 * 4096) + 2000 * 32 * 4 * 32 * 128) / 990e12
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_bound_skews_experts_more_than_any_fit_may():
    low = next(free.low for free in GLOBALS if free.place[-1] == "expert_popularity")
    assert low >= MOST_SKEWED


@pytest.mark.parametrize("seed", range(COUNT // BLOCK))
def test_no_prediction_beats_the_speed_of_light(seed):
    c, p = random_candidates(BLOCK, seed, Kinds(engines=(0, 1, 2))), parameters()
    rng = np.random.default_rng(seed)
    n = len(c)
    asked = replace(
        load(n),
        prompt=10 ** rng.uniform(0, 5, n),
        output=10 ** rng.uniform(0.3, 4, n),
        concurrency=10 ** rng.uniform(0, 3, n),
        requests=10 ** rng.uniform(0, 4, n),
    )
    context = asked.prompt + 0.5 * asked.output
    out = closed_loop(c, p, asked)
    assert (out.tpot >= bound_tpot(c, out.batch, context) * ROUNDING).all()
    assert (out.ttft >= bound_prefill(c, asked.prompt) * ROUNDING).all()
    batch = offline_batch(c, p, asked)
    assert (batch.tpot >= bound_tpot(c, batch.batch, context) * ROUNDING).all()
    t = terms(c, p)
    step = decode_step(t, p, asked.concurrency, context)
    assert (step >= bound_tpot(c, asked.concurrency, context) * ROUNDING).all()


def test_the_fitted_values_are_no_better_than_perfect():
    p = global_parameters(load_catalog().efficiency)
    shares = (p.attention_efficiency, p.grouped_gemm_efficiency, p.weight_only_expert_read)
    assert max(shares) <= 1
    assert p.expert_popularity >= MOST_SKEWED
