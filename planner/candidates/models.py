"""The model that a user names: a known one, a config of their own, or one of the hub."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from planner.catalog.models import find_architecture
from planner.importers.hub import PREFIX, fetch
from planner.importers.huggingface import read_architecture
from planner.importers.safetensors import WeightFiles, weight_files
from planner.spec.architecture import Architecture

_FILE_SUFFIXES = (".json", ".gguf", ".safetensors", ".bin", ".pt", ".pth")
_PATH_STARTS = ("./", "../", "/", "~")
_PATHS = (".", "..")


@dataclass(frozen=True)
class Model:
    """A model as a user named it.

    Attributes:
        architecture: Its figures.
        name: What names it again, whenever; a model of the hub with its revision.
        notes: What should be known of where it comes from, in sentences.
        weights: Its weight files, where they were found.
    """

    architecture: Architecture
    name: str
    notes: tuple[str, ...] = ()
    weights: WeightFiles | None = None


def find_model(name: str, folder: Path = Path()) -> Model:
    """Return the model of a name.

    Args:
        name: ``hub:org/name``; the path of a Hugging Face ``config.json`` or model folder; or a
            known name. What exists on disk, starts like a path or ends like a file is a path.
        folder: What relative paths start from.

    Raises:
        InputError: The name is not known (names the nearest), or the file cannot be used.
    """
    if name.startswith(PREFIX):
        return _from_hub(name)
    path = folder / _at_home(name)
    named_like_one = name in _PATHS or name.startswith(_PATH_STARTS)
    named_like_one = named_like_one or name.casefold().endswith(_FILE_SUFFIXES)
    if named_like_one or _exists(path):
        read = read_architecture(path)
        found = weight_files(path) if path.is_dir() else None
        return Model(read, name, _config_notes(read), found)
    known = find_architecture(name)
    return Model(known, name, _recalled(known))


def _at_home(name: str) -> Path:
    path = Path(name)
    with suppress(RuntimeError):  # ~somebody who has no home here
        path = path.expanduser()
    return path


def _exists(path: Path) -> bool:
    try:
        return path.is_file() or (path / "config.json").is_file()
    except OSError:  # longer than a file name may be
        return False


def architecture_of(name: str, folder: Path = Path()) -> Architecture:
    """Return the architecture of a model; see :func:`find_model`."""
    return find_model(name, folder).architecture


def _from_hub(name: str) -> Model:
    held = fetch(name)
    read = read_architecture(held.folder, held.name)
    revision = f", revision {held.revision}" if held.revision else ""
    source = f"config.json of {held.name} on the Hugging Face hub{revision}"
    made = read.model_copy(update={"source": source[:200]})
    notes = (f"The model is read from the {source}.", *_config_notes(read))
    return Model(made, held.pinned, notes, weight_files(held.folder))


def _recalled(architecture: Architecture) -> tuple[str, ...]:
    """Say so where nobody has read the figures of a known model in a public file."""
    if architecture.trust != "recalled":
        return ()
    told = "not all of its figures were read in a public file"
    return (f"{architecture.name}: {told} ({architecture.source}); give its own config.json.",)


def _config_notes(architecture: Architecture) -> tuple[str, ...]:
    """What the reader of a config had to assume."""
    if not architecture.notes:
        return ()
    return (f"{architecture.name}: {architecture.notes}.",)
