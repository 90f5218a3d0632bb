"""Times of decode steps and prefills, from the parts in ``terms.py``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Columns, Floats, Parameters
from planner.model.terms import Terms


@dataclass(frozen=True)
class Pass(Columns):
    """One forward pass: its time, and the part of it that grows with the tokens [s], (n,)."""

    total: Floats
    proportional: Floats


@dataclass(frozen=True)
class Prefill(Columns):
    """A prompt's prefill [s], (n,).

    Attributes:
        alone: Time on an idle replica.
        stall: Time it adds to the steps of the sequences that are decoding.
    """

    alone: Floats
    stall: Floats


@dataclass(frozen=True)
class DecodeCore:
    """Attention and recurrences while a sequence decodes, (n,).

    Attributes:
        read: Memory traffic of a sequence in a pass [s].
        work: Arithmetic of a token [s].
    """

    read: Floats
    work: Floats


def smooth_maximum(a: Floats, b: Floats) -> Floats:
    """Return (a^4 + b^4)^(1/4): the larger of two times that overlap almost fully.

    Source: fitted exponent, planner/model/README.md#smooth-maximum.
    """
    fourth: Floats = np.square(np.square(a)) + np.square(np.square(b))
    np.sqrt(fourth, out=fourth)
    return np.sqrt(fourth, out=fourth)


def touched_experts(t: Terms, tokens: Floats) -> Floats:
    """Share of the routed experts that `tokens` tokens a rank touch.

    Experts are not equally popular. With a popularity drawn from a gamma distribution of shape a,
    an expert that uniform routing hits x times on average stays untouched with (1 + x/a)^-a.

    Source: negative binomial as a gamma mixture of Poisson counts, M. Greenwood & G. U. Yule,
    J. R. Stat. Soc. 83(2), 1920; shape fitted, planner/model/README.md#experts.
    """
    exponent = t.expert_hits * tokens
    if t.any_skewed:
        exponent = t.popularity * np.log(1.0 + exponent)
    result: Floats = 1.0 - np.exp(-exponent)
    return result


def _expert_work(t: Terms, p: Parameters, tokens: Floats) -> Floats:
    """Expert GEMM time: the grouped-GEMM penalty fades with the tokens each expert sees."""
    seen = np.minimum(tokens * t.ranks, p.grouped_gemm_token_cap) * t.expert_load
    half, worst = p.grouped_gemm_half_tokens, p.grouped_gemm_efficiency
    # The inverse of an efficiency that rises from `worst` to 1 with seen / (seen + half).
    slower = (seen + half) / (seen + worst * half)
    return t.expert_work * tokens * slower


def _gemms(t: Terms, p: Parameters, tokens: Floats) -> Pass:
    attention = t.attention_work * tokens
    dense = t.dense_work * tokens
    total = smooth_maximum(t.attention_read, attention) + smooth_maximum(t.dense_read, dense)
    work = attention + dense
    if t.any_experts:
        expert, moved = _expert_work(t, p, tokens), t.expert_traffic * tokens
        read = touched_experts(t, tokens) * t.expert_read
        total = total + smooth_maximum(read, expert) + moved
        work = work + expert + moved
    return Pass(total + t.head_read, work)


def communication(t: Terms, tokens: Floats) -> Floats:
    """Time of all collectives and hand-overs of a pass [s], (n,).

    All-reduces take one stage or two, whichever is faster for the size of their messages.

    Source: vLLM csrc/custom_all_reduce.cuh; planner/model/README.md#collectives.
    """
    reduce = np.minimum(t.reduce_once * tokens, t.reduce_barrier + t.reduce_twice * tokens)
    return t.collective + reduce + t.passed_token * tokens


def decode_core(t: Terms, context: Floats) -> DecodeCore:
    """Attention and recurrences of a sequence whose context is `context` tokens."""
    attended = np.minimum(context, t.top_k)
    near = np.minimum(context, t.window)
    read = attended * t.full_read + near * t.window_read + context * t.index_read + t.state_read
    return DecodeCore(read, attended * t.full_decode + near * t.window_decode)


def prefill_core(t: Terms, context: Floats) -> Floats:
    """Attention and recurrences of a prompt token that attends to `context` tokens [s], (n,)."""
    attended = np.minimum(context, t.top_k)
    near = np.minimum(context, t.window)
    core: Floats = attended * t.full_prefill + near * t.window_prefill + t.state_prefill
    return core


def micro_batch(t: Terms, sequences: Floats) -> Floats:
    """Sequences of one pipeline micro-batch: one micro-batch a stage is in flight."""
    return np.maximum(sequences / t.stages, np.minimum(sequences, 1.0))


def forward_decode(
    t: Terms, p: Parameters, sequences: Floats, core: DecodeCore, verified: Floats | float = 1.0
) -> Floats:
    """GPU time of a pass that extends `sequences` sequences, without launch overhead.

    Args:
        t: Parts of a pass, (n,).
        p: Fitted values.
        sequences: Decoding sequences per dp rank in this pass, (n,).
        core: Attention at the mean context of a sequence.
        verified: Tokens per sequence in the pass (draft tokens + 1 with speculation).

    Returns:
        Time [s], (n,). The KV cache is read once per sequence, whatever `verified` is.
    """
    tokens = sequences * verified
    return (
        _gemms(t, p, tokens).total
        + smooth_maximum(sequences * core.read, tokens * core.work)
        + t.token_traffic * tokens
        + communication(t, tokens)
    )


def decode_step(t: Terms, p: Parameters, batch: Floats, context: Floats) -> Floats:
    """Time between two tokens of a sequence in a batch that only decodes.

    With pipeline stages the batch is split into one micro-batch per stage, and a token passes
    all stages, each of which reads its weights for every micro-batch. With speculation the time
    of a verification and its drafts is divided by the tokens it yields.

    Args:
        t: Parts of a pass, (n,).
        p: Fitted values.
        batch: Decoding sequences per dp rank, (n,).
        context: Mean context of a sequence [tokens], (n,).

    Returns:
        Time per token [s], (n,).

    Source:
        planner/model/README.md#decode; speculation: arXiv:2211.17192 with a verify cost that
        grows with the batch.
    """
    return decode_step_of(t, p, batch, decode_core(t, context))


def decode_step_of(t: Terms, p: Parameters, batch: Floats, core: DecodeCore) -> Floats:
    """``decode_step``, to be asked for many batches of one context [s], (n,)."""
    sequences = micro_batch(t, batch)
    gpu = forward_decode(t, p, sequences, core, 1.0 + t.draft_tokens)
    # The host works on the next step while the GPU runs, so it can at most double the step.
    host = np.minimum(t.sequence * sequences, gpu)
    step = gpu + host + t.launch
    if not t.any_drafts:
        return step
    draft = t.draft_head
    if t.any_draft_layers:
        draft = draft + t.draft * (forward_decode(t, p, sequences, core) + t.launch)
    return (step + t.draft_tokens * draft) / t.accepted


def prefill_pass(t: Terms, p: Parameters, tokens: Floats, core: Floats) -> Pass:
    """A pass over `tokens` prompt tokens, of which each takes `core` beside GEMMs [s], (n,)."""
    gemms = _gemms(t, p, tokens)
    rest = tokens * core + communication(t, tokens)
    return Pass(gemms.total + rest, np.minimum(gemms.proportional, gemms.total) + rest)


def prefill(
    t: Terms,
    p: Parameters,
    prompt: Floats,
    cached: Floats | float = 0.0,
    budget: Floats | float = np.inf,
) -> Prefill:
    """A prompt's prefill: alone, and as a stall of the sequences that are decoding.

    Args:
        t: Parts of a pass, (n,).
        p: Fitted values.
        prompt: Prompt length [tokens], (n,).
        cached: Share of the prompt found in the prefix cache.
        budget: Tokens of one step; a longer prompt takes several, each with the fixed cost.

    Returns:
        Times [s], (n,). FlashAttention: work grows with the square of the prompt, memory does not.

    Source:
        planner/model/README.md#prefill.
    """
    tokens = np.maximum(prompt * (1.0 - np.asarray(cached)), 1.0)
    context = prompt * np.asarray(cached) + 0.5 * tokens
    one = prefill_pass(t, p, tokens, prefill_core(t, context))
    chunks = np.maximum(np.ceil(tokens / budget), 1.0)
    fixed = one.total - one.proportional + t.eager
    # Stages work on successive chunks at the same time; only the first chunk passes them in turn.
    first = np.minimum(budget / tokens, 1.0)
    alone = one.proportional * (first + (1.0 - first) / t.stages)
    latency = t.collective + t.reduce_barrier
    alone = alone + fixed + (fixed + latency) * (chunks - 1.0) / t.stages
    stall = (one.proportional + p.unshared_prefill * chunks * fixed) / t.stages
    return Prefill(alone, stall)
