"""A stored plan and an option in, files that start or check it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from planner.candidates.models import architecture_of
from planner.catalog import load_catalog
from planner.commands.explain import find_option
from planner.commands.stored import catalog_notes
from planner.deploy import Chosen, deployment, fitted, render
from planner.errors import InputError
from planner.files import digest
from planner.spec.architecture import Architecture
from planner.spec.record_file import read_record


def _refuse_control_characters(names: Mapping[str, str]) -> None:
    """A line break in a name would begin a line of its own in a script or manifest."""
    for option, name in names.items():
        if not name.isprintable():
            raise InputError(option, [f"'{name}' holds a control character; remove it"])


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        target: Name of the target.
        option: Id of the option.
        digest: SHA-256 of the stored plan.
        files: Text by file name.
        notes: What a person should know before using them.
    """

    target: str
    option: str
    digest: str
    files: dict[str, str]
    notes: tuple[str, ...]


def export(
    plan: Path,
    option: str,
    to: str,
    *,
    checkpoint: str = "",
    head: str = "",
    catalog: Path | None = None,
) -> Exported:
    """Write an option of a plan down for a target.

    Args:
        plan: ``plan.json``.
        option: Option id, or the name of a pick.
        to: A target (see ``planner.deploy.TARGETS``).
        checkpoint: Weights to serve where the plan's format needs a checkpoint of its own.
        head: Draft head or model of the option's speculation method.
        catalog: Catalog folder; None = the one that comes with the program.

    Raises:
        InputError: The plan cannot be read, has no such option, or the target cannot express it;
            with the reason.
    """
    _refuse_control_characters({"--checkpoint": checkpoint, "--head": head})
    record = read_record(plan)
    chosen = find_option(record, option, str(plan))
    identity = digest(plan.read_bytes())
    known = load_catalog(catalog)
    made = deployment(
        record,
        chosen,
        known,
        _architecture(str(record.inputs.slo["model"]), plan.parent),
        identity,
        Chosen(checkpoint, head),
    )
    made = replace(made, notes=(*made.notes, *catalog_notes(record, known)))
    deployed = fitted(made, to)
    return Exported(
        target=to,
        option=chosen.id,
        digest=identity,
        files=render(deployed, to),
        notes=deployed.notes,
    )


def _architecture(model: str, folder: Path) -> Architecture | None:
    """Return the plan's model: a path as it is or beside the plan, or a known name."""
    beside = folder if (folder / model).exists() else Path()
    try:
        return architecture_of(model, beside)
    except InputError:
        return None
