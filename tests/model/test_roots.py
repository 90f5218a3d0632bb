"""Roots of falling functions: known ones, with jumps and kinks, and in how few steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.roots import ROUND, falling_root

LOWEST, HIGHEST = -14.0, 14.0
PLACES = st.lists(st.floats(-13.0, 13.0), min_size=1, max_size=20).map(np.array)


def roots_of(function, count, low=None, high=None, jumps=None):
    least, most = np.full(count, LOWEST), np.full(count, HIGHEST)
    asked = []

    def rows(which):
        def value(x):
            asked.append(len(x))
            return function(x, which)

        return value

    low, high = least if low is None else low, most if high is None else high
    return falling_root(rows, (low, high), (least, most), jumps), asked


def assert_at(found, places):
    assert found == pytest.approx(places, rel=0, abs=3e-12)


@given(PLACES)
def test_smooth_functions(places):
    found, _ = roots_of(lambda x, at: np.tanh(places[at] - x), len(places))
    assert_at(found, places)


@given(PLACES)
def test_a_jump_across_zero_is_found_like_a_root(places):
    found, _ = roots_of(lambda x, at: np.where(x < places[at], 0.95, -0.05), len(places))
    assert_at(found, places)


@given(PLACES, st.floats(0.0, 5.0))
def test_after_a_jump_to_a_flat_stretch_at_zero_the_jump_is_found(places, width):
    def function(x, at):
        past = x - places[at]
        return np.where(past < 0.0, 0.5 - past, -np.maximum(past - width, 0.0))

    found, _ = roots_of(function, len(places))
    assert_at(found, places)


@given(PLACES, st.floats(-3.0, 3.0))
def test_a_first_guess_only_saves_steps_wherever_the_root_is(places, off):
    low = np.clip(places + off, LOWEST, HIGHEST)
    found, _ = roots_of(
        lambda x, at: np.exp(-x) - np.exp(-places[at]), len(places), low, low + 0.08
    )
    assert_at(found, places)


def test_smooth_roots_near_the_guess_take_few_steps():
    """Halving 0.08 to 1e-12 takes 37."""
    places = np.linspace(-5.0, 5.0, 50)
    _, asked = roots_of(
        lambda x, at: np.exp(-x) - np.exp(-places[at]), 50, places - 0.03, places + 0.05
    )
    assert sum(asked) <= 50 * 9


def test_a_jump_whose_place_is_known_takes_one_round():
    """Of three places of which it may jump at one: not the 37 halvings of 0.08 to 1e-12."""
    places = np.linspace(-5.0, 5.0, 50)
    known = np.stack([places - 0.4, places, places + 0.2])
    found, asked = roots_of(
        lambda x, at: np.where(x < places[at], 0.95, -0.05),
        50,
        places - 0.03,
        places + 0.05,
        known,
    )
    assert_at(found, places)
    assert asked == [50] * (2 + ROUND)


@given(PLACES, st.lists(st.floats(-14.0, 14.0), min_size=1, max_size=4))
def test_places_where_nothing_jumps_do_no_harm(places, elsewhere):
    known = np.repeat(np.array(elsewhere)[:, None], len(places), axis=1)
    for function in (
        lambda x, at: np.tanh(places[at] - x),
        lambda x, at: np.where(x < places[at], 0.95, -0.05),
    ):
        found, _ = roots_of(function, len(places), jumps=known)
        assert_at(found, places)


def test_no_rows_no_roots():
    found, _ = roots_of(lambda x, _: x, 0)
    assert found.shape == (0,)


def test_hard_rows_do_not_hold_up_the_others():
    """One jump among 99 smooth rows: the others are left out after the first rounds."""
    places = np.linspace(-1.0, 1.0, 100)
    jump = np.arange(100) == 7

    def function(x, at):
        smooth = np.exp(-x) - np.exp(-places[at])
        return np.where(jump[at], np.where(x < places[at], 1.0, -1.0), smooth)

    found, asked = roots_of(function, 100, places - 0.03, places + 0.05)
    assert_at(found, places)
    assert asked[-1] == pytest.approx(1, abs=2)
