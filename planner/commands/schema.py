"""JSON Schema of every file that people write or we write."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import BaseModel

from planner.errors import InputError, suggestion
from planner.spec.accelerator import Accelerator
from planner.spec.architecture import Architecture
from planner.spec.efficiency import Efficiency
from planner.spec.engine import Engine
from planner.spec.offer import Offer
from planner.spec.point import Point
from planner.spec.precision import Precisions
from planner.spec.record import PlanRecord
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace
from planner.spec.speculation import Speculation

SCHEMAS: Mapping[str, type[BaseModel]] = {
    "slo": Slo,
    "accelerator": Accelerator,
    "architecture": Architecture,
    "efficiency": Efficiency,
    "engine": Engine,
    "offer": Offer,
    "plan": PlanRecord,
    "point": Point,
    "precisions": Precisions,
    "space": SearchSpace,
    "speculation": Speculation,
}
"""Name -> spec; ``offer`` and ``point`` describe one row of a CSV file."""


def names() -> tuple[str, ...]:
    """Return the names that ``schema`` knows."""
    return tuple(SCHEMAS)


def schema(name: str) -> str:
    """Return a JSON Schema (draft 2020-12) as text.

    Raises:
        InputError: No file kind has that name.
    """
    if name not in SCHEMAS:
        hint = suggestion(name, SCHEMAS) or f"; known are {', '.join(SCHEMAS)}"
        raise InputError("schema", [f"'{name}' is unknown{hint}"])
    body = SCHEMAS[name].model_json_schema(by_alias=True)
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(dialect | body, indent=2) + "\n"
