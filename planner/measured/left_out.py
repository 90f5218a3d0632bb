"""Predictions of rows that the fit did not see (``tests/published/left_out.csv``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.errors import Fault, InputError
from planner.files import read_csv, write_text
from planner.model.arrays import Floats
from planner.spec.efficiency import Metric

SPLITS = ("deployment", "family", "accelerator", "generation")
"""What is left out together: deployments (eight random folds), model families, accelerators,
engine generations."""
FITTED = "fitted"
"""Nothing left out: the stored values."""
COLUMNS = (FITTED, *SPLITS)
STORED: tuple[Metric, ...] = ("ttft", "tpot", "time")
FILE = "left_out.csv"


@dataclass(frozen=True)
class LeftOut:
    """Measured / predicted of rows that were left out of the fit.

    Attributes:
        ids: Ids of the rows.
        generations, accelerators: Ids, by row.
        ratios: By split and metric, (n,); NaN where not measured.
    """

    ids: tuple[str, ...]
    generations: tuple[str, ...]
    accelerators: tuple[str, ...]
    ratios: Mapping[str, Mapping[Metric, Floats]]


def column(split: str, metric: Metric) -> str:
    """Return the column of ``left_out.csv`` that holds measured / predicted."""
    return f"{split}_{metric}"


def read_left_out(path: Path) -> LeftOut:
    """Read what the fit wrote.

    Raises:
        InputError: The file cannot be read, or a ratio is not a number above zero.
    """
    rows = read_csv(path)
    faults = [
        Fault(f"line {row.line}", name, f"{row.values[name]!r} is not a number above 0")
        for row in rows
        for name in (column(split, metric) for split in COLUMNS for metric in STORED)
        if not _positive(row.values[name])
    ]
    if faults:
        raise InputError(str(path), faults)
    ratios = {
        split: {
            metric: np.array([float(row.values[column(split, metric)] or "nan") for row in rows])
            for metric in STORED
        }
        for split in COLUMNS
    }
    return LeftOut(
        ids=tuple(row.values["id"] for row in rows),
        generations=tuple(row.values["generation"] for row in rows),
        accelerators=tuple(row.values["accelerator"] for row in rows),
        ratios=ratios,
    )


def _positive(text: str) -> bool:
    try:
        return not text or float(text) > 0
    except ValueError:
        return False


Written = Mapping[str, Sequence[Mapping[Metric, Floats]]]
"""Split -> one mapping a bench: measured / predicted by metric, (n,)."""


def write_left_out(
    path: Path, rows: Sequence[Sequence[tuple[str, str, str]]], ratios: Written
) -> None:
    """Write measured / predicted of left-out rows.

    Args:
        path: ``left_out.csv``.
        rows: Of each bench: (id, engine generation, accelerator) of every row.
        ratios: In the same order.
    """
    keys = [(split, metric) for split in COLUMNS for metric in STORED]
    lines = [",".join(["id", "generation", "accelerator", *(column(*key) for key in keys)])]
    for number, own in enumerate(rows):
        for row, names in enumerate(own):
            values = [ratios[split][number][metric][row] for split, metric in keys]
            cells = ["" if np.isnan(value) else f"{value:.6g}" for value in values]
            lines.append(",".join([*names, *cells]))
    write_text(path, "\n".join([*lines, ""]))
