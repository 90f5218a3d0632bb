"""The wait for the running step and for other prompts: a gated queue with a pause.

What arrives during a step is computed in the next one, so steps form a chain: a step takes a
pause (the decoding sequences' share) plus the prompts that arrived during the one before. With no
pause this is the M/G/1 queue, with one it is M/G/1 with gated vacations. Where the least loaded
server is chosen, part of the requests come by the step, however long it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Floats
from planner.model.queueing.bursts import burst_size
from planner.model.queueing.service import Prompts, Service, fixed_time, prompts
from planner.model.queueing.steady import Arrivals, Batch

HIGHEST_LOAD = 0.985
LEAST_VARIATION = 0.2
HIGHEST_SHAPE = 0.45
"""Of a generalised Pareto: -1 is uniform, 0 exponential; second moments exist below 0.5."""
LEAST_SHAPE = 1e-6
LONGEST = 2.25
"""Longest wait over the mean, at least. If all up to it were as likely it were 2; a little more
keeps it from falling as the load rises, as the two moments alone would have it."""
HORIZON = 2.0
"""Cycles over which a burst counts: the one under way and the next."""


@dataclass(frozen=True)
class Cycle:
    """Steps as the prompts see them, (n,).

    Attributes:
        pause: A step without prompts [s].
        each: Mean time that a prompt adds beside the fixed part of its last step [s].
        load: That time per second.
        second: Rate of its second moment, bursts included [s].
        empty: Probability that no prompt arrives in a step.
        mean: Mean step [s].
        timed: Share of the prompts that come the more the longer a step is.
        met, met_square: Mean and mean square of the step that an arrival meets [s], [s^2].
    """

    pause: Floats
    each: Floats
    load: Floats
    second: Floats
    empty: Floats
    mean: Floats
    timed: Floats
    met: Floats
    met_square: Floats

    @property
    def open(self) -> Floats:
        """Mean time for which prompts arrive in the step that an arrival meets [s], (n,)."""
        result: Floats = (1.0 - self.timed) * self.mean + self.timed * self.met
        return result


@dataclass(frozen=True)
class Wait:
    """TTFT without the wait for slots, as OpenLoop describes it, and what else it implies.

    Attributes:
        own, quiet, pause, awake, shape, scale, mean, variance: As in OpenLoop.
        first: Mean time from the first own step to the first token [s], (n,).
        first_variance: Its variance over the prompts [s^2], (n,).
        exposed: Time until the first token in which prompts arrive that are computed after it [s].
        rest: Mean rest of the step that an arrival meets [s], (n,).
        unfit: Share of the prompts that come in it and find no room beside its own, (n,).
        alone: What prompts cost that share their steps with no other.
    """

    own: Floats
    quiet: Floats
    pause: Floats
    awake: Floats
    shape: Floats
    scale: Floats
    mean: Floats
    variance: Floats
    first: Floats
    first_variance: Floats
    exposed: Floats
    rest: Floats
    unfit: Floats
    alone: Prompts


@dataclass(frozen=True)
class _Moments:
    """Wait for others: mean, mean square, and the part of it that is served in the own step."""

    mean: Floats
    square: Floats
    served: Floats


def prompt_wait(s: Service, batch: Batch, arrivals: Arrivals) -> Wait:
    """Return the wait of a request for the step under way and for other prompts.

    Source:
        Gated vacations: H. Takagi, "Queueing Analysis" vol. 1, 1991, section 2.3; bursts as
        geometric batches; generalised Pareto through two moments; our derivation,
        planner/model/README.md#queueing.
    """
    cycle, size = _cycle(s, batch, arrivals)
    alone = prompts(s, 0.0)
    own, awake, other = _own_time(s, batch, arrivals, alone)
    w = s.workload
    # Of an idle server: what fewer of those behind a prompt fit, it does not wait less by.
    spare = np.ceil(s.tokens / s.budget) * s.budget - s.tokens
    # Of a geometric number of prompts, as much as finds room: exact up to the room of one.
    later = arrivals.rate * cycle.open / 2.0 + size - 1.0
    fit = w.mean(np.minimum(spare / (s.tokens_mean * (1.0 + later)), 1.0))
    wait = _moments(s, batch, cycle, size, fit)
    quiet = cycle.empty * (1.0 - cycle.timed + cycle.timed * cycle.pause / cycle.mean) / size
    quiet = quiet * np.exp(-arrivals.rate * cycle.pause * (1.0 + fit) / 2.0 / size)
    quiet = np.minimum(quiet, 0.999)
    shape, scale = _pareto(wait, quiet, cycle.pause, other + alone.work_mean)
    # Nobody waits for a step that does not run.
    idle = quiet * (1.0 - awake) * cycle.pause
    mean = wait.mean - idle / 2.0
    square = wait.square - idle * cycle.pause / 3.0
    first = w.mean(own)
    exposed = first + wait.served + (1.0 - fit) * cycle.open / 2.0
    # Later arrivals that share the last step of a prompt that takes several.
    before_last = (batch.cut.whole - 1.0) / batch.cut.whole * own
    sharing = np.minimum(arrivals.rate * before_last, spare / s.tokens_mean)
    return Wait(
        # At what they take alone: what company saves grows with the rate, their number does not.
        own=own + sharing * alone.work_mean + _constants(s, batch, arrivals),
        quiet=quiet,
        pause=cycle.pause,
        awake=awake,
        shape=shape,
        scale=scale,
        mean=mean,
        variance=np.maximum(square - mean * mean, 0.0),
        first=first,
        first_variance=w.mean(own * own) - first * first,
        exposed=exposed,
        rest=0.5 * cycle.met,
        unfit=1.0 - fit,
        alone=alone,
    )


def _cycle(s: Service, batch: Batch, arrivals: Arrivals) -> tuple[Cycle, Floats]:
    """Return the chain of steps, and the size of bursts within it."""
    w, decode = s.workload, batch.step.decode
    # Within the last node lengths differ by factors: its squares are not those of its mean.
    spread = w.prompt_weighted / w.prompt
    time = batch.cost.work + (batch.cut.steps - 1.0) * (batch.fixed + s.mixed * decode)
    square = spread * time * time
    one, two, three = (w.mean(x) for x in (time, square, square * (spread * spread * time)))
    asked = arrivals.rate * one
    served = np.minimum(1.0, HIGHEST_LOAD / np.maximum(asked, 1e-12))
    load, rate = served * asked, served * arrivals.rate
    pause = np.maximum(s.candidates.layout.poll_steps, 1.0) * decode
    # What a step with prompts takes beside their work, which however many share.
    base = s.mixed * pause + w.mean(batch.fixed)
    expected = arrivals.rate * batch.step.time
    # In each step of a prompt that takes several, requests end and others come.
    further = s.mixed * w.mean((batch.cut.steps - 1.0) * time) * batch.step.time
    by_step = 1.0 - np.minimum(further / np.maximum(two, 1e-12), 1.0)
    prompt = one, load, 1.0 - (1.0 - arrivals.timed) * by_step
    plain = _chain(s, (pause, base), prompt, (rate * two, rate * three), -np.expm1(-expected))
    size = burst_size(arrivals.burstiness, HORIZON * arrivals.rate * plain.met)
    extra = size - 1.0
    second = rate * (two + 2.0 * extra * one * one)
    third = rate * (three + 6.0 * size * extra * (two * one + extra * _cube(one)))
    some = -np.expm1(-expected / size)
    return _chain(s, (pause, base), prompt, (second, third), some), size


def _chain(
    s: Service,
    fixed: tuple[Floats, Floats],
    prompt: tuple[Floats, Floats, Floats],
    rates: tuple[Floats, Floats],
    some: Floats,
) -> Cycle:
    """Return the first moments of the stationary step: a fixed part and compound Poisson prompts.

    Args:
        s: The server.
        fixed: Fixed part of a step without and with prompts [s], (n,).
        prompt: Mean prompt time [s], prompt time per second, and Cycle.timed, (n,).
        rates: Rates of the second and third moments of prompt time, (n,).
        some: Probability that prompts arrive in a step that decodes, (n,).
    """
    (pause, base), (each, load, timed), (second, third) = fixed, prompt, rates
    # Where prompts go first, each decode step with arrivals brings a step of prompts alone.
    none = np.where(s.mixed > 0, 1.0 - some, 1.0 / (1.0 + some))
    one = (none * pause + (1.0 - none) * base) / (1.0 - load)
    two = none * pause**2 + (1.0 - none) * base**2
    two = two + (2.0 * base * load + second) * one
    two = (two + load**2 * (1.0 - timed**2) * one**2) / (1.0 - (load * timed) ** 2)
    # Moments of the time for which prompts arrive in a step; of the third what is known of it.
    square = one**2 + timed**2 * (two - one**2)
    cube = (1.0 - timed) ** 2 * (1.0 + 2.0 * timed) * _cube(one)
    cube = cube + 3.0 * (1.0 - timed) * timed**2 * one * two
    three = (
        none * _cube(pause)
        + (1.0 - none) * _cube(base)
        + 3.0 * base * (base * load * one + load**2 * square + second * one)
        + 3.0 * load * second * square
        + third * one
        + _cube(load) * cube
    ) / (1.0 - _cube(load * timed))
    met = (1.0 - timed) * one + timed * two / one
    met_square = (1.0 - timed) * two + timed * three / one
    return Cycle(pause, each, load, second, none, one, timed, met, met_square)


def _cube(x: Floats) -> Floats:
    """Return the third power, which numpy takes logarithms for."""
    return x * x * x


def _own_time(
    s: Service, batch: Batch, arrivals: Arrivals, cost: Prompts
) -> tuple[Floats, Floats, Floats]:
    """Return the time of a prompt that meets no other, by node, and how often a step runs.

    And the mean time of such a prompt beside decoding sequences [s], (n,).
    """
    decode, cut = batch.step.decode, batch.cut
    alone = cost.work + cut.whole * cost.overhead
    shared = cut.whole * (decode + fixed_time(s, cost, decode)) + cost.work
    beside = np.where(s.mixed > 0, np.maximum(shared, alone), alone)
    prefilling = arrivals.rate * s.workload.mean(beside)
    awake = -np.expm1(-(batch.mean + prefilling))
    # The other pipeline stages see a chunk after the first one is done with it. Chunks that are
    # cut finer because others decode would pass sooner, but none is served sooner for that.
    lag = (s.terms.stages - 1.0) * alone / np.ceil(s.tokens / s.budget)
    return awake * beside + (1.0 - awake) * alone + lag, awake, s.workload.mean(beside)


def _moments(s: Service, batch: Batch, cycle: Cycle, size: Floats, fit: Floats) -> _Moments:
    """Wait for the rest of the step met, the prompts before, and those after that fit beside."""
    # Only the work of others counts in the own step, not their further steps.
    paid = batch.cost.work_mean / np.maximum(cycle.each, 1e-12)
    one = paid * cycle.load
    after = fit * one
    mean = 0.5 * (cycle.met + (after + one) * cycle.open)
    usual, timed = (1.0 - cycle.timed) * cycle.mean, cycle.timed
    both = usual * cycle.met + timed * cycle.met_square
    open_square = usual * (cycle.open + timed * cycle.met) + timed**2 * cycle.met_square
    square = cycle.met_square + (2.0 * after + one) * both
    square = (square + (after**2 + after * one + one**2) * open_square) / 3.0
    square = square + paid * paid * cycle.second * cycle.open * (1.0 + fit) / 2.0
    # Members of the own burst: as many before as after, each a geometric number.
    time = batch.cost.work_mean
    extra = size - 1.0
    member = extra * time
    member_square = extra * s.workload.mean(batch.cost.work**2) + 2.0 * extra * extra * time * time
    mates = (1.0 + fit) * member
    mates_square = (1.0 + fit) * member_square + 2.0 * fit * member * member
    served = cycle.open / 2.0 * one * (1.0 + fit) + mates
    return _Moments(mean + mates, square + 2.0 * mean * mates + mates_square, served)


def _pareto(wait: _Moments, quiet: Floats, pause: Floats, long: Floats) -> tuple[Floats, Floats]:
    """Return shape and scale of the wait of those that meet others; the rest wait uniformly.

    Some come as the prompt of another begins, and behind a third one: the longest wait is no
    shorter than these take, `long`.
    """
    busy = 1.0 - quiet
    mean = np.maximum((wait.mean - quiet * pause / 2.0) / busy, 1e-9)
    square = (wait.square - quiet * pause * pause / 3.0) / busy
    variation = np.maximum(square / (mean * mean) - 1.0, LEAST_VARIATION)
    # The longest wait is mean * (1 - 1 / shape).
    least = -1.0 / (np.maximum(long / mean, LONGEST) - 1.0)
    shape = np.clip(0.5 * (1.0 - 1.0 / variation), least, HIGHEST_SHAPE)
    shape = np.where(np.abs(shape) < LEAST_SHAPE, LEAST_SHAPE, shape)
    return shape, mean * (1.0 - shape)


def _constants(s: Service, batch: Batch, arrivals: Arrivals) -> Floats:
    """HTTP path, front end, and the time in which an engine waits for a batch to fill [s]."""
    p = s.parameters
    window = s.candidates.layout.batch_wait_steps * batch.step.decode
    expected = arrivals.rate * window
    filling = window * (1.0 + 0.5 * expected) / (1.0 + expected)
    front = p.first_token + p.frontend_request + p.frontend_token * s.workload.prompt
    result: Floats = front + filling
    return result
