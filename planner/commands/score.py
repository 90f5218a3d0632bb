"""Score given deployments, no search: a CSV of points or a deployment YAML in, rows out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from planner.candidates.score import COLUMNS, Scored, score_points
from planner.catalog import load_catalog
from planner.errors import Fault, InputError
from planner.files import read_csv, read_yaml
from planner.spec.calibration import read_calibration
from planner.spec.point import COLUMN_SYNONYMS, Point, parse_point

DIGITS = 6
"""Significant digits of every number."""
SLIP = 0.8
"""How alike the name of a column and of one that is read are where it is taken for a slip, 0-1."""
YAML_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class ScoreTable:
    """Input columns followed by the scores, as text; blank = not applicable.

    `remarks` names columns that are carried through though their names look like slips.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()


def score(
    file: Path,
    *,
    catalog: Path | None = None,
    prices: Sequence[Path] = (),
    calibration: Path | None = None,
) -> ScoreTable:
    """Score deployments.

    Args:
        file: CSV of points (README, "plan score"), or a YAML file with one deployment or a list.
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
    cells = read_cells(file)
    points, faults = _points(cells)
    good = [point for point in points if point is not None]
    scored = iter(score_points(loaded, good))
    results = [
        next(scored) if point is not None else Scored("invalid", fault, {}, "")
        for point, fault in zip(points, faults, strict=True)
    ]
    given = tuple(dict.fromkeys(name for row in cells for name in row))
    own = tuple(name for name in given if name not in COLUMNS)
    rows = tuple(
        (*(row.get(name, "") for name in own), *_texts(result))
        for row, result in zip(cells, results, strict=True)
    )
    return ScoreTable((*own, *COLUMNS), rows, tuple(_slips(own)))


def read_cells(file: Path) -> list[Mapping[str, str]]:
    """Return the rows of a CSV of points, or of a YAML file with one deployment or a list.

    Raises:
        InputError: The file cannot be read, or holds no row.
    """
    if file.suffix.casefold() not in YAML_SUFFIXES:
        rows = read_csv(file)
        if not rows:
            raise InputError(str(file), ["no rows; add one deployment a line below the header"])
        _check_header(file, rows[0].values)
        return [row.values for row in rows]
    data = read_yaml(file).data
    entries = data if isinstance(data, tuple) else (data,)
    if not all(isinstance(entry, Mapping) for entry in entries):
        raise InputError(
            str(file), ["must hold one deployment (keys and values) or a list of them"]
        )
    return [{str(key): _cell(value) for key, value in entry.items()} for entry in entries]


def _slips(columns: Sequence[str]) -> Iterator[str]:
    """Yield a remark on each column that is not read, but is named nearly like one that is."""
    known = (*Point.model_fields, *COLUMN_SYNONYMS)
    for name in columns:
        near = get_close_matches(name.casefold(), known, n=1, cutoff=SLIP)
        if name not in known and near and near[0] not in columns:
            yield f"column '{name}' is carried through, not read; did you mean '{near[0]}'?"


def _check_header(file: Path, header: Mapping[str, str]) -> None:
    if "model" not in header:
        raise InputError(
            str(file), [Fault("line 1", "model", "missing column; name the model of each row")]
        )


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _points(cells: Sequence[Mapping[str, str]]) -> tuple[list[Point | None], list[str]]:
    points: list[Point | None] = []
    faults: list[str] = []
    for row in cells:
        try:
            points.append(parse_point(row))
            faults.append("")
        except InputError as error:
            points.append(None)
            faults.append(
                "; ".join(f"{f.key}: {f.message}".removeprefix(": ") for f in error.faults)
            )
    return points, faults


def _texts(result: Scored) -> list[str]:
    texts = [result.status, result.reason]
    for name in COLUMNS[2:-1]:
        value = result.figures.get(name, math.nan)
        texts.append(f"{value:.{DIGITS}g}" if math.isfinite(value) else "")
    return [*texts, result.evidence]
