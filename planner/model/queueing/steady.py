"""The decoding batch of a server at a given rate: mean, variance, and the step it causes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.model.arrays import Floats
from planner.model.queueing.bursts import burst_size
from planner.model.queueing.saturation import Saturation
from planner.model.queueing.service import (
    Chunks,
    Prompts,
    Service,
    Step,
    chunks,
    company,
    decode_time,
    fixed_time,
    mean_step,
    prompts,
    prompts_by_company,
    typical,
)

ITERATIONS = 5
"""Of the solution for prompts of mean length."""
NEAR = 0.98
"""Share of a solution at which the next one tries its slope."""
LEAST_BATCH = 1e-6
HIGHEST_SHARE = 0.97
LEAST_PEAKEDNESS = 1 / 3
"""Taking one of two servers at random makes clockwork arrivals less regular, but only half of
them come: below this value, and only then, their number in service would vary more for it."""
LARGE = 1.645
"""Standard deviations above its mean of a batch that is larger than 95 % of all."""
LARGEST = 4.0
"""The same of 99 %, however skewed: of a log-normal p99 is at most 3.98 above the mean."""


@dataclass(frozen=True)
class Arrivals:
    """Arrivals at one server, (n,).

    Attributes:
        rate: Requests per second.
        burstiness: Squared CV of their gaps.
        spread: Variance over mean of the number that they keep at the server, none of which waits.
        timed: Share of them that come by the clock; of the others as many come in any step.
    """

    rate: Floats
    burstiness: Floats
    spread: Floats
    timed: Floats


@dataclass(frozen=True)
class Batch:
    """A server in its steady state, (n,) unless said otherwise.

    Attributes:
        cost: What prompts cost in it.
        cut: How they are cut.
        step: Its mean step.
        fixed: Fixed part of a step with prompts, by node [s], (nodes, n).
        load: Share of the time that prompts take.
        response: Prompt time that a further second brings: steps with prompts already cost no
            fixed part again.
        mean, variance: Of the number of decoding sequences.
        seen: Mean step that a decoding sequence sees [s].
        sway: Standard deviation of the step as the batch varies, were there room for it [s].
        slope: Growth of the step per sequence [s].
        feedback: Further sequences that a further one causes.
        fullest: Step that only decodes, with all sequences that fit [s].
    """

    cost: Prompts
    cut: Chunks
    step: Step
    fixed: Floats
    load: Floats
    response: Floats
    mean: Floats
    variance: Floats
    seen: Floats
    sway: Floats
    slope: Floats
    feedback: Floats
    fullest: Floats


def steady_batch(s: Service, full: Saturation, arrivals: Arrivals) -> Batch:
    """Return the steady state.

    A decode step shared by n sequences is a processor-sharing server whose speed depends on n;
    for step times linear in n the number in service is negative binomial, whatever the lengths,
    with the mode n = rate * steps * step(n). Bursts scale its spread by the peakedness.

    Args:
        s: The server.
        full: Its limits.
        arrivals: Arrivals, (n,); the rate below `full.rate`.

    Source:
        Processor sharing with state-dependent speed: J. W. Cohen, Acta Inf. 12, 1979. Peakedness:
        A. E. Eckberg, Proc. ITC 10, 1983. planner/model/README.md#queueing.
    """
    held = np.maximum(full.slots, 1.0)
    one = typical(s)
    ends = np.full_like(held, LEAST_BATCH) * np.minimum(s.steps, 1.0), held
    mode = _solve(_excess(one, lambda others: prompts(one, others), arrivals), ends)
    by_company = prompts_by_company(s, one, _met(s, arrivals, mode)[0])
    mode = _refined(_excess(s, by_company, arrivals), mode, ends)
    others, size = _met(s, arrivals, mode)
    cost = by_company(others)
    step = mean_step(s, cost, mode, size)
    cut = chunks(s, mode)
    fixed = fixed_time(s, cost, step.decode)
    load, response = _loads(s, cost, cut, arrivals.rate, (step, fixed))
    fullest = decode_time(s, held)
    kept = np.maximum(arrivals.spread, LEAST_PEAKEDNESS)
    slope, feedback = _growth(s, mode, (held, fullest), kept)
    own = kept / (1.0 - feedback)
    mean = mode + feedback * own
    # A request sees at least itself, however regular arrivals are.
    seen = np.minimum(np.maximum(mode + own, 1.0), held)
    # Once all room is taken, more arrivals neither raise the batch nor spread it.
    spread = np.sqrt(np.minimum(mean, _room(held, kept)) * own)
    usual = decode_time(s, seen)
    return Batch(
        cost=cost,
        cut=cut,
        step=step,
        fixed=fixed,
        load=load,
        response=response,
        mean=np.minimum(mean, held),
        variance=_variance(s, mode, kept, feedback),
        seen=usual / (1.0 - load),
        sway=_sway(s, (seen, spread), usual) / (1.0 - load),
        slope=slope / (1.0 - load),
        feedback=feedback,
        fullest=fullest,
    )


def as_seen(batch: Batch, share: Floats) -> Batch:
    """Return the server as a request sees it that meets a share of the others' prompts, (n,)."""
    load = share * batch.load
    longer = (1.0 - batch.load) / (1.0 - load)
    step = batch.step
    return replace(
        batch,
        step=replace(
            step,
            time=longer * step.time,
            chunks=share * step.chunks,
            mixed=share * step.mixed,
        ),
        load=load,
        response=share * batch.response,
        seen=longer * batch.seen,
        sway=longer * batch.sway,
        slope=longer * batch.slope,
    )


def _loads(
    s: Service, cost: Prompts, cut: Chunks, rate: Floats, steps: tuple[Step, Floats]
) -> tuple[Floats, Floats]:
    """Return Batch.load and Batch.response: fixed parts shared, and the last one paid already."""
    step, fixed = steps
    shared = step.mixed / np.maximum(step.chunks, 1e-12)
    further = np.maximum(cut.steps - step.mixed, 0.0)
    load, response = (
        rate * s.workload.mean(cost.work + times * fixed) for times in (cut.steps * shared, further)
    )
    load = np.minimum(load, HIGHEST_SHARE)
    return load, np.minimum(response, load)


def _sway(s: Service, batch: tuple[Floats, Floats], usual: Floats) -> Floats:
    """Standard deviation of a decode step as the batch varies [s], (n,).

    Steps of a mixture of experts rise ever more slowly, and others once a collective has changed
    its algorithm: what counts is the step of a batch that is larger than 99 % of all. Percentiles
    below are weighted means of two steps that both rise with the batch. But a step that the other
    sequences lengthen little varies little with their number.

    Args:
        s: The server.
        batch: Sequences that one of them sees, and their standard deviation, (n,).
        usual: A step that decodes as many [s], (n,).
    """
    seen, spread = batch
    largest = decode_time(s, seen + LARGEST * spread)
    # At a batch of one, what the second sequence adds.
    each = (usual - s.single + LEAST_BATCH * s.growth) / (seen - 1.0 + LEAST_BATCH)
    return np.clip((largest - usual) / LARGEST, 0.0, each * spread)


def _growth(
    s: Service, mode: Floats, full: tuple[Floats, Floats], kept: Floats
) -> tuple[Floats, Floats]:
    """Return how a further sequence lengthens the steps of the others.

    Once requests see all room taken, which for steps in a straight line is known beforehand, it is
    the same however many more arrive.

    Args:
        s: The server.
        mode: Sequences, (n,).
        full: All sequences that fit, and their step [s], (n,).
        kept: Variance over mean of the number of sequences, did they not lengthen steps, (n,).

    Returns:
        Growth of a decode step per sequence [s], (n,), and further sequences that a further one
        causes: the elasticity of the step, (n,).
    """
    held, fullest = full
    idle = decode_time(s, np.zeros_like(held))
    straight = kept * (fullest / idle - 1.0) / held
    free = np.minimum(mode, _room(held, kept) / (1.0 + straight))
    slope = _slope(s, free, kept)
    return slope, _feedback(s, free, slope)


def _variance(s: Service, mode: Floats, kept: Floats, feedback: Floats) -> Floats:
    """Variance of the number of sequences, were there room for them, (n,).

    Waits for slots rest on it, which under bursts are rather longer than said: so there the step at
    the mode counts, too, if it is steeper than over as many sequences as the number varies by.
    """
    if s.workload.burstiness > 1.0:
        feedback = np.maximum(feedback, _feedback(s, mode, _slope(s, mode, np.ones_like(kept))))
    own = kept / (1.0 - feedback)
    result: Floats = (mode + feedback * own) * own
    return result


def _feedback(s: Service, mode: Floats, slope: Floats) -> Floats:
    """Further sequences that a further one causes: the elasticity of the decode step, (n,)."""
    result: Floats = np.minimum(mode * slope / decode_time(s, mode), HIGHEST_SHARE)
    return result


def _room(held: Floats, kept: Floats) -> Floats:
    """Mean number of sequences of which one of them sees all that fit, (n,), or half of these.

    Below half of them a number that varies more on its own would vary less.
    """
    result: Floats = np.maximum(held - kept, 0.5 * held)
    return result


def _slope(s: Service, mode: Floats, kept: Floats) -> Floats:
    """Growth of a decode step per sequence [s], from somewhat small batches to large ones.

    The large ones count for the spread; and steps have kinks, as where a collective changes its
    algorithm, that must not show at once. Arguments as of ``_growth``.
    """
    spread = np.sqrt(mode * np.maximum(kept, 1.0))
    above = np.maximum(LARGE * spread, 0.5)
    below = np.minimum(np.maximum(0.5 * spread, 0.5), mode)
    rise = decode_time(s, mode + above) - decode_time(s, mode - below)
    slope: Floats = np.maximum(rise, 0.0) / (above + below)
    return slope


def _excess(
    s: Service, cost: Callable[[Floats], Prompts], arrivals: Arrivals
) -> Callable[[Floats], Floats]:
    """Return by how much rate * steps * step(n) exceeds n, as a function of n.

    Args:
        s: The server.
        cost: What prompts cost, by the tokens of others that share their steps.
        arrivals: Arrivals, (n,).
    """

    def excess(batch: Floats) -> Floats:
        others, size = _met(s, arrivals, batch)
        step = mean_step(s, cost(others), batch, size)
        return arrivals.rate * s.steps * step.time - batch

    return excess


def _met(s: Service, arrivals: Arrivals, batch: Floats) -> tuple[Floats, Floats]:
    """Return the tokens of others in a step with prompts, and how many prompts come together."""
    arriving = batch / s.steps
    size = burst_size(arrivals.burstiness, arriving)
    return company(s, arriving, size), size


def _solve(excess: Callable[[Floats], Floats], ends: tuple[Floats, Floats]) -> Floats:
    """Return the batch between the ends that has no excess, by the Illinois secant method."""
    low, high = ends
    at_low, at_high = excess(low), excess(high)
    side = np.zeros_like(high)
    batch = high
    for _ in range(ITERATIONS):
        rise = at_high - at_low
        move = at_high * (high - low) / np.where(rise == 0.0, -1e-12, rise)
        batch = np.clip(high - move, low, high)
        at = excess(batch)
        up = at > 0.0
        at_high = np.where(up & (side == 1.0), 0.5 * at_high, at_high)
        at_low = np.where(~up & (side == -1.0), 0.5 * at_low, at_low)
        low, at_low = np.where(up, batch, low), np.where(up, at, at_low)
        high, at_high = np.where(up, high, batch), np.where(up, at_high, at)
        side = np.where(up, 1.0, -1.0)
    return batch


def _refined(
    excess: Callable[[Floats], Floats], near: Floats, ends: tuple[Floats, Floats]
) -> Floats:
    """Return the batch that has no excess, from close by: in two steps of the secant method."""
    far = NEAR * near
    at_near, at_far = excess(near), excess(far)
    first = _next(near, at_near, _slope_of((near, at_near), (far, at_far)), ends)
    at_first = excess(first)
    slope = _slope_of((first, at_first), (near, at_near))
    return _next(first, at_first, slope, ends)


def _slope_of(new: tuple[Floats, Floats], old: tuple[Floats, Floats]) -> Floats:
    """Return the slope of the line through two batches, each with its excess."""
    (batch, at), (before, at_before) = new, old
    apart = batch - before
    slope = np.divide(at - at_before, apart, out=np.full_like(apart, -1.0), where=apart != 0.0)
    # A further sequence causes at most so many further ones.
    result: Floats = np.minimum(slope, HIGHEST_SHARE - 1.0)
    return result


def _next(batch: Floats, at: Floats, slope: Floats, ends: tuple[Floats, Floats]) -> Floats:
    """Return where a line from a batch and its excess has none."""
    return np.clip(batch - at / slope, *ends)
