"""Models whose layers are listed one by one in blocks of their own form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from planner.importers.hf_config import Config
from planner.importers.hf_families import Family
from planner.importers.hf_layers import ffn_of
from planner.spec.architecture import (
    Attention,
    DenseFfn,
    ExplicitAttention,
    Ffn,
    FullAttention,
)

Layer = tuple[Attention | None, Ffn | None]


def special_layers(config: Config, family: Family, layers: int) -> list[Layer] | None:
    """Return the layers of a config that lists them in its own form, else None."""
    for key, reader in _READERS.items():
        if config.per_layer(key, layers) is not None:
            return reader(config, family, layers)
    return None


def _searched(config: Config, family: Family, layers: int) -> list[Layer]:
    """Blocks found by architecture search (Puzzle, arXiv:2411.19146): each may lack a part."""
    blocks = config.per_layer("block_configs", layers) or ()
    return [
        (
            _searched_attention(config, _part(block, "attention")),
            _searched_ffn(config, family, _part(block, "ffn")),
        )
        for block in blocks
    ]


def _part(block: Any, key: str) -> Config:
    return Config(block if isinstance(block, Mapping) else {}, {}).block(key)


def _searched_attention(config: Config, block: Config) -> Attention | None:
    hidden, heads = config.whole("hidden"), config.whole("heads")
    if block.flag("no_op"):
        return None
    if block.flag("replace_with_linear"):
        return ExplicitAttention(
            kind="explicit",
            variant="linear layer",
            parameters=hidden * hidden,
            kv_elements=0.0,
            decode_flops=0.0,
            prefill_flops=0.0,
        )
    group = max(block.whole("n_heads_in_group", 0), 1)
    kv_heads = block.whole("num_key_value_heads", heads // group) or 1
    head_dim = config.whole("head_dim", 0) or max(hidden // heads, 1)
    window = block.whole("window_length", 0) or None
    return FullAttention(
        kind="full", heads=heads, kv_heads=kv_heads, head_dim=head_dim, window=window
    )


def _searched_ffn(config: Config, family: Family, block: Config) -> Ffn | None:
    hidden = config.whole("hidden")
    if block.flag("no_op"):
        return None
    width = block.whole("intermediate_size", 0)
    multiple = block.get("ffn_mult")
    if not width and isinstance(multiple, int | float) and 0 < multiple < 100:
        # Two thirds of the multiple (three matrices for two), rounded up to 256.
        width = -(-int(2 * multiple * hidden / 3) // 256) * 256
    if block.flag("replace_with_linear"):
        return DenseFfn(kind="dense", width=max(hidden // 2, 1), gated=False)
    if not width:
        config.refuse(
            "block_configs", "a block has neither ffn_mult nor intermediate_size; add one"
        )
    return DenseFfn(kind="dense", width=max(width, 1), gated=family.gated)


def _compressed(config: Config, family: Family, layers: int) -> list[Layer]:
    """DeepSeek-V4: every layer keeps a window, and one entry for each few earlier tokens.

    Keys and values share one latent of head_dim. Every 4th-token layers select entries with an
    indexer; layers of coarser compression read all of theirs.
    """
    ratios = config.per_layer("compress_ratios", layers) or ()
    return [
        (_compressed_attention(config, ratio), ffn_of(config, family, "moe", index))
        for index, ratio in enumerate(ratios)
    ]


def _compressed_attention(config: Config, ratio: Any) -> ExplicitAttention:
    hidden, heads, dim = config.whole("hidden"), config.whole("heads"), config.whole("head_dim")
    q_rank, index_dim = config.whole("q_lora_rank"), config.whole("index_head_dim", 0)
    out = config.whole("o_groups") * config.whole("o_lora_rank")
    flops = 4.0 * heads * dim
    if not isinstance(ratio, int) or not 0 <= ratio <= _COARSEST:
        ratio = config.refuse("compress_ratios", f"{ratio!r:.20} is not 0 to {_COARSEST}")
    selects = ratio == _SELECTED
    # The finer compression overlaps its blocks, so its projections are twice as wide.
    compressor = 2 * hidden * dim * (1 + selects) * (ratio > 0)
    indexer = q_rank * config.whole("index_n_heads", 0) * index_dim + hidden * (
        config.whole("index_n_heads", 0) + 2 * 2 * index_dim
    )
    projections = hidden * (q_rank + dim) + q_rank * heads * dim
    output = heads * dim * config.whole("o_lora_rank") + out * hidden
    return ExplicitAttention(
        kind="explicit",
        variant=f"compressed attention, {ratio} tokens an entry" if ratio else "window on a latent",
        parameters=projections + output + compressor + selects * indexer,
        kv_elements=dim / ratio if ratio else 0.0,
        window_elements=float(dim),
        window=config.whole("window"),
        decode_flops=flops / (ratio or 1),
        prefill_flops=flops / (ratio or 1),
        top_k=selects * config.whole("index_topk", 0) * ratio,
        index_elements=index_dim / ratio if selects else 0.0,
    )


_SELECTED = 4
_COARSEST = 1_000_000

_READERS: Mapping[str, Callable[[Config, Family, int], list[Layer]]] = MappingProxyType(
    {"block_configs": _searched, "compress_ratios": _compressed}
)
