"""Device memory as an engine accounts for it: weights, activations, KV cache, what fits.

All figures are those of one GPU of a replica. With pipeline parallelism layers spread as evenly
as possible; the first stage has one more where they do not divide, and the embedding table; the
last has the head and samples. The stage with the fewest tokens of room decides the pool.
"""

from __future__ import annotations

import numpy as np

from planner.model.arrays import Candidates, Floats

STATE_BYTES = 4.0
"""Bytes per recurrent-state element held for a sequence (FP32)."""
ELEMENT_BYTES = 2.0
"""Bytes of an activation, a rotary-table or a router element (BF16)."""
VOCABULARY_UNIT = 64.0
"""Engines pad the vocabulary to a multiple of this, so that it splits.

Source: vllm-project/vllm, vllm/model_executor/layers/vocab_parallel_embedding.py.
"""


def stage_share(c: Candidates) -> Floats:
    """Share of the layers on the fullest pipeline stage, (n,)."""
    return np.ceil(c.model.layers / c.layout.pp) / c.model.layers


def _last_stage_share(c: Candidates) -> Floats:
    return np.floor(c.model.layers / c.layout.pp) / c.model.layers


def weight_bytes(c: Candidates) -> Floats:
    """Weights on the fullest GPU of a replica [B], (n,).

    Experts spread over tp * dp GPUs, everything else over tp; down-projections of latents,
    routers and rotary tables are copied to every GPU, key and value projections beyond one head a
    GPU; engines keep up-projections of latents twice (absorbed and plain). The first stage holds
    the embedding table, as the last holds the head. A draft head or draft model is added.
    """
    return _stage_weights(c, stage_share(c), _per_gpu_other(c))


def _stage_weights(c: Candidates, share: Floats, other: Floats) -> Floats:
    m, layout = c.model, c.layout
    table = m.vocab * m.hidden
    ends = np.where(
        layout.pp > 1, np.minimum(table, m.embedding_parameters), m.embedding_parameters
    )
    padded = np.ceil(m.vocab / VOCABULARY_UNIT) * VOCABULARY_UNIT / m.vocab
    draft = np.where(
        layout.draft_tokens > 0, layout.draft_layers / m.layers + layout.draft_share, 0
    )
    head = ends * padded * c.weights.head_bytes / layout.tp
    return share * layer_weight_bytes(c) * (1.0 + draft) + head + other


def _per_gpu_other(c: Candidates) -> Floats:
    return c.model.other_parameters * c.weights.head_bytes / c.layout.tp + _position_bytes(c)


def _position_bytes(c: Candidates) -> Floats:
    return c.model.position_elements * ELEMENT_BYTES


def layer_weight_bytes(c: Candidates) -> Floats:
    """Weights of all layers that one GPU would hold without pipeline stages [B], (n,)."""
    m, w, tp = c.model, c.weights, c.layout.tp
    heads = np.maximum(m.full_kv_heads, m.window_kv_heads)
    split = m.attention_parameters - m.kv_parameters - m.replicated_parameters
    attention = split / tp + m.kv_parameters / np.minimum(tp, heads) + m.replicated_parameters
    dense = (m.dense_parameters - m.router_parameters) / tp
    experts = m.experts * m.expert_parameters / (tp * c.layout.dp)
    return (
        attention * w.attention_bytes
        + dense * w.dense_bytes
        + experts * w.expert_bytes
        + (m.router_parameters + m.absorbed_parameters / tp) * ELEMENT_BYTES
    )


def kv_bytes_per_token(c: Candidates) -> Floats:
    """KV cache of one further token on one GPU, windows not yet full [B], (n,).

    As engines print it: layers that only pad a group of layers count.
    """
    full, window = _token_bytes(c)
    return stage_share(c) * (full + window) * _with_draft(c)


def _with_draft(c: Candidates) -> Floats:
    """Layers that cache, draft layers included, over the model's own."""
    drafts = c.layout.draft_tokens > 0
    return 1.0 + np.where(drafts, c.layout.draft_layers / c.model.layers, 0.0)


def _token_bytes(c: Candidates) -> tuple[Floats, Floats]:
    """Cache of a token in all full and in all windowed layers on one GPU [B], (n,) each.

    Heads are split over tensor parallelism as far as there are heads; latents and index keys are
    replicated.
    """
    m, width, grouped = c.model, c.layout.kv_bytes, c.engine.grouped
    extra = np.where(width == 1.0, m.single_byte_extra, 0.0) + m.index_bytes + m.index_scale
    full = m.full_kv * width / np.minimum(c.layout.tp, m.full_kv_heads) + extra
    window = m.window_kv * width / np.minimum(c.layout.tp, m.window_kv_heads)
    return (
        full * (1.0 + grouped * (m.full_padding - 1.0)),
        window * (1.0 + grouped * (m.window_padding - 1.0)),
    )


def kv_bytes(c: Candidates, tokens: Floats) -> Floats:
    """KV cache and recurrent state of one running sequence of `tokens` tokens on one GPU.

    Whole blocks are held, so under one block a sequence is wasted; layers with a window hold the
    window only, where the engine makes use of it.

    Args:
        c: Candidates, (n,).
        tokens: Length of the sequence [tokens], (n,).

    Returns:
        Memory [B], (n,).
    """
    block = block_tokens(c)
    held = np.ceil(tokens / block) * block
    return _sequence_bytes(c, held, np.minimum(held, c.model.window))


def admitted_kv_bytes(c: Candidates, tokens: Floats) -> Floats:
    """Memory that must be free for a sequence of `tokens` tokens to be admitted [B], (n,).

    Engines with grouped pages admit a window with the tokens of one step in flight and one more
    block.

    Source:
        vllm-project/vllm, vllm/v1/kv_cache_interface.py (SlidingWindowSpec).
    """
    block = block_tokens(c)
    held = np.ceil(tokens / block) * block
    in_flight = np.minimum(c.model.window - 1.0 + profiled_tokens(c), tokens)
    admitted = np.ceil(in_flight / block) * block + block
    near = np.where(c.engine.grouped > 0, admitted, np.minimum(held, c.model.window))
    return _sequence_bytes(c, held, near)


def block_tokens(c: Candidates) -> Floats:
    """Tokens of a KV block [tokens], (n,).

    Engines with grouped pages give recurrent states and KV blocks pages of one size, so the block
    grows until a page holds a layer's state.

    Source:
        vllm-project/vllm, vllm/model_executor/models/config.py (HybridAttentionMambaModelConfig);
        a log of Qwen3.5-35B-A3B with an FP8 cache states blocks of 2096 tokens.
    """
    m, layout, block = c.model, c.layout, c.engine.block
    per_token = layout.kv_bytes / np.minimum(layout.tp, m.full_kv_heads)
    needed = np.ceil(m.state_page / layout.tp / per_token / block) * block
    return np.where(c.engine.grouped > 0, np.maximum(block, needed), block)


def _sequence_bytes(c: Candidates, held: Floats, near: Floats) -> Floats:
    m = c.model
    full, window = _token_bytes(c)
    saves = (m.window > 0) & (c.engine.window_saves > 0)
    padding = 1.0 + c.engine.grouped * (m.state_padding - 1.0)
    state = STATE_BYTES * m.state_elements / c.layout.tp * padding
    cache = full * held + window * np.where(saves, near, held) + state
    return stage_share(c) * cache * _with_draft(c)


def profiled_tokens(c: Candidates) -> Floats:
    """Tokens of the largest step that the engine prepares for [tokens], (n,)."""
    given = np.isnan(c.engine.startup_tokens)
    return np.where(given, c.layout.token_budget, c.engine.startup_tokens)


def forward_bytes(c: Candidates) -> Floats:
    """Activations at the peak of a full step's layers [B], (n,).

    Hidden states and what stands between the matrices of a dense block; encoder outputs and the
    input embeddings they are merged into.

    Source:
        planner/model/README.md#memory: start-up logs of vLLM.
    """
    m, tokens = c.model, profiled_tokens(c)
    between = m.ffn_elements / c.layout.tp
    alive = between + (c.engine.forward_copies + 2.0 * m.encoder) * m.hidden
    peak = ELEMENT_BYTES * tokens * alive
    return np.where(c.engine.forward_copies > 0, peak + _expert_workspace(c, tokens), 0.0)


def sampling_bytes(c: Candidates) -> Floats:
    """Memory at the peak of sampling after a full step [B], (n,).

    Logits and their copies for every sequence; hidden states and the workspace of the experts
    are still allocated.
    """
    m, tokens = c.model, profiled_tokens(c)
    given = np.isnan(c.engine.startup_sequences)
    asked = np.where(given, c.layout.max_sequences, c.engine.startup_sequences)
    logits = np.minimum(asked, tokens) * m.vocab * c.engine.sampler_bytes
    hidden = ELEMENT_BYTES * tokens * (1.0 + 2.0 * m.encoder) * m.hidden
    peak = logits + hidden + _expert_workspace(c, tokens)
    return np.where(c.engine.forward_copies > 0, peak, 0.0)


def _expert_workspace(c: Candidates, tokens: Floats) -> Floats:
    """Two buffers that the fused expert kernel keeps: its in- and outputs take turns in them."""
    m = c.model
    width = m.expert_width / c.layout.tp
    rows = np.where(m.moe_layers > 0, tokens * m.active, 0.0)
    both: Floats = np.maximum(2.0 * width, m.hidden) + np.maximum(width, m.hidden)
    return ELEMENT_BYTES * rows * both


def kv_pool_bytes(c: Candidates) -> Floats:
    """Memory left for the KV cache [B], (n,); negative = not even the rest fits.

    With pipeline stages: of the poorest stage, in bytes of the fullest one, so that it divides by
    kv_bytes.
    """
    forward, sampling = forward_bytes(c), sampling_bytes(c)
    several = c.layout.pp > 1
    share = stage_share(c)
    first = _pool(
        c, share, weight_bytes(c), np.where(several, forward, np.maximum(forward, sampling))
    )
    last_share = _last_stage_share(c)
    end = _pool(c, last_share, _stage_weights(c, last_share, _position_bytes(c)), sampling)
    return np.where(several, np.minimum(first, end * share / last_share), first)


def reserve_bytes(c: Candidates) -> Floats:
    """What the engine counts on the fullest GPU beside weights and KV cache [B], (n,).

    What the driver keeps, context and communication buffers; activations and graphs, unless the
    engine leaves them to what its share does not fill.
    """
    several = c.layout.pp > 1
    forward = forward_bytes(c)
    activations = np.where(several, forward, np.maximum(forward, sampling_bytes(c)))
    working = activations + _graph_bytes(c, stage_share(c))
    return c.engine.driver + _context_bytes(c) + np.where(c.engine.of_start > 0, 0.0, working)


def _context_bytes(c: Candidates) -> Floats:
    several = c.layout.tp * c.layout.dp > 1
    return c.engine.reserve + np.where(several, c.engine.group_reserve, 0.0)


def _graph_bytes(c: Candidates, share: Floats) -> Floats:
    return c.engine.graph + c.engine.graph_layer * share * c.model.layers


def _pool(c: Candidates, share: Floats, weights: Floats, activations: Floats) -> Floats:
    e = c.engine
    memory, context = c.chip.memory - e.driver, _context_bytes(c)
    working = activations + _graph_bytes(c, share)
    may_fill = memory_share(c)
    of_total = may_fill * memory - context - working - weights
    # Activations and graphs need room outside a static share, however large it is set.
    of_start = np.minimum(may_fill * (memory - context), memory - context - working) - weights
    of_rest = may_fill * (memory - context - working - weights)
    return np.where(e.of_free > 0, of_rest, np.where(e.of_start > 0, of_start, of_total))


def memory_share(c: Candidates) -> Floats:
    """Share of memory that the engine may fill: as set, else what its static reserve leaves.

    Source:
        sgl-project/sglang, python/sglang/srt/server_args.py (mem_fraction_static).
    """
    e, layout = c.engine, c.layout
    memory = c.chip.memory - e.driver
    kept = (
        e.static_reserve
        + e.static_token * profiled_tokens(c)
        + e.static_gpu * layout.tp * layout.dp * layout.pp
    )
    floor = np.where(memory > e.static_floor_above, e.static_floor, 0.0)
    return np.where(
        np.isnan(e.memory_share), 1.0 - np.maximum(kept, floor) / memory, e.memory_share
    )


def sequences_that_fit(c: Candidates, tokens: Floats) -> Floats:
    """Sequences of `tokens` tokens that one dp rank holds at once (not rounded), (n,).

    Zero or less where not even the weights fit.
    """
    return kv_pool_bytes(c) / np.maximum(kv_bytes(c, tokens), 1.0)


def sequences_of_lengths(c: Candidates, tokens: Floats, spread: Floats) -> Floats:
    """Sequences that one dp rank holds if their lengths lie evenly in tokens +- spread.

    Of sequences of many lengths each wastes half a block on average, whatever their mean is.

    Args:
        c: Candidates, (n,).
        tokens: Mean length [tokens], (n,) or (k, 1).
        spread: How far lengths lie from it, half a token at least [tokens], likewise.

    Returns:
        Number, not rounded, (n,) or (k, n); zero or less where not even the weights fit.
    """
    block = block_tokens(c)
    # A length of n tokens stands for those from n - 1 to n.
    middle = np.maximum(tokens - 0.5, 0.5)
    near = np.clip(spread, 0.5, middle)

    def below(length: Floats) -> Floats:
        # What sequences of all lengths up to `length` hold together.
        full = np.floor(length / block)
        together: Floats = block * (full + 1.0) * (length - 0.5 * block * full)
        return together

    held = (below(middle + near) - below(middle - near)) / (2.0 * near)
    one = _sequence_bytes(c, held, np.minimum(held, c.model.window))
    return kv_pool_bytes(c) / np.maximum(one, 1.0)


def printed_tokens(c: Candidates, longest: Floats) -> Floats:
    """Size of the KV pool as the engine prints it [tokens], (n,); NaN = nothing is cached by token.

    Args:
        c: Candidates, (n,).
        longest: Longest request that the engine accepts [tokens], (n,).

    Returns:
        Whole blocks of the pool; or, where the engine prints that, the longest requests that fit,
        in tokens, which is more where layers keep a window or a state instead of all tokens.

    Source:
        vllm-project/vllm, vllm/v1/core/kv_cache_utils.py; vllm-project/vllm#54662.
    """
    m, block = c.model, block_tokens(c)
    pool = np.maximum(kv_pool_bytes(c), 0.0)
    per_token = kv_bytes_per_token(c)
    blocks = np.floor(pool / np.maximum(per_token * block, 1e-9)) * block
    requests = pool / np.maximum(admitted_kv_bytes(c, longest), 1.0)
    mixed = (m.window > 0) | (m.state_elements > 0)
    tokens = np.where((c.engine.by_request > 0) & mixed, np.floor(requests * longest), blocks)
    return np.where(per_token > 0, tokens, np.nan)


def longest_that_fits(c: Candidates) -> Floats:
    """Longest sequence that is admitted when nothing else runs [tokens], (n,); 0 = none.

    Infinity where no layer keeps all tokens and the states fit.
    """
    block = block_tokens(c)
    pool = kv_pool_bytes(c) - admitted_kv_bytes(c, np.zeros_like(block))
    nominal = kv_bytes_per_token(c)
    in_flight = np.where(c.engine.grouped > 0, profiled_tokens(c), 0.0)
    step = np.ceil((c.model.window + in_flight) / block) * block
    beyond = admitted_kv_bytes(c, step) - admitted_kv_bytes(c, np.zeros_like(block))
    full, _ = _token_bytes(c)
    slope = stage_share(c) * full * _with_draft(c)
    with np.errstate(divide="ignore", invalid="ignore"):
        short = pool / nominal
        far = step + (pool - beyond) / slope
    saves = (c.model.window > 0) & (c.engine.window_saves > 0)
    longest = np.where(saves & (pool > beyond), far, short)
    return np.where(pool < 0, 0.0, np.floor(longest / block) * block)


def reserved_tokens(c: Candidates, prompt: Floats, output: Floats) -> Floats:
    """Tokens that a resident sequence holds on average [tokens], (n,).

    Engines that reserve the full length hold prompt + output from admission on, the others half
    of the output on average.
    """
    return prompt + output * np.where(c.engine.full_length > 0, 1.0, 0.5)
