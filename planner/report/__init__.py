"""A plan as text or file: one module and one row here for each format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from planner.report import csv_text, json_text, table
from planner.spec.record import PlanRecord


class Renderer(Protocol):
    """Record -> text."""

    def __call__(self, record: PlanRecord, *, width: int = ..., color: bool = ...) -> str:
        """Return the text."""


FORMATS: Mapping[str, Renderer] = {
    "table": table.render,
    "json": json_text.render,
    "csv": csv_text.render,
}
"""Formats of stdout."""
