"""The public functions: candidates and a rate -> steady state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.model.arrays import LEAST, Candidates, Floats, Parameters
from planner.model.queueing.bursts import (
    burst_size,
    met_share,
    number_spread,
    split_burstiness,
    timed_share,
)
from planner.model.queueing.cycle import Wait, prompt_wait
from planner.model.queueing.normal import decay
from planner.model.queueing.saturation import Saturation, saturation
from planner.model.queueing.service import (
    Service,
    chunks,
    decode_time,
    fixed_time,
    full_step,
    service,
)
from planner.model.queueing.slots import slot_wait
from planner.model.queueing.state import OpenLoop
from planner.model.queueing.steady import Arrivals, Batch, as_seen, steady_batch
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
    share = met_share(_present(s, batch, arrivals), spread)
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


@dataclass(frozen=True)
class _Decoding:
    """Decoding as its sequences see it.

    Attributes:
        steps: Steps of a request after its first token, by output node.
        fullest: Step that only decodes, with all sequences that fit [s].
        slowest: Longest step: all room taken by prompts, or all prompts that have a slot [s].
        mates: Requests of the own burst that come meanwhile, by output node.
        behind: Work that prompts leave behind in a request's steps, by output node [s].
        sequences: Sequences decoding, those kept longer by that work included.
        resident: The same with those whose prompts are computed.
        seen: Mean step that a sequence sees [s].
        sway: Its standard deviation as the batch varies [s].
        calm: The same if no prompts are computed meanwhile [s].
    """

    steps: Floats
    fullest: Floats
    slowest: Floats
    mates: Floats
    behind: Floats
    sequences: Floats
    resident: Floats
    seen: Floats
    sway: Floats
    calm: Floats


def _decoding(
    s: Service, full: Saturation, arrivals: Arrivals, stages: tuple[Batch, Wait]
) -> _Decoding:
    batch, wait = stages
    w = s.workload
    held = np.maximum(full.slots, 1.0)
    # Prompts that run alone pass one after the other, as many as find a slot.
    alone = np.maximum(held * s.tokens_mean / s.budget, 1.0)
    slowest = batch.step.decode + np.where(s.mixed > 0, 1.0, alone) * full_step(s)
    steps = np.maximum(w.output - 1.0, 1.0) / s.accepted
    mates = _late_mates(batch, arrivals, wait, steps)
    left = _left(s, stages, arrivals, steps) + _mates_work(s, batch, mates, steps)
    behind = np.minimum(left, steps * np.maximum(slowest - batch.step.decode, 0.0))
    more = arrivals.rate * w.mean(behind) / (1.0 - batch.feedback)
    sequences = np.minimum(batch.mean + more, held)
    resident = np.minimum(sequences + arrivals.rate * wait.first, held)
    fullest = decode_time(s, held)
    least_seen, most_seen = (x / (1.0 - batch.load) for x in (s.single, fullest))
    seen = batch.seen + batch.slope * more
    # Of a batch that is cut to what fits the variance over the mean stays. And what lies between
    # two bounds varies by half their distance at most (T. Popoviciu, Mathematica 9, 1935).
    cut = np.minimum(most_seen / seen, 1.0)
    sway = np.minimum(np.sqrt(cut) * batch.sway, 0.5 * (most_seen - least_seen))
    seen = cut * seen
    calm = seen * (1.0 - batch.load)
    return _Decoding(steps, fullest, slowest, mates, behind, sequences, resident, seen, sway, calm)


def _left(s: Service, stages: tuple[Batch, Wait], arrivals: Arrivals, steps: Floats) -> Floats:
    """Work in a request's steps by prompts that came before its first token [s], (nodes, n)."""
    batch, wait = stages
    beyond = np.maximum(wait.exposed - batch.step.time, 0.0)
    response = arrivals.timed * batch.response
    longer = _next_step(s, batch, arrivals, arrivals.timed * beyond)
    result: Floats = _echoes(response, steps) * longer
    return result


def _mates_work(s: Service, batch: Batch, mates: Floats, steps: Floats) -> Floats:
    """Work of late mates in a request's steps [s], (nodes, n).

    A geometric number of them comes in each step, and shares the last fixed part.
    """
    work = batch.cost.work_mean + s.workload.mean((batch.cut.steps - 1.0) * batch.fixed)
    result: Floats = mates * (work + s.workload.mean(batch.fixed) / (1.0 + mates / steps))
    return result


def _late_mates(batch: Batch, arrivals: Arrivals, wait: Wait, steps: Floats) -> Floats:
    """Requests of the own burst that are computed while one decodes, (nodes, n).

    Those that come in the step before its own are computed with it as far as they fit.
    """
    stay = arrivals.timed * wait.exposed + steps * batch.seen
    begun, ended = (
        burst_size(arrivals.burstiness, arrivals.rate * time)
        for time in (wait.met, wait.met + stay)
    )
    return ended - begun + wait.unfit


def _next_step(s: Service, batch: Batch, arrivals: Arrivals, longer: Floats) -> Floats:
    """Return how much longer a step is after one that takes so much longer than the mean [s]."""
    cut, w = batch.cut, s.workload
    work = arrivals.rate * w.mean(batch.cost.work + (cut.steps - 1.0) * batch.fixed)
    without = np.maximum(1.0 - batch.step.mixed, LEAST)
    # A prompt that takes several steps begins in one of them.
    begin = np.log(without) / cut.mean / batch.step.time
    carrying = -without * np.expm1(begin * longer)
    result: Floats = work * longer + carrying * w.mean(batch.fixed)
    return result


def _echoes(response: Floats, steps: Floats) -> Floats:
    """Return by how many times as much `steps` steps are longer of which the first is, (nodes, n).

    Prompts that arrive in a step lengthen the next one by `response` of its time, and so on.
    """
    lost = _lost(response, steps)
    result: Floats = (1.0 - lost) / (1.0 - response)
    return result


def _lost(response: Floats, steps: Floats) -> Floats:
    """Return response^steps, (nodes, n)."""
    return decay(steps * -np.log(np.maximum(response, LEAST)))


def _echo_squares(response: Floats, steps: Floats) -> tuple[Floats, Floats]:
    """Square of ``_echoes``, and its mean over the steps in which a prompt may come, (nodes, n).

    The later it comes, the fewer of the request's own steps it lengthens; one at least.
    """
    idle = 1.0 - response
    lost = _lost(response, steps)
    times = (1.0 - lost) * (1.0 / idle)
    once = 2.0 * response * times
    twice = response * response / (1.0 + response) * times * (1.0 + lost)
    mean = np.maximum((1.0 + (twice - once) / steps) * (1.0 / (idle * idle)), 1.0)
    return times * times, mean


def _describe(
    s: Service,
    full: Saturation,
    traffic: tuple[Arrivals, Arrivals],
    stages: tuple[Batch, Wait],
    load: tuple[Floats, Floats, Floats],
) -> OpenLoop:
    (every, arrivals), (batch, wait) = traffic, stages
    most, busy, rate = load
    d = _decoding(s, full, arrivals, stages)
    chunk, carrying = _chunk(s, batch)
    others = _company(arrivals, wait, d)
    spread = _step_variance(s, arrivals, stages, d, others)
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
        fullest=d.fullest,
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


@dataclass(frozen=True)
class _Company:
    """Prompts that are computed while a request decodes, by output node, (nodes, n).

    Attributes:
        met: Their mean number.
        none: Probability that there is none.
    """

    met: Floats
    none: Floats


def _company(arrivals: Arrivals, wait: Wait, d: _Decoding) -> _Company:
    timed = arrivals.timed
    exposed = d.steps * (timed * d.calm + (1.0 - timed) * d.seen) + timed * wait.first
    met = arrivals.rate * exposed
    # Mates that come before its own prompt is computed do not hold it up.
    size = 1.0 + d.mates
    return _Company(met, np.exp(-met / size) / size)


@dataclass(frozen=True)
class _Spread:
    """As in OpenLoop."""

    drift: Floats
    crowd: Floats
    filled: Floats
    filled_step: Floats


def _step_variance(
    s: Service,
    arrivals: Arrivals,
    stages: tuple[Batch, Wait],
    d: _Decoding,
    others: _Company,
) -> _Spread:
    """Return how a request's mean step varies as the batch drifts and as prompts come in.

    The batch forgets itself over the mean residual life of its sequences; prompts are compound
    Poisson over the request's life, and each delays those that come in meanwhile, until it ends.
    """
    batch, wait = stages
    step, steps = d.seen, d.steps
    w = s.workload
    life = w.steps_square / (2.0 * max(w.steps_mean, 1e-9)) / s.accepted
    age = np.maximum(steps / np.maximum(life, 1e-9) * (1.0 - batch.feedback), 1e-3)
    memory = 2.0 * (age - 1.0 + np.exp(-age)) / (age * age)
    drift = d.sway**2 * memory
    size = burst_size(arrivals.burstiness, arrivals.rate * s.steps * batch.step.time)
    spread = w.prompt_weighted / w.prompt
    time = batch.cost.work + (batch.cut.steps - 1.0) * batch.fixed
    one, fixed = w.mean(time), w.mean(batch.fixed)
    single = w.mean(spread * time * time)
    # The mates of a burst are a geometric number.
    bursts = d.mates * (single + d.mates * one * one)
    two = single + 2.0 * (size - 1.0) * one * one
    without = 1.0 - batch.step.mixed
    two = np.maximum(two - _evenness(s, arrivals, steps, others) * one * one, LEAST)
    work = arrivals.rate * two
    shared = (
        fixed * without * (2.0 * arrivals.rate * one + fixed * batch.step.mixed / batch.step.time)
    )
    timed = arrivals.timed
    exposed = steps * step + timed * (wait.first + wait.mean)
    left = timed**2 * (wait.first_variance + wait.variance)

    def variance(rate: Floats, load: Floats) -> Floats:
        first, any_step = _echo_squares(timed * load, steps)
        result: Floats = exposed * rate * any_step + load * load * left * first + bursts
        return result / (steps * steps)

    # In steps that carry prompts anyway, further ones cost their work alone.
    load = np.minimum(arrivals.rate * one, batch.response)
    filled_step, sway = _filled(s, stages, d, load)
    return _Spread(
        drift,
        variance(work + shared, batch.response),
        variance(work, load) + sway**2 * memory,
        filled_step,
    )


def _evenness(s: Service, arrivals: Arrivals, steps: Floats, others: _Company) -> Floats:
    """Share of the variance that Poisson counts have which the prompts met do not, (nodes, n).

    Where the number at a server hardly varies, one comes for each that ends; and while a request
    of an output like all others stays, each of the others ends just once. But where some meet none,
    numbers vary at least as if all others met the same.

    Source:
        A sequence ends at most once in a short time; over long times counts of a renewal process
        vary as the squared CV of its gaps (D. R. Cox, "Renewal Theory", 1962, section 4.5).
    """
    regular = np.maximum(1.0 - arrivals.spread, 0.0) * max(1.0 - s.workload.steps_cv2, 0.0)
    most = 1.0 - others.met * others.none / np.maximum(1.0 - others.none, LEAST)
    result: Floats = np.minimum(regular * np.minimum(steps / s.steps, 1.0), np.maximum(most, 0.0))
    return result


def _filled(
    s: Service, stages: tuple[Batch, Wait], d: _Decoding, load: Floats
) -> tuple[Floats, Floats]:
    """Return the step of a request of which every step carries prompts.

    Returns:
        Its mean, by output node [s], (nodes, n), and how the batch sways it [s], (n,): not where
        the prompts' weight reads take longer than decoding.
    """
    batch, wait = stages
    fixed = fixed_time(s, batch.cost, d.calm)
    mean = (d.calm + s.workload.mean(fixed)) / (1.0 - load)
    beyond = np.maximum(wait.exposed - mean, 0.0)
    step = mean + _echoes(load, d.steps) * load * beyond / d.steps
    bare = s.parameters.unshared_prefill * batch.cost.overhead
    shown = s.workload.mean(np.where(fixed <= bare, 1.0, 0.0))
    sway = d.sway * (1.0 - batch.load) / (1.0 - load) * shown
    return np.maximum(step, d.seen + d.behind / d.steps), sway
