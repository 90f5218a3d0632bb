"""Vision and audio encoders: parameters from their own blocks of a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.hf_config import Config

_KEYS = ("vision_config", "vision_tower_config", "vit_config", "audio_config")


def encoder_parameters(blocks: tuple[Mapping[str, Any], ...], hidden: int) -> tuple[int, list[str]]:
    """Count the encoders of a multimodal model.

    Args:
        blocks: Blocks of the config from the outermost to the text model's.
        hidden: Hidden size of the text model, which the projector ends in.

    Returns:
        Parameters (a transformer of the stated widths and a two-layer projector; within a few
        per cent of the real encoders), and a note for each encoder that could not be counted.
    """
    total, notes = 0, []
    for outer in blocks:
        for key in _KEYS:
            block = outer.get(key)
            if isinstance(block, Mapping) and block:
                count = _transformer(Config(block, {}), hidden)
                total += count
                notes += [] if count else [f"{key} states no widths, so its encoder is not counted"]
    return total, notes


def _transformer(block: Config, hidden: int) -> int:
    width = _first(block, "embed_dim", "vt_hidden_size", "d_model", "hidden_size")
    depth = _first(block, "depth", "num_hidden_layers", "vt_num_hidden_layers", "encoder_layers")
    if not width or not depth:
        return 0
    ratio = block.get("mlp_ratio")
    inner = _first(block, "intermediate_size", "vt_intermediate_size", "encoder_ffn_dim") or round(
        width * (ratio if isinstance(ratio, int | float) and 0 < ratio < 100 else 4)
    )
    matrices = 3 if block.get("hidden_act") == "silu" else 2
    queries = _first(block, "qkv_hidden_size") or width
    layer = 4 * width * queries + matrices * width * inner + 9 * width + inner
    patch = 3 * block.whole("patch_size", 0) ** 2 * max(block.whole("temporal_patch_size", 1), 1)
    embedding = width * (patch + block.whole("num_position_embeddings", 0))
    return depth * layer + embedding + _projector(block, width, hidden)


def _projector(block: Config, width: int, hidden: int) -> int:
    """Two layers over a square of merged patches; one more for each deeper layer fed in."""
    merge = block.whole("spatial_merge_size", 2 if block.get("merge_kernel_size") else 1)
    merged = width * max(merge, 1) ** 2
    feeds = block.get("deepstack_visual_indexes")
    count = 1 + (len(feeds) if isinstance(feeds, list | tuple) else 0)
    return count * merged * (merged + hidden)


def _first(block: Config, *keys: str) -> int:
    return next((value for key in keys if (value := block.whole(key, 0))), 0)
