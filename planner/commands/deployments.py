"""The deployment that a benchmark ran against: from a file, or an option of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.commands.explain import find_option
from planner.commands.points_file import read_points
from planner.errors import Fault, InputError
from planner.spec.option import Option
from planner.spec.point import Point
from planner.spec.record import PlanRecord
from planner.spec.record_file import read_record

ANY_LOAD = {"kind": "closed_loop", "concurrency": "1", "rate_per_s": ""}
"""The run brings its own load."""
COLUMN = "result"
"""Column that says which result file a row is about."""


def deployment_of(file: Path, results: Sequence[Path]) -> dict[Path, Point]:
    """Return the deployment of each result file.

    Args:
        file: CSV or YAML as ``plan score`` reads it; one row for all results, or one row each,
            told apart by a column ``result`` with the name of the result file.
        results: Result files.

    Raises:
        InputError: With every row that is no deployment, and every result without one.
    """
    rows = read_points(file)
    points: list[Point] = []
    faults: list[Fault] = []
    for row in rows:
        try:
            points.append(row.point(ANY_LOAD))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(str(file), faults)
    if len(points) == 1 and not rows[0].values.get(COLUMN):
        return dict.fromkeys(results, points[0])
    named = {row.values.get(COLUMN, ""): point for row, point in zip(rows, points, strict=True)}
    missing = [path for path in results if _named(named, path) is None]
    if missing:
        raise InputError(
            str(file),
            [
                Fault("", COLUMN, f"no row names {path.name}; add the file's name to its row")
                for path in missing
            ],
        )
    return {path: point for path in results if (point := _named(named, path)) is not None}


def _named(rows: Mapping[str, Point], path: Path) -> Point | None:
    return rows.get(path.name) or rows.get(path.stem)


def option_point(plan: Path, option: str) -> Point:
    """Return an option of a stored plan as a deployment.

    Raises:
        InputError: The plan cannot be read, or has no such option.
    """
    record = read_record(plan)
    return to_point(record, find_option(record, option, str(plan)))


def to_point(record: PlanRecord, option: Option) -> Point:
    """Return an option as a deployment under its planned rate."""
    return Point(
        model=str(record.inputs.slo["model"]),
        accelerator=option.accelerator,
        engine=option.engine,
        engine_generation=option.generation,
        weights=option.weights,
        kv=option.kv,
        tp=option.tp,
        pp=option.pp,
        dp=option.dp,
        replicas=option.replicas,
        max_num_seqs=option.max_num_seqs,
        token_budget=option.token_budget,
        speculation=option.speculation,
        draft_tokens=option.draft_tokens,
        acceptance=_constant(option.acceptance, option.draft_tokens),
        kind="open_loop",
        rate_per_s=option.rate_per_s,
    )


def _constant(acceptance: tuple[float, float] | None, drafts: int) -> float | None:
    """Return the constant acceptance that accepts as many draft tokens as c1 x d^(i-1) does."""
    if acceptance is None:
        return None
    first, decay = acceptance
    chances = [first * decay**number for number in range(drafts)]
    low, high = 0.0, first
    for _ in range(40):
        middle = 0.5 * (low + high)
        if _accepted([middle] * drafts) < _accepted(chances):
            low = middle
        else:
            high = middle
    return high


def _accepted(chances: Sequence[float]) -> float:
    total, so_far = 0.0, 1.0
    for chance in chances:
        so_far *= chance
        total += so_far
    return total
