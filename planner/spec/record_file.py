"""Reading a stored plan, and what it was asked."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.errors import Fault, InputError
from planner.files import Document, read_json
from planner.files.disk import read_text
from planner.files.json_file import JSON_BYTES
from planner.spec.load import load
from planner.spec.record import PlanRecord
from planner.spec.slo import Slo

_AGAIN = "plan again, or undo the edit"
SCHEMA_VERSION = PlanRecord.model_fields["schema_version"].default


def read_record(path: Path) -> PlanRecord:
    """Return the plan of a ``plan.json``.

    Raises:
        InputError: The file cannot be read, is no plan, or was written by another version.
    """
    try:
        record = PlanRecord.model_validate_json(read_text(path, JSON_BYTES))
    except ValidationError:
        record = _slowly(path)
    faults = [*_asked_faults(record), *_loose_ends(record)]
    if faults:
        raise InputError(str(path), faults)
    return record


def _slowly(path: Path) -> PlanRecord:
    """Read a record that has a fault, line by line, to say where."""
    document = read_json(path)
    data = document.data
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version is None:
        raise InputError(str(path), ["is no plan; give a file that `plan --out` wrote"])
    if version != SCHEMA_VERSION:
        message = f"{version} is not {SCHEMA_VERSION}; plan again with this version"
        raise InputError(str(path), [Fault("line 1", "schema_version", message)])
    return load(document, PlanRecord)


def _asked_faults(record: PlanRecord) -> Iterator[Fault]:
    try:
        asked_slo(record)
    except InputError as error:
        for fault in error.faults:
            yield Fault("", f"inputs.slo.{fault.key}".rstrip("."), fault.message)
    try:
        datetime.date.fromisoformat(record.inputs.as_of)
    except ValueError:
        yield Fault("", "inputs.as_of", f"'{record.inputs.as_of}' is no date; write YYYY-MM-DD")


def _loose_ends(record: PlanRecord) -> Iterator[Fault]:
    """Yield what points to nothing, which only a record that was edited has."""
    lengths = {archive.hardware.id: len(archive.rows.engine) for archive in record.archive}
    for archive in record.archive:
        columns = [value for _, value in archive.rows if isinstance(value, tuple)]
        if any(len(column) != lengths[archive.hardware.id] for column in columns):
            yield Fault("", f"archive {archive.hardware.id}", f"columns of two lengths; {_AGAIN}")
    ids = {option.id for option in record.options}
    for name in (*record.picks.values(), *record.shown):
        if name not in ids:
            yield Fault("", name, f"is picked or shown, but is no option; {_AGAIN}")
    near = (miss.option for miss in record.misses)
    for option in (*record.options, *record.untrusted, *near):
        if option.archive_row >= lengths.get(option.hardware, 0):
            yield Fault("", option.id, f"has no row in the archive; {_AGAIN}")
        if option.money.price.offer >= len(record.offers):
            yield Fault("", option.id, f"has no price row; {_AGAIN}")


def asked_slo(record: PlanRecord) -> Slo:
    """Return the slo.yaml that a plan was made for."""
    return load(Document("plan", _frozen(record.inputs.slo), {}), Slo)


def _frozen(value: Any) -> Any:
    """Return JSON data with tuples for lists, as files are read."""
    if isinstance(value, Mapping):
        return {key: _frozen(part) for key, part in value.items()}
    return tuple(_frozen(part) for part in value) if isinstance(value, list | tuple) else value
