"""What is on the front, what is picked, and what is listed apart."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.select.answers import answers, priced
from planner.select.front import cost, front, reasons
from planner.select.objectives import BY_NAME, OBJECTIVES, chosen, points
from planner.select.picks import picks, shown
from planner.spec.slo import Objective as ObjectiveName
from tests.select.plans import archive, quotes, slo


def solve(archives, prices, asked=None, flags=()):
    asked = asked or slo()
    return front(answers(archives), archives, quotes(archives, *prices, flags=flags), asked)


def test_what_misses_a_target_is_not_on_the_front():
    one = archive("a", {"tpot_p95_ms": 49.0}, {"tpot_p95_ms": 51.0, "ttft_p95_ms": 10.0})
    assert solve([one], [10.0]).rows.tolist() == [0]


def test_the_margin_counts_against_the_target():
    # 45 ms x 1.2 = 54 ms > 50 ms; 40 ms x 1.2 = 48 ms.
    one = archive("a", {"tpot_p95_ms": 45.0}, {"tpot_p95_ms": 40.0}, margin=1.2)
    assert solve([one], [10.0]).rows.tolist() == [1]


def test_a_cheaper_equal_option_of_another_class_wins():
    both = [archive("a", {}), archive("b", {})]
    assert solve(both, [10.0, 9.0]).rows.tolist() == [1]
    assert solve(both, [10.0, 10.0]).rows.tolist() == [0]


def test_the_front_is_sorted_by_price():
    rows = (
        {"instances": 3, "tpot_p95_ms": 5.0},
        {"instances": 1},
        {"instances": 2, "tpot_p95_ms": 9},
    )
    got = solve([archive("a", *rows)], [10.0])
    assert got.rows.tolist() == [1, 2, 0]
    # $10/h x instances over 1,000 tokens/s x 3,600 s / 1e6.
    assert cost(got.trusted)[got.rows] == pytest.approx([10 / 3.6, 20 / 3.6, 30 / 3.6], rel=1e-5)


def test_tokens_are_paid_for_at_the_mean_rate():
    traffic = {
        "rate_per_s": 10.0,
        "mean_rate_per_s": 5.0,
        "prompt_tokens": 900.0,
        "output_tokens": 100.0,
    }
    got = solve([archive("a", {})], [36.0], slo(traffic=traffic))
    money = {name: values[0] for name, values in got.trusted.money.items()}
    # 500 of 2,000 output tokens/s: $36 / 1.8 Mtok; a tenth of all tokens is output.
    assert money["usd_per_mtok_output"] == pytest.approx(20.0)
    assert money["usd_per_mtok_total"] == pytest.approx(2.0)
    assert money["usd_per_mtok_full"] == pytest.approx(5.0)
    assert money["mean_utilization"] == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ({"purchase": {"budget_usd_per_hour": 15.0}}, {"instances": 2}),
        ({"purchase": {"max_gpus": 8}}, {"instances": 2, "gpus": 16}),
        ({"quality": {"max_loss_percent": 1.0}}, {"loss_p90": 1.5}),
        ({"headroom": 0.4}, {"utilization": 0.5}),
    ],
    ids=["budget", "quota", "quality", "headroom"],
)
def test_limits_other_than_latency_hold_too(change, row):
    assert len(solve([archive("a", row)], [10.0]).rows) == 1
    assert len(solve([archive("a", row)], [10.0], slo(**change)).rows) == 0


class TestTrust:
    def test_unvalidated_options_are_listed_apart(self):
        both = [archive("a", {}), archive("b", {}, evidence="unvalidated")]
        got = solve(both, [10.0, 5.0])
        assert got.rows.tolist() == [0]
        assert got.untrusted.tolist() == [1]
        assert reasons(got.every, slo(), 1) == ("unvalidated evidence",)

    def test_dearer_untrusted_options_are_not_worth_a_line(self):
        both = [archive("a", {}), archive("b", {}, evidence="unvalidated")]
        assert solve(both, [10.0, 11.0]).untrusted.tolist() == []

    def test_allowed_they_are_options_like_others(self):
        both = [archive("a", {}), archive("b", {}, evidence="unvalidated")]
        got = solve(both, [10.0, 5.0], slo(purchase={"allow_unvalidated": True}))
        assert got.rows.tolist() == [1]
        assert got.untrusted.tolist() == []

    def test_flagged_prices_carry_no_pick(self):
        both = [archive("a", {}), archive("b", {})]
        got = solve(both, [10.0, 5.0], flags=[(1, "suspect")])
        assert got.rows.tolist() == [0]
        assert reasons(got.every, slo(), 1) == ("flagged price",)
        allowed = slo(purchase={"allow_flagged_prices": True})
        assert solve(both, [10.0, 5.0], allowed, flags=[(1, "suspect")]).rows.tolist() == [1]

    @pytest.mark.parametrize(
        "row", [{"wait_probability": 0.03}, {"slots": 7.0}], ids=["waiting", "few slots"]
    )
    def test_beyond_the_gates_of_the_formula_nothing_is_picked(self, row):
        got = solve([archive("a", row)], [10.0])
        assert got.rows.tolist() == []
        assert got.untrusted.tolist() == [0]
        assert reasons(got.every, slo(), 0) == ("beyond the gates",)

    def test_a_class_that_nobody_sells_is_no_option(self):
        both = [archive("a", {}), archive("b", {"tpot_p95_ms": 1.0})]
        prices = quotes(both[:1], 10.0)
        assert front(answers(both), both, prices, slo()).rows.tolist() == [0]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "instances": st.integers(1, 4),
            "ttft_p95_ms": st.integers(1, 12).map(lambda v: 100.0 * v),
            "tpot_p95_ms": st.integers(1, 6).map(lambda v: 10.0 * v),
            "loss_objective": st.sampled_from([0.0, 0.5, 1.0]),
        }
    ),
    min_size=1,
    max_size=25,
)


@given(ROWS)
def test_nothing_on_the_front_is_dominated_or_infeasible(rows):
    got = solve([archive("a", *rows)], [10.0])
    assert (got.trusted.worst()[got.rows] <= 1.0).all()
    for i, point in enumerate(got.points):
        others = np.delete(got.points, i, axis=0)
        assert not (others <= point).all(axis=1).any()
    feasible = [r for r in rows if r["ttft_p95_ms"] <= 1000.0 and r["tpot_p95_ms"] <= 50.0]
    assert bool(feasible) == bool(len(got.rows))


@given(ROWS, st.floats(0.01, 100.0))
def test_all_prices_times_c_give_the_same_front_at_c_times_the_cost(rows, factor):
    one = [archive("a", *rows), archive("b", *rows[::-1])]
    before, after = solve(one, [10.0, 12.0]), solve(one, [10.0 * factor, 12.0 * factor])
    assert after.rows.tolist() == before.rows.tolist()
    np.testing.assert_allclose(
        cost(after.trusted)[after.rows], factor * cost(before.trusted)[before.rows], rtol=1e-5
    )
    assert picks(after) == picks(before)


@given(ROWS)
def test_a_dominated_new_offer_changes_nothing(rows):
    one = [archive("a", *rows)]
    worse = archive("b", *({**row, "instances": row["instances"] + 1} for row in rows))
    before, after = solve(one, [10.0]), solve([*one, worse], [10.0, 10.0])
    assert after.rows.tolist() == before.rows.tolist()
    assert picks(after) == picks(before)


@given(ROWS, st.floats(0.3, 1.0))
def test_a_tighter_target_is_never_cheaper(rows, share):
    one = [archive("a", *rows)]
    loose = solve(one, [10.0])
    tight = solve(
        one, [10.0], slo(slo={"ttft_p95_ms": 1000.0 * share, "tpot_p95_ms": 50.0 * share})
    )
    if len(tight.rows):
        assert cost(tight.trusted)[tight.rows].min() >= cost(loose.trusted)[loose.rows].min()


class TestPicks:
    rows = (
        {"instances": 1, "ttft_p95_ms": 800.0, "tpot_p95_ms": 40.0, "loss_objective": 1.0},
        {"instances": 2, "ttft_p95_ms": 210.0, "tpot_p95_ms": 21.0, "loss_objective": 0.5},
        {"instances": 3, "ttft_p95_ms": 100.0, "tpot_p95_ms": 30.0, "loss_objective": 1.0},
        {"instances": 3, "ttft_p95_ms": 400.0, "tpot_p95_ms": 10.0, "loss_objective": 1.0},
        {"instances": 4, "ttft_p95_ms": 790.0, "tpot_p95_ms": 39.0, "loss_objective": 0.0},
    )

    def picked(self, rows=rows, **changes):
        got = solve([archive("a", *rows)], [10.0], slo(**changes))
        return {name: int(got.rows[position]) for name, position in picks(got).items()}

    def test_each_pick_is_best_at_what_it_is_named_for(self):
        assert self.picked() == {
            "cheapest": 0,
            "balanced": 1,
            "lowest_ttft": 2,
            "lowest_tpot": 3,
            "best_quality": 4,
        }

    def test_a_tie_goes_to_the_cheaper_option(self):
        # Both lose nothing; the dearer one is on the front by its TTFT.
        rows = (
            {"instances": 2, "ttft_p95_ms": 100.0},
            {"instances": 1, "ttft_p95_ms": 300.0},
        )
        assert self.picked(rows)["best_quality"] == 1

    def test_of_equal_medians_the_best_quality_risks_the_least_and_then_costs_the_least(self):
        loss = {"loss_objective": 0.5}
        rows = (
            {"instances": 1, "ttft_p95_ms": 700.0, **loss, "loss_p90": 2.8},
            {"instances": 2, "ttft_p95_ms": 500.0, **loss, "loss_p90": 0.9},
            {"instances": 3, "ttft_p95_ms": 300.0, **loss, "loss_p90": 0.9},
            {"instances": 4, "ttft_p95_ms": 100.0, "loss_objective": 1.0, "loss_p90": 0.0},
        )
        assert self.picked(rows)["best_quality"] == 1
        assert self.picked(rows)["cheapest"] == 0

    @pytest.mark.parametrize(
        ("objectives", "named"),
        [
            (("usd_per_mtok_output", "gpus"), {"cheapest", "balanced"}),
            (("usd_per_mtok_total", "ttft_p95_ms"), {"cheapest", "balanced", "lowest_ttft"}),
            (("gpus", "quality_loss_percent"), {"cheapest", "balanced", "best_quality"}),
        ],
    )
    def test_no_pick_is_named_for_what_is_no_objective(self, objectives, named):
        # The front need not hold the least of it.
        assert set(self.picked(objectives=objectives)) == named

    def test_the_cheapest_is_found_where_the_cost_is_no_objective(self):
        found = self.picked(objectives=("ttft_p95_ms", "tpot_p95_ms"))
        assert (found["cheapest"], found["lowest_ttft"], found["lowest_tpot"]) == (0, 2, 3)

    def test_the_lowest_latency_is_that_of_its_objective(self):
        rows = (
            {"instances": 1, "ttft_p50_ms": 90.0, "ttft_p95_ms": 300.0},
            {"instances": 2, "ttft_p50_ms": 80.0, "ttft_p95_ms": 400.0},
        )
        asked = {"objectives": ("usd_per_mtok_output", "ttft_p50_ms")}
        assert self.picked(rows, **asked)["lowest_ttft"] == 1

    def test_an_empty_front_has_no_picks(self):
        assert self.picked(({"tpot_p95_ms": 99.0},)) == {}

    def test_offline_picks_know_no_latency(self):
        row = {"run_hours": 2.0, "ttft_p95_ms": None, "tpot_p95_ms": None, "utilization": 0.5}
        offline = {
            "offline": {"requests": 7200, "deadline_hours": 4.0},
            "prompt_tokens": 900.0,
            "output_tokens": 100.0,
        }
        assert self.picked((row,), traffic=offline, slo={}) == {
            "cheapest": 0,
            "balanced": 0,
            "best_quality": 0,
        }


class TestShown:
    def test_options_within_two_percent_are_one(self):
        rows = [{"ttft_p95_ms": 300.0 + i, "tpot_p95_ms": 40.0 - i * 0.1} for i in range(4)]
        got = solve([archive("a", *rows)], [10.0])
        assert len(got.rows) == 4
        assert shown(got, picks(got)) == []

    def test_at_most_a_dozen_are_shown_and_none_twice(self):
        rows = [
            {"instances": i + 1, "ttft_p95_ms": 1000.0 / (i + 1), "tpot_p95_ms": 50.0 / (i + 1)}
            for i in range(30)
        ]
        got = solve([archive("a", *rows)], [10.0])
        chosen_rows = shown(got, picks(got))
        assert len(chosen_rows) == 12
        assert not set(chosen_rows) & set(picks(got).values())
        assert chosen_rows == sorted(set(chosen_rows))


def test_every_objective_of_slo_yaml_has_a_row():
    assert {objective.name for objective in OBJECTIVES} == set(ObjectiveName.__args__)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
def test_each_objective_alone_has_its_minimum_on_the_front(objective):
    rows = (*TestPicks.rows, {"gpus": 4, "power_w": 100.0, "instances": 4, "e2e_p95_ms": 9.0})
    one = [archive("a", *rows)]
    found = answers(one)
    other = "gpus" if objective.name != "gpus" else "power_w"
    asked = slo(objectives=(objective.name, other))
    got = front(found, one, quotes(one, 10.0), asked)
    values = points(priced(found, one, quotes(one, 10.0), asked), chosen(asked))[:, 0]
    assert values[got.rows].min() == values.min()


def test_unknown_power_never_looks_good():
    one = [archive("a", {"power_w": None})]
    got = priced(answers(one), one, quotes(one, 10.0), slo())
    assert BY_NAME["power_w"].value(got).tolist() == [np.inf]


def test_offline_costs_the_run():
    row = {"run_hours": 2.0, "ttft_p95_ms": None, "tpot_p95_ms": None, "wait_probability": None}
    offline = {
        "offline": {"requests": 7200, "deadline_hours": 4.0},
        "prompt_tokens": 900.0,
        "output_tokens": 100.0,
    }
    asked = slo(traffic=offline, slo={})
    got = solve([archive("a", row)], [10.0], asked)
    assert got.trusted.money["usd_per_job"].tolist() == [20.0]
    assert got.trusted.uses["deadline_hours"].tolist() == [0.5]
    late = solve([archive("a", {**row, "run_hours": 5.0})], [10.0], asked)
    assert len(late.rows) == 0
    assert len(late.untrusted) == 0


def test_an_offline_run_on_spot_takes_what_interruptions_add_and_costs_the_same():
    # By hand: 3.6 h of work where 10 % of the time does none take 4 h, at 9 USD an invoiced hour.
    row = {"run_hours": 3.6, "ttft_p95_ms": None, "tpot_p95_ms": None, "wait_probability": None}
    offline = {
        "offline": {"requests": 7200, "deadline_hours": 5.0},
        "prompt_tokens": 900.0,
        "output_tokens": 100.0,
    }
    one = [archive("a", row)]
    sold = {key: replace(q, lost=(0.1,)) for key, q in quotes(one, 10.0).items()}
    got = priced(answers(one), one, sold, slo(traffic=offline, slo={}))
    assert got.answers.columns["run_hours"] == pytest.approx([4.0])
    assert got.uses["deadline_hours"] == pytest.approx([0.8])
    assert got.money["usd_per_job"] == pytest.approx([4.0 * 9.0])
