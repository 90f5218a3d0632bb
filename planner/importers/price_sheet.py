"""A plain price sheet, CSV or XLSX, whose columns a mapping explains."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from planner.errors import Fault, InputError, install, suggestion
from planner.files import CsvRow, read_csv
from planner.importers.price_chips import ChipWords, identify
from planner.importers.price_rows import (
    Draft,
    Imported,
    Known,
    PriceFile,
    Refusal,
    RefusedError,
    described,
    host_flag,
    number_of,
    price_of,
    settle,
)
from planner.importers.price_source import checked_date, stamp
from planner.spec.offer import Term
from planner.units import HOURS_PER_MONTH

WRITER = "price sheet"
SHEET = "sheet"
"""Mapping key that names the worksheet; default the first."""
CONSTANT = "="
"""A mapping value that begins so is the value itself: ``term: =on_demand``."""
MOST_ROWS = 200_000
MOST_BYTES = 20_000_000
DECIMALS = 6

TEXTS = ("provider", "instance_type", "accelerator", "region", "term", "link", "note")
PRICES: Mapping[str, str] = {
    "list_price_per_hour": "per instance-hour",
    "price_per_gpu_hour": "per GPU-hour; times the GPUs",
    "price_per_month": "per instance and month of 730 hours",
}
"""Columns that may hold the list price; the first of them that a row fills counts."""
OPTIONAL: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("discount_share", "upfront_share", "interruption_share"), float),
    **dict.fromkeys(("vcpus", "memory_gib", "internode_gb_per_s", "minimum_hours"), float),
    **dict.fromkeys(("minimum_instances", "quota_instances"), int),
    **dict.fromkeys(("valid_from", "valid_to"), datetime.date.fromisoformat),
    "contracted_price_per_hour": price_of,
    "currency": str.upper,
}
FIELDS = (*TEXTS, "gpus", *PRICES, *OPTIONAL, "seen")
TERMS: Mapping[str, Term] = {
    **{term: term for term in get_args(Term)},
    **dict.fromkeys(("ondemand", "payg", "pay_as_you_go", "standard"), "on_demand"),
    **dict.fromkeys(("preemptible", "interruptible"), "spot"),
    **dict.fromkeys(("1y", "1yr", "1_year", "reserved_1_year", "12_months"), "reserved_1y"),
    **dict.fromkeys(("3y", "3yr", "3_years", "reserved_3_years", "36_months"), "reserved_3y"),
}


@dataclass(frozen=True)
class Sheet:
    """A table of texts with its lines, however it was written."""

    header: tuple[str, ...]
    rows: tuple[CsvRow, ...]


def read_price_sheet(file: PriceFile, known: Known) -> Imported:
    """Read a price sheet.

    Args:
        file: CSV or XLSX with a header line. ``mapping`` says which column holds which of
            :data:`FIELDS`; a field without an entry takes the column of its own name.
        known: What the catalog knows.

    Raises:
        InputError: The file or the mapping cannot be used; openpyxl is missing.
    """
    suffix = file.path.suffix.casefold()
    reader = partial(_read_xlsx, sheet=file.mapping.get(SHEET, "")) if suffix == ".xlsx" else _read
    sheet = reader(file.path)
    return offers_of(sheet, file, known, WRITER)


def offers_of(sheet: Sheet, file: PriceFile, known: Known, writer: str) -> Imported:
    """Return the offers of a table.

    Raises:
        InputError: The mapping names a field or column that does not exist, or a field that
            every row needs has neither column nor value.
    """
    columns = _columns(sheet.header, file)
    common = stamp(file, file.seen, writer)
    drafts: list[Draft] = []
    refused: list[Refusal] = []
    for row in sheet.rows:
        cells = {name: _cell(row, column) for name, column in columns.items()}
        try:
            drafts.append(_draft(row.line, cells, file, known, common))
        except RefusedError as error:
            what = described(cells.get("instance_type", ""), cells.get("region", ""))
            refused.append(Refusal(row.line, what, error.reason, error.detail))
    return settle(drafts, refused, len(sheet.rows))


def _read(path: Path) -> Sheet:
    rows = read_csv(path)
    return Sheet(tuple(rows[0].values) if rows else (), rows)


def _read_xlsx(path: Path, sheet: str) -> Sheet:
    try:
        from openpyxl import load_workbook
    except ImportError:
        message = f"reading .xlsx needs openpyxl; {install('xlsx-import')}, or save as CSV"
        raise InputError(str(path), [message]) from None
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(str(path), [f"larger than {MOST_BYTES // 1_000_000} MB; split it"])
        with path.open("rb") as handle:
            book = load_workbook(handle, read_only=True, data_only=True)
            names = list(book.sheetnames)
            if sheet and sheet not in names:
                message = f"no such worksheet{suggestion(sheet, names)}; it has {', '.join(names)}"
                raise InputError(str(path), [Fault("", SHEET, message)])
            cells = book[sheet or names[0]].iter_rows(values_only=True, max_row=MOST_ROWS)
            lines = [[_text(value) for value in row] for row in cells]
    except InputError:
        raise
    # A damaged workbook raises whatever the broken part of it provokes.
    except Exception as error:
        message = f"cannot be read as .xlsx ({type(error).__name__}); save it again, or as CSV"
        raise InputError(str(path), [message]) from None
    return _sheet(lines)


def _sheet(lines: Sequence[Sequence[str]]) -> Sheet:
    filled = [(number, row) for number, row in enumerate(lines, start=1) if any(row)]
    if not filled:
        return Sheet((), ())
    header = tuple(filled[0][1])
    rows = tuple(
        CsvRow(number, {name: text for name, text in zip(header, row, strict=False) if name})
        for number, row in filled[1:]
    )
    return Sheet(tuple(name for name in header if name), rows)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime.datetime):
        return value.date().isoformat()
    return str(value).strip()


def _columns(header: Sequence[str], file: PriceFile) -> dict[str, str]:
    """Return column, or ``=value``, by field."""
    faults = [
        Fault("", name, f"is no field of an offer{suggestion(name, FIELDS)}")
        for name in file.mapping
        if name not in FIELDS and name != SHEET
    ]
    faults += [
        Fault("", name, f"no column '{column}'{suggestion(column, header)}")
        for name, column in file.mapping.items()
        if name in FIELDS and not column.startswith(CONSTANT) and column not in header
    ]
    own = {_folded(column): column for column in header}
    columns = {name: own[name] for name in FIELDS if name in own} | {
        name: column for name, column in file.mapping.items() if name in FIELDS
    }
    given = {"provider": file.provider, "seen": file.seen}
    columns = {name: f"{CONSTANT}{text}" for name, text in given.items() if text} | columns
    needed = ("provider", "instance_type", "accelerator", "gpus", "region", "term", "seen")
    faults += [
        Fault("", name, f"no column has it; map it to a column, or to {CONSTANT}value")
        for name in needed
        if name not in columns
    ]
    if not any(name in columns for name in PRICES):
        message = f"no column has a price; map one of {', '.join(PRICES)}"
        faults.append(Fault("", "list_price_per_hour", message))
    if faults:
        raise InputError(str(file.path), faults)
    return columns


def _folded(column: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", column.casefold()).strip("_")


def _cell(row: CsvRow, column: str) -> str:
    if column.startswith(CONSTANT):
        return column.removeprefix(CONSTANT).strip()
    return row.values.get(column, "")


def _draft(
    line: int, cells: Mapping[str, str], file: PriceFile, known: Known, common: Mapping[str, str]
) -> Draft:
    term = TERMS.get(_folded(cells["term"]))
    if term is None:
        shown = ascii(cells["term"])[:40]
        detail = f"term {shown} is not one of {', '.join(get_args(Term))}"
        raise RefusedError("unusable value", detail)
    values = {name: _value(name, cells[name]) for name in OPTIONAL if cells.get(name)}
    count = number_of(cells["gpus"])
    if not cells["accelerator"] or count is None:
        raise RefusedError("incomplete row", "no accelerator or number of gpus; fill them in")
    chip = identify(
        ChipWords(cells["provider"], cells["instance_type"], cells["accelerator"], count=count),
        known,
    )
    price = _price(cells, chip.gpus)
    values |= {name: cells.get(name, "") for name in ("provider", "instance_type", "region")}
    values |= {
        **common,
        "seen": _seen(cells["seen"], file),
        "accelerator": chip.accelerator.id,
        "gpus": chip.gpus,
        "link": cells.get("link") or chip.link,
        "flag": chip.flag or host_flag(values.get("vcpus"), values.get("memory_gib")),
        "note": "; ".join(part for part in (cells.get("note", ""), chip.note) if part),
    }
    return Draft(line, term, price, values)


def _seen(text: str, file: PriceFile) -> str:
    try:
        return checked_date(text, str(file.path))
    except InputError as error:
        raise RefusedError("unusable value", f"seen: {error.faults[0].message}") from None


def _value(name: str, text: str) -> Any:
    try:
        if "_" in text:
            raise ValueError
        return OPTIONAL[name](text)
    except ValueError:
        detail = f"{name}: {ascii(text)[:40]} cannot be read; write a bare number, or YYYY-MM-DD"
        raise RefusedError("unusable value", detail) from None


def _price(cells: Mapping[str, str], gpus: int) -> float:
    factors = {"list_price_per_hour": 1.0, "price_per_gpu_hour": gpus}
    for name in PRICES:
        price = price_of(cells.get(name, ""))
        if price is not None:
            return round(price * factors.get(name, 1 / HOURS_PER_MONTH), DECIMALS)
    raise RefusedError("no price", "no price; look it up")
