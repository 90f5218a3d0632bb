"""Device memory: weights, KV cache, and how many sequences fit."""

from __future__ import annotations

import numpy as np

from planner.model.arrays import Candidates, Floats

STATE_BYTES = 4.0
"""Bytes per recurrent-state element held for a sequence (FP32)."""


def stage_share(c: Candidates) -> Floats:
    """Share of the layers on the fullest pipeline stage, (n,)."""
    return np.ceil(c.model.layers / c.layout.pp) / c.model.layers


def weight_bytes(c: Candidates) -> Floats:
    """Weights on the fullest GPU of a replica [B], (n,).

    Experts spread over tp * dp GPUs, everything else over tp. The first and the last pipeline
    stage hold the embedding table and the head. A draft head or draft model is added.
    """
    m, w, layout = c.model, c.weights, c.layout
    layers = stage_share(c) * (
        (m.attention_parameters * w.attention_bytes + m.dense_parameters * w.dense_bytes)
        / layout.tp
        + m.experts * m.expert_parameters * w.expert_bytes / (layout.tp * layout.dp)
    )
    table = m.vocab * m.hidden
    embeddings = np.where(
        layout.pp > 1, np.minimum(table, m.embedding_parameters), m.embedding_parameters
    )
    ends = (embeddings + m.other_parameters) * w.head_bytes / layout.tp
    draft = np.where(
        layout.draft_tokens > 0, layout.draft_layers / m.layers + layout.draft_share, 0
    )
    return layers * (1.0 + draft) + ends


def kv_bytes_per_token(c: Candidates) -> Floats:
    """KV cache of one further token on one GPU, windows not yet full [B], (n,)."""
    m, layout = c.model, c.layout
    full = m.full_kv * layout.kv_bytes / np.minimum(layout.tp, m.full_kv_heads) + m.index_bytes
    window = m.window_kv * layout.kv_bytes / np.minimum(layout.tp, m.window_kv_heads)
    return stage_share(c) * (full + window)


def kv_bytes(c: Candidates, tokens: Floats) -> Floats:
    """KV cache and recurrent state of one sequence of `tokens` tokens on one GPU [B], (n,).

    Whole blocks are held, so under one block a sequence is wasted; layers with a window hold the
    window only; MLA latents are replicated over tensor parallelism.
    """
    m, layout = c.model, c.layout
    held = np.ceil(tokens / c.engine.block) * c.engine.block
    near = np.where(m.window > 0, np.minimum(held, m.window), held)
    full = held * (
        m.full_kv * layout.kv_bytes / np.minimum(layout.tp, m.full_kv_heads) + m.index_bytes
    )
    window = near * m.window_kv * layout.kv_bytes / np.minimum(layout.tp, m.window_kv_heads)
    state = STATE_BYTES * m.state_elements / layout.tp
    return stage_share(c) * (full + window + state)


def kv_pool_bytes(c: Candidates) -> Floats:
    """Memory left for the KV cache on the fullest GPU [B], (n,); negative = weights do not fit."""
    weights = weight_bytes(c)
    memory, share, reserve = c.chip.memory, c.engine.memory_share, c.engine.reserve
    of_total = share * memory - reserve - weights
    of_free = share * (memory - reserve - weights)
    return np.where(c.engine.of_free > 0, of_free, of_total)


def sequences_that_fit(c: Candidates, tokens: Floats) -> Floats:
    """Sequences of `tokens` tokens that one dp rank holds at once (not rounded), (n,).

    Zero or less where not even the weights fit.
    """
    return kv_pool_bytes(c) / np.maximum(kv_bytes(c, tokens), 1.0)


def reserved_tokens(c: Candidates, prompt: Floats, output: Floats) -> Floats:
    """Tokens that a resident sequence holds on average [tokens], (n,).

    Engines that reserve the full length hold prompt + output from admission on, the others half
    of the output on average.
    """
    return prompt + output * np.where(c.engine.full_length > 0, 1.0, 0.5)
