"""What differs between two stored plans."""

from __future__ import annotations

from pathlib import Path

from planner.select.changes import Changes, changes
from planner.spec.record import PlanRecord
from planner.spec.record_file import read_record


def diff(old: PlanRecord | Path, new: PlanRecord | Path) -> Changes:
    """Return what differs between two plans: inputs, prices, front, picks.

    Args:
        old, new: Plans, or their ``plan.json``.

    Raises:
        InputError: A file is no plan.
    """
    return changes(*(read_record(p) if isinstance(p, Path) else p for p in (old, new)))
