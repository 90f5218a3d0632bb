"""The public functions: candidates and a rate -> steady state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Candidates, Floats, Parameters
from planner.model.queueing.bursts import burst_size, split_burstiness
from planner.model.queueing.cycle import Wait, prompt_wait
from planner.model.queueing.saturation import Saturation, saturation
from planner.model.queueing.service import Service, decode_time, service
from planner.model.queueing.slots import slot_wait
from planner.model.queueing.state import OpenLoop
from planner.model.queueing.steady import Arrivals, Batch, steady_batch
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
    arrivals = Arrivals(here, split_burstiness(w.burstiness, servers, routing))
    batch = steady_batch(s, full, arrivals)
    wait = prompt_wait(s, batch, arrivals)
    busy = np.divide(rate, most, out=np.full_like(most, np.inf), where=most > 0)
    return _describe(s, full, arrivals, (batch, wait), (most, busy, rate))


@dataclass(frozen=True)
class _Decoding:
    """Decoding as its sequences see it.

    Attributes:
        steps: Steps of a request after its first token, by output node.
        slowest: Longest step: all room taken by prompts [s].
        behind: Work that prompts leave behind in a request's steps, by output node [s].
        sequences: Sequences decoding, those kept longer by that work included.
        resident: The same with those whose prompts are computed.
        seen: Mean step that a sequence sees [s].
    """

    steps: Floats
    slowest: Floats
    behind: Floats
    sequences: Floats
    resident: Floats
    seen: Floats


def _decoding(
    s: Service, full: Saturation, arrivals: Arrivals, stages: tuple[Batch, Wait]
) -> _Decoding:
    batch, wait = stages
    w = s.workload
    slowest = batch.step.decode + batch.cut.room / s.tokens_mean * batch.cost.work_mean
    slowest = slowest + (w.weight * batch.cost.overhead).sum(axis=0)
    steps = np.maximum(w.output - 1.0, 1.0) / s.accepted
    behind = np.minimum(wait.behind, steps * np.maximum(slowest - batch.step.decode, 0.0))
    held = np.maximum(full.slots, 1.0)
    more = arrivals.rate * (w.weight * behind).sum(axis=0) / (1.0 - batch.feedback)
    resident = batch.mean + arrivals.rate * wait.first
    more = np.minimum(more, np.maximum(held - resident, 0.0))
    most_seen = decode_time(s, held) / (1.0 - batch.load)
    seen = np.minimum(batch.seen + batch.slope * more, most_seen)
    return _Decoding(steps, slowest, behind, batch.mean + more, resident + more, seen)


def _describe(
    s: Service,
    full: Saturation,
    arrivals: Arrivals,
    stages: tuple[Batch, Wait],
    load: tuple[Floats, Floats, Floats],
) -> OpenLoop:
    batch, wait = stages
    most, busy, rate = load
    w = s.workload
    d = _decoding(s, full, arrivals, stages)
    drift, crowd = _step_variance(s, arrivals, stages, (d.seen, d.steps))
    calm_step = d.seen * (1.0 - batch.load)
    slots = slot_wait(s, full, batch, arrivals, d.resident)
    fits = full.slots >= 1.0
    return OpenLoop(
        capacity=most,
        utilization=busy,
        batch=d.sequences,
        slots=full.slots,
        wait_probability=np.where(fits, slots.probability, 1.0),
        output_rate=np.minimum(rate, most) * w.output_mean,
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
        drift=drift,
        crowd=crowd,
        calm=_calm(arrivals, wait, d.steps * calm_step),
        calm_step=np.minimum(calm_step, d.slowest),
        fastest=decode_time(s, np.zeros_like(d.seen)),
        slowest=d.slowest,
        decode=decode_time(s, d.sequences),
        decode_sd=batch.sway * (1.0 - batch.load),
        mixed=batch.step.mixed,
        chunk=_chunk(batch),
        chunk_weight=w.weight * batch.cut.steps / batch.cut.mean,
    )


def _chunk(batch: Batch) -> Floats:
    """What prompts add to a step that carries a chunk of this node's prompt [s], (nodes, n)."""
    together = batch.step.chunks / np.maximum(batch.step.mixed, 1e-12) - 1.0
    others = np.maximum(together, 0.0) * batch.cost.work_mean / batch.cut.mean
    return batch.cost.work / batch.cut.steps + batch.fixed + others


def _calm(arrivals: Arrivals, wait: Wait, decoding: Floats) -> Floats:
    """Probability that no prompt is computed while a request decodes, by output node."""
    exposed = decoding + wait.first
    size = burst_size(arrivals.burstiness, arrivals.rate * exposed)
    result: Floats = np.minimum(np.exp(-arrivals.rate * exposed / size) / size, 0.999)
    return result


def _step_variance(
    s: Service,
    arrivals: Arrivals,
    stages: tuple[Batch, Wait],
    seen: tuple[Floats, Floats],
) -> tuple[Floats, Floats]:
    """Variance of a request's mean step as the batch drifts, and as prompts come in [s^2].

    The batch forgets itself over the mean residual life of its sequences; prompts are compound
    Poisson over the request's life, and each delays those that come in meanwhile.
    """
    batch, wait = stages
    step, steps = seen
    w = s.workload
    life = w.steps_square / (2.0 * max(w.steps_mean, 1e-9)) / s.accepted
    age = np.maximum(steps / np.maximum(life, 1e-9) * (1.0 - batch.feedback), 1e-3)
    memory = 2.0 * (age - 1.0 + np.exp(-age)) / (age * age)
    drift = batch.sway**2 * memory
    size = burst_size(arrivals.burstiness, arrivals.rate * s.steps * batch.step.time)
    spread = w.prompt_weighted / w.prompt
    one = (w.weight * batch.added).sum(axis=0)
    two = (w.weight * spread * batch.added**2).sum(axis=0) + 2.0 * (size - 1.0) * one * one
    exposed = steps * step + wait.first + wait.mean
    idle = 1.0 - batch.load
    come = arrivals.rate * exposed * two / (idle * idle)
    left = (batch.load / idle) ** 2 * (wait.first_variance + wait.variance)
    return drift, (come + left) / (steps * steps)
