"""JSON Schema of every file that people write or we write.

``planner/schemas/`` holds them for editors; ``python -m planner.commands.schema`` writes them anew.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from planner.errors import InputError, suggestion
from planner.files import write_text
from planner.spec.accelerator import Accelerator
from planner.spec.architecture import Architecture
from planner.spec.calibration import Calibration
from planner.spec.efficiency import Efficiency
from planner.spec.engine import Engine
from planner.spec.offer import Currencies, Offer, Terms
from planner.spec.point import Point
from planner.spec.portfolio import Limits, PortfolioRecord
from planner.spec.precision import Precisions
from planner.spec.record import PlanRecord
from planner.spec.result import ResultFile
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace
from planner.spec.speculation import Speculation

FOLDER = Path(__file__).resolve().parents[1] / "schemas"
"""Where the published schemas lie."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"

SCHEMAS: Mapping[str, Any] = {
    "slo": Slo,
    "space": SearchSpace,
    "deployment": Point | list[Point],
    "calibration": Calibration,
    "plan": PlanRecord,
    "offer": Offer,
    "point": Point,
    "portfolio": PortfolioRecord,
    "accelerator": Accelerator,
    "architecture": Architecture,
    "engine": Engine,
    "efficiency": Efficiency,
    "precisions": Precisions,
    "quota": Limits,
    "speculation": Speculation,
    "currencies": Currencies,
    "terms": Terms,
    "result": ResultFile,
}
"""Name -> what the file holds; ``offer`` and ``point`` describe one row of a CSV file."""

_ATTRIBUTE = re.compile(r"    ([\w, ]+): (.*)")


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
    body = TypeAdapter(SCHEMAS[name]).json_schema(by_alias=True, schema_generator=_Described)
    return json.dumps({"$schema": DIALECT} | body, indent=2, ensure_ascii=False) + "\n"


def publish(folder: Path = FOLDER) -> None:
    """Write the schema of every file as ``NAME.json``."""
    for name in SCHEMAS:
        write_text(folder / f"{name}.json", schema(name))


class _Described(GenerateJsonSchema):
    """Gives every key the line that the class's docstring has for it: editors show it."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        cls = schema["cls"]
        summary, texts = described(cls)
        if "description" in made:
            made["description"] = summary
        for name, field in cls.model_fields.items():
            property_ = made.get("properties", {}).get(field.alias or name)
            if property_ is not None and name in texts:
                property_["description"] = texts[name]
        return made


def described(cls: type[BaseModel]) -> tuple[str, Mapping[str, str]]:
    """Return the first line of a class's docstring, and the text of each attribute in it."""
    summary, *rest = inspect.cleandoc(cls.__doc__ or "").splitlines() or [""]
    texts: dict[str, str] = {}
    named: list[str] = []
    lines = rest[rest.index("Attributes:") + 1 :] if "Attributes:" in rest else []
    for line in lines:
        start = _ATTRIBUTE.fullmatch(line)
        if start:
            named = [name.strip() for name in start.group(1).split(",")]
            texts |= dict.fromkeys(named, start.group(2))
        elif line.startswith("        "):
            texts |= {name: f"{texts[name]} {line.strip()}" for name in named}
        else:
            break
    return summary, texts


if __name__ == "__main__":
    publish()
