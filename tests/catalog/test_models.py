from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from planner.candidates.figures import parameter_counts
from planner.candidates.models import find_model
from planner.catalog import models
from planner.catalog.models import find_architecture, full_name
from planner.errors import InputError
from planner.files import read_json
from planner.spec.architecture import Architecture
from planner.spec.load import load

FILES = sorted((Path(models.__file__).parent / "architectures").glob("*.json"))

# The published total is a sum of rounded parts, or holds more than the model that serves text.
NOT_COMPARABLE = {
    "ministral-3-3b-instruct-2512": "the card gives two rounded parts, 3.4 B and 0.4 B",
    "ministral-3-8b-instruct-2512": "the card gives two rounded parts, 8.4 B and 0.4 B",
    "qwen3-omni-30b-a3b-instruct": "the published count holds the talker and the codec",
    "opt-350m": "its embedding is half as wide as the model",
}
ACTIVE_NOT_COMPARABLE = {
    "gemma-4-e2b": "leaves out the per-layer embeddings as well",
    "gemma-4-e4b": "leaves out the per-layer embeddings as well",
    "tencent-hunyuan-large": "52 B published, 53.8 B by its widths without the table",
}
SERVED = (
    "zhipuai/GLM-5", "deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1-0528",
    "nvidia/Llama-3.1-8B-Instruct-FP8", "amd/Llama-3.1-405B-Instruct-FP8-KV",
    "nvidia/Qwen3-30B-A3B-FP4", "meta-llama/Llama-3.1-405B-FP8", "QuixiAI/DeepSeek-R1-AWQ",
    "Qwen/Qwen3-235B-A22B-FP8", "Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "bigscience/bloom",
    "EleutherAI/gpt-j-6b", "facebook/opt-6.7b", "BAAI/Aquila-7B", "Qwen/Qwen1.5-7B",
    "nvidia/DeepSeek-V3.1-NVFP4", "RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a16",
    "microsoft/Phi-3-medium-128k-instruct", "Qwen/Qwen2-72B-Instruct-GPTQ-Int4",
    "nvidia/AceMath-7B-Instruct", "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    "neuralmagic/Llama-3.1-Nemotron-70B-Instruct-HF-FP8-dynamic", "Qwen/QwQ-32B-Preview",
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", "zai-org/GLM-4.6", "facebook/opt-350m",
)  # fmt: skip


def entry(path: Path) -> Architecture:
    return load(read_json(path), Architecture)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_layers_add_up_to_the_published_parameters(path):
    architecture = entry(path)
    published = architecture.published_parameters
    if published is None or architecture.id in NOT_COMPARABLE:
        return
    total = parameter_counts(architecture).total + architecture.uncounted_parameters
    assert total == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_active_layers_add_up_to_the_published_active_parameters(path):
    architecture = entry(path)
    published = architecture.published_active_parameters
    if published is None or architecture.id in ACTIVE_NOT_COMPARABLE:
        return
    # Vendors count with or without embeddings and head, and round to whole billions.
    counts = parameter_counts(architecture)
    rounding = 0.5e9 if published >= 1e10 else 0.35e9
    assert counts.active - counts.embedding - rounding <= published * 1.02
    assert published * 0.98 <= counts.active + rounding


def test_every_exception_names_a_model():
    ids = {path.stem for path in FILES}
    assert set(NOT_COMPARABLE) | set(ACTIVE_NOT_COMPARABLE) <= ids


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("meta-llama/Llama-3.1-8B", 8.03e9, 8.03e9),
        ("mistralai/Mixtral-8x7B-v0.1", 46.7e9, 12.9e9),
        ("deepseek-ai/DeepSeek-V3", 671e9, 37.5e9),
        ("openai/gpt-oss-120b", 116.8e9, 5.7e9),
        ("Qwen/Qwen3-235B-A22B", 235.1e9, 22.2e9),
    ],
)
def test_well_known_counts(name, total, active):
    counts = parameter_counts(find_architecture(name))
    assert counts.total == pytest.approx(total, rel=0.002)
    assert counts.active == pytest.approx(active, rel=0.005)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_entry_is_named_after_its_file_and_has_its_sources(path):
    architecture = entry(path)
    assert architecture.id == path.stem
    assert architecture.source
    assert architecture.published_parameters is None or architecture.published_source
    assert architecture.id == re.sub(r"[^a-z0-9.]+", "-", path.stem)


def test_no_name_means_two_models():
    seen: dict[str, str] = {}
    for path in FILES:
        data = json.loads(path.read_text())
        for word in (data["id"], data["name"], *data["aliases"]):
            assert seen.setdefault(word.casefold(), path.stem) == path.stem, word


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_checkpoint_quantizes_only_groups_that_the_model_has(path):
    architecture = entry(path)
    moe = any(group.ffn and group.ffn.kind == "moe" for group in architecture.layers)
    for format_id, checkpoint in architecture.checkpoints.items():
        assert checkpoint.groups, format_id
        assert moe or checkpoint.groups != ("experts",), format_id


@pytest.mark.parametrize("name", SERVED)
def test_models_that_people_measured_are_known(name):
    assert find_architecture(name).name in {entry(path).name for path in FILES}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("META-LLAMA/llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("  Qwen/Qwen3-32B ", "Qwen/Qwen3-32B"),
        ("someone/Qwen3-32B", "Qwen/Qwen3-32B"),
        ("someone/Qwen3-32B-AWQ", "Qwen/Qwen3-32B"),
        ("someone/Qwen3-32B-quantized.w4a16", "Qwen/Qwen3-32B"),
        ("someone/Qwen3-32B-GPTQ-Int4", "Qwen/Qwen3-32B"),
        ("gpt-oss-120b", "openai/gpt-oss-120b"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3"),
        ("microsoft/Phi-3-mini-128k-instruct", "microsoft/Phi-3-mini-128k-instruct"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "mistralai/Mistral-7B-Instruct-v0.2"),
    ],
)
def test_names_are_found_by_alias_case_and_without_quantization_suffix(name, expected):
    assert find_architecture(name).name == expected


def test_a_longer_context_release_has_no_window():
    # The 4k release of Phi-3 mini has a window of 2047 tokens, the 128k release has none.
    assert find_architecture("Phi-3-mini-4k-instruct").layers[0].attention.window == 2047
    assert find_architecture("Phi-3-mini-128k-instruct").layers[0].attention.window is None


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"did you mean 'meta-llama/Llama-3\.3-70B-Instruct'"):
        find_architecture("meta-llama/Llama-3.3-70B-Instrukt")


def test_a_name_like_no_other_is_told_to_give_a_config():
    with pytest.raises(InputError, match=r"give the path of its Hugging Face config\.json"):
        find_architecture("qqqqqqqq/zzzzzzzzzzzz")


def test_many_models_are_known_each_by_its_own_name():
    assert len({entry(path).name.casefold() for path in FILES}) == len(FILES) >= 220


def test_finding_a_model_reads_the_folder_once(monkeypatch):
    models._index.cache_clear()
    find_architecture("Qwen/Qwen3-32B")
    monkeypatch.setattr(models, "_entries", lambda: pytest.fail("read again"))
    assert find_architecture("openai/gpt-oss-20b").name == "openai/gpt-oss-20b"


def test_a_model_whose_figures_are_recalled_says_so_and_one_that_was_read_does_not():
    (note,) = find_model("Qwen/Qwen3.5-2B").notes
    assert "not all of its figures were read in a public file (published config.json" in note
    assert find_model("Qwen/Qwen3-32B").notes == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mistral-small-24b-base-2501", "mistralai/Mistral-Small-24B-Base-2501"),
        ("Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("qwen3-8b-fp8", "Qwen/Qwen3-8B-FP8"),
        ("openai/GPT-OSS-20b", "openai/gpt-oss-20b"),
        ("someone/Llama-3.3-70B-Instruct", "someone/Llama-3.3-70B-Instruct"),
        ("Llama-3.3-70B-Instruct-AWQ-INT4", ""),
    ],
    ids=[
        "catalog id",
        "without organisation",
        "the organisation of the model, not of a re-upload",
        "another case",
        "a re-upload that is not listed",
        "nobody knows whose it is",
    ],
)
def test_the_full_name_of_a_model_is_that_of_the_hub(name, expected):
    assert full_name(name, find_architecture(name)) == expected
