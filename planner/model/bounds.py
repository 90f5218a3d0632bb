"""The speed of light: what the hardware allows at the data-sheet rates, without any overhead."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from planner.model.arrays import Candidates, EngineFigures, Floats, Parameters
from planner.model.forward import micro_batch, touched_experts
from planner.model.terms import Terms, terms

MOST_SKEWED = 0.25
"""Expert popularity more skewed than measured anywhere; a fit stays above it."""
PERFECT = Parameters(
    attention_efficiency=1.0,
    softmax_slots=0.0,
    grouped_gemm_efficiency=1.0,
    grouped_gemm_half_tokens=1.0,
    grouped_gemm_width=1.0,
    grouped_gemm_token_cap=1.0,
    expert_activation_passes=0.0,
    token_activation_passes=0.0,
    block_fp8_promotion=np.inf,
    weight_only_expert_read=1.0,
    weight_only_dense_read=1.0,
    block_fp8_layer=0.0,
    indexer_layer=0.0,
    expert_popularity=MOST_SKEWED,
    unshared_prefill=0.0,
    first_token_steps=0.0,
    first_token=0.0,
    frontend_request=0.0,
    frontend_token=0.0,
    waves=np.inf,
)
"""Every efficiency 1, every overhead 0."""
SHARES = ("hbm", "kv_read", "gemm", "link_share", "step_factor", "prompt_factor")
COSTS = (
    "link_latency",
    "launch",
    "sequence",
    "step_constant",
    "special_layer",
    "weight_only_layer",
    "prefill_layer",
    "prefill_special",
)


def perfect_terms(c: Candidates) -> Terms:
    """Return the parts of a pass at data-sheet rates, (n,)."""
    engine = {field.name: getattr(c.engine, field.name) for field in fields(EngineFigures)}
    engine |= {name: np.ones(len(c)) for name in SHARES}
    engine |= {name: np.zeros(len(c)) for name in COSTS}
    return terms(replace(c, engine=EngineFigures(**engine)), PERFECT)


def bound_tpot(c: Candidates, batch: Floats, context: Floats) -> Floats:
    """Shortest time between two tokens of a sequence in a decoding batch.

    Args:
        c: Candidates, (n,).
        batch: Decoding sequences per dp rank, (n,).
        context: Mean context of a sequence [tokens], (n,).

    Returns:
        The slower of all reads over the peak bandwidth and all arithmetic over the dense peak
        [s], (n,); communication is left out, since it can overlap. With speculation, per
        accepted token.

    Source:
        S. Williams et al., "Roofline", Commun. ACM 52(4), 2009, doi:10.1145/1498765.1498785.
    """
    t = perfect_terms(c)
    sequences = micro_batch(t, batch)
    tokens = sequences * (1.0 + t.draft_tokens)
    attended = np.minimum(context, t.top_k)
    near = np.minimum(context, t.window)
    cache = attended * t.full_read + near * t.window_read + context * t.index_read + t.state_read
    reads = (
        t.attention_read
        + t.dense_read
        + touched_experts(t, tokens) * t.expert_read
        + t.head_read
        + sequences * cache
    )
    core = attended * t.full_decode + near * t.window_decode
    work = tokens * (t.attention_work + t.dense_work + t.expert_work + core)
    bound: Floats = np.maximum(reads, work) / t.accepted
    return bound


def bound_prefill(c: Candidates, prompt: Floats) -> Floats:
    """Shortest time to prefill one prompt alone [s], (n,).

    Arithmetic over the dense peak, or reading the weights once.
    """
    t = perfect_terms(c)
    attended = np.minimum(0.5 * prompt, t.top_k)
    near = np.minimum(0.5 * prompt, t.window)
    core = attended * t.full_prefill + near * t.window_prefill + t.state_prefill
    work = prompt * (t.attention_work + t.dense_work + t.expert_work + core)
    touched = touched_experts(t, prompt) * t.expert_read
    reads = t.attention_read + t.dense_read + touched + t.head_read
    # Pipeline stages compute successive chunks of a prompt at the same time.
    bound: Floats = np.maximum(work / t.stages, reads)
    return bound
