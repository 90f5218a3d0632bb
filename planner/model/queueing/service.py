"""What the steps of one server cost under a workload.

An engine step in which n sequences decode and prompts are computed takes

    decode(n) + work + fixed,    fixed = max(unshared * overhead, overhead - decode(n)):

the prompts' arithmetic, and once a step the part of a prefill's weight reads and launches that
decoding does not pay already; it never takes less than the prompts would alone. Engines that put
prompts first pause decoding meanwhile, which costs the decoding sequences the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.model.arrays import LEAST, Candidates, Floats, Parameters
from planner.model.forward import (
    DecodeCore,
    decode_core,
    decode_step_of,
    prefill_core,
    prefill_pass,
)
from planner.model.terms import Terms, terms
from planner.model.workload import Workload

LEAST_ROOM = 1 / 16
"""Share of the token budget that prompts get at least."""
MOST_FILLED = 0.99
"""Share of the steps that single prompts fill at most."""


@dataclass(frozen=True)
class Service:
    """A server and its workload.

    Attributes:
        candidates, parameters, workload, terms: Where it comes from.
        mixed: Prompts share steps with decoding sequences (else they pause them), (n,).
        accepted: Tokens that a sequence gains in an engine step, (n,).
        budget: Tokens of a step, (n,).
        carried: Tokens of the budget that a decoding sequence takes, (n,).
        steps: Mean engine steps of a request after its first token, (n,).
        decode: Attention of a decoding sequence at its mean context.
        single, growth: Step of a single sequence, and what a second one adds to it [s], (n,).
        tokens: Prompt tokens to compute, by node, (nodes, 1).
        tokens_mean: Their mean.
        core: Attention and recurrences of a prompt token, by node [s], (nodes, n).
        blind: The same if it attended to nothing [s], (n,).
    """

    candidates: Candidates
    parameters: Parameters
    workload: Workload
    terms: Terms
    mixed: Floats
    accepted: Floats
    budget: Floats
    carried: Floats
    steps: Floats
    decode: DecodeCore
    single: Floats
    growth: Floats
    tokens: Floats
    tokens_mean: float
    core: Floats
    blind: Floats


@dataclass(frozen=True)
class Prompts:
    """What prompts cost if a given number of other prompt tokens share their steps.

    Attributes:
        work: Time in proportion to the prompt, by node [s], (nodes, n).
        overhead: Weight reads and launches of a step beyond that, by node [s], (nodes, n).
        work_mean: Mean work of a prompt [s], (n,).
    """

    work: Floats
    overhead: Floats
    work_mean: Floats


@dataclass(frozen=True)
class PromptStep:
    """What the prompt tokens of a step add to it, their attention apart [s].

    Attributes:
        work: What would be paid again if they were computed again.
        fixed: Weight reads and launches beyond that.
    """

    work: Floats
    fixed: Floats


@dataclass(frozen=True)
class Chunks:
    """How prompts are cut by the token budget.

    Attributes:
        room: Prompt tokens that fit into a step beside the decoding ones, (n,).
        share: Steps' room that a prompt fills, by node, (nodes, n).
        steps: Steps that it takes on average, by node, (nodes, n).
        mean: Mean steps of a prompt, (n,).
        filled: Mean steps that a prompt fills, so that no other shares them, (n,).
    """

    room: Floats
    share: Floats
    steps: Floats
    mean: Floats
    filled: Floats

    @cached_property
    def whole(self) -> Floats:
        """Steps that a prompt takes if it has the room for itself, by node, (nodes, n)."""
        return np.ceil(self.share)


@dataclass(frozen=True)
class Step:
    """A server's step on average, (n,).

    Attributes:
        time: Mean step [s].
        decode: Step that only decodes [s].
        chunks: Prompt chunks per step.
        mixed: Share of the steps with prompt tokens.
    """

    time: Floats
    decode: Floats
    chunks: Floats
    mixed: Floats


def service(c: Candidates, p: Parameters, w: Workload) -> Service:
    """Return what does not depend on the batch."""
    t = terms(c, p)
    tokens = np.maximum(w.prompt * (1.0 - w.prefix_hit), 1.0)
    decode = decode_core(t, np.full(len(c), w.context))
    one, two = (decode_step_of(t, p, np.full(len(c), batch), decode) for batch in (1.0, 2.0))
    return Service(
        candidates=c,
        parameters=p,
        workload=w,
        terms=t,
        mixed=c.engine.mixed,
        accepted=t.accepted,
        budget=c.layout.token_budget,
        carried=np.where(c.engine.mixed > 0, 1.0 + t.draft_tokens, 0.0),
        steps=max(w.steps_mean, 1e-9) / t.accepted,
        decode=decode,
        single=t.accepted * one,
        growth=t.accepted * np.maximum(two - one, 0.0),
        tokens=tokens,
        tokens_mean=float(w.mean(tokens)[0]),
        core=prefill_core(t, 0.5 * w.prompt_weighted * (1.0 + w.prefix_hit)),
        blind=prefill_core(t, np.zeros(1)),
    )


def decode_time(s: Service, batch: Floats) -> Floats:
    """Engine step that only decodes: `accepted` tokens for each of `batch` sequences [s], (n,).

    No step runs with fewer than one sequence, so a mean below one extends the step of one and two
    in a straight line; what experts would cost a fraction of a token is of no account. None is
    faster than that of a single sequence, though experts may be better used by two.
    """
    step = s.accepted * decode_step_of(s.terms, s.parameters, np.maximum(batch, 1.0), s.decode)
    step = np.maximum(step, s.single)
    return np.maximum(step - s.growth * np.maximum(1.0 - batch, 0.0), s.terms.launch)


def prompts(s: Service, others: Floats | float) -> Prompts:
    """Return what prompts cost when `others` tokens of other prompts share their steps, (n,).

    The more tokens in a step, the better experts are used and the less weight reads show.
    """
    chunk = np.minimum(s.tokens, s.budget)
    together = np.minimum(chunk + others, s.budget)
    one = prefill_pass(s.terms, s.parameters, together, s.core)
    work = one.proportional * (s.tokens / (together * s.terms.stages))
    overhead = (one.total - one.proportional + s.terms.eager) / s.terms.stages
    return Prompts(work, overhead, s.workload.mean(work))


def typical(s: Service) -> Service:
    """Return the same server, all of whose prompts are of mean length and mean attention."""
    w = s.workload
    return replace(
        s,
        workload=replace(w, weight=np.ones((1, 1))),
        tokens=np.array([[s.tokens_mean]]),
        core=w.mean(s.tokens * s.core)[None, :] / s.tokens_mean,
    )


def prompts_by_company(s: Service, one: Service, others: Floats) -> Callable[[Floats], Prompts]:
    """Return what prompts cost by the tokens of others that share their steps, (n,).

    Exact where these are `others`; elsewhere all change as the prompt of mean length does, for
    which it takes a small part of the time to say.

    Args:
        s: The server.
        one: The same, ``typical``.
        others: Tokens of other prompts, (n,).
    """
    cost, typically = prompts(s, others), prompts(one, others)

    def beside(others: Floats) -> Prompts:
        now = prompts(one, others)
        work = now.work_mean / np.maximum(typically.work_mean, LEAST)
        overhead = now.overhead / np.maximum(typically.overhead, LEAST)
        return Prompts(cost.work * work, cost.overhead * overhead, cost.work_mean * work)

    return beside


def full_step(s: Service) -> Floats:
    """Time of a step whose whole budget is prompt tokens [s], (n,)."""
    core = s.workload.mean(s.tokens * s.core) / s.tokens_mean
    one = prefill_pass(s.terms, s.parameters, s.budget, core)
    return (one.total + s.terms.eager) / s.terms.stages


def prompt_step(s: Service, tokens: Floats, decode: Floats) -> PromptStep:
    """Return what a step's prompt tokens add to it, whichever prompts they belong to.

    Args:
        s: The server.
        tokens: Prompt tokens of the step, (n,) or (nodes, n).
        decode: The step without them [s], (n,).
    """
    one = prefill_pass(s.terms, s.parameters, tokens, s.blind)
    overhead = (one.total - one.proportional + s.terms.eager) / s.terms.stages
    return PromptStep(one.proportional / s.terms.stages, _fixed(s, overhead, decode))


def attention(s: Service) -> Floats:
    """Mean time that a prompt's attention to its context takes [s], (n,)."""
    attending: Floats = s.workload.mean(s.tokens * (s.core - s.blind)) / s.terms.stages
    return attending


def company(s: Service, arriving: Floats, size: Floats | float = 1.0) -> Floats:
    """Prompt tokens that share a step with a prompt, averaged over the steps with prompts, (n,).

    Args:
        s: The server.
        arriving: Mean prompts that arrive in a step, (n,).
        size: How many of them come together; such groups come at random, (n,).
    """
    some = np.maximum(arriving, 1e-9)
    return (some / -np.expm1(-some / size) - 1.0) * s.tokens_mean


def prompt_room(s: Service, batch: Floats) -> Floats:
    """Prompt tokens that fit into a step beside `batch` decoding sequences, (n,)."""
    room: Floats = np.maximum(s.budget - s.carried * batch, LEAST_ROOM * s.budget)
    return room


def chunks(s: Service, batch: Floats) -> Chunks:
    """Return how the token budget cuts prompts while `batch` sequences decode.

    A prompt that is cut begins anywhere in a step, so it takes half a step more than it fills.
    """
    room = prompt_room(s, batch)
    share = s.tokens / room
    full = np.maximum(share, 1.0)
    beyond = full - 1.0
    steps = full + np.minimum(beyond, 0.5)
    mean, filled = s.workload.mean(steps), s.workload.mean(beyond)
    return Chunks(room, share, steps, mean, filled)


def fixed_time(s: Service, cost: Prompts, decode: Floats) -> Floats:
    """Fixed part that prompts add to a step, by node [s], (nodes, n)."""
    return _fixed(s, cost.overhead, decode)


def _fixed(s: Service, overhead: Floats, decode: Floats) -> Floats:
    return np.maximum(s.parameters.unshared_prefill * overhead, s.mixed * (overhead - decode))


def _carrying(prompts_per_step: Floats, cut: Chunks, size: Floats | float) -> Floats:
    """Share of the steps that carry prompt tokens, (n,).

    Steps that a prompt fills carry no other; what is left of prompts falls on the rest at random,
    `size` of them together.
    """
    filled = np.minimum(prompts_per_step * cut.filled, MOST_FILLED)
    partly = prompts_per_step * (cut.mean - cut.filled) / size
    share: Floats = filled - (1.0 - filled) * np.expm1(-partly / (1.0 - filled))
    return share


def mean_step(
    s: Service,
    cost: Prompts,
    batch: Floats,
    size: Floats | float = 1.0,
) -> Step:
    """Return the mean step when `batch` sequences decode.

    Each of them came in with a prompt and stays for `steps` steps, so prompts per step are known
    and the step time is explicit.

    Args:
        s: The server.
        cost: What prompts cost.
        batch: Decoding sequences, (n,).
        size: How many prompts come together, (n,).
    """
    cut = chunks(s, batch)
    decode = decode_time(s, batch)
    per_chunk = s.workload.mean(cut.steps * fixed_time(s, cost, decode)) / cut.mean
    prompts_per_step = batch / s.steps
    arrived = prompts_per_step * cut.mean
    share = _carrying(prompts_per_step, cut, size)
    time = decode + prompts_per_step * cost.work_mean + share * per_chunk
    return Step(time, decode, arrived, share)
