from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from planner.catalog import Catalog, laid_over, load_catalog
from planner.commands.diff import diff
from planner.commands.plan import plan
from planner.commands.reprice import SEARCHED, UNPROVEN, reprice
from planner.errors import InputError
from planner.report.json_text import render as as_json
from planner.spec.record import PlanRecord
from planner.units import MILLION, SECONDS_PER_HOUR
from tests.commands.small_plans import (
    CHIPS,
    price_rows,
    slo,
    small_plan,
    space,
    write_prices,
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def old(catalog: Catalog) -> PlanRecord:
    return small_plan(catalog)


def cheapest(record: PlanRecord) -> Any:
    identity = record.picks["cheapest"]
    return next(option for option in record.options if option.id == identity)


def key_of(option: Any) -> dict[str, str]:
    price = option.money.price
    return {
        "provider": price.provider,
        "instance_type": price.instance_type,
        "region": price.region,
        "term": price.term,
    }


def test_without_new_prices_nothing_changes(catalog: Catalog, old: PlanRecord):
    again = reprice(old, catalog=catalog)
    assert again.record == old
    assert not again.changes
    assert again.unsearched == ()


@pytest.mark.parametrize("seed", range(20))
def test_the_front_is_that_of_a_new_search_with_prices_moved_added_and_removed(
    catalog: Catalog, old: PlanRecord, tmp_path: Path, seed: int
):
    rows = price_rows(old.offers, seed, spread=0.6)
    draw = random.Random(seed)
    for row in draw.sample(rows, 5):
        row["valid_to"] = "2020-01-01"
    for number, offer in enumerate(draw.sample(old.offers, 3)):
        rows.append(
            {
                **key_like(offer, provider=f"new-{number}"),
                "accelerator": offer.accelerator,
                "gpus": offer.gpus,
                "link": offer.link,
                "internode_gb_per_s": offer.internode_gb_per_s or "",
                "list_price_per_hour": round(offer.list_price_per_hour * draw.uniform(0.4, 1), 4),
                "seen": offer.seen,
            }
        )
    prices = write_prices(tmp_path / "new.csv", rows)
    searched = small_plan(laid_over(catalog, catalog.offers, [prices]))
    got = reprice(old, [prices], catalog=catalog).record
    assert got.options == searched.options
    assert (got.picks, got.shown) == (searched.picks, searched.shown)
    assert got.untrusted == searched.untrusted
    assert got.offers == searched.offers
    assert got.search.hypervolume == searched.search.hypervolume


def test_a_term_that_no_offer_has_is_told_until_a_price_file_brings_one(
    catalog: Catalog, tmp_path: Path
):
    bought = {"accelerators": CHIPS, "terms": ("on_demand", "reserved_1y", "reserved_3y")}
    asked = small_plan(catalog, slo(purchase=bought))
    told = "No offer that may be bought has reserved_1y or reserved_3y as its term: not compared."
    assert told in asked.assumptions
    row = {**key_of(cheapest(asked)), "term": "reserved_1y", "list_price_per_hour": "9"}
    like = asked.offers[cheapest(asked).money.price.offer]
    row |= {"accelerator": like.accelerator, "gpus": str(like.gpus)}
    new = reprice(asked, [write_prices(tmp_path / "p.csv", [row])], catalog=catalog).record
    told = "No offer that may be bought has reserved_3y as its term: not compared."
    assert [note for note in new.assumptions if note.startswith("No offer")] == [told]
    assert not [note for note in small_plan(catalog).assumptions if note.startswith("No offer")]


def key_like(offer: Any, **changes: str) -> dict[str, str]:
    names = ("provider", "instance_type", "region", "term")
    return dict(zip(names, offer.key, strict=True)) | changes


def test_prices_times_four_cost_four_times_as_much_on_the_same_front(
    catalog: Catalog, old: PlanRecord, tmp_path: Path
):
    rows = [
        key_like(o) | {"list_price_per_hour": o.list_price_per_hour * 4, "seen": o.seen}
        for o in old.offers
    ]
    got = reprice(old, [write_prices(tmp_path / "p.csv", rows)], catalog=catalog).record
    assert [o.id for o in got.options] == [o.id for o in old.options]
    for before, after in zip(old.options, got.options, strict=True):
        assert after.money.usd_per_hour == pytest.approx(4 * before.money.usd_per_hour, rel=1e-5)
        assert after.money.usd_per_mtok_output == pytest.approx(
            4 * before.money.usd_per_mtok_output, rel=1e-5
        )


def test_one_changed_price_is_named_alone_with_its_share(
    catalog: Catalog, old: PlanRecord, tmp_path: Path
):
    row = key_of(cheapest(old))
    price = cheapest(old).money.price.list_price_per_hour
    file = write_prices(tmp_path / "p.csv", [row | {"list_price_per_hour": price * 1.25}])
    found = reprice(old, [file], catalog=catalog).changes
    (change,) = found.prices
    assert change.key == tuple(row.values())
    assert change.change == pytest.approx(0.25)
    assert found.inputs == ()


@pytest.mark.parametrize("seed", range(5))
def test_a_price_change_names_exactly_the_changed_prices(
    catalog: Catalog, old: PlanRecord, tmp_path: Path, seed: int
):
    draw = random.Random(seed)
    moved = draw.sample(old.offers, 4)
    rows = [
        key_like(o) | {"list_price_per_hour": o.list_price_per_hour * factor, "seen": o.seen}
        for o, factor in zip(moved, (0.5, 0.9, 1.0, 2.0), strict=True)
    ]
    # The third is quoted anew at the same price, and what is quoted anew is no longer flagged.
    same = {moved[2].key} if not moved[2].flag else set()
    found = reprice(old, [write_prices(tmp_path / "p.csv", rows)], catalog=catalog).changes
    assert {change.key for change in found.prices} == {o.key for o in moved} - same
    shares = {change.key: change.change for change in found.prices}
    assert [shares[o.key] for o in (moved[0], moved[1], moved[3])] == pytest.approx([-0.5, -0.1, 1])


def test_a_pick_that_moves_says_why_and_what_staying_would_cost(
    catalog: Catalog, old: PlanRecord, tmp_path: Path
):
    before = cheapest(old)
    rise = 3.0
    price = before.money.price.list_price_per_hour * rise
    file = write_prices(tmp_path / "p.csv", [key_of(before) | {"list_price_per_hour": price}])
    done = reprice(old, [file], catalog=catalog)
    move = next(change for change in done.changes.picks if change.pick == "cheapest")
    assert move.before == before
    assert move.why == "its price rose by 200.0%"
    staying = before.instances * price
    assert move.after is not None
    assert move.staying_usd == pytest.approx(staying - move.after.money.usd_per_hour, rel=1e-5)


def test_a_cheaper_row_of_a_known_class_joins(catalog: Catalog, old: PlanRecord, tmp_path: Path):
    before = cheapest(old)
    offer = old.offers[before.money.price.offer]
    row = key_like(offer, provider="newcomer") | {
        "accelerator": offer.accelerator,
        "gpus": offer.gpus,
        "link": offer.link,
        "internode_gb_per_s": offer.internode_gb_per_s or "",
        "list_price_per_hour": 0.01,
        "seen": "2026-11-01",
    }
    done = reprice(old, [write_prices(tmp_path / "p.csv", [row])], catalog=catalog)
    after = cheapest(done.record)
    assert after.provider == "newcomer"
    assert done.record.inputs.as_of == "2026-11-01"
    # One instance-hour costs a cent; by hand from the tokens that it yields.
    per_mtok = after.money.usd_per_mtok_output
    tokens = after.output_tokens_per_s * SECONDS_PER_HOUR / MILLION
    assert per_mtok == pytest.approx(after.instances * 0.01 / tokens, rel=1e-5)


def test_hardware_that_was_never_searched_is_named_not_used(
    catalog: Catalog, old: PlanRecord, tmp_path: Path
):
    row = {
        "provider": "newcomer",
        "instance_type": "odd.16x",
        "region": "here",
        "term": "on_demand",
        "accelerator": CHIPS[0],
        "gpus": 16,
        "list_price_per_hour": 0.01,
        "seen": "2026-11-01",
    }
    done = reprice(old, [write_prices(tmp_path / "p.csv", [row])], catalog=catalog)
    (new,) = done.unsearched
    assert new.hardware.startswith(f"{CHIPS[0]} x16")
    assert new.cheapest_usd_per_hour == 0.01
    assert [o.id for o in done.record.options] == [o.id for o in old.options]


def test_an_accelerator_that_the_catalog_does_not_know_is_refused_by_name(
    catalog: Catalog, old: PlanRecord, tmp_path: Path
):
    row = {
        "provider": "x",
        "instance_type": "x",
        "region": "x",
        "term": "on_demand",
        "accelerator": "acme-x9",
        "gpus": 8,
        "list_price_per_hour": 1,
    }
    with pytest.raises(InputError, match="acme-x9"):
        reprice(old, [write_prices(tmp_path / "p.csv", [row])], catalog=catalog)


def test_the_record_says_where_a_new_search_might_find_more(catalog: Catalog, old: PlanRecord):
    unsure = old.model_copy(update={"search": old.search.model_copy(update={"proven": False})})
    assert UNPROVEN in reprice(unsure, catalog=catalog, search=False).record.assumptions
    assert UNPROVEN not in reprice(old, catalog=catalog).record.assumptions
    assert reprice(old, catalog=catalog).proven
    assert not reprice(unsure, catalog=catalog, search=False).proven


@pytest.mark.parametrize("day", ["yesterday", "2026-13-01", "20261129", "2026-11", ""])
def test_a_day_that_is_none_is_refused(catalog: Catalog, old: PlanRecord, day: str):
    with pytest.raises(InputError, match="is no date; write YYYY-MM-DD"):
        reprice(old, catalog=catalog, as_of=day)


def test_prices_that_have_expired_by_the_day_are_not_used(
    catalog: Catalog, old: PlanRecord, tmp_path: Path
):
    before = cheapest(old)
    row = key_of(before) | {"list_price_per_hour": 0.01, "valid_to": "2026-12-31"}
    file = write_prices(tmp_path / "p.csv", [row])
    good, expired = (
        reprice(old, [file], catalog=catalog, as_of=day).record
        for day in ("2026-12-31", "2027-01-01")
    )
    key = tuple(key_of(before).values())
    assert key in {offer.key for offer in good.offers}
    assert good.inputs.as_of == "2026-12-31"
    assert key not in {offer.key for offer in expired.offers}


def test_prices_that_leave_nothing_to_buy_are_at_fault_not_slo_yaml(
    catalog: Catalog, old: PlanRecord, tmp_path: Path
):
    sold = (offer for offer in catalog.offers if offer.accelerator in CHIPS)
    ended = [row | {"valid_to": "2020-01-01"} for row in price_rows(sold, 1, spread=0.1)]
    prices = write_prices(tmp_path / "ended.csv", ended)
    with pytest.raises(InputError, match="expired on 2020-01-01") as caught:
        reprice(old, [prices], catalog=catalog)
    assert caught.value.source == str(prices)


def test_a_catalog_that_lacks_the_plans_hardware_is_refused(catalog: Catalog, old: PlanRecord):
    hardware = old.archive[0].hardware.model_copy(update={"accelerator": "acme-x9"})
    odd = old.archive[0].model_copy(update={"hardware": hardware})
    strange = old.model_copy(update={"archive": (odd, *old.archive[1:])})
    with pytest.raises(InputError, match="lacks acme-x9"):
        reprice(strange, catalog=catalog)


def test_a_stored_plan_reprices_like_the_plan_itself(
    catalog: Catalog, old: PlanRecord, tmp_path: Path
):
    path = tmp_path / "plan.json"
    path.write_text(as_json(old), encoding="utf-8")
    assert reprice(path, catalog=catalog).record == old
    assert not diff(path, old)


def test_other_inputs_are_named_with_both_values(catalog: Catalog, old: PlanRecord):
    traffic = old.inputs.slo["traffic"] | {"rate_per_s": 200.0}
    new = small_plan(catalog, slo(traffic={k: v for k, v in traffic.items() if v is not None}))
    found = diff(old, new)
    (change,) = found.inputs
    assert (change.key, change.before, change.after) == ("slo.traffic.rate_per_s", 20.0, 200.0)
    assert found.prices == ()
    moved = next(change for change in found.picks if change.pick == "cheapest")
    assert moved.why == "slo.traffic.rate_per_s changed"


def test_an_archive_that_is_not_proven_is_searched_again(catalog: Catalog, old: PlanRecord):
    """The answer is that of a new search, whatever the stored archive lacks."""
    first, *others = old.archive
    rows = {name: getattr(first.rows, name) for name in type(first.rows).model_fields}
    one = {name: value[:1] for name, value in rows.items() if isinstance(value, tuple)}
    poor = first.model_copy(update={"rows": first.rows.model_copy(update=one)})
    search = old.search.model_copy(update={"proven": False})
    unsure = old.model_copy(update={"archive": (poor, *others), "search": search})
    found = reprice(unsure, catalog=catalog)
    assert found.record.options == old.options
    assert found.record.picks == old.picks
    assert SEARCHED in found.record.assumptions
    assert found.proven


def test_what_the_picks_need_is_told_of_the_picks_at_the_new_prices(catalog: Catalog):
    old = plan(slo(), catalog=catalog, space=space(weights=("int4",)), prove=True, verify=False)
    formats = {option.id: option.weights for option in old.options}
    names = ", ".join(pick for pick, one in old.picks.items() if formats[one] == "int4")
    (told,) = [note for note in old.assumptions if note.startswith("To deploy ")]
    said = "supply a checkpoint with int4 weights, the release is bf16."
    assert told == f"To deploy {names}: {said}"
    stale = tuple(note.replace(names, "nobody") for note in old.assumptions)
    again = reprice(old.model_copy(update={"assumptions": stale}), catalog=catalog).record
    assert [note for note in again.assumptions if note.startswith("To deploy ")] == [told]
