"""The record as JSON text: the same bytes for the same record."""

from __future__ import annotations

from planner.spec.record import PlanRecord


def render(record: PlanRecord, *, width: int = 0, color: bool = False) -> str:
    """Return ``plan.json``; width and colour do not apply."""
    del width, color
    return record.model_dump_json(by_alias=True, indent=1) + "\n"
