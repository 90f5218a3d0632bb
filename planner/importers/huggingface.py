"""Hugging Face ``config.json`` -> architecture."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.errors import Fault, InputError
from planner.files.disk import read_text
from planner.importers.hf_config import Config
from planner.importers.hf_encoders import encoder_parameters
from planner.importers.hf_families import Family, family_of
from planner.importers.hf_layers import attention_of, ffn_of
from planner.importers.hf_patterns import attention_kinds, ffn_kinds, layer_count
from planner.importers.hf_quantization import release_of
from planner.importers.hf_special import Layer, special_layers
from planner.spec.architecture import Architecture, LayerGroup

CONFIG_BYTES = 32_000_000
MOST_LAYERS = 2_000
_LARGEST_STRETCH = 1_000

_TEXT_BLOCKS = (
    "text_config",
    "llm_config",
    "language_config",
    "thinker_config",
    "language_model_config",
)
# Files that lie beside a config.json: a key that marks them -> what they are.
_OTHER_FILES = (
    ("peft_type", "a LoRA adapter's config; give the config.json of its base model"),
    ("max_new_tokens", "a generation_config; give the config.json beside it"),
    ("_from_model_config", "a generation_config; give the config.json beside it"),
    ("model_max_length", "a tokenizer's config; give the config.json beside it"),
    ("image_processor_type", "an image processor's config; give the config.json beside it"),
    ("weight_map", "an index of weight files; give the config.json beside it"),
    ("_diffusers_version", "a diffusion model; only text-generating models are covered"),
)
_QUANTIZED = re.compile(r"[-_.](nvfp4|mxfp4|fp4|fp8|int4|int8|awq|gptq)(?![a-z0-9])", re.IGNORECASE)
_UNUSABLE_SUFFIXES = {
    ".gguf": "a GGUF file holds its figures in a binary header that is not read",
    ".safetensors": "a weight file holds no architecture",
    ".bin": "a weight file holds no architecture",
    ".pt": "a weight file holds no architecture",
    ".pth": "a weight file holds no architecture",
}


def read_architecture(path: Path, name: str = "") -> Architecture:
    """Read a model's ``config.json``, or the one in a model folder.

    A ``hf_quant_config.json`` (modelopt) in the same folder says what is quantized, if the config
    itself does not.

    Args:
        path: The file, or the folder.
        name: Becomes id and name; empty = that of the folder, or of the file.

    Raises:
        InputError: The file cannot be read, or is no config of a text-generating model; names
            every key that is missing or unusable.
    """
    file = _config_file(path)
    config = _read_object(file)
    beside = file.parent / "hf_quant_config.json"
    if beside.is_file() and file.name == "config.json":
        quantization = _read_object(beside).get("quantization")
        config = {"quantization_config": quantization, **config}
    name = name or (file.parent.name if file.name == "config.json" else file.stem)
    try:
        return architecture_from_config(config, name or str(path))
    except InputError as error:
        raise InputError(str(file), error.faults) from None


def architecture_from_config(config: Mapping[str, Any], name: str) -> Architecture:
    """Turn the content of a ``config.json`` into an architecture.

    A ``model_type`` that is not known is read by the usual keys; ``notes`` says so.

    Args:
        config: The object in the file.
        name: Becomes id and name.

    Raises:
        InputError: Names every key that is missing or unusable.
    """
    _refuse_others(config, name)
    text, blocks = _text_model(config)
    model_type = str(text.get("model_type") or config.get("model_type") or "")
    family = family_of(model_type) or family_of(str(config.get("model_type") or ""))
    reader = Config(text, (family or Family()).keys)
    if family is None:
        reader.notes.append(f"model_type '{model_type:.60}' is not known: read by the usual keys")
    made = _build(reader, family or Family(), blocks, name[:200] or "config.json")
    if reader.faults or made is None:
        raise InputError(name, reader.faults)
    return made


def _position_rows(config: Config, context: int) -> int | None:
    """Positions in the rotary tables where linear scaling stretches them; None = the context.

    Models with a base of their own for windowed layers (Gemma 3) keep a plain table too.
    """
    scaling = config.block("rope_scaling")
    factor = scaling.get("factor")
    linear = "linear" in (scaling.get("rope_type"), scaling.get("type"))
    if not linear or not isinstance(factor, int | float) or not 1 < factor <= _LARGEST_STRETCH:
        return None
    return math.ceil(context * factor) + context * (config.get("rope_local_base_freq") is not None)


def _build(
    config: Config, family: Family, blocks: tuple[Mapping[str, Any], ...], name: str
) -> Architecture | None:
    """Return the architecture, or None if its faults leave none to speak of."""
    hidden, vocabulary = config.whole("hidden"), config.whole("vocabulary")
    context, layers = config.whole("context"), _layers(config, family)
    if not layers or config.faults:
        return None
    quantization = _first_block(blocks, config, "quantization_config")
    release = release_of(config, quantization, layers)
    if quantization is None and (said := _QUANTIZED.search(name)):
        config.notes.append(
            f"the name says {said.group(1)}, but no quantization_config does: taken as bf16; "
            "put hf_quant_config.json beside config.json"
        )
    encoders, notes = encoder_parameters(blocks, hidden)
    checkpoint = release.checkpoint
    return Architecture(
        id=name,
        name=name,
        native_format=release.format,
        checkpoints={release.format: checkpoint} if checkpoint else {},
        hidden_size=hidden,
        vocab_size=vocabulary,
        tied_embeddings=_tied(config, family, blocks),
        layers=layers,
        mtp_layers=config.whole("mtp", 0),
        encoder_parameters=encoders,
        extra_parameters=_extra(config),
        max_context_tokens=context,
        position_rows=_position_rows(config, context),
        source=f"config.json of {name}"[:200],
        trust="given",
        notes="; ".join([*config.notes, *notes]),
    )


def _layers(config: Config, family: Family) -> tuple[LayerGroup, ...]:
    """Return groups of equal layers, in the order in which they first appear."""
    count = layer_count(config)
    config.layers = count
    if count > MOST_LAYERS:
        config.refuse("layers", f"{count} layers are more than {MOST_LAYERS}")
        return ()
    each: list[Layer] = special_layers(config, family, count) or [
        (
            attention_of(config, family, attention, index),
            ffn_of(config, family, ffn, index),
        )
        for index, (attention, ffn) in enumerate(
            zip(attention_kinds(config, count), ffn_kinds(config, count), strict=True)
        )
    ]
    groups: dict[Layer, int] = {}
    for layer in each:
        groups[layer] = groups.get(layer, 0) + 1
    return tuple(
        LayerGroup(count=number, attention=attention, ffn=ffn)
        for (attention, ffn), number in groups.items()
    )


def _extra(config: Config) -> int:
    """Position tables, and embeddings of every layer (Gemma 3n, Gemma 4 E2B)."""
    hidden, each = config.whole("hidden"), config.whole("hidden_size_per_layer_input", 0)
    table = each * config.layers * config.whole("vocab_size_per_layer_input", 0)
    projections = each * config.layers * hidden * (1 + 2)
    positions = config.whole("context", 0) * hidden if config.flag("position_table") else 0
    return table + projections + positions


def _tied(config: Config, family: Family, blocks: tuple[Mapping[str, Any], ...]) -> bool:
    given = [config.get("tie_word_embeddings")]
    given += [wrapper.get("tie_word_embeddings") for wrapper in reversed(blocks)]
    return next((bool(value) for value in given if value is not None), family.tied)


def _first_block(
    blocks: tuple[Mapping[str, Any], ...], config: Config, key: str
) -> Mapping[str, Any] | None:
    found = [config.get(key), *(wrapper.get(key) for wrapper in blocks)]
    return next((block for block in found if isinstance(block, Mapping) and block), None)


def _text_model(
    config: Mapping[str, Any],
) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...]]:
    """Return the text model's keys, those of nested blocks too, and all blocks down to it."""
    blocks: list[Mapping[str, Any]] = []
    block = config
    while inner := next((block[key] for key in _TEXT_BLOCKS if _is_block(block, key)), None):
        blocks.append(block)
        block = inner
    nested: dict[str, Any] = {}
    for key in ("attn_config", "ffn_config"):
        if _is_block(block, key):
            nested |= block[key]
    return {**nested, **block}, (*blocks, block)


def _is_block(config: Mapping[str, Any], key: str) -> bool:
    return isinstance(config.get(key), Mapping) and bool(config[key])


def _refuse_others(config: Mapping[str, Any], name: str) -> None:
    sized = any(key in config for key in ("hidden_size", "n_embd", "d_model", *_TEXT_BLOCKS))
    for key, what in _OTHER_FILES:
        if key in config and not sized:
            raise InputError(name, [Fault("", key, f"this is {what}")])
    if config.get("is_encoder_decoder"):
        message = "encoder-decoder models are not covered; only decoders generate text alone"
        raise InputError(name, [Fault("", "is_encoder_decoder", message)])


def _config_file(path: Path) -> Path:
    reason = _UNUSABLE_SUFFIXES.get(path.suffix.casefold())
    if reason:
        message = f"{reason}; give the config.json of the original model"
        raise InputError(str(path), [message])
    if not path.is_dir():
        return path
    file = path / "config.json"
    if not file.is_file():
        raise InputError(
            str(path), ["no config.json in this folder; give a folder that holds one, or the file"]
        )
    return file


def _read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; configs may hold Infinity, which plain JSON does not allow."""
    text = read_text(path, CONFIG_BYTES)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"not valid JSON ({error.msg}, column {error.colno}); is it a config.json?"
        raise InputError(str(path), [Fault(f"line {error.lineno}", "", message)]) from None
    except (RecursionError, ValueError):
        raise InputError(str(path), ["nested too deeply or a number too long"]) from None
    if not isinstance(value, dict):
        raise InputError(str(path), ["not a JSON object; is it a config.json?"])
    return value
