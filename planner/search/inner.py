"""The exact inner solve: batch limits, token budgets and replicas of many shapes in a few calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.cost import instances_needed, replicas_that_fill
from planner.model.arrays import Candidates, Columns, Floats, Indices
from planner.model.batching import Load, all_at_once, offline_batch
from planner.model.forward import decode_step, prefill
from planner.model.queueing import percentile, steady_state
from planner.model.queueing.saturation import saturation, useful_slots
from planner.model.queueing.service import service as server_of
from planner.model.queueing.state import HIGHEST_UTILIZATION
from planner.model.terms import terms
from planner.pareto import rounded
from planner.search.blocks import by_block
from planner.search.problem import Problem
from planner.search.shapes import ShapeTable
from planner.units import SECONDS_PER_HOUR

STEPS = 4
"""Iterations of Little's law."""
ROOM = 1.25
DEVIATIONS = 4.0
"""A batch limit leaves a quarter more than the mean, and four deviations of a Poisson count."""
WORTH = 1.02
"""A better batch limit is sought where it could carry so much more."""
EVERY_SIZE = -1
"""All bits: considered on instances of every size."""
NEARLY = 1.0 - 1e-9
"""Share of a rate that is as good as the rate, for rounding."""


@dataclass(frozen=True)
class Rows(Columns):
    """Deployments, (n,).

    Attributes:
        shape: Row of the shape table.
        limit, budget: Indices of batch limit and token budget.
        replicas: Copies of the model that carry load.
        sizes: Bits of the instance sizes (``ShapeTable.size_bit``) on which it is considered:
            on others it would leave GPUs idle that are paid for.
    """

    shape: Indices
    limit: Indices
    budget: Indices
    replicas: Floats
    sizes: Indices


def row_candidates(problem: Problem, table: ShapeTable, rows: Rows) -> Candidates:
    """Return the columns of deployments."""
    inner = problem.inner
    limit, budget = inner.batch_limits[rows.limit], inner.token_budgets[rows.budget]
    return table.columns(rows.shape, limit, budget, rows.replicas)


def deployments(problem: Problem, table: ShapeTable, shapes: Indices) -> Rows:
    """Return the deployments of these shapes that carry the load within headroom.

    Replicas: the fewest that carry the load at the best batch limit, and the space's factors on
    them, with as many more as find room on the GPUs that are paid for. Batch limit: the smallest
    that lets the fewest replicas carry the load with room for chance; a larger one would change
    next to nothing, a smaller one would keep requests waiting. So the rows of a shape and token
    budget differ in replicas only, and lie next to each other, the fewest first. Offline: the batch
    limits with the highest throughput and the fewest replicas that meet the deadline with the
    confidence asked, on machines that are never interrupted and on those that are most, filled up
    likewise.
    """
    shapes = shapes[table.loss_p90[shapes] <= problem.reach.loss]
    budgets = len(problem.inner.token_budgets)
    shape, budget = np.repeat(shapes, budgets), np.tile(np.arange(budgets), len(shapes))
    last, one = _last_useful(problem, table, shape), np.ones(len(shape))
    top = Rows(shape, last, budget, one, np.full(len(shape), EVERY_SIZE))
    rows = (_of_load if problem.demand.job is None else _of_job)(problem, table, top)
    rows = _filled(problem, table, rows)
    gpus = (rows.replicas + problem.spare) * table.gpus[rows.shape]
    kept = (rows.replicas <= problem.inner.max_replicas) & (gpus <= problem.reach.gpus)
    return rows.take(kept)


def _filled(problem: Problem, table: ShapeTable, rows: Rows) -> Rows:
    """Return rows with as many replicas as the instances hold that a row needs, size by size.

    Replicas on GPUs that are paid for cost nothing. What a hardware class is offered does not
    depend on the others, so its archive stands when they come and go.
    """
    if not len(rows):
        return rows
    row, hardware, full = _full(problem, table, rows)
    replicas = np.maximum(np.minimum(full, problem.inner.max_replicas), rows.replicas[row])
    choices = np.stack([rows.shape, rows.budget, rows.limit])
    kind = np.cumsum(np.any(np.diff(choices, axis=1, prepend=-1), axis=0))
    keys = kind[row] * (replicas.max() + 1.0) + replicas
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(np.diff(keys[order], prepend=-1.0))
    sizes = np.bitwise_or.reduceat(table.size_bit[hardware[order]], first)
    at = order[first]
    return replace(rows.take(row[at]), replicas=replicas[at], sizes=sizes)


def only_full(problem: Problem, table: ShapeTable, rows: Rows) -> Rows:
    """Return rows of any replicas as they fill the smallest instances, on all that they fill."""
    row, _, full = _full(problem, table, rows)
    fewest = np.full(len(rows), np.inf)
    np.minimum.at(fewest, row, full)
    rows = replace(rows, replicas=fewest)
    row, hardware, full = _full(problem, table, rows)
    kept, sizes = full == rows.replicas[row], np.zeros(len(rows), dtype=np.intp)
    np.bitwise_or.at(sizes, row[kept], table.size_bit[hardware[kept]])
    return replace(rows, sizes=sizes)


def _full(problem: Problem, table: ShapeTable, rows: Rows) -> tuple[Indices, Indices, Floats]:
    """Return row and hardware class of every home, and the replicas that fill its instances."""
    row, hardware = homes(table, rows)
    instance = np.array([h.gpus for h in problem.tables.hardware])[hardware]
    size = table.gpus[rows.shape[row]]
    return row, hardware, replicas_that_fill(rows.replicas[row], size, instance, problem.spare)


def _last_useful(problem: Problem, table: ShapeTable, shape: Indices) -> Indices:
    """Index of the smallest batch limit that memory cannot fill with sequences of final length.

    Larger ones change nothing where the output is reserved; else more sequences are resident, but
    only until they grow and evict each other.
    """
    limits = problem.inner.batch_limits
    last = np.searchsorted(limits, table.fits[shape]).astype(np.intp)
    return np.minimum(last, len(limits) - 1)


def _of_job(problem: Problem, table: ShapeTable, top: Rows) -> Rows:
    """The last two useful batch limits of shapes and token budgets, `top` the last of each.

    The larger a batch, the higher the throughput, until memory cannot fill it: then its sequences
    only reserve more.
    """
    limit = np.stack([np.maximum(top.limit - 1, 0), top.limit], axis=1)
    at = np.repeat(np.arange(len(top)), 1 + (top.limit > 0))
    grid = replace(top.take(at), limit=limit[np.stack([top.limit > 0, top.limit >= 0], axis=1)])
    runs = figures(lambda part: _run(problem, row_candidates(problem, table, part)), grid)
    some = np.flatnonzero(np.isfinite(runs))
    grid, runs = grid.take(some), runs[some]
    job = problem.demand.job
    assert job is not None
    late = runs * job.margins[table.shapes.hardware[grid.shape], table.shapes.stack[grid.shape]]
    deadlines = job.deadline * np.array([1.0, 1.0 - job.lost])
    needed = np.ceil(late[:, None] / deadlines - 1e-9)
    new = np.isfinite(needed) & (np.diff(needed, axis=1, prepend=-1.0) > 0)
    at, column = np.nonzero(new)
    return replace(grid.take(at), replicas=needed[at, column])


def _of_load(problem: Problem, table: ShapeTable, top: Rows) -> Rows:
    """Replica counts of shapes and token budgets, with the batch limit that suits the fewest."""
    rate = problem.demand.rate
    best, carried = _most(problem, table, top)
    some = np.flatnonzero(carried.max(axis=1) > 0)
    top, best, carried = top.take(some), best[some], carried[some]
    counts = _replicas(problem, carried.max(axis=1))
    fewest = replace(top, replicas=counts[:, 0])
    carries = carried[:, 1] * fewest.replicas >= rate * NEARLY
    enough = np.where(carries, top.limit, best)
    enough = _last_that_carries(problem, table, fewest, enough, top.limit)
    limit = _smallest(problem, table, fewest, enough)
    new = np.concatenate([np.ones((len(some), 1), dtype=bool), np.diff(counts) > 0], axis=1)
    at, column = np.nonzero(new)
    return replace(top.take(at), limit=limit[at], replicas=counts[at, column])


def trusted_parts(headroom: float) -> tuple[float, ...]:
    """Return the shares of what headroom allows by which replicas are counted: all, and trusted."""
    return (1.0,) if headroom <= HIGHEST_UTILIZATION else (1.0, HIGHEST_UTILIZATION / headroom)


def _replicas(problem: Problem, carried: Floats) -> Floats:
    """Replicas if each carries that much [requests/s], by the space's factors, (n, k).

    Where headroom is beyond the utilization up to which picks may rest on the formula, by the
    factors on those that keep within it, too.
    """
    counts = []
    for share in trusted_parts(problem.demand.headroom):
        most = np.maximum(carried * share, 1e-300)
        fewest = np.maximum(np.ceil(problem.demand.rate / most - 1e-9), 1.0)
        counts.append(np.ceil(fewest[:, None] * problem.inner.spread - 1e-9))
    result: Floats = np.sort(np.concatenate(counts, axis=1), axis=1)
    return result


def _most(problem: Problem, table: ShapeTable, top: Rows) -> tuple[Indices, Floats]:
    """Requests per second that one replica may carry at most, as far as it tells in replicas.

    More sequences carry more until memory or every step is full; then they evict each other or
    wait, the more the worse. So the best limit lies next to the sequences that are resident.

    Returns:
        Index of the best limit, (n,); rates there and at `top`, (n, 2).
    """
    at_top = figures(lambda part: _carries(problem, table, part), top)
    limits = problem.inner.batch_limits
    first = np.searchsorted(limits, at_top[2] / NEARLY, side="right").astype(np.intp) - 1
    best = np.clip(first, 0, top.limit)
    most, below = at_top.copy(), np.flatnonzero(best < top.limit)
    most[:, below] = _at_limits(problem, table, top.take(below), best[below])
    first = best.copy()
    for step in (1, -1):
        at = below[best[below] == first[below]]
        while len(at):
            at = at[(best[at] + step >= 0) & (best[at] + step < top.limit[at])]
            # Without eviction more sequences carry more: no more than this at any limit beyond.
            highest = (at_top if step > 0 else most)[:, at]
            highest = highest[0] * highest[1]
            counts = (_replicas(problem, x) for x in (most[0, at], highest))
            some = np.not_equal(*counts).any(axis=1) & (highest > WORTH * most[0, at])
            at = at[some]
            there = _at_limits(problem, table, top.take(at), best[at] + step)
            better = there[0] > most[0, at]
            at = at[better]
            best[at], most[:, at] = best[at] + step, there[:, better]
    return best, np.stack([most[0], at_top[0]], axis=1)


def _carries(problem: Problem, table: ShapeTable, rows: Rows) -> Floats:
    """Requests per second that one replica may carry, and what decides it, (3, n).

    Below them: how much more it would carry at most if it evicted none, and the sequences that
    help it.
    """
    c = row_candidates(problem, table, rows)
    server = server_of(c, problem.parameters, problem.demand.workload)
    full = saturation(server)
    rate = np.where(full.slots >= 1.0, full.rate * c.layout.dp * problem.demand.headroom, 0.0)
    return np.stack([rate, 1.0 + full.rework, useful_slots(server, full.slots)])


def _at_limits(problem: Problem, table: ShapeTable, rows: Rows, limit: Indices) -> Floats:
    """Return what these rows carry at other limits, as ``_carries``, (3, n)."""
    if not len(rows):
        return np.zeros((3, 0))
    return figures(lambda part: _carries(problem, table, part), replace(rows, limit=limit))


def _last_that_carries(
    problem: Problem, table: ShapeTable, rows: Rows, good: Indices, top: Indices
) -> Indices:
    """Largest limit that carries the load, (n,); `good` does, and if it is not `top`, that not."""
    return _edge(problem, table, rows, np.where(good < top, top, good), good)


def _smallest(problem: Problem, table: ShapeTable, rows: Rows, enough: Indices) -> Indices:
    """Smallest batch limit that carries the load and leaves room for chance, (n,).

    Args:
        problem, table, rows: Deployments; their own limits are not read.
        enough: Index of a limit that carries the load: taken where a smaller one does not do.
    """
    batch = figures(lambda part: mean_batch(problem, table, part), rows)
    room = batch * ROOM + DEVIATIONS * np.sqrt(batch) + 1.0
    roomy = np.searchsorted(problem.inner.batch_limits, room).astype(np.intp)
    tried, high = np.flatnonzero(roomy < enough), enough.copy()
    good = _at_limits(problem, table, rows.take(tried), roomy[tried])[0]
    good = good * rows.replicas[tried] >= problem.demand.rate * NEARLY
    high[tried[good]] = roomy[tried[good]]
    return _edge(problem, table, rows, np.where(roomy < high, roomy, high), high)


def _edge(problem: Problem, table: ShapeTable, rows: Rows, bad: Indices, good: Indices) -> Indices:
    """Of the limits between a bad and a good one, the good one next to the bad ones, (n,)."""
    bad, good = bad.copy(), good.copy()
    while len(at := np.flatnonzero(np.abs(good - bad) > 1)):
        tried = (bad[at] + good[at]) // 2
        each = _at_limits(problem, table, rows.take(at), tried)[0]
        carries = each * rows.replicas[at] >= problem.demand.rate * NEARLY
        good[at[carries]] = tried[carries]
        bad[at[~carries]] = tried[~carries]
    return good


def figures(part: Callable[[Rows], Floats], rows: Rows) -> Floats:
    """Return the figures of rows, (..., n), a block at a time."""
    return np.concatenate(by_block(lambda at: part(rows.take(at)), len(rows)), axis=-1)


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


def _run(problem: Problem, c: Candidates) -> Floats:
    """Length of the offline job on these candidates [s], (n,); infinity = not a request fits.

    A shape that fits with the smallest steps may not with the activations of larger ones.
    """
    batch = offline_batch(c, problem.parameters, job_load(problem, c))
    return np.where(batch.fits >= 1.0, batch.run, np.inf)


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
    return rounded(figures(lambda part: _service(problem, table, part), rows).T)


def _service(problem: Problem, table: ShapeTable, rows: Rows) -> Floats:
    demand, p = problem.demand, problem.parameters
    c = row_candidates(problem, table, rows)
    if demand.job is not None:
        return _run(problem, c)[None]
    w = demand.workload
    state = steady_state(c, p, w, np.full(len(c), demand.rate), routing=demand.routing)
    return np.stack([percentile(state, w, metric, 0.95) for metric in ("ttft", "tpot")])


def within_reach(problem: Problem, table: ShapeTable, rows: Rows, served: Floats) -> Indices:
    """Return the rows whose service and loss are worth knowing."""
    reach = problem.reach
    limits = (reach.ttft, reach.tpot) if problem.demand.job is None else (reach.run,)
    good = np.isfinite(served).all(axis=1) & (served <= np.array(limits)).all(axis=1)
    return np.flatnonzero(good & (table.loss_p90[rows.shape] <= reach.loss))


def homes(table: ShapeTable, rows: Rows) -> tuple[Indices, Indices]:
    """Return (row, hardware class) of every home of every row where it is considered."""
    counts = np.diff(table.home_start)[rows.shape]
    row = np.repeat(np.arange(len(rows)), counts)
    first = np.repeat(table.home_start[rows.shape] - np.cumsum(counts) + counts, counts)
    hardware = table.home_hardware[first + np.arange(len(row))]
    kept = np.flatnonzero(rows.sizes[row] & table.size_bit[hardware])
    return row[kept].astype(np.intp), hardware[kept]


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
