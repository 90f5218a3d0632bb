"""The decoding batch of a server at a given rate: mean, variance, and the step it causes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Floats
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

ITERATIONS = (5, 4, 7)
"""Of the solution for prompts of mean length, and of two for all, each for costs closer to it."""
LEAST_BATCH = 1e-6
HIGHEST_SHARE = 0.97
LEAST_PEAKEDNESS = 1 / 3
"""Taking one of two servers at random makes clockwork arrivals less regular, but only half of
them come: below this value, and only then, their number in service would vary more for it."""
LARGE = 1.645
"""Standard deviations above its mean of a batch that is larger than 95 % of all."""


@dataclass(frozen=True)
class Arrivals:
    """Arrivals at one server, (n,): requests per second, squared CV of their gaps."""

    rate: Floats
    burstiness: Floats


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
        sway: Standard deviation of the step as the batch varies [s].
        slope: Growth of the step per sequence [s].
        feedback: Further sequences that a further one causes.
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
    rough, *closer = ITERATIONS
    mode = _solve(one, lambda others: prompts(one, others), held, arrivals, rough)
    for iterations in closer:
        by_company = prompts_by_company(s, one, company(s, mode / s.steps))
        mode = _solve(s, by_company, held, arrivals, iterations)
    cost = by_company(company(s, mode / s.steps))
    step = mean_step(s, cost, mode, arrivals.burstiness)
    cut = chunks(s, mode)
    fixed = fixed_time(s, cost, step.decode)
    load, response = _loads(s, cost, cut, arrivals.rate, (step, fixed))
    slope = _slope(s, mode) / (1.0 - load)
    feedback = np.minimum(arrivals.rate * s.steps * slope, HIGHEST_SHARE)
    peak = 1.0 + (arrivals.burstiness - 1.0) * s.workload.peakedness
    own = np.maximum(peak, LEAST_PEAKEDNESS) / (1.0 - feedback)
    mean = mode + feedback * own
    variance = mean * own
    # A request sees at least itself, however regular arrivals are.
    seen = np.maximum(mode + own, 1.0)
    # Once all room is taken, more arrivals neither raise the batch nor spread it.
    spread = np.sqrt(variance * np.minimum(held / seen, 1.0))
    seen = np.minimum(seen, held)
    return Batch(
        cost=cost,
        cut=cut,
        step=step,
        fixed=fixed,
        load=load,
        response=response,
        mean=np.minimum(mean, held),
        variance=variance,
        seen=decode_time(s, seen) / (1.0 - load),
        sway=_sway(s, held, seen, spread) / (1.0 - load),
        slope=slope,
        feedback=feedback,
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


def _sway(s: Service, held: Floats, seen: Floats, spread: Floats) -> Floats:
    """Standard deviation of a decode step as the batch varies [s], (n,).

    Steps of a mixture of experts rise ever more slowly: what counts is the step of a large batch.
    But a step that the other sequences lengthen little varies little with their number, and what
    lies between two bounds by half their distance at most (T. Popoviciu, Mathematica 9, 1935).
    """
    one, usual = decode_time(s, np.ones_like(held)), decode_time(s, seen)
    large = decode_time(s, seen + LARGE * spread)
    # At a batch of one, what the second sequence adds.
    each = (usual - one + LEAST_BATCH * s.growth) / (seen - 1.0 + LEAST_BATCH)
    most = np.minimum(each * spread, 0.5 * (decode_time(s, held) - one))
    return np.clip((large - usual) / LARGE, 0.0, most)


def _slope(s: Service, mode: Floats) -> Floats:
    """Growth of a decode step per sequence [s], from somewhat small batches to large ones.

    The large ones count for the spread; and steps have kinks, as where a collective changes its
    algorithm, that must not show at once.
    """
    spread = np.sqrt(mode)
    above = np.maximum(LARGE * spread, 0.5)
    below = np.minimum(np.maximum(0.5 * spread, 0.5), mode)
    rise = decode_time(s, mode + above) - decode_time(s, mode - below)
    slope: Floats = np.maximum(rise, 0.0) / (above + below)
    return slope


def _solve(
    s: Service,
    cost: Callable[[Floats], Prompts],
    held: Floats,
    arrivals: Arrivals,
    iterations: int,
) -> Floats:
    """Solve n = rate * steps * step(n) on [0, held] by the Illinois secant method.

    Args:
        s: The server.
        cost: What prompts cost, by the tokens of others that share their steps.
        held: Sequences resident at most, (n,).
        arrivals: Arrivals, (n,).
        iterations: Of the method.
    """

    def excess(batch: Floats) -> Floats:
        here = cost(company(s, batch / s.steps))
        step = mean_step(s, here, batch, arrivals.burstiness)
        return arrivals.rate * s.steps * step.time - batch

    low, high = np.full_like(held, LEAST_BATCH) * np.minimum(s.steps, 1.0), held
    at_low, at_high = excess(low), excess(high)
    side = np.zeros_like(held)
    batch = high
    for _ in range(iterations):
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
