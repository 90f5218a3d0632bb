"""A stored plan as a file for a person: workbook, page or table, by the file's suffix."""

from __future__ import annotations

from pathlib import Path

from planner.catalog import Catalog
from planner.commands.firmness import plan_firmness
from planner.commands.stored import open_plan
from planner.errors import InputError, suggestion
from planner.files import write_bytes
from planner.report import CHECKS, FILES, FIRM
from planner.report.pack import Pack
from planner.spec.record import PlanRecord
from planner.spec.record_file import read_record


def write_report(
    plan: PlanRecord | Path,
    to: Path,
    *,
    catalog: Path | Catalog | None = None,
    folder: Path | None = None,
) -> tuple[str, ...]:
    """Write a report.

    Args:
        plan: The plan, or its ``plan.json``.
        to: File to write; its suffix says which kind.
        catalog: Catalog that the plan was made with; None = the shipped one.
        folder: Where a path to the model starts from; None = where ``plan.json`` lies.

    Returns:
        What a reader must know of how firm the picks are, in sentences; the report says it too.

    Raises:
        InputError: No kind of report has that suffix, the plan or the catalog cannot be read, or
            the file not be written.
    """
    check_report(to)
    suffix = to.suffix.casefold()
    pack = _pack(plan, catalog, folder)
    write_bytes(to, FILES[suffix](pack))
    return pack.notes if suffix in FIRM else ()


def _pack(plan: PlanRecord | Path, catalog: Path | Catalog | None, folder: Path | None) -> Pack:
    """Return the plan and how firm its picks are, where its catalog and model are at hand.

    A record renders without either; only a catalog that was asked for must be the right one.
    """
    record = read_record(plan) if isinstance(plan, Path) else plan
    try:
        stored = open_plan(plan, catalog, folder)
        firm, notes = plan_firmness(stored), stored.notes
    except InputError as error:
        if catalog is not None:
            raise
        reasons = "; ".join(fault.message for fault in error.faults)
        firm, notes = None, (f"How firm the picks are is left out: {reasons}.",)
    return Pack(record, firm, notes if record.picks else ())


def check_report(to: Path) -> None:
    """Raise InputError unless a report can be made for a file of that name."""
    suffix = to.suffix.casefold()
    if suffix not in FILES:
        hint = suggestion(suffix, FILES) or f"; known are {', '.join(FILES)}"
        raise InputError(str(to), [f"'{to.suffix}' is no kind of report{hint}"])
    if suffix in CHECKS:
        CHECKS[suffix]()
