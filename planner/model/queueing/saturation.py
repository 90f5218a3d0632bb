"""How many sequences a server holds, and the highest rate it can serve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Floats
from planner.model.queueing.resident import resident
from planner.model.queueing.service import (
    Service,
    attention,
    chunks,
    decode_time,
    prompt_room,
    prompt_step,
)

ITERATIONS = 3
"""Of the slots that full steps need: prompts are cut the finer the more sequences decode."""
LEAST_ARRIVING = 1e-9
"""Prompts per step at least, against division by zero, as for what is left of a step."""


@dataclass(frozen=True)
class Saturation:
    """A server at its limit, (n,).

    Attributes:
        rate: Highest stable rate if at least one sequence fits [requests/s].
        slots: Sequences resident when it is full; below 1 = not even one fits.
        limit: Sequences that the engine allows.
        memory: Sequences for which there is KV memory on average.
        prompts: Prompts per step.
        rework: Prompt tokens computed again for each that is computed, KV having run out.
    """

    rate: Floats
    slots: Floats
    limit: Floats
    memory: Floats
    prompts: Floats
    rework: Floats


@dataclass(frozen=True)
class _Runs:
    """Steps with prompts: those that prompts fill, and the last one of each run of such steps.

    Attributes:
        filled: Share of the steps that prompts fill, (n,).
        last: Last steps of a run per step, (n,).
        left: Prompt tokens in such a step, by node of the prompt it begins with, (nodes, n).
        twice: What were filled further if all prompts were computed twice, (n,).
    """

    filled: Floats
    last: Floats
    left: Floats
    twice: Floats


def _queueing(s: Service, held: Floats, by_slots: Floats, by_tokens: Floats) -> Floats:
    """Sequences that decode if all slots are taken and prompts wait for tokens, (n,).

    A sequence keeps its slot for the steps of its prompt and its decode steps, `own` together, and
    while the prompts of others fill the steps. With x prompts a step, of which one fills S steps
    and all its tokens f, held = x (own + x E[S^2] / 2 / (1 - x f)). One solution lies below both
    limits, held / own and 1 / f. Prompts that run alone take no decode steps and wait for none.

    Args:
        s: The server.
        held: Slots, (n,).
        by_slots, by_tokens: Sequences that would decode if only these were scarce, (n,).

    Source:
        A closed network of a delay and one server, whose queue is that of M/G/1 with a request
        less: P. J. Schweitzer, Proc. Int. Conf. Stochastic Control and Optimization, 1979.
    """
    cut = chunks(s, np.minimum(by_slots, by_tokens))
    spread = s.workload.prompt_weighted / s.workload.prompt
    waiting = 0.5 * s.workload.mean(spread * cut.share**2) * (1.0 - 1.0 / held)
    waiting = s.mixed * waiting
    own, fill = s.steps + s.mixed * cut.mean, s.steps / by_tokens
    total = own + held * fill
    root = np.sqrt(np.maximum(total**2 - 4.0 * held * (own * fill - waiting), 0.0))
    batch: Floats = s.steps * 2.0 * held / (total + root)
    return batch


def saturation(s: Service) -> Saturation:
    """Return the limits of a server.

    Slots: all of them are taken, a sequence keeps its slot for its prompt's and its decode steps.
    Tokens: every step is full, unless prompts run alone. Either way the batch is known and the
    step time explicit.

    Source:
        Little, Oper. Res. 9(3), 1961; our derivation, planner/model/README.md#queueing.
    """
    full = resident(s)
    held = np.maximum(full.held, 1.0)
    by_slots = held * s.steps / (s.steps + s.mixed * chunks(s, held).mean)
    by_tokens = np.where(s.mixed > 0, _token_batch(s), np.inf)
    batch = _queueing(s, held, by_slots, by_tokens)
    prompts = np.maximum(batch / s.steps, LEAST_ARRIVING)
    room = prompt_room(s, batch)
    rework = _rework(s, full.growing, prompts, _runs(s, prompts, room, 1.0))
    time = _step_time(s, batch, room, rework)
    return Saturation(batch / s.steps / time, full.held, full.limit, full.memory, prompts, rework)


def _rework(s: Service, growing: Floats, arriving: Floats, runs: _Runs) -> Floats:
    """Prompt tokens computed again for each that is computed, (n,).

    Requests stand in a line, of which the memory holds the first tokens. Growth pushes its end
    back, a departure lets it go on, both at once in one step: on the whole by a prompt a
    departure. So every place of the line is passed backwards by as many tokens as grow meanwhile,
    which are those of an output: whoever stands there is preempted and computed again. None is
    where growth finds free memory: a sequence ends in that step, or prompts that would fit wait for
    tokens.

    Args:
        s: The server.
        growing: Share of the time in which growing sequences fill the memory, (n,).
        arriving: Prompts per step, as many as sequences that end, (n,).
        runs: Steps with prompts if nothing is computed again.

    Source:
        Level crossings: P. H. Brill and M. J. M. Posner, Oper. Res. 25(4), 1977; our derivation,
        planner/model/README.md#queueing.
    """
    again = growing * s.workload.steps_mean / s.workload.prompt_mean * np.exp(-arriving)
    free = np.clip(1.0 - s.mixed * runs.filled, 0.0, 1.0)
    # What is computed again fills steps, too.
    rework: Floats = again * free / (1.0 + again * s.mixed * runs.twice)
    return rework


def _runs(s: Service, arriving: Floats, room: Floats, times: Floats | float) -> _Runs:
    """Return how prompts fill steps if each token of theirs is computed so many times.

    What does not fit into a step fills it and goes on in the next: a run of steps begins where
    prompts arrive while nothing is left of earlier ones, and all its steps but the last are full.
    So x prompts a step are x * tokens = filled * room + last * left, in last = (1 - filled)
    (1 - exp(-x)) runs a step. Where prompts run alone, nothing arrives during a run.

    Source:
        Conservation of tokens and of runs; planner/model/README.md#queueing.
    """
    begin, tokens = -np.expm1(-arriving), s.tokens_mean * times
    left = _left(arriving, room, s.tokens * times, tokens)
    end = begin * s.workload.mean(left) / room
    rest = np.maximum(1.0 - s.mixed * end, LEAST_ARRIVING)
    filled = (arriving * tokens / room - end) / rest
    last = begin * (1.0 - s.mixed * filled)
    return _Runs(filled, last, left, arriving * tokens / room / rest)


def _step_time(s: Service, batch: Floats, room: Floats, rework: Floats) -> Floats:
    """Mean step in which `batch` sequences decode, each of which came in with a prompt [s], (n,).

    Who was preempted comes back in front of the next prompt, and both are computed together.

    Args:
        s: The server.
        batch: Decoding sequences, (n,).
        room: Prompt tokens that fit into a step beside them, (n,).
        rework: Prompt tokens computed again for each that is computed, (n,).
    """
    mean, times = s.workload.mean, 1.0 + rework
    arriving = np.maximum(batch / s.steps, LEAST_ARRIVING)
    runs = _runs(s, arriving, room, times)
    decode = decode_time(s, batch)
    full, partly = prompt_step(s, room, decode), prompt_step(s, runs.left, decode)
    work = runs.filled * full.work + runs.last * mean(partly.work)
    attended = times * arriving * attention(s)
    return decode + work + attended + runs.filled * full.fixed + runs.last * mean(partly.fixed)


def _left(arriving: Floats, room: Floats, tokens: Floats, mean: Floats | float) -> Floats:
    """Prompt tokens in the last step of a run, by node of the prompt it begins with, (nodes, n).

    It begins with one prompt, or with the mean of the others that come with it. A run ends
    anywhere in a step, half of it on average; one of a single step holds what it began with.

    Args:
        arriving: Prompts per step, (n,).
        room: Prompt tokens that fit into a step, (n,).
        tokens: Prompt tokens to compute, by node, (nodes, n) or (nodes, 1).
        mean: Their mean.
    """
    some = -np.expm1(-arriving)
    single = arriving * np.exp(-arriving) / some
    others = (arriving / some - 1.0) / (1.0 - single) * mean

    def rest(tokens: Floats) -> Floats:
        # Joined by a straight line: a prompt just beyond a step is as one that just fits.
        return np.minimum(tokens, np.maximum(2.0 * room - tokens, 0.5 * room))

    left: Floats = single * rest(tokens) + (1.0 - single) * rest(tokens + others)
    return left


def useful_slots(s: Service, slots: Floats) -> Floats:
    """Return at how many of these slots a server carries most, (n,): more do not help.

    From there on every step is full, so that further sequences only wait for tokens. Where prompts
    run alone they take none from those that decode.
    """
    batch = _token_batch(s)
    held = batch
    for _ in range(ITERATIONS):
        held = batch * (1.0 + chunks(s, held).mean / s.steps)
    return np.where(s.mixed > 0, np.minimum(slots, held), slots)


def _token_batch(s: Service) -> Floats:
    """Decoding sequences whose tokens, with those of their prompts, fill every step, (n,)."""
    batch: Floats = s.budget * s.steps / (s.carried * s.steps + s.tokens_mean)
    return batch
