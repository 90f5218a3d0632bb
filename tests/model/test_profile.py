"""A daily cycle of load."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.profile import hourly_rates, paid_hours


def day(**hours: float) -> np.ndarray:
    needed = np.zeros(24)
    for name, count in hours.items():
        begin, end = (int(part) for part in name[1:].split("_"))
        needed[begin:end] = count
    return needed


@pytest.mark.parametrize(
    ("needed", "boot", "expected"),
    [
        (day(h0_24=3), 0.5, 72.0),
        (day(h8_20=2), 0.5, 25.0),
        (day(h0_24=1) + day(h9_17=4), 0.25, 24 + 32 + 4 * 0.25),
        (day(h0_2=1, h3_5=1), 1.5, 4 + 1.0 + 1.5),
        (day(h22_24=1, h0_2=1), 0.5, 4.5),
        (day(h8_20=1), 20.0, 24.0),
    ],
    ids=[
        "the same all day: no boot",
        "12 hours of two instances, each booted once",
        "one all day, four more for 8 hours",
        "an hour's pause is bridged, the night is booted after",
        "the night belongs together around midnight",
        "a boot longer than the pause: kept on",
    ],
)
def test_paid_hours_match_hand_computed_days(needed, boot, expected):
    assert paid_hours(needed, boot) == pytest.approx(expected)


DAYS = st.lists(st.integers(0, 9), min_size=24, max_size=24).map(lambda d: np.array(d, float))


@given(DAYS, st.floats(0.0, 30.0))
def test_following_the_load_never_costs_more_than_the_fleet_of_its_peak(needed, boot):
    paid = paid_hours(needed, boot)
    assert needed.sum() - 1e-9 <= paid <= 24 * needed.max() + 1e-9


@given(DAYS, st.floats(0.0, 5.0), st.integers(0, 23))
def test_it_does_not_matter_when_the_day_begins(needed, boot, turn):
    assert paid_hours(np.roll(needed, turn), boot) == pytest.approx(paid_hours(needed, boot))


def test_the_busiest_hour_has_the_peak_rate():
    assert hourly_rates([0.5, 2.0, 1.0], 8.0).tolist() == [2.0, 8.0, 4.0]
