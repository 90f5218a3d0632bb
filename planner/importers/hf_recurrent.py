"""Layers with a fixed state per sequence: weights and state of each variant."""

from __future__ import annotations

import math
from collections.abc import Callable

from planner.importers.hf_config import Config
from planner.spec.architecture import RecurrentAttention


def recurrent_attention(config: Config) -> RecurrentAttention:
    """Return the recurrent layer of a config; the first variant whose key it has wins."""
    for key, variant in _VARIANTS:
        if config.get(key) is not None:
            return variant(config)
    keys = ", ".join(key for key, _ in _VARIANTS)
    config.refuse("layer_types", f"names recurrent layers; add the sizes of their state ({keys})")
    return RecurrentAttention(kind="recurrent", variant="?", parameters=1, state_elements=1)


def _gated_deltanet(config: Config) -> RecurrentAttention:
    """Gated DeltaNet (arXiv:2412.06464) as in Qwen3-Next: Q, K, V, gate, two scalars a head."""
    hidden, value_heads = config.whole("hidden"), config.whole("linear_num_value_heads")
    key_dim, value_dim = config.whole("linear_key_head_dim"), config.whole("linear_value_head_dim")
    conv = config.whole("linear_conv_kernel_dim", 4)
    values = value_heads * value_dim
    mixed = 2 * config.whole("linear_num_key_heads") * key_dim + values
    return RecurrentAttention(
        kind="recurrent",
        variant="gated-deltanet",
        parameters=(
            hidden * (mixed + 2 * values + 2 * value_heads)
            + mixed * conv
            + 2 * value_heads
            + value_dim
        ),
        state_elements=value_heads * key_dim * value_dim,
        conv_elements=mixed * max(conv - 1, 0),
    )


def _kimi_delta(config: Config) -> RecurrentAttention:
    """Kimi Delta Attention (arXiv:2510.26692): decay and gate of low rank, or a full gate."""
    block, hidden = config.block("linear_attn_config"), config.whole("hidden")
    heads, dim = block.whole("num_heads"), block.whole("head_dim")
    conv, width = block.whole("short_conv_kernel_size", 4), heads * dim
    low_rank = hidden * dim + dim * width
    gate = hidden * width if block.flag("use_full_rank_gate") else low_rank
    return RecurrentAttention(
        kind="recurrent",
        variant="kda",
        parameters=(
            4 * hidden * width
            + 3 * width * conv
            + low_rank
            + gate
            + hidden * heads
            + heads
            + width
            + dim
        ),
        state_elements=heads * dim * dim,
        conv_elements=3 * width * max(conv - 1, 0),
    )


def _mamba2(config: Config) -> RecurrentAttention:
    """Mamba-2 (arXiv:2405.21060): one projection in, a convolution over x, B and C, one out."""
    heads = config.whole("mamba_num_heads", 0) or config.whole("mamba_n_heads")
    dim = config.whole("mamba_head_dim", 0) or config.whole("mamba_d_head")
    state = config.whole("ssm_state_size", 0) or config.whole("mamba_d_state")
    groups = config.whole("n_groups", 0) or config.whole("mamba_n_groups", 1)
    conv = config.whole("conv_kernel", 0) or config.whole("mamba_d_conv", 4)
    hidden, inner = config.whole("hidden"), heads * dim
    mixed = inner + 2 * groups * state
    return RecurrentAttention(
        kind="recurrent",
        variant="mamba2",
        parameters=(
            hidden * (inner + mixed + heads)
            + mixed * (conv + 1)
            + inner * hidden
            + 3 * heads
            + inner
        ),
        state_elements=inner * state,
        conv_elements=mixed * max(conv - 1, 0),
    )


def _mamba1(config: Config) -> RecurrentAttention:
    """Mamba-1 (arXiv:2312.00752) as in Jamba."""
    hidden, state = config.whole("hidden"), config.whole("mamba_d_state")
    inner = config.whole("mamba_expand", 2) * hidden
    conv = config.whole("mamba_d_conv", 4)
    rank = config.whole("mamba_dt_rank", math.ceil(hidden / 16))
    return RecurrentAttention(
        kind="recurrent",
        variant="mamba1",
        parameters=(
            3 * hidden * inner
            + inner * (conv + 1)
            + inner * (rank + 2 * state)
            + inner * (rank + 1)
            + inner * (state + 1)
            + rank
            + 2 * state
        ),
        state_elements=inner * state,
        conv_elements=inner * max(conv - 1, 0),
    )


def _lightning(config: Config) -> RecurrentAttention:
    """Lightning attention (arXiv:2501.08313): Q, K, V, output gate and output."""
    heads, hidden = config.whole("heads"), config.whole("hidden")
    dim = config.whole("head_dim", 0) or max(hidden // heads, 1)
    return RecurrentAttention(
        kind="recurrent",
        variant="lightning",
        parameters=5 * hidden * heads * dim + heads * dim,
        state_elements=heads * dim * dim,
    )


_VARIANTS: tuple[tuple[str, Callable[[Config], RecurrentAttention]], ...] = (
    ("linear_num_value_heads", _gated_deltanet),
    ("linear_attn_config", _kimi_delta),
    ("mamba_num_heads", _mamba2),
    ("mamba_n_heads", _mamba2),
    ("mamba_d_state", _mamba1),
    ("attn_type_list", _lightning),
    ("linear_attn_type", _lightning),
)
