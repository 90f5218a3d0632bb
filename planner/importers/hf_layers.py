"""One layer's spec: attention and FFN of a kind, from the keys that hold its widths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from planner.importers.hf_config import KEYS, Config
from planner.importers.hf_families import Family
from planner.importers.hf_recurrent import recurrent_attention
from planner.spec.architecture import (
    Attention,
    DenseFfn,
    ExplicitAttention,
    Ffn,
    FullAttention,
    LatentAttention,
    MoeFfn,
)


def attention_of(config: Config, family: Family, kind: str, index: int) -> Attention | None:
    """Return the attention of layer `index`, which is of `kind`; None where it has none."""
    return _ATTENTION[kind](config, family, index)


def ffn_of(config: Config, family: Family, kind: str, index: int) -> Ffn | None:
    """Return the FFN of layer `index`, which is of `kind`; None where it has none."""
    return _FFN[kind](config, family, index)


def _full(config: Config, family: Family, index: int) -> Attention:
    for key, form in _FORMS.items():
        if config.get(key) is not None:
            return form(config, index)
    heads, kv_heads, head_dim = _heads(config, index)
    kv_heads = config.whole("num_global_key_value_heads", 0) or kv_heads
    head_dim = config.whole("global_head_dim", 0) or head_dim
    own, extra = _sharing(config, index, kv_heads * head_dim)
    index_dim, top_k, index_weights = _selector(config, index)
    return FullAttention(
        kind="full",
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_dim=config.whole("v_head_dim", 0) or None,
        gate=config.flag("attn_output_gate"),
        bias=_bias(config, family),
        own_kv=own,
        key_is_value=config.flag("attention_k_eq_v"),
        extra_parameters=extra + index_weights + _sinks(config, heads),
        index_dim=index_dim,
        index_top_k=top_k,
    )


def _window(config: Config, family: Family, index: int) -> Attention:
    heads, kv_heads, head_dim = _heads(config, index)
    other = config.block("attention_other_setting")
    heads = config.whole("swa_num_attention_heads", 0) or other.whole("heads", 0) or heads
    kv_heads = config.whole("swa_num_key_value_heads", 0) or other.whole("kv_heads", 0) or kv_heads
    head_dim = config.whole("swa_head_dim", 0) or other.whole("head_dim", 0) or head_dim
    own, extra = _sharing(config, index, kv_heads * head_dim)
    return FullAttention(
        kind="full",
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_dim=config.whole("swa_v_head_dim", config.whole("v_head_dim", 0)) or None,
        window=config.whole("window"),
        gate=config.flag("attn_output_gate"),
        bias=_bias(config, family),
        own_kv=own,
        extra_parameters=extra + _sinks(config, heads),
    )


def _latent(config: Config, index: int) -> LatentAttention:
    heads, value_dim = config.whole("heads"), config.whole("v_head_dim")
    marks = config.get("indexer_types")
    shared = isinstance(marks, list | tuple) and index < len(marks) and marks[index] == "shared"
    gated = config.flag("mla_use_output_gate")
    return LatentAttention(
        kind="mla",
        heads=heads,
        q_rank=config.whole("q_lora_rank", 0),
        kv_rank=config.whole("kv_lora_rank"),
        rope_dim=config.whole("qk_rope_head_dim", 0),
        nope_dim=config.whole("qk_nope_head_dim"),
        value_dim=value_dim,
        gate_parameters=gated * config.whole("hidden") * heads * value_dim,
        index_heads=config.whole("index_n_heads", 0),
        index_dim=config.whole("index_head_dim", 0),
        index_top_k=config.whole("index_topk", 0),
        shares_index=shared,
    )


def _cross(config: Config, _family: Family, index: int) -> ExplicitAttention:
    """Attention to an image: its cache does not grow with the text."""
    heads, kv_heads, head_dim = _heads(config, index)
    return ExplicitAttention(
        kind="explicit",
        variant="cross-attention to images",
        parameters=2 * config.whole("hidden") * (heads + kv_heads) * head_dim,
        kv_elements=0.0,
        decode_flops=0.0,
        prefill_flops=0.0,
    )


def _factorised(config: Config, index: int) -> ExplicitAttention:
    """Multi-matrix factorisation attention (Step-3, arXiv:2507.19427): queries by a latent."""
    heads, kv_heads, head_dim = _heads(config, index)
    hidden, rank = config.whole("hidden"), config.whole("share_q_dim")
    queries = rank * (hidden + heads * head_dim)
    flops = 4.0 * heads * head_dim
    return ExplicitAttention(
        kind="explicit",
        variant="multi-matrix factorisation attention",
        parameters=queries + hidden * head_dim * (2 * kv_heads + heads),
        kv_elements=2.0 * kv_heads * head_dim,
        kv_heads=kv_heads,
        decode_flops=flops,
        prefill_flops=flops,
    )


def _heads(config: Config, index: int) -> tuple[int, int, int]:
    """Return query heads, KV heads and head size."""
    heads = config.whole("heads")
    each = config.per_layer("num_key_value_heads_per_layer", config.layers)
    multi_query = config.flag("multi_query") and not config.flag("new_decoder_architecture")
    if each and isinstance(each[index], int):
        kv_heads = each[index]
    else:
        kv_heads = 1 if multi_query else config.whole("kv_heads", heads)
    if kv_heads > heads or heads % max(kv_heads, 1):
        config.refuse("kv_heads", f"{kv_heads} KV heads do not divide {heads} query heads")
    hidden = config.whole("hidden")
    return heads, max(kv_heads, 1), config.whole("head_dim", 0) or max(hidden // heads, 1)


def _bias(config: Config, family: Family) -> bool:
    keys = ("attention_bias", "qkv_bias", "add_qkv_bias", "bias", "use_bias")
    return config.flag(*keys, default=family.bias)


def _sharing(config: Config, index: int, kv_width: int) -> tuple[bool, int]:
    """Return whether the layer has a cache of its own, and K, V weights stored for nothing."""
    last = config.whole("num_kv_shared_layers", 0)
    factor = config.whole("cla_share_factor", 1) if config.flag("use_cla") else 1
    own = index < config.layers - last and index % max(factor, 1) == 0
    # The files of the Gemma models keep the projections of layers that reuse a cache.
    unused = 0 if own or factor > 1 else 2 * config.whole("hidden") * kv_width
    return own, unused


def _sinks(config: Config, heads: int) -> int:
    """Attention sinks and the output bias that comes with them (gpt-oss)."""
    return heads + config.whole("hidden") if config.flag("attention_sinks") else 0


def _selector(config: Config, index: int) -> tuple[int, int, int]:
    """Return index dim, tokens selected and weights of a block selector (MiniMax-M3)."""
    block = config.block("sparse_attention_config")
    switches = block.per_layer("sparse_attention_freq", config.layers)
    if not block.flag("use_sparse_attention") or (switches and not switches[index]):
        return 0, 0, 0
    dim = block.whole("sparse_index_dim")
    tokens = block.whole("sparse_topk_blocks") * block.whole("sparse_block_size")
    weights = config.whole("hidden") * dim * (block.whole("sparse_num_index_heads", 1) + 1)
    return dim, tokens, weights


def _dense(config: Config, family: Family, index: int) -> DenseFfn:
    hidden = config.whole("hidden")
    ratio = config.whole("expansion_ratio", family.ffn_ratio)
    # Where `intermediate_size` is an expert's width, the dense one has a key of its own.
    own = config.whole("intermediate_size_mlp", 0) or config.whole("dense_intermediate_size", 0)
    width = own or config.whole("width", ratio * hidden or None)
    shared = index >= config.layers - config.whole("num_kv_shared_layers", 0)
    if shared and config.flag("use_double_wide_mlp"):
        width *= 2
    return DenseFfn(
        kind="dense",
        width=max(width, 1),
        gated=family.gated,
        bias=config.flag("mlp_bias", default=family.ffn_bias),
    )


def _moe(config: Config, family: Family, _index: int) -> MoeFfn:
    hidden, latent = config.whole("hidden"), config.whole("expert_input", 0)
    experts, active = config.whole("experts"), config.whole("active")
    if active > experts:
        config.refuse("active", f"{active} experts a token, of {experts}")
    beside = config.whole("width") if family.router_beside_dense else 0
    one_gate = hidden if config.get("shared_expert_intermediate_size") else 0
    return MoeFfn(
        kind="moe",
        experts=experts,
        active=min(active, experts),
        width=config.whole("expert_width"),
        shared_width=_shared_width(config) + beside,
        latent=latent,
        gated=family.gated,
        bias=config.flag("expert_bias"),
        extra_parameters=2 * hidden * latent + one_gate,
    )


def _shared_width(config: Config) -> int:
    """Return the summed width of the shared experts; a width of 0 means that there are none."""
    count = config.whole("shared_experts", 0)
    given = any(config.get(key) is not None for key in KEYS["shared_width"])
    if given:
        return config.whole("shared_width", 0) * max(count, 1)
    return count * config.whole("expert_width")


_FORMS: Mapping[str, Callable[[Config, int], Attention]] = MappingProxyType(
    {"kv_lora_rank": _latent, "share_q_dim": _factorised}
)
_ATTENTION: Mapping[str, Callable[[Config, Family, int], Attention | None]] = MappingProxyType(
    {
        "full": _full,
        "window": _window,
        "recurrent": lambda config, _family, _index: recurrent_attention(config),
        "cross": _cross,
        "none": lambda _config, _family, _index: None,
    }
)
_FFN: Mapping[str, Callable[[Config, Family, int], Ffn | None]] = MappingProxyType(
    {"dense": _dense, "moe": _moe, "none": lambda _config, _family, _index: None}
)
