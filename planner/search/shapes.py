"""The explicit table of shapes: every supported combination that fits in memory.

A shape is scored once for all hardware classes on which it behaves alike (a replica inside one
server does not care how many GPUs the instance has); the classes of a shape are its *homes*.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.choices import Choices, build
from planner.candidates.hardware import HardwareClass, wire
from planner.candidates.support import Layout
from planner.model.arrays import Candidates, Columns, Floats, Indices
from planner.model.memory import sequences_that_fit
from planner.search.allowed import allowed, gpus
from planner.search.blocks import by_block
from planner.search.problem import Problem
from planner.spec.space import Condition

Mask = NDArray[np.bool_]
DRAFTED = (
    "draft_tokens",
    "accept_first",
    "accept_decay",
    "draft_layers",
    "draft_head",
    "draft_share",
)
"""Columns that speculation sets."""
AXES = ("hardware", "stack", "weights", "kv", "layout", "draft")


@dataclass(frozen=True)
class Shapes(Columns):
    """Indices of each shape into the problem's tables, (n,); rows are sorted by code.

    Attributes:
        hardware: The first hardware class on which it behaves like this.
        stack, weights, kv, layout, draft: The other choices.
        code: All six in one number.
    """

    hardware: Indices
    stack: Indices
    weights: Indices
    kv: Indices
    layout: Indices
    draft: Indices
    code: Indices

    def axes(self) -> Indices:
        """Return the six indices, (n, 6)."""
        return np.stack([getattr(self, name) for name in AXES], axis=1)


@dataclass(frozen=True)
class ShapeTable:
    """Shapes with their columns and homes.

    Attributes:
        shapes: (n,).
        sizes: Number of choices on each axis.
        twins: First hardware class on which a layout behaves alike, (hardware, layout).
        bases: Columns of shapes without speculation, one replica; batch limit and budget are open.
        base_of: Row of `bases` of each shape, (n,).
        drafts: Columns that speculation sets, (drafts,).
        gpus: GPUs of a replica, (n,).
        fits: Sequences of the workload that one dp rank holds, (n,).
        loss, loss_p90: Quality loss as compared, and its pessimistic end [%], (n,).
        size_bit: Bit that stands for the instance size of each hardware class, (hardware,).
        home_hardware: Hardware classes of all shapes, shape by shape.
        home_start: First home of each shape, (n + 1,).
    """

    shapes: Shapes
    sizes: tuple[int, ...]
    twins: Indices
    bases: Candidates
    base_of: Indices
    drafts: Mapping[str, Floats]
    gpus: Floats
    fits: Floats
    loss: Floats
    loss_p90: Floats
    size_bit: Indices
    home_hardware: Indices
    home_start: Indices

    def __len__(self) -> int:
        return len(self.shapes)

    def columns(
        self, shapes: Indices, limit: Floats, budget: Floats, replicas: Floats
    ) -> Candidates:
        """Return the columns of shapes with these batch limits, token budgets and replicas."""
        c = self.bases.take(self.base_of[shapes])
        draft = self.shapes.draft[shapes]
        drafted = {name: values[draft] for name, values in self.drafts.items()}
        inner = {"max_sequences": limit, "token_budget": budget, "replicas": replicas}
        return replace(c, layout=replace(c.layout, **drafted, **inner))

    def find(self, axes: Indices) -> Indices:
        """Return the row of each (n, 6) combination; -1 where there is no such shape."""
        twin = self.twins[axes[:, 0], axes[:, 4]]
        codes = np.ravel_multi_index((twin, *axes.T[1:]), self.sizes).astype(np.intp)
        if not len(self):
            return np.full(len(codes), -1, dtype=np.intp)
        rows = np.minimum(np.searchsorted(self.shapes.code, codes), len(self) - 1)
        return np.where(self.shapes.code[rows] == codes, rows, -1)


def shape_table(problem: Problem) -> ShapeTable:
    """Return every shape that the engine supports, the conditions allow and memory holds."""
    every, hardware, shape_of = supported(problem)
    fits, longest = _fits(problem, every)
    holds = (longest >= 1.0) & (fits >= 1.0)
    kept = holds[shape_of] & _needed(problem, every.shapes, holds, hardware, shape_of)
    return _kept(every, fits, hardware[kept], shape_of[kept])


def supported(problem: Problem) -> tuple[ShapeTable, Indices, Indices]:
    """Return the shapes that the engine supports and the conditions allow, whatever memory holds.

    Returns:
        The shapes without homes; hardware class and shape of each home.
    """
    mask = allowed(problem)
    hardware, stack, weights, kv, layout, draft = (
        axis.astype(np.intp) for axis in np.nonzero(mask)
    )
    twins, sizes = _twins(problem), mask.shape
    codes = np.ravel_multi_index(
        (twins[hardware, layout], stack, weights, kv, layout, draft), sizes
    )
    distinct, shape_of = np.unique(codes, return_inverse=True)
    every = _unfitted(problem, sizes, twins, distinct.astype(np.intp))
    return every, hardware, shape_of.astype(np.intp)


def _unfitted(
    problem: Problem, sizes: tuple[int, ...], twins: Indices, codes: Indices
) -> ShapeTable:
    """Return the table of these shapes, before memory has been looked at; without homes."""
    axes = [axis.astype(np.intp) for axis in np.unravel_index(codes, sizes)]
    shapes = Shapes(**dict(zip(AXES, axes, strict=True)), code=codes)
    plain, base_of = np.unique(codes // sizes[-1], return_inverse=True)
    based = [axis.astype(np.intp) for axis in np.unravel_index(plain, sizes[:-1])]
    losses = np.array([[loss.objective for loss in row] for row in problem.losses])
    worst = np.array([[loss.p90 for loss in row] for row in problem.losses])
    instances = [h.gpus for h in problem.tables.hardware]
    nobody = np.zeros(0, dtype=np.intp)
    return ShapeTable(
        shapes=shapes,
        sizes=sizes,
        twins=twins,
        bases=build(problem.tables, _choices(problem, based, np.zeros(len(plain), dtype=np.intp))),
        base_of=base_of.astype(np.intp),
        drafts=_draft_columns(problem),
        gpus=np.array([float(gpus(x)) for x in problem.layouts])[shapes.layout],
        fits=np.zeros(len(codes)),
        loss=losses[shapes.weights, shapes.kv],
        loss_p90=worst[shapes.weights, shapes.kv],
        size_bit=1 << np.unique(instances, return_inverse=True)[1].astype(np.intp),
        home_hardware=nobody,
        home_start=nobody,
    )


def _fits(problem: Problem, table: ShapeTable) -> tuple[Floats, Floats]:
    """Return how many sequences of the workload, and of the longest kind, each shape holds."""
    demand = problem.demand

    def part(at: Indices) -> Floats:
        one = np.ones(len(at))
        c = table.columns(at, one, one, one)
        lengths = (demand.workload.context_end, demand.longest)
        return np.stack([sequences_that_fit(c, length * one) for length in lengths])

    fits, longest = np.concatenate(by_block(part, len(table)), axis=-1)
    return fits, longest


def _kept(every: ShapeTable, fits: Floats, hardware: Indices, shape_of: Indices) -> ShapeTable:
    """Return the shapes that have a home, with their homes."""
    order = np.lexsort((hardware, shape_of))
    used, counts = np.unique(shape_of, return_counts=True)
    bases, base_of = np.unique(every.base_of[used], return_inverse=True)
    return replace(
        every,
        shapes=every.shapes.take(used),
        bases=every.bases.take(bases),
        base_of=base_of.astype(np.intp),
        gpus=every.gpus[used],
        fits=fits[used],
        loss=every.loss[used],
        loss_p90=every.loss_p90[used],
        home_hardware=hardware[order],
        home_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
    )


def _draft_columns(problem: Problem) -> dict[str, Floats]:
    """Return the columns that speculation sets, one row a draft."""
    count = len(problem.drafts)
    zero = [np.zeros(count, dtype=np.intp) for _ in AXES[:-1]]
    layout = build(problem.tables, _choices(problem, zero, np.arange(count))).layout
    return {name: getattr(layout, name) for name in DRAFTED}


def _choices(problem: Problem, axes: Sequence[Indices], draft: Indices) -> Choices:
    hardware, stack, weights, kv, place = axes
    one = np.ones(len(hardware))
    choices = np.array([(d.method, d.tokens, d.first, d.decay) for d in problem.drafts])[draft]
    layout = np.array([(x.tp, x.pp, x.dp) for x in problem.layouts], dtype=float)[place]
    return Choices(
        architecture=np.zeros(len(hardware), dtype=np.intp),
        hardware=hardware,
        stack=stack,
        weights=weights,
        kv=kv,
        method=choices[:, 0].astype(np.intp),
        tp=layout[:, 0],
        pp=layout[:, 1],
        dp=layout[:, 2],
        replicas=one,
        max_sequences=one,
        token_budget=one,
        draft_tokens=choices[:, 1],
        accept_first=choices[:, 2],
        accept_decay=choices[:, 3],
        poll_steps=0 * one,
        batch_wait_steps=0 * one,
    )


WHEN_NEEDED: Condition = "pp_only_across_nodes_or_when_needed"


def _needed(p: Problem, shapes: Shapes, holds: Mask, hardware: Indices, shape_of: Indices) -> Mask:
    """Which homes the rule on pipelines leaves: stages only across instances, or to fit at all."""
    if WHEN_NEEDED not in p.conditions:
        return np.ones(len(hardware), dtype=bool)
    stages = np.array([x.pp for x in p.layouts])[shapes.layout][shape_of]
    size = np.array([gpus(x) for x in p.layouts])[shapes.layout][shape_of]
    across = size > np.array([h.gpus for h in p.tables.hardware])[hardware]
    formats = (hardware, shapes.stack[shape_of], shapes.weights[shape_of], shapes.kv[shape_of])
    group = np.unique(np.stack(formats), axis=1, return_inverse=True)[1].ravel()
    flat = np.zeros(int(group.max(initial=-1)) + 1, dtype=bool)
    np.logical_or.at(flat, group, holds[shape_of] & (stages == 1))
    kept: Mask = (stages == 1) | across | ~flat[group]
    return kept


def _twins(p: Problem) -> Indices:
    """First hardware class on which a layout behaves as on this one, (hardware, layout)."""
    first: dict[Hashable, int] = {}
    return np.array(
        [
            [first.setdefault(_behaviour(h, x), number) for x in p.layouts]
            for number, h in enumerate(p.tables.hardware)
        ],
        dtype=np.intp,
    )


def _behaviour(h: HardwareClass, x: Layout) -> Hashable:
    """What a replica of this layout sees of a hardware class."""
    link, node = wire(h, x.tp), h.node_gpus
    spans = (x.tp * x.dp > node, gpus(x) > node)
    network = h.internode_gb_per_s if any(spans) else 0.0
    return (h.accelerator.id, x, link.kind, link.rate, spans, network)
