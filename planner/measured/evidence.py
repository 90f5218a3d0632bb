"""How far to trust a prediction: quantiles of measured / predicted, and the word for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.files import read_csv
from planner.measured.left_out import FITTED, STORED, LeftOut
from planner.model.arrays import Floats
from planner.spec.efficiency import ErrorEntry, Evidence, Metric

QUANTILES = (0.1, 0.5, 0.9)
VALIDATED_ROWS = 30
VALIDATED_MEDIAN = 0.10
VALIDATED_MEAN = 0.15
VALIDATED_SOURCES = 2
"""Sources that an engine generation of the past needs: one protocol on one old engine does not
validate an accelerator."""
OWN_ROWS = 10
"""Rows that weigh as much as what is known of the other accelerators; also the fewest rows of a
metric that are not better replaced by those of the time per request."""
WIDEST = (0.1, 10.0)
"""Measured / predicted beyond this is a broken row, not an error of the model."""

Mask = NDArray[np.bool_]
Pair = tuple[str, str]
"""Engine generation and accelerator."""


@dataclass(frozen=True)
class KeptAside:
    """How the model did on an accelerator's public rows that no fit used and no file here holds."""

    mean: float
    sources: frozenset[str]


@dataclass(frozen=True)
class Sources:
    """What stands behind the rows.

    Attributes:
        by_id: Source of each row.
        current: Generations that a plan may use.
        kept_aside: By accelerator.
    """

    by_id: Mapping[str, str]
    current: frozenset[str]
    kept_aside: Mapping[str, KeptAside]

    def trusted(self, generation: str, accelerator: str, own: frozenset[str]) -> bool:
        """Whether rows of this kind may validate: enough sources, no rows kept aside against it."""
        aside = self.kept_aside.get(accelerator)
        names = own | (aside.sources if aside else frozenset())
        enough = generation in self.current or len(names) >= VALIDATED_SOURCES
        return enough and (aside is None or aside.mean <= VALIDATED_MEAN)


def repository(source: str) -> str:
    """Return the first word of a source: the repository."""
    return source.split(maxsplit=1)[0]


def read_kept_aside(path: Path) -> dict[str, KeptAside]:
    """Read ``kept_aside.csv``."""
    return {
        row.values["accelerator"]: KeptAside(
            float(row.values["mean_error_percent"]) / 100,
            frozenset(name.strip() for name in row.values["sources"].split(";")),
        )
        for row in read_csv(path)
    }


def _usable(ratios: Floats) -> Floats:
    kept: Floats = ratios[(ratios > WIDEST[0]) & (ratios < WIDEST[1])]
    return kept


def _rows(left: LeftOut, pair: Pair) -> Mask:
    chosen: Mask = (np.array(left.generations) == pair[0]) & (
        np.array(left.accelerators) == pair[1]
    )
    return chosen


def verdict(rows: int, median: float, mean: float, *, trusted: bool) -> Evidence:
    """Return the word for what was measured.

    Args:
        rows: Measured rows.
        median, mean: Of |predicted / measured - 1|.
        trusted: See `Sources.trusted`.
    """
    good = rows >= VALIDATED_ROWS and median <= VALIDATED_MEDIAN and mean <= VALIDATED_MEAN
    return "validated" if good and trusted else "wide"


def _pair_evidence(left: LeftOut, pair: Pair, sources: Sources) -> Evidence:
    chosen = _rows(left, pair)
    names = frozenset(
        repository(sources.by_id[name])
        for name, accelerator in zip(left.ids, left.accelerators, strict=True)
        if accelerator == pair[1]
    )
    trusted = sources.trusted(*pair, names)
    found = []
    for metric in ("tpot", "time"):
        ratios = _usable(left.ratios[FITTED][metric][chosen])
        if ratios.size:
            errors = np.abs(1.0 / ratios - 1.0)
            found.append(
                verdict(
                    ratios.size, float(np.median(errors)), float(errors.mean()), trusted=trusted
                )
            )
    return "validated" if "validated" in found else "wide"


def _pooled(left: LeftOut, metric: Metric, current: frozenset[str]) -> tuple[Floats, Floats]:
    """Residuals of unseen accelerators and current generations, each of which weighs the same."""
    values: list[Floats] = []
    weights: list[Floats] = []
    generations, accelerators = np.array(left.generations), np.array(left.accelerators)
    groups = [("accelerator", accelerators == name) for name in sorted(set(accelerators))]
    groups += [("generation", generations == name) for name in sorted(current)]
    known = np.isin(generations, sorted(current))
    for split, chosen in groups:
        own = chosen & known if (chosen & known).any() else chosen
        ratios = _usable(left.ratios[split][metric][own])
        if ratios.size:
            values.append(ratios)
            weights.append(np.full(ratios.size, 1.0 / ratios.size))
    return np.concatenate(values), np.concatenate(weights)


def _weighted(values: Floats, weights: Floats) -> tuple[float, ...]:
    order = np.argsort(values)
    reached = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    return tuple(float(np.interp(share, reached, values[order])) for share in QUANTILES)


def _stored(metric: Metric) -> Metric:
    """Throughput at a given concurrency is the inverse of the time per request."""
    return "time" if metric == "throughput" else metric


def _inverse(quantiles: Sequence[float]) -> tuple[float, ...]:
    return tuple(1.0 / value for value in reversed(quantiles))


def _entry(
    pair: Pair, metric: Metric, quantiles: Sequence[float], rows: int, known: tuple[Evidence, str]
) -> ErrorEntry:
    low, middle, high = _inverse(quantiles) if metric == "throughput" else quantiles
    return ErrorEntry(
        generation=pair[0],
        accelerator=pair[1],
        metric=metric,
        rows=rows,
        q10=round(low, 3),
        q50=round(middle, 3),
        q90=round(high, 3),
        evidence=known[0],
        source=known[1],
    )


ANY: Pair = ("any", "any")
METRICS: tuple[Metric, ...] = ("ttft", "tpot", "throughput", "time")


def _widest(metric: Metric, left: LeftOut, current: frozenset[str]) -> tuple[float, ...]:
    """Quantiles where nothing was measured: at least as wide as those of unseen model families."""
    pooled = _weighted(*_pooled(left, metric, current))
    seen = np.isin(np.array(left.generations), sorted(current))
    family = np.quantile(_unseen(left, metric, seen), QUANTILES)
    return (min(pooled[0], family[0]), pooled[1], max(pooled[2], family[2]))


def _all_widest(left: LeftOut, current: frozenset[str]) -> dict[Metric, tuple[float, ...]]:
    return {metric: _widest(metric, left, current) for metric in STORED}


def default_entries(left: LeftOut, current: frozenset[str]) -> tuple[ErrorEntry, ...]:
    """Return the quantiles for accelerators and engine generations without evidence."""
    source = (
        "accelerators and current engine generations left out of the fit, each weighing the same"
    )
    return tuple(
        _entry(ANY, metric, _widest(_stored(metric), left, current), 0, ("unvalidated", source))
        for metric in METRICS
    )


def error_entries(left: LeftOut, sources: Sources) -> tuple[ErrorEntry, ...]:
    """Return the quantiles of every engine generation and accelerator that was measured.

    They are taken with the row's deployment or model family left out of the fit. The fewer rows,
    the more the quantiles lean on those of unseen accelerators. A metric that was hardly measured
    borrows the rows of the time per request.
    """
    wide = _all_widest(left, sources.current)
    entries: list[ErrorEntry] = []
    for pair in sorted(set(zip(left.generations, left.accelerators, strict=True))):
        chosen = _rows(left, pair)
        known = _pair_evidence(left, pair, sources)
        for metric in METRICS:
            quantiles, rows, note = _quantiles(left, chosen, metric, wide)
            entries.append(_entry(pair, metric, quantiles, rows, (known, note)))
    return tuple(entries)


def _quantiles(
    left: LeftOut,
    chosen: Mask,
    metric: Metric,
    wide: Mapping[Metric, tuple[float, ...]],
) -> tuple[tuple[float, ...], int, str]:
    stored = _stored(metric)
    own, note = _unseen(left, stored, chosen), "deployments and model families left out of the fit"
    if stored == "tpot" and own.size < 2 * OWN_ROWS:
        own, stored, note = _unseen(left, "time", chosen), "time", "time per request stands in"
    if not own.size:
        return wide[stored], 0, "not measured here: as without evidence"
    rows = own.size // 2
    share = rows / (rows + OWN_ROWS)
    found = np.log(np.quantile(own, QUANTILES))
    mixed = np.exp(share * found + (1.0 - share) * np.log(wide[stored]))
    return tuple(float(value) for value in mixed), rows, note


def _unseen(left: LeftOut, metric: Metric, chosen: Mask) -> Floats:
    """Residuals with the deployment left out, and again with the model family left out.

    Half of what people ask about is a known model on other hardware, half a new model.
    """
    return np.concatenate(
        [_usable(left.ratios[split][metric][chosen]) for split in ("deployment", "family")]
    )


def elsewhere_entries(path: Path, left: LeftOut, sources: Sources) -> tuple[ErrorEntry, ...]:
    """Return the quantiles measured on public rows that are not copied into this project."""
    entries: list[ErrorEntry] = []
    wide = _all_widest(left, sources.current)
    for row in read_csv(path):
        v = row.values
        pair, rows = (v["generation"], v["accelerator"]), int(v["rows"])
        names = frozenset(repository(name) for name in v["sources"].split(";"))
        trusted = sources.trusted(*pair, names)
        median, mean = (float(v[f"{name}_error_percent"]) / 100 for name in ("median", "mean"))
        known = verdict(rows, median, mean, trusted=trusted)
        share = rows / (rows + OWN_ROWS)
        own = np.log([float(v["q10"]), float(v["q50"]), float(v["q90"])])
        for metric in METRICS:
            base = wide[_stored(metric)]
            mixed = tuple(np.exp(share * own + (1.0 - share) * np.log(base)))
            measured = metric != "ttft"
            note = f"rows not copied here: {v['sources']}" if measured else "not measured here"
            entries.append(
                _entry(pair, metric, mixed if measured else base, rows * measured, (known, note))
            )
    return tuple(entries)
