"""Known models: ``architectures/*.json``, found by name, alias or re-upload."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from planner.errors import Fault, InputError, suggestion
from planner.spec.architecture import Architecture
from planner.spec.load import load_json

_FOLDER = Path(__file__).parent / "architectures"

_QUANTIZED = re.compile(
    r"[-_.]("
    r"fp8|fp4|fp16|bf16|nvfp4|nvfp8|mxfp4|mxfp8|int4|int8|4bit|8bit|awq|gptq|gguf|bnb|marlin|"
    r"w[48]a(?:4|8|16)(?:-fp)?|quantized|dynamic|static|block|pertensor|per-tensor|kv|"
    r"autoround|autofp8|smoothquant|g\d+|int4-int8|modelopt|compressed|unsloth|original"
    r")$",
    re.IGNORECASE,
)


def find_architecture(name: str) -> Architecture:
    """Return the known model of a name.

    Names compare without case: first as they are, then without the organisation, then without
    quantization suffixes (``-FP8``, ``-AWQ``, ``-quantized.w4a16`` ...) either.

    Args:
        name: Hub name, alias, re-upload of one, or catalog id.

    Raises:
        InputError: No known model has that name; names the nearest ones.
    """
    exact, bare = _index()
    key = name.strip().casefold()
    stem = key.rsplit("/", 1)[-1]
    path = exact.get(key) or bare.get(stem) or bare.get(_unquantized(stem))
    if path is None:
        raise InputError("model", [_unknown(name)])
    return load_json(path, Architecture)


def full_name(name: str, known: Architecture) -> str:
    """Return the name of a known model as the hub has it, with its organisation.

    Args:
        name: As a person wrote it.
        known: The model that was found by it.

    Returns:
        As it is written where it names an organisation that is not listed; empty = the name
        without organisation is not listed, or of several organisations.
    """
    key, own = name.strip().casefold(), known.name.partition("/")[0]
    words = [word for word in (known.name, *known.aliases) if "/" in word]
    exact = [word for word in words if word.casefold() == key]
    if exact or "/" in name:
        return exact[0] if exact else name
    if key == known.id:
        return known.name
    same = [word for word in words if word.rpartition("/")[2].casefold() == key]
    first = [word for word in same if word.startswith(f"{own}/")] or same
    return first[0] if len(first) == 1 else ""


def _unknown(name: str) -> Fault:
    names = [word for _, entry in _entries() for word in (entry["name"], *entry["aliases"])]
    by_stem = {word.rsplit("/", 1)[-1]: word for word in names}
    near = suggestion(name, names) or suggestion(name.rsplit("/", 1)[-1], by_stem)
    hub = f"hub:{name} (needs a network)" if name.count("/") == 1 else "hub:org/name"
    other = f"; give the path of its Hugging Face config.json, or {hub}"
    return Fault("", "model", f"unknown model '{name}'{near or other}")


def _unquantized(stem: str) -> str:
    """Drop quantization suffixes from the end of a name."""
    shorter = _QUANTIZED.sub("", stem)
    return stem if shorter == stem else _unquantized(shorter)


def _entries() -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for path in sorted(_FOLDER.glob("*.json")):
        yield path, json.loads(path.read_bytes())


@lru_cache(maxsize=1)
def _index() -> tuple[Mapping[str, Path], Mapping[str, Path | None]]:
    """Map folded names, and folded names without organisation, to files.

    A bare name that means two models maps to None.
    """
    exact: dict[str, Path] = {}
    stems: dict[str, Path | None] = {}
    shorter: dict[str, Path | None] = {}
    for path, entry in _entries():
        for word in (entry["id"], entry["name"], *entry["aliases"]):
            key = word.casefold()
            stem = key.rsplit("/", 1)[-1]
            exact[key] = path
            for names, name in ((stems, stem), (shorter, _unquantized(stem))):
                names[name] = path if names.get(name, path) == path else None
    return MappingProxyType(exact), MappingProxyType(shorter | stems)
