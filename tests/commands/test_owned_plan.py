"""Plans that may buy hardware of one's own, limits on power, and carbon."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from planner.catalog import Catalog, load_catalog
from planner.commands.explain import explain
from planner.commands.firmness import plan_firmness
from planner.commands.plan import plan
from planner.commands.reprice import reprice
from planner.commands.stored import open_plan
from planner.errors import InputError
from planner.report import FORMATS
from planner.report.explanation import render
from planner.spec.option import Option
from planner.spec.record import PlanRecord
from planner.spec.slo import Slo
from planner.units import MILLION, SECONDS_PER_HOUR
from tests.commands.small_plans import slo, small_plan, space, write_prices

OWNED = {
    "capex_usd": {"h100-sxm": 4_000.0, "l40s": 1_200.0},
    "lifetime_years": 5.0,
    "maintenance_share": 0.05,
    "staff_usd_per_year": 500.0,
    "power_usd_per_kwh": 0.1,
    "pue": 1.2,
}
"""Hardware at a tenth of its price, so that it is on the front."""


def asked(**purchase: Any) -> Slo:
    base = slo()
    traffic = base.traffic.model_dump() | {"mean_rate_per_s": 10.0}
    values = {
        "terms": ("on_demand", "owned"),
        "accelerators": ("h100-sxm", "l40s"),
        "owned": OWNED,
        "carbon_g_per_kwh": 300.0,
        "allow_flagged_prices": True,
    }
    return slo(traffic=traffic, purchase=values | purchase)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def record(catalog: Catalog) -> PlanRecord:
    return small_plan(catalog, asked())


@pytest.fixture(scope="module")
def own(record: PlanRecord) -> Option:
    return next(o for o in record.options if o.money.price.term == "owned")


def test_both_terms_are_compared_in_one_plan(record: PlanRecord):
    assert {offer.term for offer in record.offers} == {"on_demand", "owned"}
    rows = {o.accelerator: o for o in record.offers if o.term == "owned"}
    told = "slo.yaml states no date; the day that prices are judged by"
    assert {o.seen_basis for o in rows.values()} == {told}
    # A year of an H100 server of eight, mean rate half of the busy hour's: 800 capital, 200
    # maintenance, 500 staff, 642.17 W x 1.2 x 876 = 675.05 energy; x 8 / 8760 USD/h.
    assert rows["h100-sxm"].gpus == 8
    assert rows["h100-sxm"].list_price_per_hour == pytest.approx(2175.05 * 8 / 8760, rel=1e-5)
    # L40S: 240 + 60 + 500 + (0.79 x 350 x 0.89 + 150) W x 1.2 x 876.
    energy = (0.79 * 350 * 0.89 + 150) * 1.2 * 0.876
    assert rows["l40s"].list_price_per_hour == pytest.approx((800 + energy) * 8 / 8760, rel=1e-5)


def test_the_option_tells_its_parts_and_they_add_up(own: Option):
    parts = own.money.owned
    assert parts is not None
    assert sum(parts.model_dump().values()) == pytest.approx(own.money.usd_per_hour, rel=1e-5)
    assert parts.space == 0.0
    assert parts.staff == pytest.approx(500 * own.gpus / 8760, rel=1e-5)
    assert (own.provider, own.region) == ("own", "own")


def test_energy_and_carbon_of_a_million_tokens(record: PlanRecord):
    for option in record.options:
        energy = option.energy
        assert energy is not None
        tokens = option.output_tokens_per_s / 2 * SECONDS_PER_HOUR / MILLION
        assert energy.kwh_per_mtok_output == pytest.approx(energy.mean_kw * 1.2 / tokens, rel=1e-4)
        assert energy.g_co2e_per_mtok_output == pytest.approx(
            300 * energy.kwh_per_mtok_output, rel=1e-4
        )


def test_the_energy_bill_is_the_energy_at_its_price(own: Option):
    assert own.money.owned is not None
    assert own.energy is not None
    tokens = own.output_tokens_per_s / 2 * SECONDS_PER_HOUR / MILLION
    per_hour = own.energy.kwh_per_mtok_output * tokens * 0.1
    assert own.money.owned.energy == pytest.approx(per_hour, rel=1e-4)


def test_explain_and_csv_show_the_parts(record: PlanRecord, own: Option, tmp_path: Any):
    path = tmp_path / "plan.json"
    path.write_text(FORMATS["json"](record, width=0, color=False), encoding="utf-8")
    text = render(explain(path, own.id))
    for part in ("capital", "maintenance", "energy", "staff"):
        assert f"of which {part}: " in text
    assert "of which space" not in text
    assert "g CO2e" in text
    rows = csv.DictReader(io.StringIO(FORMATS["csv"](record, width=0, color=False)))
    row = next(row for row in rows if row["id"] == own.id)
    assert own.money.owned is not None
    assert float(row["owned_capital_usd_per_hour"]) == pytest.approx(own.money.owned.capital)


def test_a_plan_with_owned_hardware_reprices_to_itself(catalog: Catalog, record: PlanRecord):
    again = reprice(record, catalog=catalog)
    assert again.record == record
    assert not again.changes


def test_a_price_file_may_say_what_owned_hardware_costs(
    catalog: Catalog, record: PlanRecord, own: Option, tmp_path: Any
):
    price = own.money.price
    row = {
        **{name: getattr(price, name) for name in ("provider", "instance_type", "region", "term")},
        "list_price_per_hour": price.usd_per_instance_hour / 2,
        "seen": "2026-11-01",
    }
    done = reprice(record, [write_prices(tmp_path / "p.csv", [row])], catalog=catalog)
    (change,) = done.changes.prices
    assert change.key == ("own", price.instance_type, "own", "owned")
    found = next(o for o in done.record.options if o.id == own.id)
    assert found.money.usd_per_hour == pytest.approx(own.money.usd_per_hour / 2, rel=1e-5)
    assert found.money.owned is None


def test_break_even_between_owned_and_on_demand_is_told(catalog: Catalog, record: PlanRecord):
    found = plan_firmness(open_plan(record, catalog))
    evens = [even for pick in found.picks for even in pick.break_evens]
    assert any(even.committed.term == "owned" for even in evens)


def test_what_is_dear_to_own_is_rented(catalog: Catalog):
    dear = OWNED | {"capex_usd": 400_000.0}
    found = small_plan(catalog, asked(owned=dear))
    assert {o.money.price.term for o in found.options} == {"on_demand"}


def test_a_power_limit_holds_for_servers_at_their_rating(catalog: Catalog, record: PlanRecord):
    # An L40S with its share of the server is rated 1.8 x 350 W = 0.63 kW, an H100 1.26 kW.
    limited = small_plan(catalog, asked(max_power_kw=1.3))
    assert limited.options
    for option in limited.options:
        assert option.energy is not None
        per_gpu = {"l40s": 0.63, "h100-sxm": 1.26}[option.accelerator]
        assert option.energy.rated_kw == pytest.approx(per_gpu * option.gpus)
        assert option.energy.rated_kw <= 1.3
    assert any(o.energy and o.energy.rated_kw > 1.3 for o in record.options)


def test_energy_may_be_an_objective(catalog: Catalog):
    names = ("usd_per_mtok_output", "kwh_per_mtok_output")
    values = asked().model_copy(update={"objectives": names})
    found = plan(values, catalog=catalog, space=space(), prove=True, verify=False)
    points = [
        (o.money.usd_per_mtok_output, o.energy.kwh_per_mtok_output)
        for o in found.options
        if o.energy is not None
    ]
    assert len(points) == len(found.options)
    assert points == sorted(points)
    assert [kwh for _, kwh in points] == sorted((kwh for _, kwh in points), reverse=True)


def test_spot_reaches_the_plan_with_its_allowance(catalog: Catalog):
    found = small_plan(catalog, slo(purchase={"terms": ("spot",), "allow_flagged_prices": True}))
    for option in found.options:
        price = option.money.price
        offer = found.offers[price.offer]
        assert price.interruption_share == 0.1
        assert price.usd_per_instance_hour == pytest.approx(offer.price_per_hour / 0.9, rel=1e-5)
        assert option.money.usd_per_hour == pytest.approx(
            option.instances * offer.price_per_hour / 0.9, rel=1e-5
        )
    assert any(note.startswith("Spot: 10% of what is paid for") for note in found.assumptions)


def test_an_accelerator_without_a_price_is_refused(catalog: Catalog):
    with pytest.raises(InputError, match="no price for a100-sxm-80"):
        small_plan(catalog, asked(accelerators=("h100-sxm", "l40s", "a100-sxm-80")))


def test_two_records_of_the_same_inputs_differ_in_nothing(catalog: Catalog, record: PlanRecord):
    again = small_plan(catalog, asked())
    text = [FORMATS["json"](one, width=0, color=False) for one in (record, again)]
    assert text[0] == text[1]
