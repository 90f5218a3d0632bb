"""What a price binds to, its currency and its allowance, in every report of a plan."""

from __future__ import annotations

import csv
import datetime
import io
from dataclasses import replace
from typing import Any

import pytest

from planner.report import FORMATS
from planner.report.html_data import page_data
from planner.report.pack import Pack
from planner.report.price_words import expired
from planner.report.statements import firm_words
from planner.report.words import autoscaled, run
from planner.spec.money import Autoscaled, Lease
from planner.spec.offer import ExchangeRate
from planner.spec.option import Interval, Intervals, Option
from planner.spec.record import PlanRecord
from tests.report.records import firmness, money, offer, option, price, record

LEASE = Lease(hours=26280, upfront_share=0.5, minimum_instances=2, quota_instances=4)
ECB = ExchangeRate(usd=1.25, date=datetime.date(2026, 11, 2), source="ECB reference rate")


def bought(usd_per_hour: float, *, run_hours: float | None = None, **terms: Any) -> PlanRecord:
    """Return a plan of one option, bought on these terms."""
    row = price(offer()).model_copy(update=terms)
    job = {} if run_hours is None else {"usd_per_job": usd_per_hour * run_hours}
    one = option(money=money(row, usd_per_hour, **job), run_hours=run_hours)
    return record(options=(one,), picks={"cheapest": one.id})


def table(made: PlanRecord) -> str:
    return FORMATS["table"](made, width=160, color=False)


def facts(made: PlanRecord) -> dict[str, str]:
    return dict(page_data(Pack(made))["options"][0]["facts"])


def cells(made: PlanRecord) -> dict[str, str]:
    (row,) = csv.DictReader(io.StringIO(FORMATS["csv"](made)))
    return row


def line(text: str, label: str) -> str:
    """Return what the table says in the line of a label."""
    (found,) = (one for one in text.splitlines() if one.strip("│ ").startswith(f"{label} "))
    return found.split("│")[2].strip()


@pytest.mark.parametrize(
    ("hours", "told"),
    [
        (3.0, "$33.00 in 3 h, but $264.00 due for 24 h of lease"),
        (24.0, "$264.00 in 24 h"),
        (30.0, "$330.00 in 30 h"),
    ],
    ids=["11 x 24 = 264 is due for 11 x 3 = 33", "just filled", "filled"],
)
def test_a_run_that_does_not_fill_its_lease_says_what_the_lease_costs(hours, told):
    block = Lease(hours=24, upfront_share=1.0, minimum_instances=1, quota_instances=None)
    made = bought(11.0, run_hours=hours, lease=block)
    assert run(made.options[0]) == told
    assert made.options[0].lease_outlasts_run == (hours < 24.0)


LEASED = bought(11.0, lease=LEASE)
# By hand: 11 x 26,280 = 289,080, of which half is 144,540.


def test_the_picks_say_what_falls_due_at_once_and_what_they_bind_to():
    assert line(table(LEASED), "due at once") == "$144,540.00"
    assert line(table(LEASED), "bound for") == "26,280 h: $289,080.00 in all"
    assert line(table(LEASED), "instances") == "at least 2, at most 4 (quota)"


def test_the_page_and_the_csv_say_it_too():
    assert facts(LEASED)["Due at once"] == "$144,540.00"
    assert facts(LEASED)["Bound for"] == "26,280 h: $289,080.00 in all"
    assert "due at once $144,540.00" in page_data(Pack(LEASED))["options"][0]["lease"]
    row = cells(LEASED)
    assert (row["due_at_once_usd"], row["bound_usd"]) == ("144540", "289080")
    assert (row["lease_hours"], row["lease_quota_instances"]) == ("26280", "4")


def test_an_upfront_share_of_no_stated_lease_is_told_as_a_share():
    made = bought(11.0, lease=LEASE.model_copy(update={"hours": 0.0}))
    assert line(table(made), "due at once") == "50% of the lease"
    assert "bound for" not in table(made)


def test_a_price_that_binds_to_nothing_has_no_such_line():
    text = table(record())
    assert not [label for label in ("due at once", "bound for", "listed") if label in text]
    assert "Due at once" not in facts(record())


@pytest.mark.parametrize(
    ("changes", "hours"),
    [
        ({"term": "reserved_1y"}, 8760),
        ({"term": "reserved_3y"}, 26280),
        ({"term": "reserved_1y", "minimum_hours": 720.0}, 720),
        ({"term": "on_demand"}, 0),
    ],
)
def test_a_reserved_term_binds_for_its_length_unless_the_row_states_another(changes, hours):
    assert offer(**changes).lease_hours == hours


EURO = bought(
    10.0, currency="EUR", exchange=ECB, list_price_per_hour=20.0, usd_per_instance_hour=10.0
)
# By hand: $10 at 1.25 are EUR 8.


def test_a_price_in_another_currency_stands_as_listed_with_the_rate_its_day_and_source():
    assert line(table(EURO), "listed") == "EUR 8.00 (list 20.00) x 1.25 USD"
    told = "EUR 8.00 (list 20.00) x 1.25 USD, 2026-11-02, ECB reference rate"
    assert facts(EURO)["Listed"] == told
    assert told in page_data(Pack(EURO))["prices"][0]
    row = cells(EURO)
    assert (row["price_currency"], row["price_exchange_usd"]) == ("EUR", "1.25")
    assert row["price_exchange"] == told


SPOT = {
    "term": "spot",
    "list_price_per_hour": 0.9,
    "row_usd_per_hour": 0.9,
    "usd_per_instance_hour": 1.0,
    "interruption_share": 0.1,
}
# By hand: $0.90 a paid hour are $1 an hour of work; 730 h are $730 and $657.


def test_the_price_of_spot_is_that_of_its_source_and_what_has_the_allowance_says_so():
    made = bought(1.0, **SPOT)
    assert cells(made)["price_usd_per_instance_hour"] == "0.9"
    assert cells(made)["price_spot_allowance_share"] == "0.1"
    assert "$0.900" in page_data(Pack(made))["prices"][0]
    assert facts(made)["Price"].startswith("$0.900/h each")
    month = "$730.00, spot allowance included; $657.00 invoiced"
    assert facts(made)["Per month (730 h)"] == month


def test_a_job_that_ends_has_no_month_no_busy_hour_and_its_price_multiplies_out():
    # By hand: 2 h on the invoice at $0.90 are $1.80.
    made = bought(1.0, run_hours=2.0, **SPOT)
    one = made.options[0]
    one = one.model_copy(update={"money": one.money.model_copy(update={"usd_per_job": 1.8})})
    made = made.model_copy(update={"options": (one,)})
    assert run(one) == "$1.80 in 2 h at $0.900/h invoiced"
    assert not [name for name in facts(made) if name.startswith(("Per month", "Per year"))]
    assert facts(made)["Output"] == "750 tokens/s while it runs"
    assert facts(made)["Utilization"] == "50 % of the deadline"
    assert page_data(Pack(made))["options"][0]["month"] is None
    assert "month" not in str(page_data(Pack(made))["assumptions"])


@pytest.mark.parametrize(("change", "told"), [(1.25, "(+125%)"), (0.0004, "(+0.04%)")])
def test_a_price_that_is_beaten_by_little_is_not_told_as_beaten_by_nothing(change, told):
    firm = firmness()
    (pick,) = firm.picks
    assert pick.flip is not None
    near = replace(pick, flip=replace(pick.flip, change=change))
    assert told in next(firm_words(firm, near))


def test_the_interval_of_the_cost_is_told_as_that_at_full_load():
    end = Interval(low=0.5, high=1.0)
    found = Intervals(capacity_tokens_per_s=end, usd_per_mtok_full=end)
    one = option(intervals=found)
    made = record(options=(one,), picks={"cheapest": one.id})
    shown = [one.strip("│ ") for one in table(made).splitlines()]
    at = next(number for number, one in enumerate(shown) if one.startswith("80 % interval"))
    assert shown[at].endswith("$0.500-$1.00 / Mtok")
    assert shown[at + 1] == "at full load"
    assert (cells(made)["usd_per_mtok_full_low"], cells(made)["usd_per_mtok_full_high"]) == (
        "0.5",
        "1",
    )


TODAY = datetime.date(2026, 11, 30)


@pytest.mark.parametrize(
    ("ends", "told"),
    [(datetime.date(2026, 11, 10), True), (TODAY, False), (None, False)],
    ids=["ended", "the last day", "no end"],
)
def test_a_price_that_has_ended_since_is_named_with_its_picks(ends, told):
    made = record(offers=(offer(valid_to=ends), record().offers[1]))
    said = list(expired(made, TODAY))
    assert len(said) == told
    if told:
        assert (
            "acme a.1x, north, on demand ended on 2026-11-10; it is picked as Cheapest" in said[0]
        )


def scaled(replicas: tuple[int, ...], own: int) -> Option:
    fleet = Autoscaled(replicas_by_hour=replicas, usd_per_hour=2.0, usd_per_mtok_output=1.25)
    row = money(price(offer()), 4.0).model_copy(update={"autoscaled": fleet})
    return option(money=row, replicas=own)


def test_a_fleet_that_follows_the_load_is_told_as_another_than_the_one_beside():
    told = "another fleet: 1 to 2 replicas, sized by the hour by the formula"
    assert autoscaled(scaled((1,) * 12 + (2,) * 12, 5)) == f"$1.25 for {told}"
    assert "the same fleet" in autoscaled(scaled((5,) * 24, 5))
