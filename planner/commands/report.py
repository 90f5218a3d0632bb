"""A stored plan as a file for a person: workbook, page or table, by the file's suffix."""

from __future__ import annotations

from pathlib import Path

from planner.catalog import Catalog
from planner.commands.firmness import plan_firmness
from planner.commands.stored import open_plan
from planner.errors import InputError, suggestion
from planner.files import write_bytes
from planner.report import CHECKS, FILES
from planner.report.pack import Pack
from planner.select.firmness import Firmness
from planner.spec.record import PlanRecord
from planner.spec.record_file import read_record


def write_report(
    plan: PlanRecord | Path, to: Path, *, catalog: Path | Catalog | None = None
) -> None:
    """Write a report.

    Args:
        plan: The plan, or its ``plan.json``.
        to: File to write; its suffix says which kind.
        catalog: Catalog that the plan was made with; None = the shipped one.

    Raises:
        InputError: No kind of report has that suffix, the plan or the catalog cannot be read, or
            the file not be written.
    """
    check_report(to)
    record = read_record(plan) if isinstance(plan, Path) else plan
    write_bytes(to, FILES[to.suffix.casefold()](Pack(record, _firmness(plan, catalog))))


def _firmness(plan: PlanRecord | Path, catalog: Path | Catalog | None) -> Firmness | None:
    """Return how firm the picks are; None where catalog or model of the plan are not at hand.

    A record renders without either; only a catalog that was asked for must be the right one.
    """
    try:
        return plan_firmness(open_plan(plan, catalog))
    except InputError:
        if catalog is not None:
            raise
        return None


def check_report(to: Path) -> None:
    """Raise InputError unless a report can be made for a file of that name."""
    suffix = to.suffix.casefold()
    if suffix not in FILES:
        hint = suggestion(suffix, FILES) or f"; known are {', '.join(FILES)}"
        raise InputError(str(to), [f"'{to.suffix}' is no kind of report{hint}"])
    if suffix in CHECKS:
        CHECKS[suffix]()
