from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.models import Model, find_model
from planner.candidates.weights_on_disk import expected_bytes, with_weights_on_disk
from planner.catalog import load_catalog
from planner.commands.plan import plan
from planner.errors import InputError
from planner.importers.safetensors import INDEX, weight_files
from planner.units import GIB
from tests.importers.configs import PUBLISHED

LLAMA_8B = PUBLISHED["meta-llama/Llama-3.1-8B"][0]
PRECISIONS = load_catalog().precisions


def tensors(path: Path, sizes: dict[str, tuple[str, int]]) -> None:
    """Write a .safetensors file whose header has these tensors (format, bytes) and no data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, (number_format, size) in sizes.items():
        header[name] = {
            "dtype": number_format, "shape": [size], "data_offsets": [start, start + size],
        }  # fmt: skip
        start += size
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def index(folder: Path, size: float, files: tuple[str, ...] = ("model-1.safetensors",)) -> None:
    body = {
        "metadata": {"total_size": size},
        "weight_map": {f"t{i}": f for i, f in enumerate(files)},
    }
    (folder / INDEX).write_text(json.dumps(body))


def model(folder: Path, config: dict[str, object]) -> Model:
    (folder / "config.json").write_text(json.dumps(config))
    return with_weights_on_disk(find_model(str(folder)), PRECISIONS)


def test_headers_give_the_size_by_number_format(tmp_path):
    tensors(tmp_path / "a.safetensors", {"w": ("BF16", 100), "x": ("F8_E4M3", 40)})
    tensors(tmp_path / "b.safetensors", {"y": ("BF16", 20)})
    found = weight_files(tmp_path)
    assert found.size == 160
    assert found.by_format == {"BF16": 120, "F8_E4M3": 40}
    assert found.origin == "headers of 2 .safetensors files"


def test_files_that_the_index_does_not_name_do_not_count(tmp_path):
    # Repositories also hold consolidated copies of the same weights.
    tensors(tmp_path / "model-1.safetensors", {"w": ("BF16", 100)})
    tensors(tmp_path / "consolidated.safetensors", {"w": ("BF16", 100)})
    index(tmp_path, 100)
    assert weight_files(tmp_path).size == 100


def test_the_index_is_enough_where_files_are_missing(tmp_path):
    tensors(tmp_path / "model-1.safetensors", {"w": ("BF16", 100)})
    index(tmp_path, 250.0, ("model-1.safetensors", "model-2.safetensors"))
    found = weight_files(tmp_path)
    assert (found.size, found.origin) == (250.0, INDEX)


def test_a_folder_without_weights_has_none(tmp_path):
    assert weight_files(tmp_path) is None
    (tmp_path / INDEX).write_text('{"metadata": {}, "weight_map": {"a": "x.safetensors"}}')
    assert weight_files(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "header size is impossible"),
        (b"\xff" * 8, "header size is impossible"),
        ((64).to_bytes(8, "little") + b"{}", "header is no JSON object"),
        ((4).to_bytes(8, "little") + b"[1,]", "header is no JSON object"),
        ((12).to_bytes(8, "little") + b'{"w": {}}   ', "tensor 'w' has no size"),
    ],
    ids=["empty", "no size", "cut off", "no json", "no offsets"],
)
def test_a_damaged_file_is_named(content, message, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=message):
        weight_files(tmp_path)


@given(content=st.binary(max_size=60))
def test_no_bytes_whatever_raise_anything_but_an_input_error(content, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError):
        weight_files(folder)


def test_weights_that_agree_with_the_config_are_said_to(tmp_path):
    # meta-llama/Llama-3.1-8B: total_size 16060522496 in its index, 8,030,261,248 parameters.
    index(tmp_path, 16060522496)
    notes = model(tmp_path, LLAMA_8B).notes
    assert notes[-1] == f"Weights on disk 14.96 GiB ({INDEX}), as the architecture says."


def test_weights_of_another_model_are_told(tmp_path):
    index(tmp_path, 30 * GIB)
    found = model(tmp_path, LLAMA_8B)
    assert "30.00 GiB" in found.notes[-1]
    assert "the architecture says 14.96 GiB (+100.6%)" in found.notes[-1]
    assert "belong together" in found.notes[-1]


def test_32_bit_files_count_as_engines_load_them(tmp_path):
    tensors(tmp_path / "model.safetensors", {"w": ("F32", 2 * 16060522496)})
    assert "as the architecture says" in model(tmp_path, LLAMA_8B).notes[-1]


AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128}


def test_scales_of_a_quantized_release_are_taken_from_its_files(tmp_path):
    # By hand: all but table and head (2 * 128256 * 4096 at two bytes) and norms is quantized;
    # here at 0.55 bytes a parameter.
    table, norms = 2 * 128256 * 4096, 65 * 4096
    quantized = 8_030_261_248 - table - norms
    index(tmp_path, 0.55 * quantized + 2 * (table + norms))
    found = model(tmp_path, LLAMA_8B | {"quantization_config": AWQ})
    own = found.architecture.checkpoints[found.architecture.native_format]
    assert own.bytes_per_parameter == pytest.approx(0.55, rel=1e-9)
    assert found.notes[-1].endswith("memory uses the size on disk.")
    fmt = next(f for f in PRECISIONS.weights if f.id == "int4")
    assert expected_bytes(found.architecture, fmt) == pytest.approx(
        0.55 * quantized + 2 * (table + norms)
    )


def test_a_size_that_no_scales_explain_is_not_taken_over(tmp_path):
    index(tmp_path, 16060522496)
    found = model(tmp_path, LLAMA_8B | {"quantization_config": AWQ})
    own = found.architecture.checkpoints.get(found.architecture.native_format)
    assert own is None or own.bytes_per_parameter is None
    assert "belong together" in found.notes[-1]


def test_a_gguf_file_is_refused_with_the_reason(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(InputError, match="a GGUF file holds its figures in a binary header"):
        find_model(str(tmp_path / "model.gguf"))


def test_a_plan_of_a_folder_says_how_its_weights_compare(tmp_path):
    (tmp_path / "llama").mkdir()
    (tmp_path / "llama" / "config.json").write_text(json.dumps(LLAMA_8B))
    index(tmp_path / "llama", 16060522496)
    slo = tmp_path / "slo.yaml"
    slo.write_text(
        "model: llama\ntraffic: {rate_per_s: 2, prompt_tokens: 500, output_tokens: 100}\n"
        "slo: {ttft_p95_ms: 2000}\n"
    )
    notes = plan(slo, space="quick", verify=False).assumptions
    assert f"Weights on disk 14.96 GiB ({INDEX}), as the architecture says." in notes
