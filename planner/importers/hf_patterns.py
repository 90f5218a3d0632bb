"""Which layer is what: attention and FFN kind of every layer, from the keys that say so.

Attention kinds: full, window, recurrent, cross, none. FFN kinds: dense, moe, none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.importers.hf_config import Config

Kinds = list[str]

_WORDS = {
    "full_attention": "full",
    "deepseek_sparse_attention": "full",
    "sparse_attention": "full",
    "attention": "full",
    "full": "full",
    "global": "full",
    "sliding_attention": "window",
    "sliding": "window",
    "chunked_attention": "window",
    "linear_attention": "recurrent",
    "mamba": "recurrent",
    "mamba2": "recurrent",
    "recurrent": "recurrent",
    "moe": "none",
    "mlp": "none",
}
_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def layer_count(config: Config) -> int:
    """Return the number of layers, from the pattern where only that is given."""
    blocks = _blocks(config)
    return config.whole("layers", len(blocks) if blocks else None)


def attention_kinds(config: Config, layers: int) -> Kinds:
    """Return the attention kind of each layer; the first pattern that the config has wins."""
    found = (pattern(config, layers) for pattern in _PATTERNS)
    kinds = next((kinds for kinds in found if kinds is not None), ["full"] * layers)
    # A window longer than any context never cuts.
    windowed = 0 < config.whole("window", 0) < config.whole("context", 1)
    return kinds if windowed else ["full" if kind == "window" else kind for kind in kinds]


def ffn_kinds(config: Config, layers: int) -> Kinds:
    """Return the FFN kind of each layer."""
    blocks = _blocks(config)
    if blocks:
        named = {"moe": "moe", "mlp": "dense"}
        return ([named.get(block, "none") for block in blocks] + ["none"] * layers)[:layers]
    if config.whole("experts", 0) <= 1:
        return ["dense"] * layers
    sparse = _sparse_layers(config, layers)
    return ["moe" if index in sparse else "dense" for index in range(layers)]


def _blocks(config: Config) -> Kinds | None:
    """Return the blocks of a model whose layers hold attention or FFN, not both (Nemotron-H)."""
    letters = config.get("hybrid_override_pattern")
    if isinstance(letters, str) and set(letters) <= set(_LETTERS):
        return [_LETTERS[letter] for letter in letters]
    blocks = config.get("layers_block_type")
    apart = isinstance(blocks, list | tuple) and {"moe", "mlp"} & set(map(str, blocks))
    return [str(block) for block in blocks] if apart else None


def _from_blocks(config: Config, layers: int) -> Kinds | None:
    blocks = _blocks(config)
    if blocks and len(blocks) != layers:
        config.refuse("hybrid_override_pattern", f"names {len(blocks)} blocks for {layers} layers")
    if not blocks:
        return None
    return (_named(config, blocks, "layers_block_type") + ["none"] * layers)[:layers]


def _from_types(config: Config, layers: int) -> Kinds | None:
    for key in ("layer_types", "layers_block_type"):
        types = config.per_layer(key, layers)
        if types is not None:
            return _named(config, [str(kind) for kind in types], key)
    return None


def _named(config: Config, types: Kinds, key: str) -> Kinds:
    unknown = sorted(set(types) - set(_WORDS))
    if unknown:
        known = ", ".join(_WORDS)
        config.refuse(key, f"'{unknown[0]:.40}' is not known; use one of {known}")
    return [_WORDS.get(kind, "full") for kind in types]


def _from_switches(config: Config, layers: int) -> Kinds | None:
    """Lists of 0 and 1: MiniMax-Text (0 = linear) and MiMo (1 = window)."""
    for key, kinds in (
        ("attn_type_list", {0: "recurrent", 1: "full"}),
        ("hybrid_layer_pattern", {0: "full", 1: "window"}),
    ):
        switches = config.per_layer(key, layers)
        if switches is not None:
            return [kinds[int(switch in (1, True))] for switch in switches]
    return None


def _from_full_list(config: Config, layers: int) -> Kinds | None:
    """Numbers of the full layers, from 1 (Kimi-Linear); of the cross layers, from 0 (Llama 3.2)."""
    full = config.block("linear_attn_config").numbers("full_attn_layers")
    if full is not None:
        return ["full" if number in full else "recurrent" for number in range(1, layers + 1)]
    cross = config.numbers("cross_attention_layers")
    if cross is not None:
        return ["cross" if index in cross else "full" for index in range(layers)]
    return None


def _from_period(config: Config, layers: int) -> Kinds | None:
    """One full layer in every few; the others are recurrent or have a window."""
    if config.get("attn_layer_period") is not None:
        period = max(config.whole("attn_layer_period"), 1)
        offset = config.whole("attn_layer_offset", 0)
        return ["full" if index % period == offset else "recurrent" for index in range(layers)]
    for key, other in (
        ("full_attention_interval", "recurrent"),
        ("no_rope_layer_interval", "window"),
        ("sliding_window_pattern", "window"),
        ("_sliding_window_pattern", "window"),
    ):
        value = config.get(key)
        if isinstance(value, str) and value:
            return [
                other if value[index % len(value)] == "L" else "full" for index in range(layers)
            ]
        if value is not None:
            period = max(config.whole(key), 1)
            return ["full" if number % period == 0 else other for number in range(1, layers + 1)]
    return None


def _from_window(config: Config, layers: int) -> Kinds | None:
    """A window without a pattern: in all layers, or in those from ``max_window_layers`` on."""
    if not config.whole("window", 0) or not config.flag("use_sliding_window", default=True):
        return None
    first = config.whole("max_window_layers", 0) if config.get("use_sliding_window") else 0
    return ["full" if index < first else "window" for index in range(layers)]


_PATTERNS: tuple[Callable[[Config, int], Kinds | None], ...] = (
    _from_blocks,
    _from_types,
    _from_switches,
    _from_full_list,
    _from_period,
    _from_window,
)


def _sparse_layers(config: Config, layers: int) -> set[int]:
    """Return the layers with routed experts."""
    for key in ("mlp_layer_types", "moe_layer_freq"):
        marks = config.per_layer(key, layers)
        if marks is not None:
            return {index for index, mark in enumerate(marks) if mark in (1, True, "sparse", "moe")}
    listed = config.numbers("moe_layers_enum") or config.numbers("moe_layers")
    return set(listed) if listed else _regular(config, layers)


def _regular(config: Config, layers: int) -> set[int]:
    """Every few layers from some layer on, without those that are named dense."""
    key = next((key for key in _STEPS if config.get(key) is not None), None)
    step = max(config.whole(key, 1), 1) if key else 1
    phase = _STEPS[key](config, step) if key else 0
    dense = config.numbers("mlp_only_layers") or ()
    first = config.whole("dense_first", 0)
    return {index for index in range(first, layers) if index % step == phase and index not in dense}


_STEPS: Mapping[str, Callable[[Config, int], int]] = {
    "expert_layer_period": lambda config, _step: config.whole("expert_layer_offset", 0),
    "interleave_moe_layer_step": lambda _config, step: step - 1,
    "decoder_sparse_step": lambda _config, step: step - 1,
    "moe_layer_interval": lambda _config, step: step - 1,
    "moe_layer_freq": lambda _config, _step: 0,
}
