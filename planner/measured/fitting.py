"""Robust least squares of the values of ``efficiency.yaml`` on published rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.catalog import Catalog
from planner.measured.bench import Bench, bench
from planner.measured.left_out import STORED
from planner.measured.published import (
    CORE,
    FILES,
    Published,
    generation_id,
    published_folder,
    read_published,
)
from planner.measured.values import CURRENT, GLOBALS, OTHERS, Free, neutral, read, with_values
from planner.model.arrays import Floats, Indices
from planner.spec.efficiency import Efficiency, Metric

TTFT_WEIGHT = 0.5
"""TTFT scatters more than twice as much as TPOT when a configuration is measured again."""
LOSS_SCALE = 0.08
"""Relative error at which the loss turns from squares to absolute values (soft L1)."""
WORST = 5.0
STEP = 1e-3
EVALUATIONS = 60
FOLDS = 8
SEED = 20261129
IDENTIFIED = 1e-3
"""Change of all residuals together, per 5 % of a value, below which rows do not identify it."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Stage:
    """Values that are fitted together.

    Attributes:
        bench: Rows.
        frees: Values.
        metrics: What is compared, and with which weight.
    """

    bench: Bench
    frees: tuple[Free, ...]
    metrics: Mapping[Metric, float]


def residuals(stage: Stage, efficiency: Efficiency) -> Floats:
    """Weighted predicted / measured - 1, one line a metric, (metrics, n); 0 where not measured."""
    predicted = stage.bench.predict(efficiency)
    lines = []
    for metric, weight in stage.metrics.items():
        error = predicted[metric] / stage.bench.observed[metric] - 1.0
        lines.append(weight * np.clip(np.where(np.isfinite(error), error, 0.0), -WORST, WORST))
    return np.array(lines)


def fit_stage(stage: Stage, efficiency: Efficiency, rows: Indices) -> Efficiency:
    """Return the efficiencies with the stage's values fitted on some rows.

    Robust least squares on relative errors, in the logarithm of each value. Values that the rows
    do not identify take their neutral value.

    Args:
        stage: Rows and values.
        efficiency: Where to start; also what is held.
        rows: Rows to fit on; one may come twice.
    """
    from scipy.optimize import least_squares

    efficiency, frees = _identified(stage, efficiency, rows)
    places = [free.place for free in frees]
    low, high = (np.log([getattr(free, name) for free in frees]) for name in ("low", "high"))
    start = np.log([read(efficiency, place) for place in places])

    def errors(values: Floats) -> Floats:
        moved = with_values(efficiency, places, np.exp(values).tolist())
        flat: Floats = residuals(stage, moved)[:, rows].ravel()
        return flat

    found = least_squares(
        errors,
        np.clip(start, low + STEP, high - STEP),
        bounds=(low, high),
        loss="soft_l1",
        f_scale=LOSS_SCALE,
        diff_step=STEP,
        x_scale=0.3,
        max_nfev=EVALUATIONS,
    )
    return with_values(efficiency, places, np.exp(found.x).tolist())


def _identified(
    stage: Stage, efficiency: Efficiency, rows: Indices
) -> tuple[Efficiency, tuple[Free, ...]]:
    before = residuals(stage, efficiency)
    kept: list[Free] = []
    for free in stage.frees:
        value = read(efficiency, free.place)
        nudged = value * (1.05 if value * 1.05 < free.high else 0.95)
        moved = residuals(stage, with_values(efficiency, [free.place], [nudged]))
        if np.abs(moved - before)[:, rows].sum() < IDENTIFIED:
            value = float(np.clip(neutral(efficiency, free), free.low, free.high))
            efficiency = with_values(efficiency, [free.place], [value])
        else:
            kept.append(free)
    return efficiency, tuple(kept)


@dataclass(frozen=True)
class Study:
    """The rows of both files and how they are fitted: the core first, then the others."""

    catalog: Catalog
    core: Stage
    others: Stage

    @property
    def stages(self) -> tuple[Stage, Stage]:
        """The stages in the order they are fitted."""
        return self.core, self.others

    def refit(self, chosen: Sequence[Indices | None]) -> Efficiency:
        """Fit each stage on some of its rows; None = leave the stage's values as they are."""
        efficiency = self.catalog.efficiency
        for stage, rows in zip(self.stages, chosen, strict=True):
            if rows is not None:
                efficiency = fit_stage(stage, efficiency, rows)
        return efficiency

    @cached_property
    def everything(self) -> tuple[Indices, Indices]:
        """All rows of both stages."""
        first, second = (np.arange(len(stage.bench.rows)) for stage in self.stages)
        return first, second


def study(catalog: Catalog) -> Study:
    """Return the published rows, ready to fit."""
    core, others = (
        [row for row in read_published(published_folder() / name) if row.stratum == CORE]
        for name in FILES
    )
    return Study(
        catalog,
        Stage(bench(catalog, core), (*GLOBALS, *CURRENT), {"tpot": 1.0, "ttft": TTFT_WEIGHT}),
        Stage(bench(catalog, others), OTHERS, {"time": 1.0}),
    )


def deployment(row: Published) -> tuple[str, ...]:
    """Return what is one deployment: all of the row but lengths and load."""
    p = row.point
    return (
        row.family,
        p.accelerator,
        p.engine,
        p.engine_generation,
        p.weights,
        f"{p.tp} {p.pp} {p.dp}",
    )


def _fold_of(rows: Sequence[Published]) -> Callable[[Published], str]:
    names = sorted({deployment(row) for row in rows})
    folds = np.random.default_rng(SEED).integers(0, FOLDS, len(names))
    number = dict(zip(names, folds, strict=True))
    return lambda row: f"fold {number[deployment(row)]}"


def split_names(work: Study, split: str) -> list[NDArray[np.str_]]:
    """Return what each row of each stage is left out with."""
    names = []
    for stage in work.stages:
        keys: dict[str, Callable[[Published], str]] = {
            "deployment": _fold_of(stage.bench.rows),
            "family": lambda row: row.family,
            "accelerator": lambda row: work.catalog.accelerator(row.point.accelerator).id,
            "generation": lambda row: generation_id(work.catalog, row.point),
        }
        names.append(np.array([keys[split](row) for row in stage.bench.rows]))
    return names


def left_out_predictions(work: Study, split: str) -> list[dict[Metric, Floats]]:
    """Predict every row by a fit that has not seen what it is left out with.

    Returns:
        One mapping a stage, predictions [SI] by metric, (n,).
    """
    names = split_names(work, split)
    found: list[dict[Metric, Floats]] = [
        {metric: np.full(len(own), np.nan) for metric in STORED} for own in names
    ]
    for name in sorted(set(np.concatenate(names))):
        chosen = [np.flatnonzero(own != name) for own in names]
        core = None if len(chosen[0]) == len(names[0]) else chosen[0]
        efficiency = work.refit((core, chosen[1]))
        for stage, own, predictions in zip(work.stages, names, found, strict=True):
            predicted = stage.bench.predict(efficiency)
            for metric in STORED:
                predictions[metric][own == name] = predicted[metric][own == name]
    return found
