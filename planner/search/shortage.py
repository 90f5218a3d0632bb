"""Why a search has nothing to show: no engine runs it, no memory holds it, no layout carries it."""

from __future__ import annotations

import numpy as np

from planner.candidates.demand import sized_rate
from planner.model.memory import kv_bytes, kv_pool_bytes, weight_bytes
from planner.search.allowed import gpus
from planner.search.problem import Problem
from planner.search.shapes import supported
from planner.spec.slo import Slo
from planner.units import GIB

UNSUPPORTED = (
    "no engine of the search runs this model on this hardware with the formats, layouts and"
    " speculation that are allowed; allow more"
)


def shortage(problem: Problem) -> str:
    """Return, in words, what keeps every shape of a problem out; there must be none that fits."""
    table, _, _ = supported(problem)
    if not len(table):
        return UNSUPPORTED
    one = np.ones(len(table))
    c = table.columns(np.arange(len(table)), one, one, one)
    tokens, request = _largest(problem)
    pool, needed = kv_pool_bytes(c), kv_bytes(c, tokens * one)
    best = int(np.argmin(needed - pool))
    at = table.shapes.take(np.array([best]))
    chip = problem.tables.hardware[int(at.hardware[0])].accelerator
    layout = problem.layouts[int(at.layout[0])]
    weights = problem.tables.weights[int(at.weights[0])].id
    held, device = weight_bytes(c)[best] / GIB, c.chip.memory[best] / GIB
    return (
        f"memory: of all layouts {gpus(layout)} {chip.name} with {weights} weights come nearest;"
        f" the weights take {held:.3g} of {device:.3g} GiB a GPU and leave"
        f" {max(pool[best], 0.0) / GIB:.3g} GiB for the KV cache, of which {request}"
        f" ({tokens:.0f} tokens) needs {needed[best] / GIB:.3g} GiB; allow GPUs"
        " with more memory, formats with fewer bits, or a lower traffic.max_context_tokens"
    )


def _largest(problem: Problem) -> tuple[float, str]:
    """Return the tokens that every layout must hold, and in words the request that has them."""
    longest, usual = problem.demand.longest, problem.demand.workload.context_end
    if longest >= usual:
        return longest, "the longest request"
    # Requests stay the longer the more they write, so what is held may end beyond the p99.
    return usual, "the mean of the requests held at a time"


def unserved(slo: Slo, *, proven: bool) -> str:
    """Return, in words, why nothing that fits in memory was kept.

    Args:
        slo: The load.
        proven: Whether everything has been looked at.
    """
    if not proven:
        return "the search ended before it found a deployment; give it more time"
    job = slo.traffic.offline
    load = f"traffic.rate_per_s {sized_rate(slo):g}"
    if job is not None:
        load = f"traffic.offline: {job.requests} requests in {job.deadline_hours:g} h"
    return (
        f"load: layouts fit in memory, but none carries {load} within the replicas that the"
        " search space allows (replicas.max); lower it, or allow more hardware or replicas"
    )
