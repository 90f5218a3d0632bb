"""Reading a stored plan, and what it was asked."""

from __future__ import annotations

from collections.abc import Mapping
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

SCHEMA_VERSION = PlanRecord.model_fields["schema_version"].default


def read_record(path: Path) -> PlanRecord:
    """Return the plan of a ``plan.json``.

    Raises:
        InputError: The file cannot be read, is no plan, or was written by another version.
    """
    try:
        return PlanRecord.model_validate_json(read_text(path, JSON_BYTES))
    except ValidationError:
        return _slowly(path)


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


def asked_slo(record: PlanRecord) -> Slo:
    """Return the slo.yaml that a plan was made for."""
    return load(Document("plan", _frozen(record.inputs.slo), {}), Slo)


def _frozen(value: Any) -> Any:
    """Return JSON data with tuples for lists, as files are read."""
    if isinstance(value, Mapping):
        return {key: _frozen(part) for key, part in value.items()}
    return tuple(_frozen(part) for part in value) if isinstance(value, list | tuple) else value
