"""Refit ``efficiency.yaml`` from the published rows: ``python -m planner.measured.fit``.

Needs the extra ``dev``. Prints each value with its interval and what it buys, then the errors of
left-out rows. ``--write`` stores the values, ``left_out.csv`` and ``FIT.md``; the accuracy report
(``python -m planner.measured.accuracy --write``) then brings errors and tables up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.catalog import load_catalog
from planner.files import write_text
from planner.measured.accuracy import summary
from planner.measured.fitting import (
    SEED,
    Stage,
    Study,
    deployment,
    fit_stage,
    left_out_predictions,
    study,
)
from planner.measured.left_out import FILE, FITTED, SPLITS, STORED, Written, write_left_out
from planner.measured.published import generation_id, published_folder
from planner.measured.store import Interval, with_fitted
from planner.measured.values import Free, Place, neutral, read, with_values
from planner.model.arrays import Floats, Indices
from planner.spec.efficiency import Efficiency, Metric

BOOTSTRAPS = 30
ENDS = (0.05, 0.95)
REPORT = "FIT.md"
NUDGE = 1.1
SHARES = ("efficiency", "share", "read")
"""Values whose removal is the best they can be; costs are removed by the least they can be."""

Say = Callable[[str], None]


def resampled(stage: Stage, random: np.random.Generator) -> Indices:
    """Draw as many deployments as there are, some twice, with all their rows."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(stage.bench.rows):
        groups.setdefault(deployment(row), []).append(number)
    own = [np.array(group, dtype=np.intp) for group in groups.values()]
    return np.concatenate([own[i] for i in random.integers(0, len(own), len(own))])


def bootstrap(work: Study, say: Say) -> dict[Place, tuple[float, float]]:
    """Return the 5 and 95 % of every value over resampled deployments."""
    random = np.random.default_rng(SEED)
    frees = [free for stage in work.stages for free in stage.frees]
    found: dict[Place, list[float]] = {free.place: [] for free in frees}
    for number in range(BOOTSTRAPS):
        say(f"bootstrap {number + 1} of {BOOTSTRAPS}")
        efficiency = work.refit([resampled(stage, random) for stage in work.stages])
        for place, values in found.items():
            values.append(read(efficiency, place))
    return {
        place: (float(np.quantile(values, ENDS[0])), float(np.quantile(values, ENDS[1])))
        for place, values in found.items()
    }


def moved_rows(stage: Stage, efficiency: Efficiency, free: Free) -> int:
    """Count the rows whose prediction a value moves."""
    value = read(efficiency, free.place)
    nudged = with_values(efficiency, [free.place], [value * NUDGE])
    before, after = stage.bench.predict(efficiency), stage.bench.predict(nudged)
    moved = [~np.isclose(before[m], after[m], rtol=1e-9, equal_nan=True) for m in before]
    return int(np.any(moved, axis=0).sum())


def removed(efficiency: Efficiency, free: Free) -> float:
    """Return the value that takes a term out of the model."""
    if free.neutral is not None or free.place[-1] == "launch_s":
        return neutral(efficiency, free)
    best = any(word in free.place[-1] for word in SHARES)
    return free.high if best else free.low


def ablated(stage: Stage, efficiency: Efficiency, free: Free) -> Efficiency:
    """Take a term out and fit the stage's other values again."""
    without = with_values(efficiency, [free.place], [removed(efficiency, free)])
    rest = tuple(other for other in stage.frees if other is not free)
    rows = np.arange(len(stage.bench.rows))
    return fit_stage(replace(stage, frees=rest), without, rows)


def scored(stage: Stage, efficiency: Efficiency) -> list[str]:
    """Return the errors of the metrics that the stage is fitted on, as text."""
    predicted = stage.bench.predict(efficiency)
    return [summary(stage.bench.observed[m] / predicted[m]) for m in stage.metrics]


def value_table(
    work: Study, efficiency: Efficiency, fitted: Mapping[Place, Interval], say: Say
) -> list[str]:
    """Return the table of values, their intervals, and the errors without each of them."""
    lines: list[str] = []
    for stage in work.stages:
        metrics = [f"{metric} without" for metric in stage.metrics]
        lines += ["", _row(["value", "fit", "5 %", "95 %", "rows", *metrics])]
        lines += [_row(["---"] * (5 + len(metrics)))]
        lines += [_row(["(all)", "", "", "", "", *scored(stage, efficiency)])]
        for free in stage.frees:
            name, found = ".".join(free.place), fitted[free.place]
            say(f"without {name}")
            numbers = [f"{n:.4g}" for n in (found.value, found.low, found.high)]
            without = scored(stage, ablated(stage, efficiency, free))
            lines.append(_row([name, *numbers, str(found.rows), *without]))
    return lines


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def ratios_of(work: Study, found: Sequence[Mapping[Metric, Floats]]) -> list[dict[Metric, Floats]]:
    """Return measured / predicted of each stage."""
    return [
        {metric: stage.bench.observed[metric] / own[metric] for metric in STORED}
        for stage, own in zip(work.stages, found, strict=True)
    ]


def left_out_ratios(work: Study, efficiency: Efficiency, say: Say) -> Written:
    """Return measured / predicted of every row: as fitted, and left out in each way."""
    ratios = {FITTED: ratios_of(work, [s.bench.predict(efficiency) for s in work.stages])}
    for split in SPLITS:
        say(f"left out: {split}")
        ratios[split] = ratios_of(work, left_out_predictions(work, split))
    return ratios


def fit_all(work: Study, say: Say) -> tuple[Efficiency, dict[Place, Interval]]:
    """Fit everything and bootstrap the intervals."""
    efficiency = work.refit(work.everything)
    ends = bootstrap(work, say)
    fitted = {
        free.place: Interval(
            read(efficiency, free.place), *ends[free.place], moved_rows(stage, efficiency, free)
        )
        for stage in work.stages
        for free in stage.frees
    }
    return efficiency, fitted


def report(table: Sequence[str], ratios: Written) -> str:
    """Return ``FIT.md``."""
    lines = [
        "# What the fit found",
        "",
        "Generated by `python -m planner.measured.fit --write`. Errors: mean / median / median "
        "signed error in percent (rows). *Without*: the term taken out (a share at its best, a "
        "cost at its least, a factor at 1) and everything else fitted again. Intervals: 30 "
        "bootstraps over deployments.",
        *table,
        "",
        _row(["left out", *STORED]),
        _row(["---"] * (1 + len(STORED))),
    ]
    for split, parts in ratios.items():
        joined = {m: np.concatenate([part[m] for part in parts]) for m in STORED}
        lines.append(_row([split, *(summary(joined[metric]) for metric in STORED)]))
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str]) -> None:
    """Fit, print, and with ``--write`` store."""
    work = study(load_catalog())

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    efficiency, fitted = fit_all(work, say)
    ratios = left_out_ratios(work, efficiency, say)
    text = report(value_table(work, efficiency, fitted, say), ratios)
    sys.stdout.write(text)
    if "--write" not in arguments:
        return
    folder = published_folder()
    write_text(folder / REPORT, text)
    names = [
        [
            (row.id, generation_id(work.catalog, row.point), chip.id)
            for row in stage.bench.rows
            for chip in [work.catalog.accelerator(row.point.accelerator)]
        ]
        for stage in work.stages
    ]
    write_left_out(folder / FILE, names, ratios)
    values = folder.parents[1] / "hardware_catalog" / "efficiency.yaml"
    write_text(values, with_fitted(values.read_text(encoding="utf-8"), fitted))


if __name__ == "__main__":
    main(sys.argv[1:])
