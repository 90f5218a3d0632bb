"""Reading a stored plan, and what it was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.files import Document, UnfitValuesError, key_path, read_json
from planner.spec.load import by_line, faults_of, load, load_json
from planner.spec.record import PlanRecord
from planner.spec.record_check import Placed, loose_ends
from planner.spec.slo import Slo

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
    faults = (*_asked_faults(record.inputs.slo), *loose_ends(record))
    if faults:
        document = read_json(path)
        raise InputError(str(path), by_line(document.fault(*fault) for fault in faults))
    # Keys that were left out have their defaults.
    whole = asked_slo(record).model_dump(mode="json", by_alias=True)
    inputs = record.inputs.model_copy(update={"slo": whole})
    return record.model_copy(update={"inputs": inputs})


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


def _asked_faults(slo: Mapping[str, Any]) -> Iterator[Placed]:
    """Yield what is wrong with the slo.yaml that a record holds."""
    for fault in faults_of(load, Document("plan", _frozen(slo), {}), Slo):
        yield ("inputs", "slo", *key_path(fault.key)), fault.message


def asked_slo(record: PlanRecord) -> Slo:
    """Return the slo.yaml that a plan was made for."""
    return load(Document("plan", _frozen(record.inputs.slo), {}), Slo)


def _frozen(value: Any) -> Any:
    """Return JSON data with tuples for lists, as files are read."""
    if isinstance(value, Mapping):
        return {key: _frozen(part) for key, part in value.items()}
    return tuple(_frozen(part) for part in value) if isinstance(value, list | tuple) else value
