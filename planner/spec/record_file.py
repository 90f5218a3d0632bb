"""Reading a stored plan."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from planner.errors import Fault, InputError
from planner.files import read_json
from planner.spec.load import load
from planner.spec.record import PlanRecord

SCHEMA_VERSION = PlanRecord.model_fields["schema_version"].default


def read_record(path: Path) -> PlanRecord:
    """Return the plan of a ``plan.json``.

    Raises:
        InputError: The file cannot be read, is no plan, or was written by another version.
    """
    document = read_json(path)
    data = document.data
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version is None:
        raise InputError(str(path), ["is no plan; give a file that `plan --out` wrote"])
    if version != SCHEMA_VERSION:
        message = f"{version} is not {SCHEMA_VERSION}; plan again with this version"
        raise InputError(str(path), [Fault("line 1", "schema_version", message)])
    try:
        return PlanRecord.model_validate_json(json.dumps(data))
    except ValidationError:
        return load(document, PlanRecord)
