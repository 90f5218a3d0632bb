"""Composition of weight and cache losses, and rounding to half a point."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.quality import Losses, compose, objective


def losses(median: float, p90: float) -> Losses:
    return Losses(np.array([median]), np.array([p90]))


@pytest.mark.parametrize(
    ("weights", "kv", "expected"),
    [
        ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
        ((0.01, 0.04), (0.0, 0.0), (0.01, 0.04)),
        # 1 - 0.99 * 0.98 = 0.0298; sqrt(0.03^2 + 0.04^2) = 0.05
        ((0.01, 0.04), (0.02, 0.06), (0.0298, 0.0798)),
        # The gain counts as 0: median 0.02, spreads 0.03 and 0.04.
        ((-0.05, 0.03), (0.02, 0.06), (0.02, 0.07)),
        ((-0.02, -0.01), (-0.01, 0.0), (0.0, 0.0)),
        ((0.6, 1.0), (0.5, 1.0), (0.8, 1.0)),
    ],
    ids=["nothing lost", "one alone", "by hand", "a gain", "two gains", "never over everything"],
)
def test_composition_matches_hand_computed_cases(weights, kv, expected):
    both = compose(losses(*weights), losses(*kv))
    np.testing.assert_allclose([both.median[0], both.p90[0]], expected, atol=1e-12)


# vLLM blog of 2026-04-22, scores with (BF16, BF16), (FP8 weights, BF16 cache), (BF16 weights, FP8
# cache), (FP8, FP8); the first three are means of AIME25, GPQA Diamond, LiveCodeBench-v6 and
# MATH-500, the others the area under openai/mrcr.
PUBLISHED = {
    "Qwen3-30B-A3B, H100": (79.325, 78.75, 77.95, 78.375),
    "Qwen3-30B-A3B, B200": (79.425, 78.8, 78.1, 77.675),
    "Qwen3.5-27B, H100": (86.1, 86.025, 85.85, 86.1),
    "Qwen3-30B-A3B, H100, long context": (45.8, 44.9, 43.1, 43.9),
    "Qwen3-30B-A3B, B200, long context": (45.8, 46.2, 42.4, 44.2),
    "Llama-3.3-70B, H100, long context": (38.9, 38.4, 38.2, 37.3),
}


def test_composition_is_pessimistic_in_five_of_six_published_cells_and_a_point_short_in_one():
    base, weights, kv, together = np.array(list(PUBLISHED.values())).T
    alone = 1 - weights / base, 1 - kv / base
    excess = compose(Losses(alone[0], alone[0]), Losses(alone[1], alone[1])).median - (
        1 - together / base
    )
    short = [name for name, value in zip(PUBLISHED, excess, strict=True) if value < 0]
    assert short == ["Llama-3.3-70B, H100, long context"]
    assert excess.min() == pytest.approx(-0.0105, abs=0.0005)
    assert excess.max() < 0.045


@pytest.mark.parametrize(
    ("loss", "expected"),
    [(-0.03, 0.0), (0.0, 0.0), (0.0001, 0.005), (0.005, 0.005), (0.0051, 0.01), (0.298, 0.3)],
)
def test_the_objective_is_the_loss_rounded_up_to_half_a_point(loss, expected):
    assert objective(np.array([loss]))[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("steps", range(0, 201, 7))
def test_a_loss_on_the_grid_is_not_lifted_by_float_error(steps):
    loss = 1 - (1 - steps / 200) * 1.0
    assert objective(np.array([loss]))[0] == pytest.approx(steps * 0.005, abs=1e-12)


shares = st.floats(-0.5, 1.0)
pairs = st.tuples(shares, shares).map(sorted)


@given(weights=pairs, kv=pairs)
def test_together_they_lose_at_least_as_much_as_either_and_at_most_the_sum(weights, kv):
    both = compose(losses(*weights), losses(*kv))
    low = np.maximum([weights[0], kv[0]], 0)
    high = np.maximum([weights[1], kv[1]], 0)
    assert low.max() - 1e-12 <= both.median[0] <= low.sum() + 1e-12
    assert both.median[0] - 1e-12 <= both.p90[0] <= min(high.sum(), 1) + 1e-12


@given(weights=pairs, kv=pairs, more=st.floats(0, 0.3))
def test_a_worse_part_never_makes_the_pair_better(weights, kv, more):
    both = compose(losses(*weights), losses(*kv))
    worse = compose(losses(*(value + more for value in weights)), losses(*kv))
    assert worse.median[0] >= both.median[0] - 1e-12
    assert worse.p90[0] >= both.p90[0] - 1e-12


@given(weights=pairs, kv=pairs)
def test_weights_and_cache_may_be_swapped(weights, kv):
    one, other = compose(losses(*weights), losses(*kv)), compose(losses(*kv), losses(*weights))
    np.testing.assert_allclose([*one.median, *one.p90], [*other.median, *other.p90], atol=1e-12)


@given(st.lists(st.tuples(pairs, pairs), min_size=1, max_size=20))
def test_many_rows_at_once_equal_the_rows_one_by_one(rows):
    weights, kv = (np.array(side) for side in zip(*rows, strict=True))
    all_at_once = compose(Losses(*weights.T), Losses(*kv.T))
    one_by_one = [compose(losses(*w), losses(*k)) for w, k in rows]
    np.testing.assert_array_equal(all_at_once.p90, [both.p90[0] for both in one_by_one])
    np.testing.assert_array_equal(all_at_once.median, [both.median[0] for both in one_by_one])


@given(a=st.floats(0, 1), b=st.floats(0, 1))
def test_the_objective_keeps_the_order_of_losses(a, b):
    low, high = sorted((a, b))
    first, second = objective(np.array([low, high]))
    assert first <= second
    assert second - high < 0.005 + 1e-9
    assert second >= high - 1e-10
