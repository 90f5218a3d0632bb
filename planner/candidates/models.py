"""The model that a user names: a known one, or a config of their own."""

from __future__ import annotations

from pathlib import Path

from planner.catalog.models import find_architecture
from planner.importers.huggingface import read_architecture
from planner.spec.architecture import Architecture

_FILE_SUFFIXES = (".json", ".gguf", ".safetensors", ".bin", ".pt", ".pth")


def architecture_of(model: str) -> Architecture:
    """Return the architecture of a model.

    Args:
        model: A known name, or the path of a Hugging Face ``config.json`` or model folder. What
            exists on disk, starts like a path or ends like a file is a path.

    Raises:
        InputError: The name is not known (names the nearest), or the file cannot be used.
    """
    path = Path(model).expanduser()
    named_like_one = model.startswith(("./", "../", "/", "~")) or model.casefold().endswith(
        _FILE_SUFFIXES
    )
    if named_like_one or path.is_file() or (path / "config.json").is_file():
        return read_architecture(path)
    return find_architecture(model)
