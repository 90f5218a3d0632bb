"""What no longer fits together in a stored plan, which only one that was edited has."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator

from planner.counting import counted
from planner.files import KeyPath
from planner.spec.archive import ClassArchive, Rows
from planner.spec.offer import Offer
from planner.spec.option import Option
from planner.spec.record import PlanRecord

AGAIN = "plan again, or undo the edit"
SAME = (
    "engine", "generation", "weights", "kv", "tp", "pp", "dp", "speculation", "draft_tokens",
    "max_num_seqs", "token_budget",
)  # fmt: skip
"""What an option says of its deployment as its row in the archive does. Replicas may differ: a miss
has as many as may be bought."""
PRICED = ("provider", "instance_type", "region", "term")
"""What an option says of its price as the price row does."""
ROUNDING = 2e-5
"""Share by which a product of figures with 6 digits may miss its own figure with 6 digits."""
SIMULATED = frozenset(
    f"{metric}_p{share}_ms" for metric in ("ttft", "tpot", "e2e") for share in (50, 95)
)
"""Percentiles that every verification states."""
OF_TWO_TOKENS = {key for key in SIMULATED if key.startswith("tpot")}
"""Those that it leaves out together where no output has a second token."""

Placed = tuple[KeyPath, str]
"""Where something is wrong, and what."""


def loose_ends(record: PlanRecord) -> Iterator[Placed]:
    """Yield what points to nothing or contradicts what it points to, and where."""
    try:
        datetime.date.fromisoformat(record.inputs.as_of)
    except ValueError:
        yield ("inputs", "as_of"), f"'{record.inputs.as_of}' is no date; write YYYY-MM-DD"
    first = record.archive[:1]
    further = frozenset(key for archive in first for key in archive.rows.further_ms)
    for number, archive in enumerate(record.archive):
        yield from _archive(("archive", number), archive, further)
    yield from _names(record)
    archives = {archive.hardware.id: archive for archive in record.archive}
    for path, option in _every_option(record):
        yield from _option(path, option, archives.get(option.hardware))
        yield from _price(path, option, record.offers)
    for number, check in enumerate(record.verification):
        missing = SIMULATED - {entry.key for entry in check.latencies}
        if missing and missing != OF_TWO_TOKENS:
            message = f"has no {', '.join(sorted(missing))}; {AGAIN}"
            yield ("verification", number, "latencies"), message


def _archive(path: KeyPath, archive: ClassArchive, further: frozenset[str]) -> Iterator[Placed]:
    rows, length = archive.rows, len(archive.rows.engine)
    columns = [value for _, value in rows if isinstance(value, tuple)]
    if any(len(column) != length for column in (*columns, *rows.further_ms.values())):
        yield (*path, "rows"), f"columns of two lengths; {AGAIN}"
    if rows.further_ms.keys() != further:
        yield (*path, "rows", "further_ms"), f"other targets than the first class has; {AGAIN}"
    known = {margin.generation for margin in archive.margins}
    for name in sorted(set(rows.generation) - known):
        yield (*path, "margins"), f"none for {name}, which runs here; {AGAIN}"
    latencies = {name for name in Rows.model_fields if name.endswith("_ms")} | further
    for number, entry in enumerate(archive.simulated):
        if entry.row >= length:
            yield (*path, "simulated", number, "row"), f"no such row; {AGAIN}"
        for key in sorted(entry.upper_ms.keys() - latencies):
            yield (*path, "simulated", number, "upper_ms", key), f"no such column; {AGAIN}"


def _names(record: PlanRecord) -> Iterator[Placed]:
    ids = {option.id for option in record.options}
    named: list[tuple[KeyPath, str]] = [
        *((("picks", pick), name) for pick, name in record.picks.items()),
        *((("shown", number), name) for number, name in enumerate(record.shown)),
    ]
    for path, name in named:
        if name not in ids:
            yield path, f"{name} is picked or shown, but is no option; {AGAIN}"


def _option(path: KeyPath, option: Option, archive: ClassArchive | None) -> Iterator[Placed]:
    if archive is None or option.archive_row >= len(archive.rows.engine):
        yield (*path, "archive_row"), f"{option.id} has no row in the archive; {AGAIN}"
        return
    columns = {name: getattr(archive.rows, name) for name in SAME}
    row = option.archive_row
    stated = {name: column[row] for name, column in columns.items() if row < len(column)}
    stated["accelerator"] = archive.hardware.accelerator
    for name, value in stated.items():
        if getattr(option, name) != value:
            message = f"{getattr(option, name)}, but its row in the archive says {value}; {AGAIN}"
            yield (*path, name), message


def _price(path: KeyPath, option: Option, offers: tuple[Offer, ...]) -> Iterator[Placed]:
    price = option.money.price
    if price.offer >= len(offers):
        yield (*path, "money", "price", "offer"), f"{option.id} has no price row; {AGAIN}"
        return
    for name in PRICED:
        said, stated = getattr(price, name), getattr(offers[price.offer], name)
        if said != stated:
            message = f"{said}, but its price row says {stated}; {AGAIN}"
            yield (*path, "money", "price", name), message
    paid, each = option.money.usd_per_hour, price.usd_per_instance_hour
    if not math.isclose(paid, option.instances * each, rel_tol=ROUNDING):
        message = (
            f"{paid:g}, but {counted(option.instances, 'instance')} at {each:g} cost"
            f" {option.instances * each:g}; {AGAIN}"
        )
        yield (*path, "money", "usd_per_hour"), message


def _every_option(record: PlanRecord) -> Iterator[tuple[KeyPath, Option]]:
    """Yield the options of a record, and where each stands."""
    for name in ("options", "untrusted"):
        for number, option in enumerate(getattr(record, name)):
            yield (name, number), option
    for number, miss in enumerate(record.misses):
        yield ("misses", number, "option"), miss.option
    for number, relaxation in enumerate(record.relaxations):
        yield ("relaxations", number, "option"), relaxation.option
