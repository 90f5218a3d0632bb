"""Scores deployments only as far as needed to know that they add nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.model.arrays import Floats, Indices
from planner.model.queueing import percentile, steady_state
from planner.pareto import rounded
from planner.search.archive import Archive
from planner.search.blocks import BLOCK
from planner.search.bounds import METRICS, beatable, floors, optimistic
from planner.search.inner import Rows, row_candidates, service

FEWER = 0.98
"""With fewer replicas nobody is served sooner: that law of the formula holds within 2 %."""
CHUNK = 4 * BLOCK
"""Rows that are compared with the archive at once; what is left of them fills whole blocks."""


def screen(
    archive: Archive, rows: Rows, stop: Callable[[], bool], done: Callable[[float], None]
) -> bool:
    """Score, most hopeful first, every deployment that may still add something.

    Args:
        archive: Takes them.
        rows: Deployments.
        stop: Polled between chunks.
        done: Told the share that is decided.

    Returns:
        Whether all of them are decided: scored, dominated by their own bound, or out of reach.
    """
    if archive.problem.demand.job is not None:
        archive.scored += len(rows)
        archive.add(rows, service(archive.problem, archive.table, rows))
        return True
    hopes, decided, more = np.zeros((len(rows), 2)), 0, _more_replicas(rows)
    for layer in range(more.max(initial=-1) + 1):
        at = np.flatnonzero(more == layer)
        # Below the first layer most rows fall to what is known of the same with more replicas.
        left = at[beatable(archive, rows.take(at), hopes[at])] if layer else at
        some = rows.take(left)
        hopes[left] = np.maximum(hopes[left], optimistic(archive.problem, archive.table, some))
        left = left[np.argsort(_promise(archive, some, hopes[left]), kind="stable")]
        for start in range(0, len(left), CHUNK):
            if stop():
                return False
            done((decided + start) / len(rows))
            now = left[start : start + CHUNK]
            now = now[beatable(archive, rows.take(now), hopes[now])]
            for part in np.split(now, range(BLOCK, len(now), BLOCK)):
                hopes[part] = _score(archive, rows.take(part), hopes[part])
        decided += len(at)
        at = at[at > 0]
        at = at[more[at - 1] == layer + 1]
        hopes[at - 1] = FEWER * hopes[at]
    return True


def _more_replicas(rows: Rows) -> Indices:
    """Return how many rows of the same shape and token budget have more replicas, (n,).

    They follow a row directly (``inner.deployments``).
    """
    ends = np.flatnonzero((np.diff(rows.shape) != 0) | (np.diff(rows.budget) != 0))
    ends = np.append(ends, len(rows) - 1)
    at = np.arange(len(rows))
    return ends[np.searchsorted(ends, at)] - at


def _score(archive: Archive, rows: Rows, hopes: Floats) -> Floats:
    """Add what the archive does not match at its floors; return the floors of all, (n, k)."""
    problem, demand = archive.problem, archive.problem.demand
    w = demand.workload
    c = row_candidates(problem, archive.table, rows)
    rate = np.full(len(rows), demand.rate)
    state = steady_state(c, problem.parameters, w, rate, routing=demand.routing)
    archive.scored += len(rows)
    least = floors(state, w, hopes)
    kept: Indices = np.flatnonzero(beatable(archive, rows, least))
    state = state.take(kept)
    served = [
        percentile(state, w, metric, 0.95, above)
        for metric, above in zip(METRICS, least[kept].T, strict=True)
    ]
    archive.add(rows.take(kept), rounded(np.stack(served, axis=1)))
    return least


def _promise(archive: Archive, rows: Rows, hopes: Floats) -> Floats:
    """Rank rows: few GPUs and short optimistic latencies first, in log units."""
    size = archive.table.gpus[rows.shape] * rows.replicas
    result: Floats = np.log(size) + np.log(hopes).sum(axis=1)
    return result
