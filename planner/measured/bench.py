"""Measured rows resolved once, so that they can be predicted again with other fitted values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.choices import gather
from planner.candidates.efficiency import engine_row, global_parameters
from planner.candidates.hardware import wire
from planner.candidates.points import Batch, PointResolver, Resolved, to_batch
from planner.candidates.score import SCORERS
from planner.catalog import Catalog
from planner.measured.published import METRICS, PREDICTED, Published
from planner.model.arrays import EngineFigures, Floats, Indices
from planner.spec.efficiency import Efficiency, Metric

FITTED = (
    "hbm",
    "kv_read",
    "gemm",
    "link_share",
    "link_latency",
    "launch",
    "sequence",
    "step_constant",
    "special_layer",
    "weight_only_layer",
    "prefill_layer",
    "prefill_special",
    "cohort",
    "bunching",
)
"""Columns of EngineFigures that come from ``efficiency.yaml``."""
SLOW = "open_loop"
"""A mode that a fit does not use: its queue rests on the same steps."""


@dataclass(frozen=True)
class Part:
    """Rows of one mode, and which engine stack, accelerator and link each has."""

    mode: str
    rows: Indices
    batch: Batch
    stacks: tuple[Resolved, ...]
    stack_of: Indices


@dataclass(frozen=True)
class Bench:
    """Measured rows, resolved.

    Attributes:
        rows: The rows, those that cannot be scored left out.
        observed: By metric [SI], (n,); NaN where not measured.
    """

    rows: tuple[Published, ...]
    observed: Mapping[Metric, Floats]
    parts: tuple[Part, ...]

    def predict(self, efficiency: Efficiency) -> dict[Metric, Floats]:
        """Predict every row with these fitted values.

        Returns:
            By metric [SI], (n,); NaN where not measured.
        """
        parameters = global_parameters(efficiency)
        found = {metric: np.full(len(self.rows), np.nan) for metric in METRICS}
        for part in self.parts:
            engine = _engine(efficiency, part)
            candidates = replace(part.batch.candidates, engine=engine)
            scores = SCORERS[part.mode](replace(part.batch, candidates=candidates), parameters)
            for metric, figure in PREDICTED[part.mode].items():
                found[metric][part.rows] = figure(scores)
        for metric in METRICS:
            found[metric][np.isnan(self.observed[metric])] = np.nan
        return found


def bench(catalog: Catalog, rows: Sequence[Published]) -> Bench:
    """Resolve rows against a catalog."""
    resolver = PointResolver(catalog)
    kept: list[Published] = []
    resolved: list[Resolved] = []
    for row in rows:
        found = resolver.resolve(row.point)
        if isinstance(found, Resolved) and row.point.mode != SLOW:
            kept.append(row)
            resolved.append(found)
    modes = np.array([row.point.mode for row in kept])
    parts = tuple(
        _part(catalog, mode, np.flatnonzero(modes == mode), resolved)
        for mode in SCORERS
        if (modes == mode).any()
    )
    observed = {
        metric: np.array([row.observed.get(metric, np.nan) for row in kept]) for metric in METRICS
    }
    return Bench(tuple(kept), observed, parts)


def _link(r: Resolved) -> str:
    return wire(r.hardware, r.point.tp).kind


def _part(catalog: Catalog, mode: str, rows: Indices, resolved: Sequence[Resolved]) -> Part:
    own = [resolved[i] for i in rows]
    index: dict[tuple[object, ...], int] = {}
    stacks: list[Resolved] = []
    stack_of = []
    for r in own:
        key = (r.stack.generation.id, r.stack.version, r.accelerator.id, _link(r))
        if key not in index:
            index[key] = len(stacks)
            stacks.append(r)
        stack_of.append(index[key])
    batch = to_batch(catalog, own, list(range(len(own))))
    return Part(mode, rows, batch, tuple(stacks), np.array(stack_of, dtype=np.intp))


def _engine(efficiency: Efficiency, part: Part) -> EngineFigures:
    def row(number: int) -> Mapping[str, float]:
        r = part.stacks[number]
        return engine_row(efficiency, r.stack, r.accelerator, _link(r))

    own = gather(EngineFigures, (part.stack_of,), row)
    fitted = {name: getattr(own, name) for name in FITTED}
    return replace(part.batch.candidates.engine, **fitted)
