"""Weight files of a model folder -> their exact size and number formats.

Source:
    huggingface/safetensors, README.md, "Format": eight bytes little-endian header size, a JSON
    header of at most 100 MB with dtype, shape and data_offsets of each tensor.
    ``model.safetensors.index.json``: metadata.total_size. Retrieved 2026-11-29.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.counting import counted
from planner.errors import InputError
from planner.files import read_json

INDEX = "model.safetensors.index.json"
HEADER_BYTES = 100_000_000
_SIZE_BYTES = 8


@dataclass(frozen=True)
class WeightFiles:
    """Weights of a model folder.

    Attributes:
        size: All tensors together, without headers [B].
        by_format: Bytes by the file's name of a number format (BF16, F8_E4M3 ...); empty where
            only the index was read.
        origin: What was read, for people.
    """

    size: float
    by_format: Mapping[str, float] = field(default_factory=dict)
    origin: str = ""


def weight_files(folder: Path) -> WeightFiles | None:
    """Read the headers of a folder's ``.safetensors`` files, else the index; None without either.

    The index alone is enough where its files are not there, or only some of them.

    Raises:
        InputError: A file is damaged.
    """
    index = folder / INDEX
    stated, named = _index(index) if index.is_file() else (None, frozenset())
    files = [
        path for path in sorted(folder.glob("*.safetensors")) if not named or path.name in named
    ]
    if not files or (named and len(files) < len(named)):
        return None if stated is None else WeightFiles(stated, {}, INDEX)
    sizes: Counter[str] = Counter()
    for path in files:
        sizes.update(_sizes(path))
    origin = f"headers of {counted(len(files), '.safetensors file')}"
    return WeightFiles(float(sum(sizes.values())), dict(sizes), origin)


def _index(path: Path) -> tuple[float | None, frozenset[str]]:
    """Return the size that an index states [B], and the files that it names."""
    data = read_json(path).data
    data = data if isinstance(data, Mapping) else {}
    metadata, files = data.get("metadata"), data.get("weight_map")
    size = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    named = frozenset(map(str, files.values())) if isinstance(files, Mapping) else frozenset()
    usable = isinstance(size, int | float) and not isinstance(size, bool) and size > 0
    return (float(size) if usable and size is not None else None), named


def _sizes(path: Path) -> Counter[str]:
    """Return the bytes of a file's tensors by number format."""
    sizes: Counter[str] = Counter()
    for name, tensor in _header(path).items():
        if name == "__metadata__":
            continue
        try:
            start, end = tensor["data_offsets"]
            size = end - start
            if size < 0:
                raise ValueError
            sizes[str(tensor["dtype"])] += size
        except (KeyError, TypeError, ValueError):
            raise _damaged(path, f"tensor {ascii(name)[:60]} has no size") from None
    return sizes


def _header(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as handle:
            length = int.from_bytes(handle.read(_SIZE_BYTES), "little")
            if not 2 <= length <= HEADER_BYTES:
                raise _damaged(path, "its header size is impossible")
            text = handle.read(length)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(str(path), [f"cannot be read ({reason}); check its rights"]) from None
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if len(text) < length or not isinstance(header, dict):
        raise _damaged(path, "its header is no JSON object")
    return header


def _damaged(path: Path, what: str) -> InputError:
    return InputError(str(path), [f"is no whole .safetensors file: {what}; fetch it again"])
