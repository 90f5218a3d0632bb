"""What one forward pass costs, split into the parts that do not depend on the batch.

A pass over n tokens per attention-data-parallel rank is a sum of such parts times powers of n
(``forward.py``). Computing the parts once a candidate makes every further step cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.model.arrays import Candidates, Columns, Floats, Parameters

STATE_READ_BYTES = 8.0
"""Bytes of a recurrent state element moved in a decode step: FP32, read and written."""
STATE_FLOPS = 6.0
"""Arithmetic per state element and prompt token of a recurrent layer [FLOP]."""
SCORE_FLOPS = 512.0
"""Arithmetic of attention per score, heads of 128: Q K^T and A V, two FLOP a multiply-add."""
PROMOTION_FLOPS = 128.0
"""Matrix FLOP per FP32 FLOP of promotion: block FP8 adds its sums in FP32 every 128 products."""
FP32_PER_EXPONENTIAL = 16.0
"""FP32 FLOP in the time of one exponential: 128 fused multiply-adds beside 16 special functions a
clock and multiprocessor."""
ACTIVATION_BYTES = 2.0
EXCHANGE_BYTES = 3.0
"""Bytes per element of an expert exchange: dispatch in FP8 (1), combine in BF16 (2)."""


@dataclass(frozen=True)
class Terms(Columns):
    """Times of the parts of a pass; row i is candidate i.

    Attributes:
        attention_read, dense_read, head_read: Reading each weight group once [s].
        expert_read: Reading ALL routed experts once [s].
        attention_work, dense_work: GEMM time per token [s].
        expert_work: Expert GEMM time per token at full efficiency [s].
        expert_hits: Hits of an expert per token of a rank, -dp ln(1 - k/E), if all are equally
            popular (n tokens leave it untouched with exp(-n expert_hits)); else over `popularity`.
        popularity: Shape of the gamma distribution of their popularity.
        expert_load: Width-scaled tokens per expert and token of the pass [1].
        expert_traffic: Moving the activations of a token to and from its experts [s].
        token_traffic: Moving those of a decoding token between its GEMMs [s].
        ranks: dp ranks whose tokens meet at the experts.
        full_read, window_read: Reading one token of one sequence's KV cache [s].
        index_read: Reading the index of one context token [s].
        state_read: Reading and writing a sequence's recurrent state [s].
        full_decode, window_decode, full_prefill, window_prefill: Attention arithmetic per query
            token and attended token [s].
        state_prefill: Recurrent arithmetic per prompt token [s].
        top_k, window: Limits of the attended tokens; infinity = none.
        collective: Latency of all-reduces, expert exchanges and hand-overs to the next pipeline
            stages [s].
        reduce_once: All-reduces in one stage, per token [s].
        reduce_twice, reduce_barrier: In two stages: per token, and the barrier between them [s].
        passed_token: Expert exchange and hand-overs, per token [s].
        stages: Pipeline stages.
        launch: Launch and synchronisation of a decode step [s].
        sequence: Host cost per running sequence [s].
        eager: Eager launch overhead of a prefill pass [s].
        draft, draft_head, draft_tokens: Share of a decode step per draft token; head reads of a
            draft token [s]; draft tokens per verification.
        accepted: Tokens that a verification yields on average, the bonus token included.
    """

    attention_read: Floats
    dense_read: Floats
    head_read: Floats
    expert_read: Floats
    attention_work: Floats
    dense_work: Floats
    expert_work: Floats
    expert_hits: Floats
    popularity: Floats
    expert_load: Floats
    expert_traffic: Floats
    token_traffic: Floats
    ranks: Floats
    full_read: Floats
    window_read: Floats
    index_read: Floats
    state_read: Floats
    full_decode: Floats
    window_decode: Floats
    full_prefill: Floats
    window_prefill: Floats
    state_prefill: Floats
    top_k: Floats
    window: Floats
    collective: Floats
    reduce_once: Floats
    reduce_twice: Floats
    reduce_barrier: Floats
    passed_token: Floats
    stages: Floats
    launch: Floats
    sequence: Floats
    eager: Floats
    draft: Floats
    draft_head: Floats
    draft_tokens: Floats
    accepted: Floats

    @cached_property
    def any_experts(self) -> bool:
        """Whether any candidate has routed experts."""
        return bool(self.expert_read.any())

    @cached_property
    def any_skewed(self) -> bool:
        """Whether any candidate's experts are not equally popular: then all are."""
        return bool(np.isfinite(self.popularity).any())

    @cached_property
    def any_drafts(self) -> bool:
        """Whether any candidate speculates."""
        return bool(self.draft_tokens.any())

    @cached_property
    def any_draft_layers(self) -> bool:
        """Whether any candidate's drafts take layers of their own."""
        return bool(self.draft.any())


def terms(c: Candidates, p: Parameters) -> Terms:
    """Return the parts of a forward pass of every candidate.

    Args:
        c: Candidates, (n,).
        p: Fitted values of all candidates.

    Returns:
        Terms, (n,).

    Source:
        Roofline per weight group (S. Williams et al., Commun. ACM 52(4), 2009), our fit of public
        serving measurements: planner/model/README.md.
    """
    parts: dict[str, Floats] = {}
    parts |= _weights(c, p)
    parts |= _core(c, p)
    parts |= _collectives(c)
    parts |= _overheads(c, p)
    parts |= _speculation(c, parts["head_read"])
    return Terms(**_calibrated(c, parts))


WEIGHT_READS = (
    "attention_read",
    "dense_read",
    "head_read",
    "expert_read",
    "expert_traffic",
    "token_traffic",
    "draft_head",
)
CACHE_READS = ("full_read", "window_read", "index_read", "state_read")
STEP_COSTS = (
    "collective",
    "reduce_once",
    "reduce_twice",
    "reduce_barrier",
    "passed_token",
    "launch",
    "sequence",
)
GEMMS = ("attention_work", "dense_work", "expert_work")
PROMPT_COSTS = ("full_prefill", "window_prefill", "state_prefill", "eager")


def _calibrated(c: Candidates, parts: dict[str, Floats]) -> dict[str, Floats]:
    """Apply the factors of own measurements: reads and launches decide TPOT, arithmetic TTFT.

    No part becomes faster than at the data-sheet rate.
    """
    e = c.engine
    if (e.step_factor == 1.0).all() and (e.prompt_factor == 1.0).all():
        return parts
    scales = (
        (WEIGHT_READS, np.maximum(e.step_factor, e.hbm)),
        (CACHE_READS, np.maximum(e.step_factor, e.hbm * e.kv_read)),
        (STEP_COSTS, e.step_factor),
        (GEMMS, np.maximum(e.prompt_factor, e.gemm)),
        (PROMPT_COSTS, np.maximum(e.prompt_factor, 1.0)),
    )
    return parts | {name: parts[name] * scale for names, scale in scales for name in names}


def _weights(c: Candidates, p: Parameters) -> dict[str, Floats]:
    m, w, layout = c.model, c.weights, c.layout
    bandwidth = c.chip.bandwidth * c.engine.hbm
    dense_bandwidth = bandwidth * np.where(w.weight_only_dense > 0, p.weight_only_dense_read, 1.0)
    expert_bandwidth = bandwidth * np.where(
        w.weight_only_experts > 0, p.weight_only_expert_read, 1.0
    )
    group = layout.tp * layout.dp
    state = ACTIVATION_BYTES * m.hidden
    return {
        "attention_read": m.attention_parameters
        * w.attention_bytes
        / (layout.tp * dense_bandwidth),
        "dense_read": m.dense_parameters * w.dense_bytes / (layout.tp * dense_bandwidth),
        "head_read": m.vocab * m.hidden * w.head_bytes / (layout.tp * bandwidth),
        "expert_read": m.experts
        * m.expert_parameters
        * w.expert_bytes
        / (group * expert_bandwidth),
        "attention_work": 2
        * m.attention_parameters
        / layout.tp
        * _per_flop(c, p, w.attention_peak, w.attention_bytes),
        "dense_work": 2
        * m.dense_parameters
        / layout.tp
        * _per_flop(c, p, w.dense_peak, w.dense_bytes),
        "expert_work": 2
        * m.active
        * m.expert_parameters
        * layout.dp
        / group
        * _per_flop(c, p, w.expert_peak, w.expert_bytes),
        "expert_hits": -np.log1p(-np.minimum(m.active / m.experts, 0.999999))
        * layout.dp
        / (p.expert_popularity if np.isfinite(p.expert_popularity) else 1.0),
        "popularity": np.full(len(c), p.expert_popularity),
        "expert_load": m.active
        / m.experts
        * np.minimum(m.expert_width / p.grouped_gemm_width, 1.0),
        # Tensor parallelism splits the weights; hidden states keep their full width on each GPU.
        "expert_traffic": p.expert_activation_passes * m.active * m.moe_layers * state / bandwidth,
        "token_traffic": p.token_activation_passes * m.layers * state / bandwidth,
        "ranks": layout.dp,
    }


def _per_flop(c: Candidates, p: Parameters, peak: Floats, stored: Floats) -> Floats:
    """GEMM time per FLOP [s]; dynamic block FP8 adds the promotion of its sums on the FP32 units.

    Source: DeepSeek-V3, arXiv:2412.19437, section 3.3.2 (sums promoted every 128 products).
    """
    promoted = (c.weights.block_scaled > 0) & (stored < ACTIVATION_BYTES)
    fp32 = c.chip.exponentials * FP32_PER_EXPONENTIAL * p.block_fp8_promotion
    return 1.0 / (peak * c.engine.gemm) + np.where(promoted, 1.0 / (PROMOTION_FLOPS * fp32), 0.0)


def _core(c: Candidates, p: Parameters) -> dict[str, Floats]:
    m, layout = c.model, c.layout
    bandwidth = c.chip.bandwidth * c.engine.hbm * c.engine.kv_read
    rate = layout.tp * c.chip.peak16 * p.attention_efficiency
    softmax = p.softmax_slots / (SCORE_FLOPS * layout.tp * c.chip.exponentials)
    full_shards = np.minimum(layout.tp, m.full_kv_heads)
    window_shards = np.minimum(layout.tp, m.window_kv_heads)
    return {
        "full_read": m.full_kv * layout.kv_bytes / (full_shards * bandwidth),
        "window_read": m.window_kv * layout.kv_bytes / (window_shards * bandwidth),
        "index_read": m.index_bytes / bandwidth,
        "state_read": STATE_READ_BYTES * m.state_elements / (layout.tp * bandwidth),
        "full_decode": m.full_decode_flops / rate,
        "window_decode": m.window_decode_flops / rate,
        "full_prefill": m.full_prefill_flops * (1.0 / rate + softmax),
        "window_prefill": m.window_prefill_flops * (1.0 / rate + softmax),
        "state_prefill": STATE_FLOPS * m.state_elements / rate,
        "top_k": np.where(m.top_k > 0, m.top_k, np.inf),
        "window": np.where(m.window > 0, m.window, np.inf),
    }


def _collectives(c: Candidates) -> dict[str, Floats]:
    """All-reduces, expert exchange (to at most k ranks), pipeline hops.

    In one stage each GPU reads the whole message of t-1 others; in two it reduces its part of the
    message, waits at a second barrier and gathers the others' parts, which moves 2 (t-1)/t
    messages.

    Source: two all-reduces a layer, Megatron-LM, arXiv:1909.08053, section 3; one and two stages,
    vLLM csrc/custom_all_reduce.cuh; volume of two, Patarasuk & Yuan, J. Parallel Distrib. Comput.
    69(2), 2009.
    """
    m, layout = c.model, c.layout
    tp, dp, pp = layout.tp, layout.dp, layout.pp
    rate = c.chip.link * c.engine.link_share
    wide = tp * dp > c.chip.gpus_per_node
    exchange_rate = np.where(wide, np.minimum(rate, c.chip.internode), rate)
    hop_rate = np.where(
        tp * dp * pp > c.chip.gpus_per_node, np.minimum(rate, c.chip.internode), rate
    )
    latency = 2 * c.engine.link_latency
    barrier = np.where(tp > 1, m.layers * latency, 0.0)
    once = 2 * m.layers * ACTIVATION_BYTES * m.hidden * (tp - 1) / rate
    exchange_volume = EXCHANGE_BYTES * m.hidden * np.minimum(dp - 1, m.active) / exchange_rate
    return {
        "collective": barrier
        + np.where(dp > 1, m.moe_layers * latency, 0.0)
        + (pp - 1) * c.engine.link_latency,
        "reduce_once": once,
        "reduce_twice": once * 2 / tp,
        "reduce_barrier": barrier,
        "passed_token": m.moe_layers * exchange_volume
        + (pp - 1) * ACTIVATION_BYTES * m.hidden / hop_rate,
        "stages": pp,
    }


def _overheads(c: Candidates, p: Parameters) -> dict[str, Floats]:
    m, w, e = c.model, c.weights, c.engine
    launch = (
        e.launch * m.layers
        + e.special_layer * m.special_layers
        + p.block_fp8_layer * m.layers * w.block_scaled
        + p.indexer_layer * m.indexer_layers
        + e.weight_only_layer * m.moe_layers * w.weight_only_experts
        + e.step_constant
    )
    return {
        "launch": launch,
        "sequence": e.sequence,
        "eager": e.prefill_layer * m.layers + e.prefill_special * m.special_layers,
    }


def _speculation(c: Candidates, head_read: Floats) -> dict[str, Floats]:
    layout = c.layout
    return {
        "draft": layout.draft_layers / c.model.layers + layout.draft_share,
        "draft_head": layout.draft_head * head_read,
        "draft_tokens": layout.draft_tokens,
        "accepted": accepted_tokens(layout.draft_tokens, layout.accept_first, layout.accept_decay),
    }


def accepted_tokens(draft_tokens: Floats, first: Floats, decay: Floats) -> Floats:
    """Mean tokens of one verification, the bonus token included.

    Args:
        draft_tokens: Draft tokens g per verification, (n,).
        first, decay: c1 and d of the conditional acceptance c_i = c1 * d^(i-1), (n,).

    Returns:
        1 + sum_{k<=g} prod_{i<=k} c_i, (n,). With d = 1 the textbook (1 - a^(g+1)) / (1 - a).

    Source:
        Leviathan et al., arXiv:2211.17192, eq. 1 (d = 1); decay fitted, planner/model/README.md.

    >>> accepted_tokens(np.array([4.0]), np.array([0.8]), np.array([1.0])).round(2)
    array([3.36])
    """
    total = np.ones_like(draft_tokens)
    chance = np.ones_like(draft_tokens)
    longest = int(draft_tokens.max(initial=0))
    for position in range(1, longest + 1):
        chance = chance * first * decay ** (position - 1)
        total = total + np.where(position <= draft_tokens, chance, 0.0)
    return total
