"""A stored plan as a file for a person: workbook, page or table, by the file's suffix."""

from __future__ import annotations

from pathlib import Path

from planner.errors import InputError, suggestion
from planner.files import write_bytes
from planner.report import FILES
from planner.report.pack import Pack
from planner.spec.record import PlanRecord
from planner.spec.record_file import read_record


def write_report(plan: PlanRecord | Path, to: Path) -> None:
    """Write a report.

    Args:
        plan: The plan, or its ``plan.json``.
        to: File to write; its suffix says which kind.

    Raises:
        InputError: No kind of report has that suffix, the plan cannot be read, or the file not
            be written.
    """
    check_suffix(to)
    record = read_record(plan) if isinstance(plan, Path) else plan
    write_bytes(to, FILES[to.suffix.casefold()](Pack(record)))


def check_suffix(to: Path) -> None:
    """Raise InputError unless a report can be written to a file of that name."""
    suffix = to.suffix.casefold()
    if suffix not in FILES:
        hint = suggestion(suffix, FILES) or f"; known are {', '.join(FILES)}"
        raise InputError(str(to), [f"'{to.suffix}' is no kind of report{hint}"])
