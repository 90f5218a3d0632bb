"""Reading a stored plan, and what it was asked."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.files import Document, KeyPath, UnfitValuesError, read_json
from planner.spec.load import by_line, faults_of, load, load_json
from planner.spec.option import Option
from planner.spec.record import PlanRecord
from planner.spec.slo import Slo

_AGAIN = "plan again, or undo the edit"
SCHEMA_VERSION = PlanRecord.model_fields["schema_version"].default


def read_record(path: Path) -> PlanRecord:
    """Return the plan of a ``plan.json``.

    Raises:
        InputError: The file cannot be read, is no plan, was written by another version, or has
            been edited so that it no longer fits together; every fault of it at once.
    """
    try:
        record = load_json(path, PlanRecord)
    except InputError as error:
        raise _unreadable(path, error) from None
    faults = (*_asked_faults(record.inputs.slo), *_loose_ends(record))
    if faults:
        document = read_json(path)
        raise InputError(str(path), [document.fault(*fault) for fault in faults])
    return record


def _unreadable(path: Path, error: InputError) -> InputError:
    """Return why a record cannot be read: its kind, its version, else all its faults."""
    try:
        document = read_json(path)
    except UnfitValuesError as unfit:
        document = unfit.document
    except InputError:
        return error
    data = document.data if isinstance(document.data, Mapping) else {}
    version = data.get("schema_version")
    if version is None:
        return InputError(str(path), ["is no plan; give a file that `plan --out` wrote"])
    if version != SCHEMA_VERSION:
        message = f"{version} is not {SCHEMA_VERSION}; plan again with this version"
        return InputError(str(path), [document.fault(("schema_version",), message)])
    asked = data["inputs"].get("slo") if isinstance(data.get("inputs"), Mapping) else None
    if isinstance(asked, Mapping):
        told = {fault.key for fault in error.faults}
        more = [document.fault(*fault) for fault in _asked_faults(asked)]
        faults = [*error.faults, *(fault for fault in more if fault.key not in told)]
        return InputError(str(path), by_line(faults))
    return error


Placed = tuple[KeyPath, str]
"""Where something is wrong, and what."""


def _asked_faults(slo: Mapping[str, Any]) -> Iterator[Placed]:
    """Yield what is wrong with the slo.yaml that a record holds."""
    for fault in faults_of(load, Document("plan", _frozen(slo), {}), Slo):
        yield ("inputs", "slo", *(fault.key.split(".") if fault.key else ())), fault.message


def _loose_ends(record: PlanRecord) -> Iterator[Placed]:
    """Yield what points to nothing, which only a record that was edited has."""
    try:
        datetime.date.fromisoformat(record.inputs.as_of)
    except ValueError:
        yield ("inputs", "as_of"), f"'{record.inputs.as_of}' is no date; write YYYY-MM-DD"
    lengths = {archive.hardware.id: len(archive.rows.engine) for archive in record.archive}
    for number, archive in enumerate(record.archive):
        columns = [value for _, value in archive.rows if isinstance(value, tuple)]
        if any(len(column) != lengths[archive.hardware.id] for column in columns):
            yield ("archive", number, "rows"), f"columns of two lengths; {_AGAIN}"
    yield from _loose_names(record)
    for path, option in _every_option(record):
        if option.archive_row >= lengths.get(option.hardware, 0):
            yield (*path, "archive_row"), f"{option.id} has no row in the archive; {_AGAIN}"
        if option.money.price.offer >= len(record.offers):
            yield (*path, "money", "price", "offer"), f"{option.id} has no price row; {_AGAIN}"


def _loose_names(record: PlanRecord) -> Iterator[Placed]:
    ids = {option.id for option in record.options}
    named: list[tuple[KeyPath, str]] = [
        *((("picks", pick), name) for pick, name in record.picks.items()),
        *((("shown", number), name) for number, name in enumerate(record.shown)),
    ]
    for path, name in named:
        if name not in ids:
            yield path, f"{name} is picked or shown, but is no option; {_AGAIN}"


def _every_option(record: PlanRecord) -> Iterator[tuple[KeyPath, Option]]:
    """Yield the options of a record, and where each stands."""
    for name in ("options", "untrusted"):
        for number, option in enumerate(getattr(record, name)):
            yield (name, number), option
    for number, miss in enumerate(record.misses):
        yield ("misses", number, "option"), miss.option
    for number, relaxation in enumerate(record.relaxations):
        yield ("relaxations", number, "option"), relaxation.option


def asked_slo(record: PlanRecord) -> Slo:
    """Return the slo.yaml that a plan was made for."""
    return load(Document("plan", _frozen(record.inputs.slo), {}), Slo)


def _frozen(value: Any) -> Any:
    """Return JSON data with tuples for lists, as files are read."""
    if isinstance(value, Mapping):
        return {key: _frozen(part) for key, part in value.items()}
    return tuple(_frozen(part) for part in value) if isinstance(value, list | tuple) else value
