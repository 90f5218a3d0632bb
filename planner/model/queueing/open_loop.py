"""The public functions: candidates and a rate -> steady state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.arrays import Candidates, Floats, Parameters
from planner.model.queueing.bursts import (
    met_share,
    number_spread,
    split_burstiness,
    timed_share,
)
from planner.model.queueing.cycle import Wait, prompt_wait
from planner.model.queueing.decoding import decoding
from planner.model.queueing.saturation import Saturation, saturation
from planner.model.queueing.service import (
    Service,
    chunks,
    decode_time,
    service,
)
from planner.model.queueing.slots import slot_wait
from planner.model.queueing.state import OpenLoop
from planner.model.queueing.steady import Arrivals, Batch, as_seen, steady_batch
from planner.model.queueing.variance import company_met, step_variance
from planner.model.workload import Workload

CLOSEST_TO_CAPACITY = 0.999
LEAST_RATE = 1e-9


def capacity(c: Candidates, p: Parameters, w: Workload) -> Floats:
    """Highest stable rate of one replica [requests/s], (n,); 0 where the model does not fit."""
    full = saturation(service(c, p, w))
    return np.where(full.slots >= 1.0, full.rate * c.layout.dp, 0.0)


def steady_state(
    c: Candidates, p: Parameters, w: Workload, rate: Floats, *, routing: str = "least_loaded"
) -> OpenLoop:
    """Return the steady state of each candidate at a rate.

    Args:
        c: Candidates, (n,).
        p: Fitted values.
        w: Lengths and burstiness.
        rate: Requests per second over all replicas, (n,).
        routing: least_loaded, round_robin or random: how requests are spread over replicas and
            their attention-data-parallel ranks.

    Returns:
        Steady state, (n,). Rows at or beyond capacity are described just below it, and their
        survivals are 1, their percentiles infinity.

    Source:
        planner/model/README.md#queueing.
    """
    s = service(c, p, w)
    full = saturation(s)
    servers = c.layout.replicas * c.layout.dp
    most = np.where(full.slots >= 1.0, full.rate * servers, 0.0)
    here = np.clip(rate / servers, LEAST_RATE, CLOSEST_TO_CAPACITY * full.rate)
    spread = number_spread(w.burstiness, w.peakedness, servers, routing)
    gaps = split_burstiness(w.burstiness, servers, routing)
    timed = timed_share(w.burstiness, w.steps_cv2, servers, routing)
    arrivals = Arrivals(here, gaps, spread, timed)
    batch = steady_batch(s, full, arrivals)
    share = met_share(_present(s, batch, arrivals), spread, routing)
    met = replace(arrivals, rate=np.maximum(share * arrivals.rate, LEAST_RATE))
    seen = as_seen(batch, share)
    wait = prompt_wait(s, seen, met)
    busy = np.divide(rate, most, out=np.full_like(most, np.inf), where=most > 0)
    return _describe(s, full, (arrivals, met), (seen, wait), (most, busy, rate))


def _present(s: Service, batch: Batch, arrivals: Arrivals) -> Floats:
    """Mean number of requests at a server, prompts under way included, (n,)."""
    each = batch.cost.work + batch.cut.whole * (batch.step.decode + batch.fixed)
    present: Floats = batch.mean + arrivals.rate * s.workload.mean(each)
    return present


def _describe(
    s: Service,
    full: Saturation,
    traffic: tuple[Arrivals, Arrivals],
    stages: tuple[Batch, Wait],
    load: tuple[Floats, Floats, Floats],
) -> OpenLoop:
    (every, arrivals), (batch, wait) = traffic, stages
    most, busy, rate = load
    d = decoding(s, full, arrivals, stages)
    chunk, carrying = _chunk(s, batch)
    others = company_met(arrivals, wait, d)
    spread = step_variance(s, arrivals, stages, d, others)
    slots = slot_wait(s, full, batch, every, d.resident)
    return OpenLoop(
        capacity=most,
        utilization=busy,
        batch=d.sequences,
        slots=full.slots,
        wait_probability=np.where(full.slots >= 1.0, slots.probability, 1.0),
        output_rate=np.minimum(rate, most) * s.workload.output_mean,
        own=wait.own,
        quiet=wait.quiet,
        pause=wait.pause,
        awake=wait.awake,
        wait_shape=wait.shape,
        wait_scale=wait.scale,
        wait_mean=wait.mean,
        wait_variance=wait.variance,
        slot_wait=slots.mean,
        accepted=s.accepted,
        steps=d.steps,
        step=np.minimum(d.seen + d.behind / d.steps, d.slowest),
        drift=spread.drift,
        crowd=spread.crowd,
        filled=spread.filled,
        filled_step=np.minimum(spread.filled_step, d.slowest),
        calm=np.minimum(others.none, 0.999),
        calm_step=np.minimum(d.calm, d.slowest),
        fastest=s.single,
        fullest=batch.fullest,
        slowest=d.slowest,
        decode=decode_time(s, d.sequences),
        decode_sd=d.sway * (1.0 - batch.load),
        mixed=batch.step.mixed,
        chunk=chunk,
        carrying=carrying,
        chunk_weight=s.workload.weight * batch.cut.steps / batch.cut.mean,
    )


def _chunk(s: Service, batch: Batch) -> tuple[Floats, Floats]:
    """A step that carries a chunk of this node's prompt [s], (nodes, n).

    Returns:
        What prompts add to one that decodes for long, and how long it takes at least.
    """
    together = batch.step.chunks / np.maximum(batch.step.mixed, 1e-12) - 1.0
    others = np.maximum(together, 0.0) * batch.cost.work_mean / batch.cut.mean
    # A chunk that fills the step does so on an idle server: decoding tokens take no less time
    # than the prompt tokens whose place they take.
    work = batch.cost.work / chunks(s, np.zeros_like(batch.mean)).steps + others
    overhead = batch.cost.overhead
    return work + s.parameters.unshared_prefill * overhead, work + s.mixed * overhead
