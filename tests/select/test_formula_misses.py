"""Picks whose formula and simulation differ say so, once, with both values."""

from __future__ import annotations

import pytest

from planner.select.formula_misses import formula_misses
from planner.spec.verification import Compared
from tests.report.records import check


def test_a_pick_is_named_with_both_values_of_what_differs():
    checks = [check("o-1", "o-1", simulated={"ttft_p95_ms": 100.0, "e2e_p50_ms": 12345.6})]
    picked = {"lowest_ttft": "o-1", "lowest_tpot": "o-1", "cheapest": "o-2"}
    assert list(formula_misses(checks, picked)) == [
        "The closed formula misses the simulation by a factor of 1.5 or more (formula / simulated:"
        " lowest_ttft, lowest_tpot: ttft_p95_ms 400 / 100, e2e_p50_ms 2,500 / 12,350). Limits are"
        " judged by the simulation."
    ]


@pytest.mark.parametrize(("simulated", "told"), [(267.0, 0), (266.0, 1), (599.0, 0), (601.0, 1)])
def test_half_as_much_again_either_way_is_a_miss(simulated, told):
    """By hand: 400 / 1.5 = 266.7 and 400 x 1.5 = 600."""
    checks = [check("o-1", "o-1", simulated={"ttft_p95_ms": simulated})]
    assert len(list(formula_misses(checks, {"cheapest": "o-1"}))) == told


def test_percentiles_of_classes_are_compared_too():
    found = [
        Compared(key="a.ttft_p95_ms", formula_ms=400, simulated_ms=100, upper_ms=100),
        Compared(key="b.ttft_p95_ms", formula_ms=400, simulated_ms=400, upper_ms=400),
    ]
    checks = [check("o-1", "o-1").model_copy(update={"latencies": tuple(found)})]
    (told,) = formula_misses(checks, {"cheapest": "o-1"})
    assert "cheapest: a.ttft_p95_ms 400 / 100)" in told


@pytest.mark.parametrize("simulated", [{}, {"ttft_p95_ms": None}], ids=["equal", "no bound"])
def test_nothing_is_said_where_there_is_no_miss_to_tell(simulated):
    checks = [check("o-1", "o-1", simulated=simulated)]
    assert list(formula_misses(checks, {"cheapest": "o-1"})) == []


def test_what_is_no_pick_is_not_told():
    checks = [check("o-1", "o-1", simulated={"ttft_p95_ms": 100.0})]
    assert list(formula_misses(checks, {"cheapest": "o-9"})) == []


def test_for_a_trace_the_formula_over_its_windows_is_told_beside_them():
    entry = Compared(
        key="ttft_p95_ms", formula_ms=400, windows_ms=110, simulated_ms=100, upper_ms=100
    )
    checks = [check("o-1", "o-1").model_copy(update={"latencies": (entry,)})]
    (told,) = formula_misses(checks, {"cheapest": "o-1"})
    assert "(formula / simulated: cheapest: ttft_p95_ms 400 / 100, by windows 110)" in told
