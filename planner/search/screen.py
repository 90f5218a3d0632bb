"""Scores deployments only as far as needed to know that they add nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.model.arrays import Floats, Indices
from planner.model.queueing import percentile, steady_state
from planner.pareto import rounded
from planner.search.archive import Archive
from planner.search.bounds import METRICS, beatable, floors, optimistic
from planner.search.inner import Rows, blocks, row_candidates, service


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
    hopes = optimistic(archive.problem, archive.table, rows)
    order = np.argsort(_promise(archive, rows, hopes), kind="stable")
    for part in blocks(len(rows)):
        if stop():
            return False
        done(part[0] / len(rows))
        now = order[part]
        now = now[beatable(archive, rows.take(now), hopes[now])]
        _score(archive, rows.take(now), hopes[now])
    return True


def _score(archive: Archive, rows: Rows, hopes: Floats) -> None:
    """Add a block: steady states of all, latencies of those whose floors are not matched."""
    problem, demand = archive.problem, archive.problem.demand
    w = demand.workload
    c = row_candidates(problem, archive.table, rows)
    rate = np.full(len(rows), demand.rate)
    state = steady_state(c, problem.parameters, w, rate, routing=demand.routing)
    archive.scored += len(rows)
    kept: Indices = np.flatnonzero(beatable(archive, rows, floors(state, w, hopes)))
    state = state.take(kept)
    served = [percentile(state, w, metric, 0.95) for metric in METRICS]
    archive.add(rows.take(kept), rounded(np.stack(served, axis=1)))


def _promise(archive: Archive, rows: Rows, hopes: Floats) -> Floats:
    """Rank rows: few GPUs and short optimistic latencies first, in log units."""
    size = archive.table.gpus[rows.shape] * rows.replicas
    result: Floats = np.log(size) + np.log(hopes).sum(axis=1)
    return result
