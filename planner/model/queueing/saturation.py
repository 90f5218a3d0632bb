"""How many sequences a server holds, and the highest rate it can serve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Floats
from planner.model.memory import sequences_that_fit
from planner.model.queueing.service import (
    Service,
    attention,
    chunks,
    decode_time,
    prompt_step,
)

REWORK = 1.15
"""Prompt work with that of preempted sequences, where KV memory limits the batch."""
ITERATIONS = 3
"""Of the slots that full steps need: prompts are cut the finer the more sequences decode."""
LEAST_ARRIVING = 1e-9
"""Prompts per step at least, against division by zero, as for what is left of a step."""


@dataclass(frozen=True)
class Saturation:
    """A server at its limit, (n,).

    Attributes:
        rate: Highest stable rate if at least one sequence fits [requests/s].
        slots: Sequences resident at most; below 1 = not even one fits.
        limit: Sequences that the engine allows.
        prompts: Prompts per step.
    """

    rate: Floats
    slots: Floats
    limit: Floats
    prompts: Floats


def kv_slots(s: Service, tokens: float) -> Floats:
    """Sequences of `tokens` tokens for which there is KV memory, (n,).

    Engines that reserve only the prompt admit it whole, which leaves half a prompt unused.
    """
    w = s.workload
    fits = sequences_that_fit(s.candidates, np.full(len(s.candidates), tokens))
    unused = w.prompt_square / (2.0 * w.prompt_mean) / tokens
    return fits - np.where(s.candidates.engine.full_length > 0, 0.0, unused)


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
    layout, engine = s.candidates.layout, s.candidates.engine
    limit = np.minimum(layout.max_sequences, s.budget / (1.0 + s.terms.draft_tokens))
    by_memory = kv_slots(s, s.workload.context_end)
    slots = np.minimum(limit, by_memory)
    held = np.maximum(slots, 1.0)
    by_slots = held * s.steps / (s.steps + s.mixed * chunks(s, held).mean)
    by_tokens = np.where(s.mixed > 0, _token_batch(s), np.inf)
    batch = _queueing(s, held, by_slots, by_tokens)
    prompts_per_step = batch / s.steps
    preempted = (by_memory < limit) & (engine.full_length == 0) & (by_slots <= by_tokens)
    time = _step_time(s, batch, np.where(preempted, REWORK, 1.0))
    return Saturation(prompts_per_step / time, slots, limit, prompts_per_step)


def _step_time(s: Service, batch: Floats, rework: Floats) -> Floats:
    """Mean step in which `batch` sequences decode, each of which came in with a prompt [s], (n,).

    What does not fit into a step fills it and goes on in the next: a run of steps begins where
    prompts arrive while nothing is left of earlier ones, and all its steps but the last are full.
    So x prompts a step are x * tokens = filled * room + last * left, in last = (1 - filled)
    (1 - exp(-x)) runs a step. Where prompts run alone, nothing arrives during a run.

    Args:
        s: The server.
        batch: Decoding sequences, (n,).
        rework: Factor on the prompts' work for those computed again, (n,).

    Source:
        Conservation of tokens and of runs; planner/model/README.md#queueing.
    """
    mean, room = s.workload.mean, chunks(s, batch).room
    arriving = np.maximum(batch / s.steps, LEAST_ARRIVING)
    begin, left = -np.expm1(-arriving), _left(s, arriving, room)
    end = begin * mean(left) / room
    rest = np.maximum(1.0 - s.mixed * end, LEAST_ARRIVING)
    filled = (arriving * s.tokens_mean / room - end) / rest
    last = begin * (1.0 - s.mixed * filled)
    decode = decode_time(s, batch)
    full, partly = prompt_step(s, room, decode), prompt_step(s, left, decode)
    work = filled * full.work + last * mean(partly.work) + arriving * attention(s)
    return decode + rework * work + filled * full.fixed + last * mean(partly.fixed)


def _left(s: Service, arriving: Floats, room: Floats) -> Floats:
    """Prompt tokens in the last step of a run, by node of the prompt it begins with, (nodes, n).

    It begins with one prompt, or with the mean of the others that come with it. A run ends
    anywhere in a step, half of it on average; one of a single step holds what it began with.
    """
    some = -np.expm1(-arriving)
    single = arriving * np.exp(-arriving) / some
    others = (arriving / some - 1.0) / (1.0 - single) * s.tokens_mean

    def rest(tokens: Floats) -> Floats:
        # Joined by a straight line: a prompt just beyond a step is as one that just fits.
        return np.minimum(tokens, np.maximum(2.0 * room - tokens, 0.5 * room))

    left: Floats = single * rest(s.tokens) + (1.0 - single) * rest(s.tokens + others)
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
