"""Rounding, the non-dominated filter and the hypervolume."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.pareto import hypervolume, nondominated, ranks, rounded, rounded_number


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (123456.7, 6, 123457.0),
        (0.00123456789, 6, 0.00123457),
        (-0.00123456789, 6, -0.00123457),
        (1.0, 6, 1.0),
        (0.0, 6, 0.0),
        (999999.6, 6, 1e6),
        (1307.4, 3, 1310.0),
        (1e-300, 6, 0.0),
        (3e300, 6, 3e300),
        (math.inf, 6, math.inf),
    ],
)
def test_rounding_keeps_significant_digits(value, digits, expected):
    assert float(rounded(value, digits)) == expected


@given(st.floats(1e-200, 1e200))
def test_rounding_twice_is_rounding_once(value):
    once = rounded(value)
    assert float(rounded(once)) == float(once)


@given(st.floats(1e-12, 1e12))
def test_a_rounded_number_prints_with_at_most_six_digits(value):
    assert float(f"{float(rounded(value)):.6g}") == float(rounded(value))


@given(st.floats())
def test_one_number_is_rounded_as_an_array_of_it_is(value):
    np.testing.assert_equal(rounded_number(value), float(rounded(value)))


def plain_front(points):
    """The definition: no other row is at least as good everywhere; of equal rows the first."""
    kept = []
    for i, row in enumerate(points):
        beaten = any(
            all(a <= b for a, b in zip(other, row, strict=True))
            and (tuple(other) != tuple(row) or j < i)
            for j, other in enumerate(points)
            if j != i
        )
        kept.append(not beaten)
    return kept


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 4), min_size=1, max_size=40))
def test_the_filter_agrees_with_the_definition(points):
    array = np.array(points, dtype=float)
    assert nondominated(array).tolist() == plain_front(points)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 5)), max_size=40),
)
def test_sets_are_filtered_apart(rows):
    sets = np.array([row[0] for row in rows], dtype=np.intp)
    points = np.array([row[1:] for row in rows], dtype=float).reshape(-1, 2)
    mask = nondominated(points, sets)
    for number in range(4):
        mine = sets == number
        assert mask[mine].tolist() == plain_front(points[mine].tolist())


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=30))
def test_ranks_are_fronts_peeled_off_one_by_one(points):
    array = np.array(points, dtype=float).reshape(-1, 3)
    expected, left, rank = {}, sorted(set(points)), 0
    while left:
        front = plain_front(left)
        expected |= {row: rank for row, on in zip(left, front, strict=True) if on}
        left, rank = [row for row, on in zip(left, front, strict=True) if not on], rank + 1
    assert ranks(array).tolist() == [expected[row] for row in points]


def test_an_endless_latency_never_beats_a_finite_one():
    points = np.array([[1.0, np.inf], [1.0, 5.0]])
    assert nondominated(points).tolist() == [False, True]
    assert ranks(points).tolist() == [1, 0]


def test_the_hypervolume_of_two_boxes_is_their_union():
    # [1,4]x[3,4] has area 3, [2,4]x[1,4] area 6; they share [2,4]x[3,4] with area 2.
    points = np.array([[1.0, 3.0], [2.0, 1.0]])
    assert hypervolume(points, np.array([4.0, 4.0])) == pytest.approx(7.0)


def test_an_empty_front_dominates_nothing():
    assert hypervolume(np.zeros((0, 2)), np.ones(2)) == 0.0
    assert nondominated(np.zeros((0, 3))).tolist() == []
