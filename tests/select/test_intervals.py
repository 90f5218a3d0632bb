import pytest

from planner.catalog import load_catalog
from planner.select.intervals import intervals
from planner.spec.option import Intervals
from tests.select.test_verification import a_plan

CATALOG = load_catalog()
STACK = ("vllm-v1", "h100-sxm")


def quantiles(metric):
    """The stored 10 and 90 % of measured / predicted."""
    (entry,) = (
        e
        for e in CATALOG.efficiency.errors
        if (e.generation, e.accelerator, e.metric) == (*STACK, metric)
    )
    return entry.q10, entry.q90


def test_the_ends_are_the_prediction_times_the_stored_quantiles():
    found = intervals(CATALOG, STACK, (200.0, 20.0, None), 1000.0, 3.0)
    for got, metric, value in (
        (found.ttft_p95_ms, "ttft", 200.0),
        (found.tpot_p95_ms, "tpot", 20.0),
        (found.capacity_tokens_per_s, "throughput", 1000.0),
    ):
        low, high = quantiles(metric)
        assert (got.low, got.high) == pytest.approx((value * low, value * high), rel=1e-5)


def test_a_fleet_that_carries_less_costs_more_per_token_at_full_load():
    found = intervals(CATALOG, STACK, (None, None, 8.0), 1000.0, 3.0)
    low, high = quantiles("throughput")
    cost = found.usd_per_mtok_full
    assert cost is not None
    assert (cost.low, cost.high) == pytest.approx((3.0 / high, 3.0 / low), rel=1e-5)
    assert found.ttft_p95_ms is None
    assert found.tpot_p95_ms is None
    low, high = quantiles("time")
    assert (found.run_hours.low, found.run_hours.high) == pytest.approx(
        (8 * low, 8 * high), rel=1e-5
    )


def test_a_second_error_as_large_as_the_first_makes_an_end_root_two_times_as_far():
    (entry,) = (
        e
        for e in CATALOG.efficiency.errors
        if (e.generation, e.accelerator, e.metric) == (*STACK, "tpot")
    )
    moves = {"tpot": (entry.q10 / entry.q50, entry.q90 / entry.q50)}
    found = intervals(CATALOG, STACK, (None, 20.0, None), 1000.0, 3.0, moves)
    # By hand: sqrt(a^2 + a^2) = 1.41421 a, in the logarithm about the median.
    low = 20.0 * entry.q50 * (entry.q10 / entry.q50) ** 1.41421
    high = 20.0 * entry.q50 * (entry.q90 / entry.q50) ** 1.41421
    assert (found.tpot_p95_ms.low, found.tpot_p95_ms.high) == pytest.approx((low, high), rel=1e-4)


def test_a_load_that_the_lowest_acceptance_does_not_carry_has_no_upper_end():
    moves = {"ttft": (0.9, float("inf"))}
    found = intervals(CATALOG, STACK, (200.0, None, None), 1000.0, 3.0, moves)
    assert found.ttft_p95_ms.high is None


def test_a_plan_of_an_older_version_is_read_without_its_interval_of_the_mean_cost():
    end = {"low": 1.0, "high": 2.0}
    old = {"capacity_tokens_per_s": end, "usd_per_mtok_output": end}
    assert Intervals.model_validate(old).usd_per_mtok_full is None


def test_the_80_percent_interval_of_a_simulated_pick_lies_around_what_was_simulated():
    """Expected: as far around it, in ratio, as the interval by formula is around the formula."""
    checks = {check.option: check for check in a_plan(True).verification}
    alone = {option.id: option for option in a_plan(False).options}
    picked = [o for o in a_plan(True).options if o.id in checks and o.id in alone]
    assert picked
    for option in picked:
        seen = {entry.key: entry.simulated_ms for entry in checks[option.id].latencies}
        for metric in ("ttft", "tpot"):
            key, plain = f"{metric}_p95_ms", alone[option.id]
            by_formula = getattr(plain.intervals, key), getattr(plain, metric).p95_ms
            simulated = getattr(option.intervals, key), seen[key]
            for end in ("low", "high"):
                ratio, expected = (getattr(x, end) / x0 for x, x0 in (simulated, by_formula))
                assert ratio == pytest.approx(expected, rel=1e-4)
