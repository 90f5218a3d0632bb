"""Price rows -> offers: the catalog's own file, then price files laid over it by key."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planner.catalog.lookup import Names
from planner.errors import Fault, InputError, suggestion
from planner.files import CsvRow, Document, KeyPath, read_csv
from planner.spec.accelerator import Accelerator
from planner.spec.base import first_day
from planner.spec.load import load
from planner.spec.offer import Offer

KEY = ("provider", "instance_type", "region", "term")
PRICES = ("list_price_per_hour", "contracted_price_per_hour")
DISCOUNT = "discount_share"
NEW = ("accelerator", "gpus")
"""What a row must state that replaces none."""

Key = tuple[str, ...]


def _number(text: str) -> object:
    # Python reads 1_000 as a number; a price list that holds it is damaged.
    return text if "_" in text else float(text)


def _whole(text: str) -> object:
    value = _number(text)
    return int(value) if isinstance(value, float) and value.is_integer() else value


_READ: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(("gpus", "minimum_instances", "quota_instances"), _whole),
    **dict.fromkeys(
        (
            *("internode_gb_per_s", "vcpus", "memory_gib", *PRICES, DISCOUNT),
            *("upfront_share", "interruption_share", "minimum_hours"),
        ),
        _number,
    ),
    **dict.fromkeys(("valid_from", "valid_to"), datetime.date.fromisoformat),
}


@dataclass(frozen=True)
class _Row:
    """A price row before it is checked: its texts without the empty ones, and its place."""

    source: str
    line: int
    values: dict[str, str]

    @property
    def key(self) -> Key:
        return tuple(self.values.get(name, "").casefold() for name in KEY)

    def fault(self, column: str, message: str) -> Fault:
        return Fault(f"line {self.line}", column, message)


def read_offers(
    files: Sequence[Path],
    accelerators: Names[Accelerator],
    currencies: Collection[str],
    base: Sequence[Offer] = (),
) -> tuple[Offer, ...]:
    """Read offers, sorted by key.

    Args:
        files: The catalog's rows, then price files: a row with a known key replaces price and
            whatever else it states; a new key adds an offer.
        accelerators: What rows may name, by id or alias; offers hold the id.
        currencies: Those that rows may use.
        base: Offers that the first file is laid over too.

    Raises:
        InputError: Every fault of the first file that has any.
    """
    stated = [(_stated(offer), offer) for offer in base]
    rows = {row.key: row for row, _ in stated}
    for path in files:
        mine, faults = _keyed(path)
        if rows:
            faults += _overlay_faults(mine, rows)
            mine = _laid_over(mine, rows, path.name)
        told = {(fault.where, fault.key) for fault in faults}
        faults += [
            fault
            for row in mine.values()
            for fault in _row_faults(row, accelerators, currencies)
            if (fault.where, fault.key) not in told
        ]
        _refuse(path, faults)
        rows |= mine
    known = {id(row): offer for row, offer in stated}
    made = (known.get(id(row)) or _offer(row, accelerators) for row in rows.values())
    return tuple(sorted(made, key=_order))


def _stated(offer: Offer) -> _Row:
    """Return an offer as the row that states it."""
    values = {name: str(value) for name, value in offer.model_dump(exclude_none=True).items()}
    return _Row("", 0, {name: text for name, text in values.items() if text})


def newest_seen(seen: Iterable[str]) -> str:
    """Return the newest date as YYYY-MM-DD; a month or year counts from its first day."""
    return first_day(max(seen, default="1970-01-01")).isoformat()


def _order(offer: Offer) -> tuple[str, ...]:
    return offer.key


def _keyed(path: Path) -> tuple[dict[Key, _Row], list[Fault]]:
    """Return the rows of a file by key, and which keys stand twice; values are not checked yet.

    Raises:
        InputError: The header is at fault, and so would be every row.
    """
    rows: dict[Key, _Row] = {}
    faults: list[Fault] = []
    read = read_csv(path)
    if read:
        _refuse(path, _header_faults(read[0]))
    for line in read:
        values = {name: text for name, text in line.values.items() if text}
        row = _Row(str(path), line.line, values)
        first = rows.setdefault(row.key, row)
        if first is not row:
            message = f"same {', '.join(KEY)} as line {first.line}; keep one"
            faults.append(row.fault("", message))
    return rows, faults


def _header_faults(first: CsvRow) -> list[Fault]:
    known = Offer.model_fields
    faults = [
        Fault("line 1", name, f"unknown column{suggestion(name, known) or '; remove it'}")
        for name in first.values
        if name not in known
    ]
    faults += [
        Fault("line 1", name, "this column is missing; add it")
        for name in KEY
        if name not in first.values
    ]
    return faults


def _overlay_faults(stated: Mapping[Key, _Row], rows: Mapping[Key, _Row]) -> Iterator[Fault]:
    """Yield what the rows of a price file lack, beside those that they are laid over."""
    if not stated:
        yield Fault("", "", "no prices; add one a line below the header")
    strange = f"no offer has this key; mend {', '.join(KEY)}, or add {' and '.join(NEW)}"
    for key, row in stated.items():
        under = rows.get(key)
        said = PRICES if under is None else (*PRICES, DISCOUNT)
        if not any(name in row.values for name in said):
            yield row.fault(PRICES[0], f"no price; give {' or '.join(PRICES)}")
        for name in NEW if under is None else ():
            if name not in row.values:
                yield row.fault(name, strange)


def _laid_over(stated: Mapping[Key, _Row], rows: Mapping[Key, _Row], name: str) -> dict[Key, _Row]:
    """Return the rows of a price file, completed from the rows that they replace."""
    as_of = newest_seen(row.values["seen"] for row in rows.values())
    return {key: _completed(row, rows.get(key), name, as_of) for key, row in stated.items()}


def _completed(row: _Row, under: _Row | None, name: str, as_of: str) -> _Row:
    """Return a row with what it does not state: the date and source are never the old price's."""
    beneath = dict(under.values) if under else {}
    list_source = beneath.get("source", "")
    for column in ("contracted_price_per_hour", DISCOUNT, "valid_from", "valid_to", "flag", "note"):
        beneath.pop(column, None)
    keeps_list = under is not None and PRICES[0] not in row.values
    beneath |= {
        "seen": _day_or(as_of, row.values.get("valid_from", as_of)),
        "seen_basis": "the price file states no date",
        "source": f"{name}; list price: {list_source}"[:200] if keeps_list else name,
    }
    key_as_known = {column: beneath[column] for column in KEY if column in beneath}
    return replace(row, values=beneath | row.values | key_as_known)


def _day_or(other: str, text: str) -> str:
    """Return a date; another one where it is none, which is told where it stands."""
    try:
        first_day(text)
    except ValueError:
        return other
    return text


def _row_faults(
    row: _Row, accelerators: Names[Accelerator], currencies: Collection[str]
) -> list[Fault]:
    faults: list[Fault] = []
    name = row.values.get("accelerator", "")
    accelerator = accelerators.get(name)
    if name and accelerator is None:
        faults.append(row.fault("accelerator", accelerators.unknown(name)))
    link = row.values.get("link", "")
    if accelerator and link and link not in accelerator.links():
        kinds = ", ".join(accelerator.links())
        message = f"{accelerator.id} has no '{link}' link; leave it empty, or use one of {kinds}"
        faults.append(row.fault("link", message))
    currency = row.values.get("currency", "USD")
    if currency not in currencies:
        message = f"no rate for {currency}; add it to currencies.yaml, or give the price in USD"
        faults.append(row.fault("currency", message))
    try:
        _offer(row, accelerators)
    except InputError as error:
        faults += error.faults
    return faults


def _offer(row: _Row, accelerators: Names[Accelerator]) -> Offer:
    values = {column: _value(column, text) for column, text in row.values.items()}
    accelerator = accelerators.get(row.values.get("accelerator", ""))
    if accelerator is not None:
        values["accelerator"] = accelerator.id
    lines: dict[KeyPath, int] = {(): row.line}
    return load(Document(row.source, values, lines), Offer)


def _value(column: str, text: str) -> object:
    try:
        return _READ[column](text) if column in _READ else text
    except ValueError:
        return text


def _refuse(path: Path, faults: list[Fault]) -> None:
    if faults:
        by_line = sorted(faults, key=lambda fault: int(fault.where.removeprefix("line ") or 0))
        raise InputError(str(path), by_line)
