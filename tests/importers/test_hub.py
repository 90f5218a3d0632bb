"""Models of the hub, from a cache that lies on disk: no test needs a network.

The cache has the layout that huggingface_hub documents ("Understand caching"); where the library is
not installed, a stand-in that reads the same layout takes its place.
"""

from __future__ import annotations

import json
import sys
import time
import types
from pathlib import Path

import pytest

from planner.candidates.models import find_model
from planner.commands.plan import plan
from planner.commands.stored import open_plan
from planner.errors import InputError
from planner.importers import hub
from planner.importers.safetensors import INDEX
from planner.spec.slo import Slo
from tests.importers.configs import PUBLISHED

NAME = "meta-llama/Llama-3.1-8B"
COMMIT = "d04e592bb4f6aa9cfee91e2e20afa771667e1d4b"
OLDER = "0" * 40
CONFIG = PUBLISHED[NAME][0]


class EntryNotFoundError(Exception):
    pass


class LocalEntryNotFoundError(EntryNotFoundError, FileNotFoundError):
    pass


class RepositoryNotFoundError(Exception):
    pass


class GatedRepoError(RepositoryNotFoundError):
    pass


class RevisionNotFoundError(Exception):
    pass


def cached(root: Path, commit: str = COMMIT, ref: str = "main", **files: object) -> None:
    repository = root / f"models--{NAME.replace('/', '--')}"
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True, exist_ok=True)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / ref).write_text(commit)
    for name, content in {"config.json": CONFIG, **files}.items():
        (snapshot / name).write_text(json.dumps(content))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder, read offline by a stand-in for the library."""

    def download(*, repo_id: str, filename: str, revision: str | None, **_: object) -> str:
        repository = tmp_path / f"models--{repo_id.replace('/', '--')}"
        ref = repository / "refs" / (revision or "main")
        commit = ref.read_text() if ref.is_file() else revision or ""
        file = repository / "snapshots" / commit / filename
        if not commit or not file.is_file():
            raise LocalEntryNotFoundError("not in the cache")
        return str(file)

    stand_in(monkeypatch, download)
    return tmp_path


def answers(url: str, *, timeout: float) -> None:
    """A hub that answers."""


def silent(url: str, *, timeout: float) -> None:
    """A network that swallows what it is sent, name look-ups first."""
    time.sleep(30)


def refused(url: str, *, timeout: float) -> None:
    raise ConnectionError("Name or service not known")


def stand_in(monkeypatch, download, metadata=answers) -> None:
    library = types.ModuleType("huggingface_hub")
    library.hf_hub_download = download
    library.get_hf_file_metadata = metadata
    library.constants = types.SimpleNamespace(ENDPOINT="https://huggingface.co")
    utils = types.ModuleType("huggingface_hub.utils")
    utils.disable_progress_bars = lambda: None
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    monkeypatch.setitem(sys.modules, "huggingface_hub.utils", utils)


def test_a_config_in_the_cache_is_read_under_its_name_on_the_hub(cache):
    cached(cache)
    model = find_model(f"hub:{NAME}")
    assert model.architecture.name == NAME
    assert model.architecture.hidden_size == 4096
    assert COMMIT in model.architecture.source


def test_the_revision_is_recorded_so_that_the_name_means_the_same_tomorrow(cache):
    cached(cache)
    model = find_model(f"hub:{NAME}")
    assert model.name == f"hub:{NAME}@{COMMIT}"
    assert f"revision {COMMIT}" in model.notes[0]
    assert find_model(model.name).architecture == model.architecture


def test_a_plan_holds_the_revision_and_can_be_asked_about_the_same_model_later(cache, tmp_path):
    cached(cache)
    asked = Slo.model_validate(
        {
            "model": f"hub:{NAME}",
            "traffic": {"rate_per_s": 2.0, "prompt_tokens": 500.0, "output_tokens": 100.0},
            "slo": {"ttft_p95_ms": 2000.0},
        }
    )
    made = plan(asked, space="quick", verify=False)
    assert made.inputs.slo["model"] == f"hub:{NAME}@{COMMIT}"
    assert any(COMMIT in note for note in made.assumptions)
    cached(cache, OLDER, **{"config.json": CONFIG | {"num_hidden_layers": 16}})
    assert open_plan(made).scene.architecture.layers[0].count == 32


def test_engines_are_given_the_name_alone():
    assert hub.name_on_hub(f"hub:{NAME}@{COMMIT}") == NAME
    assert hub.name_on_hub("models/a@b") == "models/a@b"


def test_a_revision_may_be_named(cache):
    cached(cache)
    cached(cache, OLDER, "v1", **{"config.json": CONFIG | {"num_hidden_layers": 16}})
    assert find_model(f"hub:{NAME}@v1").architecture.layers[0].count == 16
    assert find_model(f"hub:{NAME}").architecture.layers[0].count == 32


def test_what_is_quantized_and_the_size_of_the_weights_come_along(cache):
    quant = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": None}}
    size = {"metadata": {"total_size": 9e9}, "weight_map": {"w": "model-1.safetensors"}}
    cached(cache, **{"hf_quant_config.json": quant, INDEX: size})
    model = find_model(f"hub:{NAME}")
    assert model.architecture.native_format == "fp8"
    assert model.weights.size == 9e9


def test_without_the_extra_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError) as caught:
        find_model(f"hub:{NAME}")
    assert [str(fault) for fault in caught.value.faults] == [
        "hub: needs huggingface-hub; pip install 'slo-planner[hub]', or give a config.json"
    ]


def test_offline_a_model_that_is_not_cached_is_one_clear_line(cache):
    with pytest.raises(InputError) as caught:
        find_model(f"hub:{NAME}")
    (fault,) = caught.value.faults
    assert str(fault).startswith(f"hub:{NAME}: is not in the local cache, and the hub does not")
    assert "HF_HUB_OFFLINE" in fault.message


@pytest.mark.parametrize("metadata", [silent, refused], ids=["silent", "refused"])
def test_without_a_network_it_is_said_within_five_seconds_what_to_download(metadata, monkeypatch):
    def download(*, local_files_only: bool, **_: object) -> str:
        assert local_files_only, "the library would try for half a minute"
        raise LocalEntryNotFoundError("not in the cache")

    stand_in(monkeypatch, download, metadata)
    begun = time.monotonic()
    with pytest.raises(InputError) as caught:
        find_model(f"hub:{NAME}@v1")
    assert time.monotonic() - begun < 5
    assert str(caught.value.faults[0]) == (
        f"hub:{NAME}@v1: is not in the local cache, and the hub does not answer (no network, or"
        f" HF_HUB_OFFLINE); download https://huggingface.co/{NAME}/resolve/v1/config.json where it"
        " does, and name the path of that file as the model"
    )


def test_without_a_network_what_is_cached_is_used(cache, monkeypatch):
    cached(cache)
    monkeypatch.setattr(sys.modules["huggingface_hub"], "get_hf_file_metadata", refused)
    assert find_model(f"hub:{NAME}").name == f"hub:{NAME}@{COMMIT}"


def test_a_hub_that_refuses_is_there(monkeypatch):
    class HfHubHTTPError(Exception):
        pass

    def metadata(url: str, *, timeout: float) -> None:
        raise HfHubHTTPError("401")

    def download(*, local_files_only: bool, **_: object) -> str:
        assert not local_files_only
        raise GatedRepoError("401")

    stand_in(monkeypatch, download, metadata)
    with pytest.raises(InputError, match="is gated; accept its terms"):
        find_model(f"hub:{NAME}")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (GatedRepoError("403"), "is gated; accept its terms"),
        (RepositoryNotFoundError("404"), "is not on the hub, or private"),
        (RevisionNotFoundError("404"), "has no such revision"),
        (EntryNotFoundError("404"), "has no config.json"),
        (ConnectionError("Name or service not known\nat line 3"), r"\(Name or service not known\)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_the_library_raises_is_one_line(error, message, monkeypatch):
    def download(**_: object) -> str:
        raise error

    stand_in(monkeypatch, download)
    with pytest.raises(InputError, match=message) as caught:
        find_model(f"hub:{NAME}")
    assert "\n" not in str(caught.value.faults[0])


def test_the_real_library_reads_the_same_cache_offline(tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    cached(tmp_path)
    held = hub.fetch(f"hub:{NAME}")
    assert held.pinned == f"hub:{NAME}@{COMMIT}"
    assert (held.folder / "config.json").is_file()
    with pytest.raises(InputError, match="is not in the local cache"):
        hub.fetch("hub:org/other")
    with pytest.raises(InputError, match="is no name of a model on the hub"):
        hub.fetch("hub:a/b/c")
