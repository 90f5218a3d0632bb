"""How the mean step of a request varies: the batch drifts, and prompts come in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.model.arrays import LEAST, Floats
from planner.model.queueing.bursts import burst_size
from planner.model.queueing.cycle import Wait
from planner.model.queueing.decoding import Decoding, echo_squares, echoes, shared_by_mates
from planner.model.queueing.service import Service, fixed_time
from planner.model.queueing.steady import Arrivals, Batch

RARE = 2.326
"""Standard deviations by which what is larger than 99 % of all is above a normal mean."""


@dataclass(frozen=True)
class Company:
    """Prompts that are computed while a request decodes, by output node, (nodes, n).

    Attributes:
        met: Their mean number.
        none: Probability that there is none.
    """

    met: Floats
    none: Floats


def company_met(arrivals: Arrivals, wait: Wait, d: Decoding) -> Company:
    """Return the prompts that a request meets in its steps."""
    timed = arrivals.timed
    exposed = d.steps * (timed * d.calm + (1.0 - timed) * d.seen) + timed * wait.first
    met = arrivals.rate * exposed
    # Mates that are computed with it or before it do not hold it up.
    size = 1.0 + d.mates
    return Company(met, np.exp(-met / size) / size)


@dataclass(frozen=True)
class Spread:
    """How a request's mean step varies, by output node, (nodes, n): as in OpenLoop."""

    drift: Floats
    crowd: Floats
    filled: Floats
    filled_step: Floats


def step_variance(
    s: Service,
    arrivals: Arrivals,
    stages: tuple[Batch, Wait],
    d: Decoding,
    others: Company,
) -> Spread:
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

    def variance(rate: Floats, load: Floats, last: Floats) -> Floats:
        first, any_step = echo_squares(timed * load, steps)
        result: Floats = exposed * rate * any_step + load * load * left * first
        return (result + _mates_variance(d, (one, single), last)) / (steps * steps)

    # In steps that carry prompts anyway, further ones cost their work alone.
    load = np.minimum(arrivals.rate * one, batch.response)
    filled_step, sway = _filled(s, stages, d, load)
    # Whoever is held up has met a prompt, however few there are.
    met, met_variance = one / steps, np.maximum(single - one * one, 0.0) / (steps * steps)
    return Spread(
        drift,
        variance(work + shared, batch.response, fixed * without),
        variance(work, load, np.zeros_like(fixed)) + sway**2 * memory + met_variance,
        filled_step + met,
    )


def _mates_variance(d: Decoding, time: tuple[Floats, Floats], fixed: Floats) -> Floats:
    """Variance of the work of late mates, a geometric number [s^2], (nodes, n).

    Args:
        d: Decoding.
        time: Mean and mean square of a prompt's time less the fixed part of its last step, (n,).
        fixed: That part [s], (n,).
    """
    if not d.mates.any():
        return d.mates
    last = shared_by_mates(fixed, d.mates, d.steps)
    one, two = time
    result: Floats = d.mates * (two + 2.0 * one * last + last**2 + d.mates * (one + last) ** 2)
    return result


def _evenness(s: Service, arrivals: Arrivals, steps: Floats, others: Company) -> Floats:
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
    s: Service, stages: tuple[Batch, Wait], d: Decoding, load: Floats
) -> tuple[Floats, Floats]:
    """Return the step of a request of which every step carries prompts.

    Returns:
        Its mean, by output node [s], (nodes, n), and how the batch sways it [s], (n,): the less
        the longer the prompts' weight reads take than decoding.
    """
    batch, wait = stages

    # Company makes weight reads cheaper or, where more experts are read, dearer: the less of both.
    overhead = np.minimum(wait.alone.overhead, batch.cost.overhead)
    cost = replace(batch.cost, overhead=overhead)

    def carrying(decode: Floats) -> Floats:
        return (decode + s.workload.mean(fixed_time(s, cost, decode))) / (1.0 - load)

    mean = carrying(d.calm)
    beyond = np.maximum(wait.exposed - mean, 0.0)
    step = mean + echoes(load, d.steps) * load * beyond / d.steps
    # By a decode step that is longer than 99 % of all.
    sway = (carrying(d.calm + RARE * (1.0 - batch.load) * d.sway) - mean) / RARE
    return np.maximum(step, d.seen + d.behind / d.steps), sway
