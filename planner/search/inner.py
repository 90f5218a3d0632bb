"""The exact inner solve: batch limits, token budgets and replicas of many shapes in a few calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.cost import instances_needed
from planner.model.arrays import Candidates, Columns, Floats, Indices
from planner.model.batching import Load, all_at_once, offline_batch
from planner.model.forward import decode_step, prefill
from planner.model.queueing import capacity, percentile, steady_state
from planner.model.terms import terms
from planner.pareto import rounded
from planner.search.problem import Inner, Problem
from planner.search.shapes import BLOCK, ShapeTable
from planner.units import SECONDS_PER_HOUR

STEPS = 4
"""Iterations of Little's law."""
ROOM = 1.25
DEVIATIONS = 4.0
"""A batch limit leaves a quarter more than the mean, and four deviations of a Poisson count."""


@dataclass(frozen=True)
class Rows(Columns):
    """Deployments, (n,).

    Attributes:
        shape: Row of the shape table.
        limit, budget: Indices of batch limit and token budget.
        replicas: Copies of the model that carry load.
    """

    shape: Indices
    limit: Indices
    budget: Indices
    replicas: Floats


def blocks(count: int) -> Iterator[Indices]:
    """Return row numbers, at most BLOCK at a time."""
    return (np.arange(s, min(s + BLOCK, count)) for s in range(0, count, BLOCK))


def row_candidates(problem: Problem, table: ShapeTable, rows: Rows) -> Candidates:
    """Return the columns of deployments."""
    inner = problem.inner
    limit, budget = inner.batch_limits[rows.limit], inner.token_budgets[rows.budget]
    return table.columns(rows.shape, limit, budget, rows.replicas)


def deployments(problem: Problem, table: ShapeTable, shapes: Indices) -> Rows:
    """Return the deployments of these shapes that carry the load within headroom.

    Replicas: the fewest that carry the load at the largest useful batch limit, and the space's
    factors on them. Batch limit: the smallest that lets the fewest replicas carry the load with
    room for chance; a larger one would change next to nothing, a smaller one would keep requests
    waiting. So the rows of a shape and token budget differ in replicas only. Offline: every batch
    limit with the fewest replicas that meet the deadline.
    """
    shapes = shapes[table.loss_p90[shapes] <= problem.reach.loss]
    inner = problem.inner
    shape, budget = np.repeat(shapes, len(inner.token_budgets)), _tiled(inner, len(shapes))
    each = _carried(problem, table, shape, budget)
    if problem.demand.job is not None:
        at, limit = np.nonzero(each > 0)
        needed = np.ceil(problem.demand.rate / each[at, limit] - 1e-9)
        return _buyable(problem, table, Rows(shape[at], limit.astype(np.intp), budget[at], needed))
    best = each.max(axis=1, initial=0.0)
    some = np.flatnonzero(best > 0)
    counts = np.ceil(problem.demand.rate / best[some, None] * inner.spread - 1e-9)
    counts = np.maximum(counts, 1.0)
    new = np.concatenate([np.ones((len(some), 1), dtype=bool), np.diff(counts) > 0], axis=1)
    fewest = Rows(shape[some], np.zeros(len(some), dtype=np.intp), budget[some], counts[:, 0])
    chosen = _limits(problem, table, fewest, each[some])
    at, column = np.nonzero(new)
    rows = Rows(shape[some[at]], chosen[at], budget[some[at]], counts[at, column])
    return _buyable(problem, table, rows)


def _tiled(inner: Inner, count: int) -> Indices:
    return np.tile(np.arange(len(inner.token_budgets)), count)


def _buyable(problem: Problem, table: ShapeTable, rows: Rows) -> Rows:
    gpus = (rows.replicas + problem.spare) * table.gpus[rows.shape]
    kept = (rows.replicas <= problem.inner.max_replicas) & (gpus <= problem.reach.gpus)
    return rows.take(kept)


def _carried(problem: Problem, table: ShapeTable, shape: Indices, budget: Indices) -> Floats:
    """Requests per second that one replica may carry, (n, limits).

    0 where memory cannot fill the next smaller limit, so that the limit changes nothing.
    """
    limits = problem.inner.batch_limits
    useful = np.concatenate([[0.0], limits[:-1]]) < table.fits[shape][:, None]
    at, limit = np.nonzero(useful)
    grid = Rows(shape[at], limit.astype(np.intp), budget[at], np.ones(len(at)))
    each = np.zeros(useful.shape)
    each[at, limit] = np.concatenate(
        [np.zeros(0), *(_carries(problem, table, grid.take(part)) for part in blocks(len(grid)))]
    )
    return each


def _carries(problem: Problem, table: ShapeTable, grid: Rows) -> Floats:
    demand, c = problem.demand, row_candidates(problem, table, grid)
    if demand.job is None:
        return capacity(c, problem.parameters, demand.workload) * demand.headroom
    run = offline_batch(c, problem.parameters, job_load(problem, c)).run
    return demand.rate * demand.job.deadline / run


def _limits(problem: Problem, table: ShapeTable, rows: Rows, each: Floats) -> Indices:
    """Smallest batch limit that carries the load and leaves room for chance; else the largest."""
    demand, limits = problem.demand, problem.inner.batch_limits
    batches = [mean_batch(problem, table, rows.take(part)) for part in blocks(len(rows))]
    batch = np.concatenate([np.zeros(0), *batches])
    room = batch * ROOM + DEVIATIONS * np.sqrt(batch) + 1.0
    carries = each * rows.replicas[:, None] >= demand.rate * (1 - 1e-9)
    good = carries & (limits >= room[:, None])
    first, last = good.argmax(axis=1), (carries * np.arange(1, len(limits) + 1)).argmax(axis=1)
    chosen: Indices = np.where(good.any(axis=1), first, last).astype(np.intp)
    return chosen


def mean_batch(problem: Problem, table: ShapeTable, rows: Rows) -> Floats:
    """Return the sequences that decode per dp rank, roughly, (n,).

    Little's law with the share of time that the mean prompt takes.
    """
    w, p, c = problem.demand.workload, problem.parameters, row_candidates(problem, table, rows)
    t, one = terms(c, p), np.ones(len(rows))
    arrivals = problem.demand.rate / (rows.replicas * c.layout.dp)
    prompt = prefill(t, p, w.prompt_mean * one, w.prefix_hit, c.layout.token_budget)
    busy = np.minimum(arrivals * prompt.stall, 0.95)
    batch, context = np.zeros(len(rows)), w.context * one
    for _ in range(STEPS):
        step = decode_step(t, p, batch, context) / (1.0 - busy)
        batch = np.minimum(arrivals * w.steps_mean * step, table.fits[rows.shape])
    return batch


def job_load(problem: Problem, c: Candidates) -> Load:
    """Return the offline job as the load of each candidate."""
    w, job = problem.demand.workload, problem.demand.job
    assert job is not None
    return all_at_once(
        w.prompt_mean, w.output_mean, job.requests, prefix_hit=w.prefix_hit, rows=len(c)
    )


def service(problem: Problem, table: ShapeTable, rows: Rows) -> Floats:
    """Return what users see of each deployment, rounded; infinity = overloaded.

    (n, 2): p95 of TTFT and TPOT [s]; offline (n, 1): the length of the run [s].
    """
    width = 2 if problem.demand.job is None else 1
    scored = [_block(problem, table, rows.take(part)) for part in blocks(len(rows))]
    return rounded(np.concatenate([*scored, np.zeros((0, width))]))


def _block(problem: Problem, table: ShapeTable, rows: Rows) -> Floats:
    demand, p = problem.demand, problem.parameters
    c = row_candidates(problem, table, rows)
    if demand.job is not None:
        return offline_batch(c, p, job_load(problem, c)).run[:, None]
    w = demand.workload
    state = steady_state(c, p, w, np.full(len(c), demand.rate), routing=demand.routing)
    return np.stack(
        [percentile(state, w, metric, 0.95) for metric in ("ttft", "tpot")],
        axis=1,
    )


def within_reach(problem: Problem, table: ShapeTable, rows: Rows, served: Floats) -> Indices:
    """Return the rows whose service and loss are worth knowing."""
    reach = problem.reach
    limits = (reach.ttft, reach.tpot) if problem.demand.job is None else (reach.run,)
    good = np.isfinite(served).all(axis=1) & (served <= np.array(limits)).all(axis=1)
    return np.flatnonzero(good & (table.loss_p90[rows.shape] <= reach.loss))


def homes(table: ShapeTable, rows: Rows) -> tuple[Indices, Indices]:
    """Return (row, hardware class) of every home of every row."""
    counts = np.diff(table.home_start)[rows.shape]
    row = np.repeat(np.arange(len(rows)), counts)
    first = np.repeat(table.home_start[rows.shape] - np.cumsum(counts) + counts, counts)
    return row.astype(np.intp), table.home_hardware[first + np.arange(len(row))]


def bought(problem: Problem, table: ShapeTable, rows: Rows, hardware: Indices) -> Floats:
    """Return the instances that each row needs on its hardware class, (n,)."""
    instance = np.array([h.gpus for h in problem.tables.hardware])[hardware]
    return instances_needed(rows.replicas + problem.spare, table.gpus[rows.shape], instance)


def objectives(
    problem: Problem, table: ShapeTable, rows: Rows, hardware: Indices, served: Floats
) -> Floats:
    """Return the price-free objectives, smaller is better, (n, m).

    (instances, TTFT, TPOT, loss); offline (instance-hours, run, loss).
    """
    amount = bought(problem, table, rows, hardware)
    if problem.demand.job is not None:
        amount = rounded(amount * served[:, 0] / SECONDS_PER_HOUR)
    return np.column_stack([amount, served, table.loss[rows.shape]])
