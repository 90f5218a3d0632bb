"""Configs from the Hugging Face hub: ``hub:org/name`` or ``hub:org/name@revision``.

Optional (extra ``hub``). The hub's own library does the work, so its settings hold: HF_TOKEN or the
stored login, HF_HOME and HF_HUB_CACHE, HF_ENDPOINT, HF_HUB_OFFLINE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

from planner.errors import Fault, InputError, install
from planner.importers.safetensors import INDEX

PREFIX = "hub:"
CONFIG = "config.json"
BESIDE = ("hf_quant_config.json", INDEX)
"""What else is fetched, where it is there: what is quantized, and the exact size of the weights."""

_REASONS: Mapping[str, str] = {
    "GatedRepoError": "is gated; accept its terms on the hub, and set HF_TOKEN",
    "RepositoryNotFoundError": "is not on the hub, or private; check the name, or set HF_TOKEN",
    "RevisionNotFoundError": "has no such revision; check what follows the @",
    "HFValidationError": "is no name of a model on the hub; write hub:org/name",
    "EntryNotFoundError": "has no config.json; a GGUF or adapter repository? Name its base",
    "LocalEntryNotFoundError": (
        "is not in the local cache, and the hub does not answer (no network, or HF_HUB_OFFLINE); "
        "download {url} where it does, and name the path of that file as the model"
    ),
}
"""What the library raises -> what a person is told; looked up along the class's bases."""
PATIENCE_S = 4.0
"""The hub is taken to be out of reach after that; the library itself tries for half a minute."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class HubModel:
    """A config in the local cache.

    Attributes:
        name: Name on the hub.
        revision: Commit that it is of; empty if the library does not tell.
        folder: Where the files lie.
    """

    name: str
    revision: str
    folder: Path

    @property
    def pinned(self) -> str:
        """What names this very revision."""
        return f"{PREFIX}{self.name}@{self.revision}" if self.revision else f"{PREFIX}{self.name}"


def name_on_hub(model: str) -> str:
    """Return the name behind ``hub:org/name@revision``, which engines load; others as they are."""
    return model.removeprefix(PREFIX).partition("@")[0] if model.startswith(PREFIX) else model


def revision_on_hub(model: str) -> str:
    """Return the revision in ``hub:org/name@revision``; empty = none is named."""
    return model.partition("@")[2] if model.startswith(PREFIX) else ""


def fetch(model: str) -> HubModel:
    """Return the config of a model on the hub, from the cache if that is up to date.

    Args:
        model: ``hub:org/name``, with ``@revision`` for one that is not the newest.

    Raises:
        InputError: The extra is not installed, or the config cannot be had.
    """
    name, _, revision = model.removeprefix(PREFIX).partition("@")
    repository = _Repository(_library(), name)
    try:
        held = repository.file(CONFIG, revision).parent
    except Exception as error:  # the library's own classes, and those of its transport
        raise _fault(model, error, repository.url(revision)) from None
    commit = held.name if held.parent.name == "snapshots" else ""
    for file in BESIDE:
        try:
            repository.file(file, commit or revision)
        except Exception as error:
            if not _says(error, "EntryNotFoundError"):
                raise _fault(model, error, repository.url(revision)) from None
    return HubModel(name, commit, held)


@dataclass(frozen=True)
class _Repository:
    """A model's files on the hub, asked for through the hub's library."""

    library: Any
    name: str

    def file(self, name: str, revision: str) -> Path:
        """Return a file in the cache; the hub is asked first unless a commit says what it holds."""
        if _COMMIT.fullmatch(revision):
            with suppress(FileNotFoundError):
                return self._cached(name, revision, local=True)
        return self._cached(name, revision, local=not self.reachable)

    def _cached(self, name: str, revision: str, *, local: bool) -> Path:
        download = self.library.hf_hub_download
        asked = {"repo_id": self.name, "filename": name, "revision": revision or None}
        return Path(download(**asked, local_files_only=local))

    def url(self, revision: str) -> str:
        """Return where a browser finds the config."""
        return (
            f"{self.library.constants.ENDPOINT}/{self.name}/resolve/{revision or 'main'}/{CONFIG}"
        )

    @cached_property
    def reachable(self) -> bool:
        """Whether the hub answers at all, if only to refuse."""
        answers: list[bool] = []

        def ask() -> None:
            try:
                self.library.get_hf_file_metadata(self.url(""), timeout=PATIENCE_S)
            except Exception as error:
                answers.append(_says(error, "HfHubHTTPError"))
            else:
                answers.append(True)

        # Looking the hub's name up may take longer than any timeout of the library.
        thread = Thread(target=ask, daemon=True)
        thread.start()
        thread.join(PATIENCE_S)
        return answers == [True]


def _library() -> Any:
    try:
        library = import_module("huggingface_hub")
    except ImportError:
        message = f"hub: needs huggingface-hub; {install('hub')}, or give a config.json"
        raise InputError("model", [message]) from None
    import_module("huggingface_hub.utils").disable_progress_bars()
    return library


def _fault(model: str, error: Exception, url: str) -> InputError:
    names = [base.__name__ for base in type(error).__mro__]
    known = next((_REASONS[name].format(url=url) for name in names if name in _REASONS), None)
    first = (str(error).splitlines() or [type(error).__name__])[0]
    message = known or f"cannot be fetched ({first[:120]}); try again, or give a config.json"
    return InputError("model", [Fault("", model, message)])


def _says(error: Exception, name: str) -> bool:
    return any(base.__name__ == name for base in type(error).__mro__)
