"""Closed loops and batches: latency and throughput at a given number of requests in flight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Candidates, Columns, Floats, Parameters
from planner.model.forward import decode_step, prefill, prefill_core, prefill_pass
from planner.model.memory import reserved_tokens, sequences_that_fit
from planner.model.terms import Terms, terms

ITERATIONS = 6
HIGHEST_LOAD = 0.97
HIGHEST_FRONTEND_LOAD = 0.95


@dataclass(frozen=True)
class Load(Columns):
    """What is asked of each candidate.

    Attributes:
        prompt, output: Mean lengths [tokens], (n,).
        identical: 1 = all requests have the same lengths.
        prefix_hit: Share of the prompt found in the prefix cache.
        concurrency: Requests in flight over all replicas.
        waves: Requests per slot of a benchmark run, the first of which arrive together; infinity
            = steady state.
        requests: Requests of an offline batch.
    """

    prompt: Floats
    output: Floats
    identical: Floats
    prefix_hit: Floats
    concurrency: Floats
    waves: Floats
    requests: Floats


def all_at_once(
    prompt: float, output: float, requests: float, *, prefix_hit: float, rows: int
) -> Load:
    """Return an offline job as the load of each of some candidates.

    Args:
        prompt, output: Mean lengths [tokens].
        requests: Requests of the job.
        prefix_hit: Share of the prompt found in the prefix cache.
        rows: Candidates.
    """
    one = np.ones(rows)
    return Load(
        prompt=prompt * one,
        output=output * one,
        identical=0 * one,
        prefix_hit=prefix_hit * one,
        concurrency=np.inf * one,
        waves=np.inf * one,
        requests=requests * one,
    )


@dataclass(frozen=True)
class ClosedLoop(Columns):
    """Means of a closed loop, (n,).

    Attributes:
        ttft, tpot, e2e: Mean latencies [s].
        output_rate: Output tokens per second over all replicas.
        batch: Sequences decoding per dp rank.
        resident: Sequences resident per dp rank.
        fits: Sequences that fit per dp rank; below 1 = the deployment is impossible.
    """

    ttft: Floats
    tpot: Floats
    e2e: Floats
    output_rate: Floats
    batch: Floats
    resident: Floats
    fits: Floats


@dataclass(frozen=True)
class _Loop:
    """What stays the same over the iterations of a closed loop."""

    concurrency: Floats
    resident: Floats
    context: Floats
    alone: Floats
    stall: Floats
    others: Floats
    frontend: Floats


def closed_loop(c: Candidates, p: Parameters, load: Load) -> ClosedLoop:
    """Mean latencies with a fixed number of requests in flight.

    The prefill work of the other requests is conserved: what a request does not wait for before
    its first token it pays as slower decode steps.

    Args:
        c: Candidates, (n,).
        p: Fitted values.
        load: Lengths and requests in flight, (n,).

    Returns:
        Means, (n,).

    Source:
        planner/model/README.md#closed-loop; Little, Oper. Res. 9(3), 1961.
    """
    t = terms(c, p)
    loop, fits = _prepare(c, p, t, load)
    ttft, tpot, batch = _fixed_point(c, p, t, load, loop)
    slots = loop.concurrency / c.layout.dp
    # Requests beyond the KV capacity wait for whole lives of resident ones.
    ttft = ttft + np.maximum(slots / loop.resident - 1.0, 0.0) * (ttft + load.output * tpot)
    e2e = ttft + np.maximum(load.output - 1.0, 0.0) * tpot
    rate = load.concurrency * load.output / e2e
    return ClosedLoop(ttft, tpot, e2e, rate, batch, loop.resident, fits)


def _prepare(c: Candidates, p: Parameters, t: Terms, load: Load) -> tuple[_Loop, Floats]:
    concurrency = load.concurrency / c.layout.replicas
    slots = concurrency / c.layout.dp
    fits = sequences_that_fit(c, reserved_tokens(c, load.prompt, load.output))
    resident = np.minimum(slots, np.maximum(np.minimum(fits, c.layout.max_sequences), 1.0))
    prompt = prefill(t, p, load.prompt, load.prefix_hit, c.layout.token_budget)
    frontend = p.frontend_request + p.frontend_token * load.prompt
    loop = _Loop(
        concurrency=concurrency,
        resident=resident,
        context=load.prompt + 0.5 * load.output,
        alone=prompt.alone,
        stall=prompt.stall,
        others=np.maximum(resident - 1.0, 0.0),
        frontend=frontend,
    )
    return loop, fits


def _fixed_point(
    c: Candidates, p: Parameters, t: Terms, load: Load, loop: _Loop
) -> tuple[Floats, Floats, Floats]:
    first = 1.0 / load.waves
    work = loop.others * loop.stall
    burst = 0.5 * work
    prefilling: Floats = np.zeros_like(work)
    arrivals: Floats = np.zeros_like(work)
    ttft = tpot = batch = work
    for _ in range(ITERATIONS):
        batch = np.maximum(loop.resident * (1.0 - prefilling), np.minimum(loop.resident, 1.0))
        step = decode_step(t, p, batch, loop.context)
        gate = np.maximum(c.layout.poll_steps, 1.0) * step
        later = np.where(
            load.identical > 0,
            _cohort_wait(c, loop, burst),
            _queue_wait(c, arrivals * loop.stall, loop.stall, gate),
        )
        wait = np.minimum(first * burst + (1.0 - first) * later, work)
        tpot = step + (work - wait) / load.output
        ttft = (
            loop.alone
            + p.first_token
            + loop.frontend
            + _frontend_wait(loop, first, arrivals)
            + 0.5 * gate
            + p.first_token_steps * step
            + _batch_wait(c.layout.batch_wait_steps * step, arrivals)
            + wait
        )
        life = ttft + load.output * tpot
        prefilling = ttft / life
        arrivals = loop.others / life
    return ttft, tpot, batch


def _cohort_wait(c: Candidates, loop: _Loop, burst: Floats) -> Floats:
    """Wait behind the prompts that finish and return together (identical lengths)."""
    cohort = loop.stall * (np.minimum(loop.resident, c.engine.cohort) - 1.0)
    return np.where(c.engine.mixed > 0, np.maximum(cohort, 0.0), burst)


def _queue_wait(c: Candidates, load: Floats, stall: Floats, gate: Floats) -> Floats:
    """Wait behind other prompts: M/D/1, or all arrivals of a gate in one prefill.

    Source: Pollaczek-Khinchine with constant service; gated batch service:
    planner/model/README.md#closed-loop.
    """
    rho = np.clip(load, 0.0, HIGHEST_LOAD)
    r = c.engine.bunching * rho / (1.0 + (c.engine.bunching - 1.0) * rho)
    fifo = 0.5 * stall * r / (1.0 - r)
    gated = 0.5 * stall * r * (1.0 + 2.0 * r) / (1.0 - r * r) + r * gate / (1.0 - r)
    return np.where(c.engine.mixed > 0, fifo, gated)


def _frontend_wait(loop: _Loop, first: Floats, arrivals: Floats) -> Floats:
    """Wait for the serial front end (HTTP, tokeniser), one per replica."""
    rate = arrivals / np.maximum(loop.others, 1.0) * loop.concurrency
    rho = np.clip(rate * loop.frontend, 0.0, HIGHEST_FRONTEND_LOAD)
    queue = 0.5 * rho / (1.0 - rho)
    return loop.frontend * (0.5 * first * (loop.concurrency - 1.0) + (1.0 - first) * queue)


def _batch_wait(window: Floats, arrivals: Floats) -> Floats:
    """Wait for a batch to fill within `window` seconds."""
    expected = arrivals * window
    return window * (1.0 + 0.5 * expected) / (1.0 + expected)


@dataclass(frozen=True)
class Batch(Columns):
    """An offline batch, (n,): the whole run, its TTFT and TPOT [s], and tokens per second."""

    run: Floats
    ttft: Floats
    tpot: Floats
    output_rate: Floats
    batch: Floats
    fits: Floats


def offline_batch(c: Candidates, p: Parameters, load: Load) -> Batch:
    """All requests at once, as many in flight as memory, engine and `concurrency` allow.

    The run ends when the busiest rank has served its requests: whole ones, however few there are.

    Args:
        c: Candidates, (n,).
        p: Fitted values.
        load: Lengths, requests; concurrency infinity = no limit of the client, (n,).

    Returns:
        Times [s] and rate, (n,).

    Source:
        planner/model/README.md#offline-batch.
    """
    t = terms(c, p)
    fits = sequences_that_fit(c, reserved_tokens(c, load.prompt, load.output))
    per_rank = c.layout.replicas * c.layout.dp
    own = np.ceil(load.requests / per_rank - 1e-9)
    limit = np.maximum(np.minimum(fits, c.layout.max_sequences), 1.0)
    batch = np.clip(np.minimum(own, load.concurrency / per_rank), 1.0, limit)
    waves = np.maximum(own / batch, 1.0)
    prompts = bulk_prefill(t, p, load.prompt, batch, load.prefix_hit)
    step = decode_step(t, p, batch, load.prompt + 0.5 * load.output)
    run = waves * (prompts + np.maximum(load.output - 1.0, 0.0) * step)
    rate = load.requests * load.output / run
    return Batch(run, prompts, step, rate, batch, fits)


def bulk_prefill(
    t: Terms, p: Parameters, prompt: Floats, prompts: Floats, cached: Floats | float = 0.0
) -> Floats:
    """Time to prefill several prompts in one batch [s], (n,)."""
    own = np.maximum(prompt * (1.0 - np.asarray(cached)), 1.0)
    tokens = own * prompts
    core = prefill_core(t, prompt * np.asarray(cached) + 0.5 * own)
    one = prefill_pass(t, p, tokens, core)
    return (one.total + t.eager) / t.stages
