"""Decoding as its sequences see it, and what prompts leave behind in their steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import LEAST, Floats
from planner.model.queueing.bursts import burst_size
from planner.model.queueing.cycle import Wait
from planner.model.queueing.normal import decay
from planner.model.queueing.saturation import Saturation
from planner.model.queueing.service import Service, full_step
from planner.model.queueing.steady import Arrivals, Batch


@dataclass(frozen=True)
class Decoding:
    """Decoding as its sequences see it.

    Attributes:
        steps: Steps of a request after its first token, by output node.
        slowest: Longest step: all room taken by prompts, or all prompts that have a slot [s].
        mates: Requests of the own burst that are computed meanwhile, by output node.
        behind: Work that prompts leave behind in a request's steps, by output node [s].
        sequences: Sequences decoding, those kept longer by that work included.
        resident: The same with those whose prompts are computed.
        seen: Mean step that a sequence sees [s].
        sway: Its standard deviation as the batch varies [s].
        calm: The same if no prompts are computed meanwhile [s].
    """

    steps: Floats
    slowest: Floats
    mates: Floats
    behind: Floats
    sequences: Floats
    resident: Floats
    seen: Floats
    sway: Floats
    calm: Floats


def decoding(
    s: Service, full: Saturation, arrivals: Arrivals, stages: tuple[Batch, Wait]
) -> Decoding:
    """Return decoding beside the prompts of others.

    Args:
        s: The server.
        full: Its limits.
        arrivals: Arrivals that a request meets, (n,).
        stages: Its steady state as a request sees it, and the wait for prompts.

    Source:
        planner/model/README.md#queueing.
    """
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
    least_seen, most_seen = (x / (1.0 - batch.load) for x in (s.single, batch.fullest))
    seen = batch.seen + batch.slope * more
    # Of a batch that is cut to what fits the variance over the mean stays. And what lies between
    # two bounds varies by half their distance at most (T. Popoviciu, Mathematica 9, 1935).
    cut = np.minimum(most_seen / seen, 1.0)
    sway = np.minimum(np.sqrt(cut) * batch.sway, 0.5 * (most_seen - least_seen))
    seen = cut * seen
    calm = seen * (1.0 - batch.load)
    return Decoding(steps, slowest, mates, behind, sequences, resident, seen, sway, calm)


def _left(s: Service, stages: tuple[Batch, Wait], arrivals: Arrivals, steps: Floats) -> Floats:
    """Work in a request's steps by prompts that came before its first token [s], (nodes, n)."""
    batch, wait = stages
    beyond = np.maximum(wait.exposed - batch.step.time, 0.0)
    response = arrivals.timed * batch.response
    longer = _next_step(s, batch, arrivals, arrivals.timed * beyond)
    result: Floats = echoes(response, steps) * longer
    return result


def _mates_work(s: Service, batch: Batch, mates: Floats, steps: Floats) -> Floats:
    """Work of late mates in a request's steps [s], (nodes, n)."""
    if not mates.any():
        return mates
    work = batch.cost.work_mean + s.workload.mean((batch.cut.steps - 1.0) * batch.fixed)
    fixed = s.workload.mean(batch.fixed) * (1.0 - batch.step.mixed)
    last = shared_by_mates(fixed, mates, steps)
    result: Floats = mates * (work + last)
    return result


def shared_by_mates(fixed: Floats, mates: Floats, steps: Floats) -> Floats:
    """What each late mate adds of a step's fixed part [s], (nodes, n): those of a step share it.

    A geometric number comes in each step.

    Args:
        fixed: Fixed part of a step with prompts, as far as no others have brought it [s], (n,).
        mates, steps: Late mates and steps of a request, by output node, (nodes, n).
    """
    result: Floats = fixed / (1.0 + mates / steps)
    return result


def _late_mates(batch: Batch, arrivals: Arrivals, wait: Wait, steps: Floats) -> Floats:
    """Requests of the own burst that are computed while one decodes, (nodes, n).

    Those that come in the rest of the step met are computed with it as far as they fit.
    """
    stay = arrivals.timed * wait.exposed + steps * batch.seen
    begun, ended = (
        burst_size(arrivals.burstiness, arrivals.rate * time)
        for time in (wait.rest, wait.rest + stay)
    )
    return ended - begun + wait.unfit * (begun - 1.0)


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


def echoes(response: Floats, steps: Floats) -> Floats:
    """Return by how many times as much `steps` steps are longer of which the first is, (nodes, n).

    Prompts that arrive in a step lengthen the next one by `response` of its time, and so on.
    """
    lost = _lost(response, steps)
    result: Floats = (1.0 - lost) / (1.0 - response)
    return result


def _lost(response: Floats, steps: Floats) -> Floats:
    """Return response^steps, (nodes, n)."""
    return decay(steps * -np.log(np.maximum(response, LEAST)))


def echo_squares(response: Floats, steps: Floats) -> tuple[Floats, Floats]:
    """Square of ``echoes``, and its mean over the steps in which a prompt may come, (nodes, n).

    The later it comes, the fewer of the request's own steps it lengthens; one at least.
    """
    idle = 1.0 - response
    lost = _lost(response, steps)
    times = (1.0 - lost) * (1.0 / idle)
    once = 2.0 * response * times
    twice = response * response / (1.0 + response) * times * (1.0 + lost)
    mean = np.maximum((1.0 + (twice - once) / steps) * (1.0 / (idle * idle)), 1.0)
    return times * times, mean
