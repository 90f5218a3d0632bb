"""plan prices: an import is a price file; the list and the check say what prices rest on."""

from __future__ import annotations

import csv
import shutil

import pytest

from planner.catalog import data_root, load_catalog
from planner.commands.prices import (
    Finding,
    PriceFilter,
    check_prices,
    import_prices,
    list_prices,
    to_csv,
)
from planner.errors import InputError
from tests.importers.price_shapes import SKYPILOT

HEADER = (
    "provider,instance_type,accelerator,gpus,region,term,list_price_per_hour,currency,seen,"
    "seen_basis,source,valid_to,minimum_instances,quota_instances,minimum_hours,flag,note\n"
)


@pytest.fixture
def own(tmp_path):
    """A catalog whose only prices are the rows given, without the columns that all share."""

    def make(*rows: str):
        folder = shutil.copytree(data_root() / "hardware_catalog", tmp_path / "own")
        text = HEADER + "".join(f"{row}\n" for row in rows)
        (folder / "offers.csv").write_text(text, encoding="utf-8")
        return folder

    return make


def row(key, price, seen="2026-06-01", tail=",1,,,,", currency="USD"):
    return f"{key},{price},{currency},{seen},by hand,a quote,{tail}"


ON_DEMAND = "acme,ac-8,h100-sxm,8,fra-1,on_demand"
SPOT = "acme,ac-8,h100-sxm,8,fra-1,spot"


@pytest.mark.parametrize("provider", ["aws", "gcp", "azure", "vast", "verda"])
def test_what_an_import_gives_is_a_price_file_with_the_same_prices(tmp_path, provider):
    source = tmp_path / f"{provider}.csv"
    source.write_text(SKYPILOT[provider], encoding="utf-8")
    got = import_prices("skypilot", source, seen="2026-11-01")
    assert got.offers
    target = tmp_path / "prices.csv"
    target.write_text(to_csv(got.offers), encoding="utf-8")
    loaded = {offer.key: offer for offer in load_catalog(prices=[target]).offers}
    for offer in got.offers:
        back = loaded[offer.key]
        fields = ("list_price_per_hour", "accelerator", "gpus", "seen", "source", "flag", "region")
        assert [getattr(back, name) for name in fields] == [getattr(offer, name) for name in fields]


def test_to_csv_has_the_columns_of_the_shipped_file(catalog_offers):
    shipped = (data_root() / "hardware_catalog" / "offers.csv").read_text(encoding="utf-8")
    written = to_csv(catalog_offers).splitlines()
    assert written[0] == shipped.splitlines()[0]
    assert len(list(csv.reader(written))) == len(catalog_offers) + 1


@pytest.fixture(scope="module")
def catalog_offers():
    return load_catalog().offers


def test_the_list_keeps_list_contracted_and_effective_price_apart(own):
    folder = own(row(ON_DEMAND, "40"), row(SPOT, "18"))
    lines = list_prices(catalog=folder, as_of="2026-06-11")
    # Spot: 18 / 0.9 = 20 an hour, 2.5 a GPU-hour; on demand 40 / 8 = 5.
    assert [
        (
            line.term,
            line.pricing_category,
            line.list_unit_price,
            line.contracted_unit_price,
            round(line.effective_unit_price, 6),
            round(line.effective_usd_per_gpu_hour, 6),
            line.age_days,
        )
        for line in lines
    ] == [
        ("spot", "Dynamic", 18.0, 18.0, 20.0, 2.5, 10),
        ("on_demand", "Standard", 40.0, 40.0, 40.0, 5.0, 10),
    ]


def test_the_list_is_filtered_without_case_and_by_alias():
    only = PriceFilter(("AWS",), ("H100",), ("US-EAST-1",), ("on_demand",))
    lines = list_prices(only=only)
    assert {line.instance_type for line in lines} == {"p5.48xlarge", "p5.4xlarge"}
    assert {line.accelerator for line in lines} == {"h100-sxm"}
    with pytest.raises(InputError, match="did you mean"):
        list_prices(only=PriceFilter(accelerators=("h100-smx",)))


def test_ages_count_from_the_first_day_of_what_is_known(own):
    folder = own(row(ON_DEMAND, "40", "2026"), row(SPOT, "18", "2026-06"))
    report = check_prices(catalog=folder, as_of="2026-07-01")
    # 1 January to 1 July: 181 days; 1 June to 1 July: 30.
    assert (report.newest_days, report.oldest_days, report.offers) == (30, 181, 2)
    assert [finding.value for finding in report.of("old")] == [181]


def test_gaps_name_chips_without_a_price_and_terms_that_are_missing(own):
    report = check_prices(
        catalog=own(
            row(ON_DEMAND, "40", tail=",1,,,suspect,odd"), row(SPOT, "18", tail=",1,,,suspect,")
        )
    )
    unpriced = {finding.what for finding in report.of("no price")}
    assert "b200-sxm" in unpriced
    assert "h100-sxm" in unpriced
    [missing] = report.of("missing term")
    assert missing.what == "h100-sxm"
    assert missing.detail.startswith("no price for reserved_1y, reserved_3y")
    assert [finding.detail for finding in report.of("flagged")] == [
        "suspect: odd",
        "suspect: by hand",
    ]


@pytest.mark.parametrize(
    ("term", "tail", "as_of", "expected"),
    [
        ("on_demand", "2026-06-30,1,,,,", "2026-07-01", [("expired", -1)]),
        ("on_demand", "2026-07-20,1,,,,", "2026-07-01", [("expires before the term ends", 19)]),
        ("on_demand", "2026-09-30,1,,,,", "2026-07-01", []),
        ("on_demand", "2026-09-30,1,,2400,,", "2026-07-01",
         [("expires before the term ends", 91)]),
        ("reserved_1y", "2027-06-30,1,,,,", "2026-07-01",
         [("expires before the term ends", 364)]),
        ("reserved_1y", "2027-07-01,1,,,,", "2026-07-01", []),
    ],
)  # fmt: skip
def test_prices_that_lapse_before_the_purchase_ends_are_found(own, term, tail, as_of, expected):
    key = ON_DEMAND.replace("on_demand", term)
    report = check_prices(catalog=own(row(key, "40", tail=tail)), as_of=as_of)
    found = [*report.of("expired"), *report.of("expires before the term ends")]
    assert [(finding.check, finding.value) for finding in found] == expected


def test_spot_above_on_demand_and_sixfold_spreads_are_outliers(own):
    cheap = "zen,z-1,h100-sxm,1,fra-1,on_demand"
    report = check_prices(catalog=own(row(ON_DEMAND, "40"), row(SPOT, "44"), row(cheap, "0.8")))
    [spot] = report.of("spot not below on-demand")
    assert (spot.what, spot.value) == ("acme ac-8 fra-1 spot", pytest.approx(1.1))
    [spread] = report.of("spread")
    # 40 / 8 = 5 USD per GPU against 0.8: 6.25 x.
    assert (spread.what, spread.value) == ("h100-sxm on_demand", pytest.approx(6.25))


def test_a_spread_of_just_six_is_none(own):
    cheap = "zen,z-1,h100-sxm,1,fra-1,on_demand"
    report = check_prices(catalog=own(row(ON_DEMAND, "48"), row(cheap, "1")))
    assert report.of("spread") == ()


def test_a_quota_below_the_smallest_purchase_is_found(own):
    report = check_prices(catalog=own(row(ON_DEMAND, "40", tail=",4,2,,,")))
    assert [finding.what for finding in report.of("quota below the minimum")] == [
        "acme ac-8 fra-1 on_demand"
    ]


def test_the_shipped_prices_have_no_spot_above_on_demand_and_list_their_flags(catalog_offers):
    report = check_prices(as_of="2026-11-29")
    assert report.of("spot not below on-demand") == ()
    assert len(report.of("flagged")) == sum(bool(offer.flag) for offer in catalog_offers)
    # The newest price is of 2026-09-06: 84 days.
    assert report.newest_days == 84
    assert all(isinstance(finding, Finding) for finding in report.findings)


def test_an_impossible_day_is_refused():
    with pytest.raises(InputError, match="is no date; write YYYY-MM-DD"):
        check_prices(as_of="2026-02-30")
