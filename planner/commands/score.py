"""Score given deployments, no search: a CSV of points or a deployment YAML in, rows out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from planner.candidates.points import INVALID
from planner.candidates.score import COLUMNS, Scored, score_points
from planner.catalog import load_catalog
from planner.commands.points_file import PointRow, in_one_line, invalid_rows, read_points
from planner.commands.server_size import server_size
from planner.errors import InputError
from planner.spec.calibration import read_calibration
from planner.spec.point import COLUMN_SYNONYMS, FURTHER, Point
from planner.spec.traffic import Traffic

DIGITS = 6
"""Significant digits of every number."""
SLIP = 0.8
"""How alike the name of a column and of one that is read are where it is taken for a slip, 0-1."""


@dataclass(frozen=True)
class ScoreTable:
    """Input columns followed by the scores, as text; blank = not applicable.

    `remarks` names rows that are no deployments, columns that are carried through though their
    names look like slips, and how large servers are taken to be where that matters.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether any row is a deployment."""
        status = self.columns.index("status")
        return any(row[status] != INVALID for row in self.rows)


def score(
    file: Path,
    *,
    catalog: Path | None = None,
    prices: Sequence[Path] = (),
    calibration: Path | None = None,
) -> ScoreTable:
    """Score deployments.

    Args:
        file: CSV of points (its columns: ``plan schema point``), or a YAML file with one
            deployment or a list.
        catalog: Catalog folder; None = the one that comes with the program.
        calibration: Factors of ``plan calibrate`` to apply.
        prices: Price files, checked like those of a plan.

    Returns:
        One row a point: its own columns, then status, reason and figures.

    Raises:
        InputError: The file or the catalog cannot be read. A row that cannot be scored is no
            error: it says why in its status.
    """
    factors = None if calibration is None else read_calibration(calibration)
    loaded = replace(load_catalog(catalog, prices=prices), calibration=factors)
    entries = read_points(file)
    points, faults = _points(entries)
    good = [point for point in points if point is not None]
    scored = iter(score_points(loaded, good))
    results = [
        next(scored) if point is not None else Scored(INVALID, fault, {}, "")
        for point, fault in zip(points, faults, strict=True)
    ]
    given = tuple(dict.fromkeys(name for entry in entries for name in entry.values))
    own = tuple(name for name in given if name not in COLUMNS)
    rows = tuple(
        (*(entry.values.get(name, "") for name in own), *_texts(result))
        for entry, result in zip(entries, results, strict=True)
    )
    remarks = (
        *invalid_rows(entries, [(r.status, r.reason) for r in results]),
        *unread(own, Point),
        *server_size(loaded, good),
    )
    return ScoreTable((*own, *COLUMNS), rows, remarks)


def unread(columns: Sequence[str], form: type[Point]) -> Iterator[str]:
    """Yield a remark on each column that is not read, but is named as if it were.

    Nearly like one that is read, or like a key of slo.yaml's traffic.

    Args:
        columns: Those of the file.
        form: What is read of a row.
    """
    known, load = (*form.model_fields, *COLUMN_SYNONYMS), (*FURTHER, *Traffic.model_fields)
    for name in columns:
        if name in known:
            continue
        near = get_close_matches(name.casefold(), known, n=1, cutoff=SLIP)
        if name in load:
            yield f"column '{name}' is carried through, not read"
        elif near and near[0] not in columns:
            yield f"column '{name}' is carried through, not read; did you mean '{near[0]}'?"


def _points(rows: Sequence[PointRow]) -> tuple[list[Point | None], list[str]]:
    points: list[Point | None] = []
    faults: list[str] = []
    for row in rows:
        try:
            points.append(row.point())
            faults.append("")
        except InputError as error:
            points.append(None)
            faults.append(in_one_line(error))
    return points, faults


def _texts(result: Scored) -> list[str]:
    texts = [result.status, result.reason]
    for name in COLUMNS[2:-1]:
        value = result.figures.get(name, math.nan)
        texts.append(f"{value:.{DIGITS}g}" if math.isfinite(value) else "")
    return [*texts, result.evidence]
