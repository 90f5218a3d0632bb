"""Optimistic values: what no deployment of a shape can beat, from a few steps of the model.

A deployment whose optimistic values the archive already matches on all its homes, or that lies
out of reach, need not be scored: its real values are at best those.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Floats, Indices
from planner.model.forward import decode_step
from planner.search.archive import Archive
from planner.search.inner import Parts, Rows, blocks, homes, objectives
from planner.search.problem import Problem
from planner.search.shapes import ShapeTable

Mask = NDArray[np.bool_]
STEPS = 3
"""Iterations of Little's law from an empty batch; each is a better bound from below."""
SAFETY = 0.995
"""Left for rounding and interpolation in the formula."""


def optimistic(problem: Problem, table: ShapeTable, parts: Parts, rows: Rows) -> Floats:
    """Return service that no row can beat, laid out as ``inner.service`` does, (n, k).

    TPOT: a step that decodes only, with no more sequences than Little's law puts there if every
    step were that fast. TTFT: the prefill of the p95 prompt on an idle replica.
    """
    made = [_optimistic(problem, table, parts, rows.take(part)) for part in blocks(len(rows))]
    return np.concatenate([*made, np.zeros((0, 2))])


def _optimistic(problem: Problem, table: ShapeTable, parts: Parts, rows: Rows) -> Floats:
    p, demand = problem.parameters, problem.demand
    w = demand.workload
    t = parts.terms.take(rows.shape)
    ranks = rows.replicas * table.candidates.layout.dp[rows.shape]
    arrivals = demand.rate / ranks * w.steps_mean
    context = np.full(len(rows), w.context)
    batch = np.zeros(len(rows))
    for _ in range(STEPS):
        batch = arrivals * decode_step(t, p, batch, context)
        batch = np.minimum(batch, problem.inner.batch_limits[rows.limit])
    tpot = decode_step(t, p, batch, context)
    return SAFETY * np.stack([parts.alone[rows.shape, rows.budget], tpot], axis=1)


def beatable(archive: Archive, rows: Rows, hopes: Floats) -> Mask:
    """Mark the rows that may still add something: on some home the archive does not match them.

    Args:
        archive: What is known.
        rows: Deployments.
        hopes: Their optimistic service.
    """
    problem, table = archive.problem, archive.table
    open_rows = np.zeros(len(rows), dtype=bool)
    reach = problem.reach
    near = (hopes <= np.array([reach.ttft, reach.tpot])).all(axis=1)
    near &= table.loss_p90[rows.shape] <= reach.loss
    at = np.flatnonzero(near)
    row, hardware = homes(table, rows.take(at))
    placed = rows.take(at[row])
    points = objectives(problem, table, placed, hardware, hopes[at[row]])
    lost = matched(archive.entries.hardware, archive.entries.points, hardware, points)
    open_rows[at[row[~lost]]] = True
    return open_rows


def matched(known_in: Indices, known: Floats, asked_in: Indices, asked: Floats) -> Mask:
    """Mark the asked points that a known point of the same set is at least as good as everywhere.

    Args:
        known_in, asked_in: Set of each point.
        known, asked: Points (amount, first, second, loss): amount and loss take few values.
    """
    result = np.zeros(len(asked), dtype=bool)
    if not len(asked) or not len(known):
        return result
    keys = np.stack([asked_in, asked[:, 0], asked[:, 3]])
    order = np.lexsort(keys[::-1])
    sorted_keys = keys[:, order]
    new = np.any(sorted_keys[:, 1:] != sorted_keys[:, :-1], axis=0)
    starts = np.concatenate([[0], np.flatnonzero(new) + 1, [len(asked)]])
    begin = np.searchsorted(known_in, np.arange(int(known_in.max()) + 2))
    for first, last in pairwise(starts.tolist()):
        group = order[first:last]
        place = int(asked_in[group[0]])
        if place >= len(begin) - 1:
            continue
        of = known[begin[place] : begin[place + 1]]
        _, amount, loss = sorted_keys[:, first]
        of = of[(of[:, 0] <= amount) & (of[:, 3] <= loss)]
        result[group] = _under_stairs(of[:, 1], of[:, 2], asked[group, 1], asked[group, 2])
    return result


def _under_stairs(x: Floats, y: Floats, at: Floats, value: Floats) -> Mask:
    """Mark the points (at, value) for which some (x, y) has x <= at and y <= value."""
    order = np.argsort(x, kind="stable")
    lowest = np.concatenate([[np.inf], np.minimum.accumulate(y[order])])
    best = lowest[np.searchsorted(x[order], at, side="right")]
    marked: Mask = best <= value
    return marked
