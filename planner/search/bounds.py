"""Optimistic values: what no deployment of a shape can beat, from a few steps of the model.

A deployment whose optimistic values the archive already matches on all its homes, or that lies
out of reach, need not be scored: its real values are at best those.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Floats, Indices
from planner.model.mixture import prompt_nodes_from
from planner.model.queueing import Metric, OpenLoop
from planner.model.queueing.bursts import number_spread
from planner.model.queueing.latency import survival_function
from planner.model.queueing.resident import resident
from planner.model.queueing.service import (
    Prompts,
    Service,
    decode_time,
    prompt_room,
    prompts,
    service,
)
from planner.model.queueing.steady import HIGHEST_SHARE, LEAST_PEAKEDNESS
from planner.model.workload import Workload
from planner.search.archive import UNSEEN, Archive
from planner.search.inner import Rows, figures, homes, objectives, row_candidates
from planner.search.problem import Problem
from planner.search.shapes import ShapeTable

Mask = NDArray[np.bool_]
STEPS = 3
"""Iterations of Little's law from an empty batch; each is a better bound from below."""
SAFETY = 0.995
"""Left for rounding and interpolation in the formula."""
METRICS: tuple[Metric, ...] = ("ttft", "tpot")
WIDEST = 8.0
"""Factor above the optimistic value up to which a floor is sought; 99 % are below 5."""
HALVINGS = 5
"""Halvings of that factor's logarithm: floors lie within 8^(1/2^5) = 7 % of the truth."""
PAIRED = 1024
"""Points compared with all known ones of their set at once."""


def optimistic(problem: Problem, table: ShapeTable, rows: Rows) -> Floats:
    """Return service that no row can beat, laid out as ``inner.service`` does, (n, k).

    TPOT: a step without prompts, which most requests may see, with no more sequences than Little's
    law puts there if prompts cost only their arithmetic, in the fullest steps. TTFT: the longest
    prompts beside that batch, waiting for nothing.
    """
    return figures(lambda part: _optimistic(problem, table, part), rows).T


def _optimistic(problem: Problem, table: ShapeTable, rows: Rows) -> Floats:
    demand = problem.demand
    w = demand.workload
    c = row_candidates(problem, table, rows)
    s = service(c, problem.parameters, w)
    servers = c.layout.replicas * c.layout.dp
    rate = demand.rate / servers
    held = np.maximum(resident(s).held, 1.0)
    fullest, alone = prompts(s, s.budget), prompts(s, 0.0)
    batch = _least_batch(s, fullest.work_mean, rate, held)
    spread = number_spread(w.burstiness, w.peakedness, servers, demand.routing)
    others = np.maximum(spread, LEAST_PEAKEDNESS)
    step = decode_time(s, np.minimum(batch + others, held))
    room = prompt_room(s, held)
    slowest = decode_time(s, batch) + room / s.tokens_mean * fullest.work_mean
    tpot = np.minimum(step, slowest) / s.accepted
    return SAFETY * np.stack([_least_first(s, alone, batch), tpot])


def _least_batch(s: Service, work: Floats, rate: Floats, held: Floats) -> Floats:
    """Return a batch that the steady state is not below."""
    load = np.minimum(rate * work, HIGHEST_SHARE)
    batch = np.zeros_like(held)
    for _ in range(STEPS):
        batch = np.minimum(rate * s.steps * decode_time(s, batch) / (1.0 - load), held)
    return batch


def _least_first(s: Service, cost: Prompts, batch: Floats) -> Floats:
    """Return the time to first token below which no prompt from p95 on comes if it never waits.

    The least of those prompts, not the shortest: one that is cut into two chunks passes pipeline
    stages sooner than a shorter one that is not.
    """
    w, p = s.workload, s.parameters
    nodes = prompt_nodes_from(w, 0.95)
    tokens, work, overhead = s.tokens[nodes], cost.work[nodes], cost.overhead[nodes]
    fewest = np.ceil(tokens / s.budget)
    alone = work + fewest * overhead
    unshared = p.unshared_prefill * overhead
    shared = fewest * (decode_time(s, batch) + unshared) + work
    beside = np.where(s.mixed > 0, np.maximum(shared, alone), alone)
    awake = -np.expm1(-batch)
    lag = (s.terms.stages - 1.0) * (work / fewest + overhead)
    front = p.first_token + p.frontend_request + p.frontend_token * w.prompt[nodes]
    first: Floats = (awake * beside + (1.0 - awake) * alone + lag + front).min(axis=0)
    return first


def beatable(archive: Archive, rows: Rows, hopes: Floats) -> Mask:
    """Mark the rows that may still add something: on some home their engine does not match them.

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
    known = archive.entries
    asked_in = archive.sets_of(hardware, placed)
    known_in = archive.sets(known)
    lost = matched(known_in, known.points, asked_in, points)
    unseen = asked_in % 2 == UNSEEN
    lost[unseen] |= matched(known_in, known.points, asked_in[unseen] - UNSEEN, points[unseen])
    open_rows[at[row[~lost]]] = True
    return open_rows


def matched(known_in: Indices, known: Floats, asked_in: Indices, asked: Floats) -> Mask:
    """Mark the asked points that a known point of the same set is at least as good as everywhere.

    Args:
        known_in, asked_in: Set of each point; those of the known ones rise.
        known, asked: Points, smaller is better, (k, m) and (n, m); within a set the first
            objective of the known ones rises.
    """
    result = np.zeros(len(asked), dtype=bool)
    if not len(asked) or not len(known):
        return result
    order = np.lexsort((asked[:, 0], asked_in))
    sets, first = np.unique(asked_in[order], return_index=True)
    begin, end = np.searchsorted(known_in, sets), np.searchsorted(known_in, sets, side="right")
    last = [*first[1:].tolist(), len(asked)]
    for i in range(len(sets)):
        rivals = known[begin[i] : end[i]]
        for start in range(first[i], last[i], PAIRED):
            mine = order[start : min(start + PAIRED, last[i])]
            # What needs more than the last of them, by the first objective, matches none.
            near = rivals[: np.searchsorted(rivals[:, 0], asked[mine[-1], 0], side="right")]
            better = np.ones((len(mine), len(near)), dtype=bool)
            for column in range(known.shape[1]):
                better &= near[:, column] <= asked[mine, column, None]
            result[mine] = better.any(axis=1)
    return result


def floors(state: OpenLoop, w: Workload, hopes: Floats) -> Floats:
    """Return p95 of TTFT and TPOT that the rows surely exceed, most within a tenth, (n, 2) [s].

    Args:
        state: Steady state, (n,).
        w: The workload.
        hopes: Optimistic values to begin with.
    """
    found = []
    for column, metric in enumerate(METRICS):
        low = hopes[:, column]
        width = np.full_like(low, WIDEST)
        over = survival_function(state, w, metric)
        for _ in range(HALVINGS):
            width = np.sqrt(width)
            above = over(low * width) > 0.05
            low = np.where(above, low * width, low)
        found.append(SAFETY * low)
    return np.maximum(np.stack(found, axis=1), hopes)
