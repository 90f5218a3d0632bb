"""SkyPilot's GpuInfo cell, in any of the shapes that its providers write."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

LONGEST = 4000
MIB_PER_GB = 1024.0
SMALLEST_MIB = 2000.0
"""Sizes below this are GB written in a MiB cell."""


@dataclass(frozen=True)
class GpuInfo:
    """What the cell says; 0 and empty = it does not.

    Attributes:
        name: GPU name, or the whole cell if it is plain text.
        count: GPUs per instance.
        size_mib: Memory figure: of one GPU, of all, or wrong [MiB].
        total_mib: The cell's own total, where it has one [MiB].
    """

    name: str = ""
    count: float = 0.0
    size_mib: float = 0.0
    total_mib: float = 0.0


@lru_cache(maxsize=4096)
def parse_gpu_info(cell: str) -> GpuInfo:
    """Return what a GpuInfo cell says; a cell that cannot be read says nothing.

    Reads the representation of a Python dict (also with ``null``), JSON, keys in any case, the
    total inside or beside the list, counts as text, and a plain name.
    """
    text = cell.strip()
    if not text.startswith("{"):
        return GpuInfo(name=text[:200])
    top = _lowered(_parsed(text)) if len(text) <= LONGEST else {}
    gpus = top.get("gpus")
    first = gpus[0] if isinstance(gpus, list) and gpus and isinstance(gpus[0], dict) else {}
    memory = first.get("memoryinfo")
    size = memory.get("sizeinmib") if isinstance(memory, dict) else None
    name = first.get("name")
    total = top.get("totalgpumemoryinmib", first.get("totalgpumemoryinmib"))
    return GpuInfo(
        name=name if isinstance(name, str) else "",
        count=_number(first.get("count")),
        size_mib=in_mib(_number(size)),
        total_mib=in_mib(_number(total)),
    )


def in_mib(size: float) -> float:
    """Return a memory size in MiB; small figures are GB."""
    return size * MIB_PER_GB if size < SMALLEST_MIB else size


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(re.sub(r"\bnull\b", "None", text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return {}


def _lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key).casefold(): _lowered(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lowered(item) for item in value]
    return value


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if 0 <= number < 1e12 else 0.0
