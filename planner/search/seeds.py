"""Shapes that an engineer would try first, and the neighbours of good ones."""

from __future__ import annotations

import numpy as np

from planner.model.arrays import Indices
from planner.search.problem import Problem
from planner.search.shapes import ShapeTable


def seed_shapes(problem: Problem, table: ShapeTable) -> Indices:
    """Return, for each accelerator, engine and weight format, the narrowest and widest replica.

    With the fewest pipeline stages, speculation off, and the first KV-cache format.
    """
    s = table.shapes
    layouts = np.array([(x.pp, x.dp, x.tp) for x in problem.layouts])[s.layout]
    chips = {h.accelerator.id: i for i, h in enumerate(problem.tables.hardware)}
    chip = np.array([chips[h.accelerator.id] for h in problem.tables.hardware])[s.hardware]
    plain = np.flatnonzero((s.draft == s.draft.min(initial=0)) & (s.kv == s.kv.min(initial=0)))
    picked = []
    for sign in (1, -1):
        keys = (sign * layouts[plain, 2], layouts[plain, 1], layouts[plain, 0])
        order = plain[np.lexsort((*keys, s.weights[plain], s.stack[plain], chip[plain]))]
        group = np.stack([chip[order], s.stack[order], s.weights[order]])
        first = np.concatenate([[True], np.any(group[:, 1:] != group[:, :-1], axis=0)])
        picked.append(order[first[: len(order)]])
    return np.unique(np.concatenate(picked)).astype(np.intp)


def neighbours(problem: Problem, table: ShapeTable, shapes: Indices) -> Indices:
    """Return every shape that differs from one of these in one choice, sorted.

    Tensor, pipeline and data parallel degree are three choices; layouts of the same number of
    GPUs are one choice apart too.
    """
    axes = table.shapes.axes()[shapes]
    found = [shapes]
    degrees = np.array([(x.tp, x.pp, x.dp) for x in problem.layouts])
    apart = (degrees[:, None, :] != degrees[None, :, :]).sum(axis=2)
    sizes = degrees.prod(axis=1)
    for layout, near in enumerate((apart <= 1) | (sizes[:, None] == sizes)):
        mine, others = axes[axes[:, 4] == layout], np.flatnonzero(near)
        changed = np.repeat(mine, len(others), axis=0)
        changed[:, 4] = np.tile(others, len(mine))
        found.append(table.find(changed))
    for column in (0, 1, 2, 3, 5):
        size = table.sizes[column]
        changed = np.repeat(axes, size, axis=0)
        changed[:, column] = np.tile(np.arange(size), len(axes))
        found.append(table.find(changed))
    rows = np.unique(np.concatenate(found))
    return rows[rows >= 0].astype(np.intp)
