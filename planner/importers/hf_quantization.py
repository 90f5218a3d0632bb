"""What a released checkpoint holds: its format, and which weight groups are in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Literal

from planner.importers.hf_config import Config
from planner.spec.architecture import Checkpoint, LayerGroup, MoeFfn

Group = Literal["attention", "dense", "experts"]
_GROUPS: tuple[Group, ...] = ("attention", "dense", "experts")

# Spellings of one module of each group. Attention or dense weights are kept out if most layers
# keep out one of them; experts if they keep out all (a dense FFN beside them shares `mlp`).
_MODULES: Mapping[Group, tuple[str, ...]] = MappingProxyType(
    {
        "attention": ("self_attn.q_proj", "attn.q_proj", "linear_attn.in_proj_qkv", "self_attn"),
        "dense": (
            "mlp.gate_proj",
            "mlp.shared_experts.gate_proj",
            "mlp.shared_expert.gate_proj",
            "ffn.shared_experts.w1",
        ),
        "experts": (
            "mlp.experts.0.gate_proj",
            "block_sparse_moe.experts.0.w1",
            "ffn.experts.0.w1",
            "experts.0.gate_proj",
        ),
    }
)


@dataclass(frozen=True)
class Release:
    """The format a checkpoint is released in.

    Attributes:
        format: Weight-format id.
        checkpoint: Groups in that format; None if nothing is quantized.
    """

    format: str
    checkpoint: Checkpoint | None


def release_of(
    config: Config, quantization: Mapping[str, Any] | None, layers: Sequence[LayerGroup]
) -> Release:
    """Return the format of a checkpoint; a method that is not known becomes a fault.

    Args:
        config: The model's config; takes faults and notes.
        quantization: ``quantization_config`` or the ``quantization`` block of modelopt.
        layers: Layers of the model.
    """
    if not quantization:
        return Release("bf16", None)
    present = _present(layers)
    if isinstance(quantization.get("quantized_layers"), Mapping):
        return _mixed(config, quantization["quantized_layers"], present)
    method = str(
        quantization.get("quant_method") or quantization.get("quant_algo") or ""
    ).casefold()
    reader = _METHODS.get(method) or (_modelopt if quantization.get("quant_algo") else None)
    found = reader(quantization) if reader else None
    if found is None:
        known = ", ".join(sorted(_METHODS))
        config.refuse(
            "quantization_config",
            f"quant_method '{method:.40}' is not known (known: {known}); remove the block and "
            "name the format in `weights`",
        )
        return Release("bf16", None)
    if method == "fp8" and config.get("expert_dtype") == "fp4":
        config.notes.append("attention, dense and shared weights are fp8, not bf16")
        return Release("mxfp4", Checkpoint(groups=("experts",)))
    groups = _groups(quantization, config.layers, present)
    scaling: Literal["static", "block-dynamic"] = (
        "block-dynamic" if found == "fp8" and _by_block(quantization) else "static"
    )
    return (
        Release(found, Checkpoint(groups=groups, scaling=scaling))
        if groups
        else Release("bf16", None)
    )


def _by_bits(quantization: Mapping[str, Any]) -> str | None:
    bits = quantization.get("bits", quantization.get("w_bit", quantization.get("weight_bits")))
    return {4: "int4", 8: "int8-weight-only"}.get(bits if isinstance(bits, int) else 0)


def _bitsandbytes(quantization: Mapping[str, Any]) -> str:
    eight = quantization.get("load_in_8bit") or quantization.get("_load_in_8bit")
    return "int8-weight-only" if eight else "int4"


def _modelopt(quantization: Mapping[str, Any]) -> str | None:
    algorithm = str(quantization.get("quant_algo") or "").upper()
    return next((form for word, form in _ALGORITHMS if word in algorithm), None) or (
        _compressed_tensors(quantization)
    )


def _compressed_tensors(quantization: Mapping[str, Any]) -> str | None:
    groups = quantization.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        return None
    group = next(iter(groups.values()))
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping):
        return None
    form = str(group.get("format") or quantization.get("format") or "")
    kind: tuple[str, Any] = (str(weights.get("type") or "int"), weights.get("num_bits"))
    if kind == ("float", 4):
        return "mxfp4" if "mxfp4" in form or weights.get("group_size") == 32 else "nvfp4"
    if kind == ("int", 8):
        return "int8" if group.get("input_activations") else "int8-weight-only"
    return "fp8" if kind == ("float", 8) else "int4" if kind == ("int", 4) else None


_ALGORITHMS = (
    ("NVFP4", "nvfp4"),
    ("MXFP4", "mxfp4"),
    ("MXFP8", "fp8"),
    ("W4A8", "int4"),
    ("W4A16", "int4"),
    ("INT4", "int4"),
    ("FP8", "fp8"),
    ("W8A16", "int8-weight-only"),
    ("INT8", "int8"),
    ("W8A8", "int8"),
)
_METHODS: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = MappingProxyType(
    {
        "fp8": lambda _: "fp8",
        "fbgemm_fp8": lambda _: "fp8",
        "mxfp4": lambda _: "mxfp4",
        "gptq": _by_bits,
        "awq": _by_bits,
        "auto-round": _by_bits,
        "autoround": _by_bits,
        "intel/auto-round": _by_bits,
        "hqq": _by_bits,
        "bitsandbytes": _bitsandbytes,
        "compressed-tensors": _compressed_tensors,
        "modelopt": _modelopt,
        "modelopt_fp4": _modelopt,
    }
)


def _by_block(quantization: Mapping[str, Any]) -> bool:
    """Whether activations are scaled per block at run time."""
    dynamic = bool(quantization.get("activation_scheme", "dynamic") == "dynamic")
    if quantization.get("weight_block_size"):
        return dynamic
    groups = quantization.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    return isinstance(weights, Mapping) and weights.get("strategy") == "block"


def _mixed(config: Config, named: Mapping[str, Any], present: tuple[Group, ...]) -> Release:
    """Formats named layer by layer: that of the experts (of the FFN if dense) is the release's."""
    counts: dict[Group, Counter[str]] = {group: Counter() for group in _GROUPS}
    for module, entry in named.items():
        form = _modelopt(entry) if isinstance(entry, Mapping) else None
        if form is not None:
            counts[_group_of(str(module))][form] += 1
    main = {group: count.most_common(1)[0][0] for group, count in counts.items() if count}
    form = main.get(present[-1]) or next(iter(main.values()), "bf16")
    others = {other for other in main.values() if other != form}
    if others:
        config.notes.append(f"some groups are {', '.join(sorted(others))}; counted as bf16")
    groups = tuple(group for group in present if main.get(group) == form)
    return Release(form, Checkpoint(groups=groups)) if groups else Release("bf16", None)


def _group_of(module: str) -> Group:
    parts = module.split(".")
    if "experts" in parts:
        return "experts"
    return "attention" if any("attn" in part for part in parts) else "dense"


def _present(layers: Sequence[LayerGroup]) -> tuple[Group, ...]:
    """Return the groups that a model has weights in; routers alone do not count as dense."""
    ffns = [layer.ffn for layer in layers if layer.ffn is not None]
    routed = [ffn for ffn in ffns if isinstance(ffn, MoeFfn)]
    dense = len(routed) < len(ffns) or any(ffn.shared_width for ffn in routed)
    has = {"attention": True, "dense": dense, "experts": bool(routed)}
    return tuple(group for group in _GROUPS if has[group])


def _groups(
    quantization: Mapping[str, Any], layers: int, present: tuple[Group, ...]
) -> tuple[Group, ...]:
    keys = ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers")
    found = (quantization.get(key) for key in keys)
    names = next((value for value in found if isinstance(value, list | tuple)), ())
    ignored = _Ignored(str(name) for name in names if isinstance(name, str))

    def kept_out(module: str) -> bool:
        return 2 * sum(ignored.holds(index, module) for index in range(layers)) >= layers

    return tuple(
        group
        for group in present
        if not (all if group == "experts" else any)(map(kept_out, _MODULES[group]))
    )


class _Ignored:
    """Modules that a quantization leaves out: names, globs, and ``re:`` expressions."""

    def __init__(self, names: Iterable[str]) -> None:
        self._numbered: dict[str, list[list[str]]] = {}
        self._any: list[list[str]] = []
        self._expressions: list[re.Pattern[str]] = []
        for name in names:
            if name.startswith("re:"):
                self._expressions += _expression(name[3:])
                continue
            parts = name.split(".")
            if "layers" in parts[:-1]:
                parts = parts[parts.index("layers") + 1 :]
                number = parts[0].rstrip("*")
                if number.isdigit():
                    self._numbered.setdefault(number, []).append(parts[1:])
                    continue
                parts = parts[1:]
            self._any.append(parts)

    def holds(self, index: int, module: str) -> bool:
        """Whether the module of that layer is left out."""
        parts = module.split(".")
        numbered = self._numbered.get(str(index), ())
        if any(not name or _within(name, parts) for name in numbered):
            return True
        path = f"model.layers.{index}.{module}"
        return any(_within(name, ["", *parts]) for name in self._any) or any(
            expression.match(path) for expression in self._expressions
        )


def _within(name: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the patterns of a name match adjacent parts of a module's path."""
    return any(
        all(fnmatchcase(part, pattern) for part, pattern in zip(parts[start:], name, strict=False))
        for start in range(len(parts) - len(name) + 1)
    )


def _expression(text: str) -> list[re.Pattern[str]]:
    """Compile an expression; one that is broken or could run for ever matches nothing."""
    if len(text) > 300 or re.search(r"[*+}]\)\s*[*+{]", text):
        return []
    try:
        return [re.compile(text)]
    except re.error:
        return []
