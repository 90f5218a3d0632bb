"""A plan as text or file: one module and one row here for each format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from planner.report import csv_text, html, json_text, table, xlsx
from planner.report.pack import Pack
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


def _csv(pack: Pack) -> bytes:
    return csv_text.render(pack.record).encode()


FILES: Mapping[str, Callable[[Pack], bytes]] = {
    ".xlsx": xlsx.render,
    ".html": html.render,
    ".csv": _csv,
}
"""Suffix of a report file -> what writes it."""
FIRM = frozenset({".xlsx", ".html"})
"""Suffixes of reports that show how firm the picks are."""
CHECKS: Mapping[str, Callable[[], None]] = {".html": html.check_extra}
"""Suffix of a report file -> what raises InputError where an extra is missing that it needs."""
