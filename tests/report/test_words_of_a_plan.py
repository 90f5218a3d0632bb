"""What a buyer reads first: the load that costs rest on, and how old the prices are."""

from __future__ import annotations

import datetime

import pytest

from planner.report import words
from tests.report.records import record

TODAY = datetime.date(2026, 11, 29)


def with_traffic(**changes):
    made = record()
    slo = {**made.inputs.slo, "traffic": {**made.inputs.slo["traffic"], **changes}}
    return made.model_copy(update={"inputs": made.inputs.model_copy(update={"slo": slo})})


def test_the_age_of_the_picks_own_prices_is_told_and_not_only_that_of_the_newest():
    made = record()
    said = words.price_age(made, TODAY)
    assert said.startswith(f"prices judged as of {made.inputs.as_of}")
    seen = {o.money.price.seen for o in made.options if o.id in made.picks.values()}
    assert all(date in said for date in (min(seen), max(seen)))


def test_a_plan_without_a_pick_tells_the_day_alone():
    made = record(options=(), picks={}, shown=())
    assert words.price_age(made, TODAY).startswith(f"prices judged as of {made.inputs.as_of}")
    assert "picks" not in words.price_age(made, TODAY)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rate_per_s": 12.0, "mean_rate_per_s": 7.0}, "12 requests/s in the busiest hour, 7 on"),
        # By hand: half of the hours at the full rate, half at none.
        (
            {"rate_per_s": 12.0, "mean_rate_per_s": None, "load_profile": [0, 1] * 12},
            "12 requests/s in the busiest hour, 6 on average",
        ),
    ],
)
def test_the_mean_rate_that_costs_rest_on_stands_beside_the_rate_sized_for(changes, expected):
    assert expected in words.asked(with_traffic(**changes))[0]


def test_one_rate_is_named_once():
    line = words.asked(with_traffic(rate_per_s=12.0, mean_rate_per_s=12.0))[0]
    assert line.endswith("12 requests/s")
