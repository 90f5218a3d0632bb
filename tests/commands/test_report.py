from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from planner.catalog import Catalog, load_catalog
from planner.commands.report import write_report
from planner.errors import InputError
from planner.report.json_text import render as as_json
from planner.spec.offer import ExchangeRate
from tests.commands.small_plans import small_plan
from tests.report.records import record


@pytest.mark.parametrize(("name", "start"), [("pack.xlsx", b"PK"), ("options.CSV", b"picks,id,")])
def test_the_suffix_says_which_report_is_written(tmp_path: Path, name: str, start: bytes):
    write_report(record(), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_stored_plan_gives_the_same_report_as_the_plan_itself(tmp_path: Path):
    stored = tmp_path / "plan.json"
    stored.write_text(as_json(record()))
    write_report(stored, tmp_path / "a.csv")
    write_report(record(), tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def in_euro() -> Catalog:
    """Return the shipped catalog with the same prices in EUR, at $1.25."""
    known = load_catalog()
    rate = ExchangeRate(usd=1.25, date=datetime.date(2026, 11, 2), source="ECB")
    offers = tuple(offer.model_copy(update={"currency": "EUR"}) for offer in known.offers)
    return replace(known, offers=offers, exchange={"EUR": rate})


def test_a_plan_in_euro_keeps_its_rate_and_asks_for_the_catalog_that_knows_it(tmp_path: Path):
    made = small_plan(in_euro())
    price, before = (one.options[0].money.price for one in (made, small_plan(load_catalog())))
    assert (price.currency, price.exchange) == ("EUR", in_euro().exchange["EUR"])
    assert price.quoted_usd_per_hour == pytest.approx(1.25 * before.quoted_usd_per_hour)
    write_report(made, tmp_path / "pack.xlsx")
    with pytest.raises(InputError, match="lacks a rate for EUR, which the plan names"):
        write_report(made, tmp_path / "pack.xlsx", catalog=load_catalog())


def test_an_unknown_suffix_names_the_nearest_known_one(tmp_path: Path):
    with pytest.raises(InputError, match=r"'\.xlxs' is no kind of report; did you mean '\.xlsx'"):
        write_report(record(), tmp_path / "pack.xlxs")
    assert not list(tmp_path.iterdir())
