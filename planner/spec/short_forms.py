"""Short forms that a file may use instead of a full value, for the JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema


@dataclass(frozen=True, eq=False)
class ShortForm:
    """Marks a type whose validator also reads a shorter value.

    Attributes:
        schema: JSON Schema of the shorter value.
    """

    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of either form; pydantic asks for it."""
        return {"anyOf": [dict(self.schema), handler(core)]}


A_TEXT = ShortForm({"type": "string", "minLength": 1})
"""``engines: vllm`` stands for ``engines: [vllm]``."""
