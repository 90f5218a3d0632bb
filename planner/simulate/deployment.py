"""One candidate as the simulator sees it: tabulated step times and the scheduler's limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.model.arrays import Candidates, Floats, Parameters
from planner.model.forward import decode_step, prefill_core, prefill_pass
from planner.model.memory import sequences_that_fit
from planner.model.terms import Terms, terms
from planner.model.workload import Workload

Routing = Literal["least_loaded", "round_robin", "random"]

LONGEST_STEP = 65_536
"""Prompt tokens of a step are tabulated up to here; a larger token budget is cut to it."""
MOST_SEQUENCES = 8_192
CONTEXT_SPAN = (0.5, 1.5)
"""Contexts, relative to the workload's mean, between which a step's time is taken as linear."""


@dataclass(frozen=True)
class Deployment:
    """What a fleet simulation needs to know about one candidate.

    Steps are the model's own (``planner.model.forward``). A step in which n sequences decode
    takes ``decode[n] + decode_context[n] * (sum of their contexts)``; m prompt tokens add
    ``stall[m]``, or take ``alone[m]`` if nothing decodes, plus attention for each prompt.

    An attention-data-parallel rank is a server of its own whose step times assume that the other
    ranks carry the same batch, as the formulas do. A pipeline is one server, too: its step is the
    time between two tokens of a sequence, and a prompt's first token comes `lag` later.

    Attributes:
        decode: Time of a decode step at zero context [s], by sequences.
        decode_context: Further time per token of summed context [s], by sequences.
        stall: Time that prompt tokens add to a decode step [s], by tokens.
        alone: Time of a step with prompt tokens only [s], by tokens.
        full_prefill, window_prefill: Attention of a prompt per token and attended token [s].
        top_k, window: Attended tokens at most by those layers.
        lag: Further time until the tokens have left the pipeline, per `alone` second.
        accepted: Tokens that a sequence gains in a decode step on average (speculation); all
            sequences gain the whole tokens of one running sum, so 2.5 is 2, 3, 2, 3, ...
        draft_tokens: Draft tokens a sequence carries through a step.
        blocks, block: KV blocks of a server, and tokens of a block.
        sequences: Sequences resident at most.
        budget: Tokens of a step.
        reserve_all: KV for prompt and whole output is taken at admission.
        prefill_first: Prompts run alone, decoding pauses; else both share a step.
        poll_steps: Decode steps between two looks at the queue.
        replicas, ranks: Replicas, and servers in each.
        routing: How requests are spread over all servers.
        prefix_hit: Share of a prompt found in the prefix cache: not computed, but held.
        first_token: Constant part of TTFT [s].
        frontend_request, frontend_token: Front end per request, per prompt token [s].
    """

    decode: tuple[float, ...]
    decode_context: tuple[float, ...]
    stall: tuple[float, ...]
    alone: tuple[float, ...]
    full_prefill: float = 0.0
    window_prefill: float = 0.0
    top_k: float = np.inf
    window: float = np.inf
    lag: float = 0.0
    accepted: float = 1.0
    draft_tokens: int = 0
    blocks: int = 1_000_000
    block: int = 16
    sequences: int = 256
    budget: int = 8_192
    reserve_all: bool = False
    prefill_first: bool = False
    poll_steps: int = 1
    replicas: int = 1
    ranks: int = 1
    routing: Routing = "least_loaded"
    prefix_hit: float = 0.0
    first_token: float = 0.0
    frontend_request: float = 0.0
    frontend_token: float = 0.0

    @property
    def servers(self) -> int:
        """Servers that schedule on their own."""
        return self.replicas * self.ranks

    @property
    def slots(self) -> int:
        """Sequences resident at most: all of them must get their token in one step."""
        most = min(self.sequences, self.budget // (1 + self.draft_tokens), len(self.decode) - 1)
        return max(most, 1)

    def blocks_of(self, tokens: int) -> int:
        """Blocks that hold `tokens` tokens."""
        return -(-tokens // self.block)

    def attention_time(self, start: int, tokens: int) -> float:
        """Attention of `tokens` prompt tokens after the first `start` of the same prompt [s]."""
        context = start + 0.5 * tokens
        full, near = min(context, self.top_k), min(context, self.window)
        return tokens * (full * self.full_prefill + near * self.window_prefill)


def deployment(
    c: Candidates, p: Parameters, w: Workload, *, routing: Routing = "least_loaded"
) -> Deployment:
    """Tabulate one candidate.

    Args:
        c: The candidate: one row.
        p: Fitted values.
        w: Lengths around which decode steps are tabulated, and the prefix hits.
        routing: How requests are spread over the servers.

    Returns:
        Tables and limits. KV memory is counted in blocks of equal size: where a sequence's
        memory is not proportional to its length (windows, recurrent state), blocks are sized so
        that sequences of the workload's mean final length fit as often as in the model.

    Raises:
        ValueError: `c` has not exactly one row.
    """
    if len(c) != 1:
        raise ValueError(f"a deployment is one candidate, not {len(c)}")
    t = terms(c, p)
    layout, engine = c.layout, c.engine
    sequences = int(min(layout.max_sequences[0], MOST_SEQUENCES))
    budget = int(min(layout.token_budget[0], LONGEST_STEP))
    decode, decode_context = _decode_tables(t, p, sequences, w.context)
    stall, alone = _prefill_tables(t, p, budget)
    stages = float(t.stages[0])
    block = int(engine.block[0])
    return Deployment(
        decode=decode,
        decode_context=decode_context,
        stall=stall,
        alone=alone,
        full_prefill=float(t.full_prefill[0]) / stages,
        window_prefill=float(t.window_prefill[0]) / stages,
        top_k=float(t.top_k[0]),
        window=float(t.window[0]),
        lag=stages - 1.0,
        accepted=float(t.accepted[0]),
        draft_tokens=int(layout.draft_tokens[0]),
        blocks=_blocks(c, w.context_end, block),
        block=block,
        sequences=sequences,
        budget=budget,
        reserve_all=bool(engine.full_length[0] > 0),
        prefill_first=not engine.mixed[0] > 0,
        poll_steps=max(int(layout.poll_steps[0]), 1),
        replicas=int(layout.replicas[0]),
        ranks=int(layout.dp[0]),
        routing=routing,
        prefix_hit=w.prefix_hit,
        first_token=p.first_token,
        frontend_request=p.frontend_request,
        frontend_token=p.frontend_token,
    )


def _decode_tables(
    t: Terms, p: Parameters, sequences: int, context: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    batch = np.arange(1.0, sequences + 1.0)
    low, high = (np.full_like(batch, share * context) for share in CONTEXT_SPAN)
    at_low = decode_step(t, p, batch, low) * t.accepted
    at_high = decode_step(t, p, batch, high) * t.accepted
    slope = (at_high - at_low) / (high - low)
    return _table(at_low - slope * low), _table(slope / batch)


def _prefill_tables(
    t: Terms, p: Parameters, budget: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    tokens = np.arange(1.0, budget + 1.0)
    one = prefill_pass(t, p, tokens, prefill_core(t, np.zeros_like(tokens)))
    fixed = one.total - one.proportional + t.eager
    stall = (one.proportional + p.unshared_prefill * fixed) / t.stages
    return _table(stall), _table((one.total + t.eager) / t.stages)


def _table(values: Floats) -> tuple[float, ...]:
    """Return values for 1, 2, ... as a table that begins at 0."""
    return (0.0, *values.tolist())


def _blocks(c: Candidates, tokens: float, block: int) -> int:
    held = float(np.ceil(tokens / block) * block)
    fits = float(sequences_that_fit(c, np.array([held]))[0])
    return max(int(fits * held / block), 0)
