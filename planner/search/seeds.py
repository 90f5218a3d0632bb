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
    plain = (s.draft == s.draft.min(initial=0)) & (s.kv == s.kv.min(initial=0))
    return _ends(problem, table, np.flatnonzero(plain))


def corner_shapes(problem: Problem, table: ShapeTable) -> Indices:
    """Return the same for every KV-cache format, and for one draft length of each method."""
    methods = np.array([draft.method for draft in problem.drafts])
    middle = [
        np.flatnonzero(methods == m)[(np.sum(methods == m) - 1) // 2] for m in np.unique(methods)
    ]
    return _ends(problem, table, np.flatnonzero(np.isin(table.shapes.draft, middle)))


def _ends(problem: Problem, table: ShapeTable, among: Indices) -> Indices:
    """Return the narrowest and the widest layout of each combination of the other choices."""
    s = table.shapes.take(among)
    layouts = np.array([(x.pp, x.dp, x.tp) for x in problem.layouts])[s.layout]
    chip = problem.accelerators()[s.hardware]
    kinds = np.stack([chip, s.stack, s.weights, s.kv, s.draft])
    picked = [np.zeros(0, dtype=np.intp)]
    for sign in (1, -1):
        keys = (sign * layouts[:, 2], layouts[:, 1], layouts[:, 0])
        order = np.lexsort((*keys, *kinds[::-1]))
        new = np.any(kinds[:, order[1:]] != kinds[:, order[:-1]], axis=0)
        first = np.concatenate([[True], new])[: len(order)]
        picked.append(among[order[first]])
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
