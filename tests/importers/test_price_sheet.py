"""Price sheets: a buyer's own columns, CSV or XLSX."""

from __future__ import annotations

import builtins
import datetime

import pytest
from openpyxl import Workbook

from planner.errors import InputError
from planner.importers.price_rows import PriceFile
from planner.importers.prices import read_prices
from tests.importers.price_shapes import known

SHEET = """\
Vendor,SKU,Chip,GPUs per server,Site,Contract,EUR per GPU h,Off,Quote ends
Acme,ac-8,H100 SXM,8,fra-1,On-Demand,2.50,0.10,2027-03-31
Acme,ac-8,H100 SXM,8,fra-1,1 year,1.75,,
Acme,ac-4,L40S,4,fra-1,spot,0.40,,
"""
MAPPING = {
    "provider": "Vendor",
    "instance_type": "SKU",
    "accelerator": "Chip",
    "gpus": "GPUs per server",
    "region": "Site",
    "term": "Contract",
    "price_per_gpu_hour": "EUR per GPU h",
    "discount_share": "Off",
    "valid_to": "Quote ends",
    "currency": "=EUR",
    "minimum_hours": "=24",
}


def take(path, mapping=MAPPING, seen="2026-11-02", provider=""):
    return read_prices("sheet", PriceFile(path, seen, provider, mapping), known())


def sheet(tmp_path, text=SHEET):
    path = tmp_path / "quote.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_mapped_and_gpu_prices_become_instance_prices(tmp_path):
    got = take(sheet(tmp_path))
    assert [
        (o.instance_type, o.term, o.list_price_per_hour, round(o.price_per_hour, 9), o.currency)
        for o in got.offers
    ] == [
        ("ac-4", "spot", 1.6, 1.6, "EUR"),
        ("ac-8", "on_demand", 20.0, 18.0, "EUR"),
        ("ac-8", "reserved_1y", 14.0, 14.0, "EUR"),
    ]
    [quoted] = [offer for offer in got.offers if offer.valid_to]
    assert quoted.valid_to == datetime.date(2027, 3, 31)
    assert {(o.seen, o.minimum_hours, o.accelerator) for o in got.offers} == {
        ("2026-11-02", 24.0, "h100-sxm"),
        ("2026-11-02", 24.0, "l40s"),
    }


def test_xlsx_gives_the_same_offers_as_csv(tmp_path):
    book = Workbook()
    book.active.title = "Notes"
    page = book.create_sheet("Prices")
    page.append([])
    head, *rows = [line.split(",") for line in SHEET.splitlines()]
    page.append(head)
    for row in rows:
        count, price, off = int(row[3]), float(row[6]), float(row[7]) if row[7] else None
        day = datetime.datetime(2027, 3, 31) if row[8] else None
        page.append([*row[:3], count, *row[4:6], price, off, day])
    path = tmp_path / "quote.xlsx"
    book.save(path)
    got = take(path, {**MAPPING, "sheet": "Prices"})
    plain = take(sheet(tmp_path))
    strip = [offer.model_copy(update={"source": ""}) for offer in got.offers]
    assert strip == [offer.model_copy(update={"source": ""}) for offer in plain.offers]
    with pytest.raises(InputError, match="did you mean 'Prices'"):
        take(path, {**MAPPING, "sheet": "Price"})


def test_columns_with_our_own_names_need_no_mapping(tmp_path):
    text = (
        "provider,instance type,accelerator,GPUs,region,term,list_price_per_hour,seen\n"
        "acme,ac-8,h100-pcie,8,fra-1,on_demand,19.99,2026-10\n"
    )
    [offer] = take(sheet(tmp_path, text), mapping={}, seen="").offers
    assert (offer.accelerator, offer.list_price_per_hour, offer.seen) == (
        "h100-pcie",
        19.99,
        "2026-10",
    )


def test_a_price_per_month_is_divided_by_730_hours(tmp_path):
    text = SHEET.replace("EUR per GPU h", "per month").replace(",2.50,", ",14600,")
    mapping = {name: column for name, column in MAPPING.items() if name != "price_per_gpu_hour"}
    got = take(sheet(tmp_path, text), {**mapping, "price_per_month": "per month"})
    assert {o.list_price_per_hour for o in got.offers if o.term == "on_demand"} == {20.0}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("On-Demand", "whenever", "unusable value"),
        (",2.50,", ",2.50 EUR,", "not a price"),
        (",2.50,", ",,", "no price"),
        (",2.50,", ",0,", "not a price"),
        (",0.10,", ",10 %,", "unusable value"),
        (",0.10,", ",1.5,", "unusable value"),
        ("2027-03-31", "31.03.2027", "unusable value"),
        ("H100 SXM,8,fra-1,On", "H100,8,fra-1,On", "ambiguous accelerator"),
        ("H100 SXM,8,fra-1,On", "H100 SXM,two,fra-1,On", "incomplete row"),
        ("8,fra-1,On", "0.5,fra-1,On", "fractional GPU"),
        ("Acme,ac-8,H100 SXM,8,fra-1,On", "=cmd(),ac-8,H100 SXM,8,fra-1,On", "unusable text"),
    ],
)
def test_a_row_that_cannot_be_used_is_listed_and_the_others_are_taken(tmp_path, old, new, reason):
    assert old in SHEET
    got = take(sheet(tmp_path, SHEET.replace(old, new, 1)))
    assert [(refusal.line, refusal.reason) for refusal in got.refused] == [(2, reason)]
    assert len(got.offers) == 2


def test_all_faults_of_a_mapping_are_told_at_once(tmp_path):
    mapping = {"instance_type": "Sku", "acelerator": "Chip", "gpus": "GPUs per server"}
    with pytest.raises(InputError) as error:
        take(sheet(tmp_path), mapping, seen="")
    message = str(error.value)
    assert "acelerator: is no field of an offer; did you mean 'accelerator'?" in message
    assert "instance_type: no column 'Sku'; did you mean 'SKU'?" in message
    assert "region: no column has it; map it to a column, or to =value" in message
    assert "seen: no column has it" in message
    assert "list_price_per_hour: no column has a price" in message


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04broken", b"not a workbook at all"])
def test_a_damaged_workbook_ends_in_an_error(tmp_path, content):
    path = tmp_path / "quote.xlsx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read as \.xlsx"):
        take(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="none"):
        take(tmp_path / "none.xlsx")


def test_without_openpyxl_one_line_names_the_extra(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **named):
        if name == "openpyxl":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError) as error:
        take(tmp_path / "quote.xlsx")
    assert [fault.message for fault in error.value.faults] == [
        "reading .xlsx needs openpyxl; pip install 'slo-planner[xlsx-import]', or save as CSV"
    ]
