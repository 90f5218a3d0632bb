"""What an architecture holds in device memory beyond its sums: copies, tables, padded layers."""

from __future__ import annotations

import math

from planner.spec.architecture import (
    Architecture,
    DenseFfn,
    FullAttention,
    LatentAttention,
    LayerGroup,
    MoeFfn,
    RecurrentAttention,
)

ELEMENT = 2.0
"""Bytes of a 16-bit element."""
STATE_ELEMENT = 4.0
"""Bytes of a recurrent-state element."""
SCALE_BYTES = 4.0
"""An FP32 scale stands for this many bytes ..."""
SCALE_GROUP = 128
"""... beside this many one-byte elements of a latent or an index key."""
NEAR_EQUAL = 1.25
"""Layer counts of two kinds within this ratio are padded to the larger one.

Source: vllm-project/vllm, vllm/v1/core/kv_cache_utils.py (_get_kv_cache_groups_uniform_page_size).
"""


def memory_columns(architecture: Architecture) -> dict[str, float]:
    """Return the columns of ``ModelFigures`` that only memory uses, field by field.

    Source:
        Replication: ReplicatedLinear layers of vLLM and SGLang models; padded groups: see
        NEAR_EQUAL; one-byte latents of sparse models: 656 B a layer, 788 with the index key
        (vllm-project/vllm, fp8_ds_mla cache).
    """
    groups = architecture.layers
    hidden = architecture.hidden_size
    return {
        "replicated_parameters": sum(g.count * _replicated(g, hidden) for g in groups),
        "kv_parameters": sum(g.count * _kv_parameters(g, hidden) for g in groups),
        "absorbed_parameters": sum(g.count * _absorbed(g) for g in groups),
        "router_parameters": sum(g.count * _router(g, hidden) for g in groups),
        "position_elements": _positions(architecture),
        **_padding(groups),
        "state_page": _state_page(groups),
        "single_byte_extra": sum(g.count * _single_byte_extra(g) for g in groups),
        "index_scale": sum(g.count * _index_scale(g) for g in groups),
        "ffn_elements": max((_between(g) for g in groups), default=0.0),
        "encoder": float(architecture.encoder_parameters > 0),
    }


def _replicated(group: LayerGroup, hidden: int) -> float:
    a = group.attention
    if not isinstance(a, LatentAttention):
        return 0.0
    down = hidden * (a.q_rank + a.kv_rank + a.rope_dim)
    if not a.index_dim or a.shares_index:
        return float(down)
    queries = (a.q_rank or hidden) * a.index_heads * a.index_dim
    return float(down + queries + hidden * (a.index_dim + a.index_heads))


def _kv_parameters(group: LayerGroup, hidden: int) -> float:
    a = group.attention
    if not isinstance(a, FullAttention) or not a.own_kv:
        return 0.0
    value = 0 if a.key_is_value else a.value_dim or a.head_dim
    return float(hidden * a.kv_heads * (a.head_dim + value))


def _absorbed(group: LayerGroup) -> float:
    a = group.attention
    if not isinstance(a, LatentAttention):
        return 0.0
    return float(a.kv_rank * a.heads * (a.nope_dim + a.value_dim))


def _router(group: LayerGroup, hidden: int) -> float:
    return float(hidden * group.ffn.experts) if isinstance(group.ffn, MoeFfn) else 0.0


def _positions(architecture: Architecture) -> float:
    """Elements of the rotary tables: sine and cosine of half a head each, per position."""
    rows = architecture.position_rows or architecture.max_context_tokens
    widths = [
        float(a.rope_dim if isinstance(a, LatentAttention) else a.head_dim)
        for a in (group.attention for group in architecture.layers)
        if isinstance(a, FullAttention | LatentAttention)
    ]
    return rows * max(widths, default=0.0)


def _single_byte_extra(group: LayerGroup) -> float:
    a = group.attention
    if not isinstance(a, LatentAttention) or not a.index_top_k:
        return 0.0
    return SCALE_BYTES * math.ceil(a.kv_rank / SCALE_GROUP) + (ELEMENT - 1.0) * a.rope_dim


def _index_scale(group: LayerGroup) -> float:
    a = group.attention
    if not isinstance(a, LatentAttention) or not a.index_dim or a.shares_index:
        return 0.0
    return SCALE_BYTES * math.ceil(a.index_dim / SCALE_GROUP)


def _padding(groups: tuple[LayerGroup, ...]) -> dict[str, float]:
    """Layers allotted over layers there, by kind; 1 where all layers are of one kind."""
    layers = {
        "full": sum(g.count for g in groups if _keeps_all(g)),
        "window": sum(g.count for g in groups if _window(g)),
        "state": sum(g.count for g in groups if isinstance(g.attention, RecurrentAttention)),
    }
    present = [count for count in layers.values() if count]
    if len(present) < 2:
        return {f"{kind}_padding": 1.0 for kind in layers}
    size = max(present) if max(present) < NEAR_EQUAL * min(present) else min(present)
    return {
        f"{kind}_padding": math.ceil(count / size) * size / count if count else 1.0
        for kind, count in layers.items()
    }


def _state_page(groups: tuple[LayerGroup, ...]) -> float:
    """Bytes of the largest state of a layer, over the elements of the smallest full cache."""
    states = [
        STATE_ELEMENT * a.state_elements + ELEMENT * a.conv_elements
        for a in (group.attention for group in groups)
        if isinstance(a, RecurrentAttention)
    ]
    caches = [
        float(a.kv_heads * (a.head_dim + (a.value_dim or a.head_dim)))
        if isinstance(a, FullAttention)
        else float(a.kv_rank + a.rope_dim)
        for a in (group.attention for group in groups if _keeps_all(group))
        if isinstance(a, FullAttention | LatentAttention)
    ]
    return max(states) / min(caches) if states and caches else 0.0


def _window(group: LayerGroup) -> bool:
    a = group.attention
    return isinstance(a, FullAttention) and a.own_kv and a.window is not None


def _keeps_all(group: LayerGroup) -> bool:
    a = group.attention
    own = isinstance(a, FullAttention) and a.own_kv and a.window is None
    return own or isinstance(a, LatentAttention)


def _between(group: LayerGroup) -> float:
    """Elements a token holds between the matrices of a dense block or of the shared experts."""
    if group.ffn is None:
        return 0.0
    width = group.ffn.width if isinstance(group.ffn, DenseFfn) else group.ffn.shared_width
    return float(width * (2 + group.ffn.gated))
