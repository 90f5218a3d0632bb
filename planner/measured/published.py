"""Measured rows that may be published, and what the model says about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner.candidates.points import SCORED
from planner.candidates.score import score_points
from planner.catalog import Catalog
from planner.errors import Fault, InputError
from planner.files import read_csv
from planner.model.arrays import Floats
from planner.spec.efficiency import Metric
from planner.spec.point import Point, parse_point
from planner.units import MILLI

METRICS: tuple[Metric, ...] = ("ttft", "tpot", "throughput", "time")
FILES = ("serving.csv", "serving_other.csv")
CORE = "core"
"""Stratum of rows with a complete, plausible configuration; rows of a file without strata."""


@dataclass(frozen=True)
class Published:
    """A measured deployment.

    Attributes:
        id: Of the row.
        family: Models that share an architecture; left out together.
        stratum: ``core``, or why the row is set aside.
        source: Where it was published.
        point: The deployment and its load.
        observed: TTFT, TPOT, time per request (or of the run, the batch, the step) [s] and
            throughput [tokens/s], where measured.
    """

    id: str
    family: str
    stratum: str
    source: str
    point: Point
    observed: Mapping[Metric, float]


def published_folder() -> Path:
    """Return ``tests/published`` of a source checkout.

    Raises:
        InputError: The program is installed without its tests.
    """
    folder = Path(__file__).resolve().parents[2] / "tests" / "published"
    if not folder.is_dir():
        raise InputError(
            str(folder), ["no such folder; run this in a source checkout, or name the folder"]
        )
    return folder


def read_published(path: Path) -> tuple[Published, ...]:
    """Read a CSV of measured rows: columns of ``plan score``, measured_* and family.

    Raises:
        InputError: With every row that is not a point or measures nothing.
    """
    rows: list[Published] = []
    faults: list[Fault] = []
    for row in read_csv(path):
        place, cells = f"line {row.line}", row.values
        try:
            point = parse_point(cells)
        except InputError as error:
            faults += [Fault(place, fault.key, fault.message) for fault in error.faults]
            continue
        observed = _observed(point, cells)
        if not observed:
            faults.append(Fault(place, "measured_*", "nothing measured; give a figure"))
        rows.append(
            Published(
                id=cells["id"],
                family=cells["family"],
                stratum=cells.get("stratum", CORE),
                source=cells["source"],
                point=point,
                observed=observed,
            )
        )
    if faults:
        raise InputError(str(path), faults)
    return tuple(rows)


def _observed(point: Point, cells: Mapping[str, str]) -> dict[Metric, float]:
    def cell(name: str) -> float:
        return float(cells.get(name) or "nan")

    ttft, tpot = cell("measured_ttft_ms") * MILLI, cell("measured_tpot_ms") * MILLI
    e2e, rate = cell("measured_e2e_s"), cell("measured_output_tokens_per_s")
    found = OBSERVED[point.mode](point, ttft, tpot, e2e, rate)
    return {metric: value for metric, value in found.items() if math.isfinite(value) and value > 0}


def _first(*values: float) -> float:
    return next((value for value in values if math.isfinite(value)), math.nan)


def _closed(p: Point, ttft: float, tpot: float, e2e: float, rate: float) -> dict[Metric, float]:
    slots, length = p.concurrency or math.nan, p.output_tokens * p.length_factor
    time = _first(slots * length / rate, e2e, ttft + tpot * (length - 1.0))
    return {"ttft": ttft, "tpot": tpot, "time": time, "throughput": slots * length / time}


def _batch(p: Point, ttft: float, tpot: float, e2e: float, rate: float) -> dict[Metric, float]:
    tokens = (p.num_requests or p.concurrency or math.nan) * p.output_tokens
    spoken = tpot * (p.output_tokens - 1.0)
    time = _first(e2e, tokens / rate, ttft + spoken, spoken)
    return {"time": time, "throughput": tokens / time}


def _prefill(
    _p: Point, ttft: float, _tpot: float, _e2e: float, _rate: float
) -> dict[Metric, float]:
    return {"ttft": ttft, "time": ttft}


def _decode(p: Point, _ttft: float, tpot: float, _e2e: float, _rate: float) -> dict[Metric, float]:
    return {"tpot": tpot, "time": tpot, "throughput": (p.concurrency or math.nan) / tpot}


def _open(_p: Point, ttft: float, tpot: float, _e2e: float, _rate: float) -> dict[Metric, float]:
    return {"ttft": ttft, "tpot": tpot}


OBSERVED: dict[str, Callable[[Point, float, float, float, float], dict[Metric, float]]] = {
    "closed_loop": _closed,
    "open_loop": _open,
    "offline_batch": _batch,
    "prefill_only": _prefill,
    "decode_only": _decode,
}
"""Kind -> what a row of it measures, from TTFT, TPOT, E2E [s] and output tokens/s."""

PREDICTED: dict[str, dict[Metric, Callable[[Mapping[str, Any]], Any]]] = {
    "closed_loop": {
        "ttft": lambda s: s["ttft_ms"] * MILLI,
        "tpot": lambda s: s["tpot_ms"] * MILLI,
        "time": lambda s: s["e2e_s"],
        "throughput": lambda s: s["output_tokens_per_s"],
    },
    "open_loop": {
        "ttft": lambda s: s["ttft_ms"] * MILLI,
        "tpot": lambda s: s["tpot_ms"] * MILLI,
    },
    "offline_batch": {
        "time": lambda s: s["e2e_s"],
        "throughput": lambda s: s["output_tokens_per_s"],
    },
    "prefill_only": {
        "ttft": lambda s: s["ttft_ms"] * MILLI,
        "time": lambda s: s["ttft_ms"] * MILLI,
    },
    "decode_only": {
        "tpot": lambda s: s["tpot_ms"] * MILLI,
        "time": lambda s: s["tpot_ms"] * MILLI,
        "throughput": lambda s: s["output_tokens_per_s"],
    },
}
"""Kind -> the same metrics from the figures of ``plan score``."""


@dataclass(frozen=True)
class Comparison:
    """Measured rows beside their predictions.

    Attributes:
        rows: The rows that were scored.
        generations, accelerators: Ids as the catalog resolves them, by row.
        predicted, observed: By metric, (n,); NaN where not measured or not predicted.
        rejected: Rows that could not be scored, with the reason.
    """

    rows: tuple[Published, ...]
    generations: tuple[str, ...]
    accelerators: tuple[str, ...]
    predicted: Mapping[Metric, Floats]
    observed: Mapping[Metric, Floats]
    rejected: tuple[tuple[Published, str], ...]

    def ratio(self, metric: Metric) -> Floats:
        """Measured / predicted of every row, (n,)."""
        return self.observed[metric] / self.predicted[metric]


def compare(catalog: Catalog, rows: Sequence[Published]) -> Comparison:
    """Score measured rows as ``plan score`` would, and put the figures side by side.

    Args:
        catalog: Hardware, engines, fitted values.
        rows: Measured rows.
    """
    scores = score_points(catalog, [row.point for row in rows])
    kept = [i for i, score in enumerate(scores) if score.status in SCORED]
    good = tuple(rows[i] for i in kept)
    figures = [scores[i].figures for i in kept]
    predicted: dict[Metric, Floats] = {}
    observed: dict[Metric, Floats] = {}
    for metric in METRICS:
        observed[metric] = np.array([row.observed.get(metric, math.nan) for row in good])
        predicted[metric] = np.array(
            [
                PREDICTED[row.point.mode][metric](found) if metric in row.observed else math.nan
                for row, found in zip(good, figures, strict=True)
            ]
        )
    return Comparison(
        rows=good,
        generations=tuple(generation_id(catalog, row.point) for row in good),
        accelerators=tuple(catalog.accelerator(row.point.accelerator).id for row in good),
        predicted=predicted,
        observed=observed,
        rejected=tuple(
            (row, score.reason)
            for row, score in zip(rows, scores, strict=True)
            if score.status not in SCORED
        ),
    )


def generation_id(catalog: Catalog, point: Point) -> str:
    """Return the id of the engine generation that a point runs."""
    named = point.engine_generation or point.engine_version
    return catalog.generation(point.engine, named).id
