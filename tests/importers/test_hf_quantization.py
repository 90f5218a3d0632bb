from __future__ import annotations

import json

import pytest

from planner.errors import InputError
from planner.importers.huggingface import architecture_from_config, read_architecture
from tests.importers.configs import PUBLISHED
from tests.importers.shapes import GPT_OSS, QWEN35, V3

LLAMA_8B = PUBLISHED["meta-llama/Llama-3.1-8B"][0]


@pytest.mark.parametrize(
    ("config", "quantization", "native", "groups", "scaling"),
    [
        (LLAMA_8B, None, "bf16", None, None),
        (
            V3,
            {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
             "weight_block_size": [128, 128]},
            "fp8", ("attention", "dense", "experts"), "block-dynamic",
        ),
        (LLAMA_8B, {"quant_method": "fp8", "activation_scheme": "static"}, "fp8",
         ("attention", "dense"), "static"),
        (
            PUBLISHED["Qwen/Qwen3-235B-A22B"][0],
            {"quant_method": "fp8", "weight_block_size": [128, 128],
             "modules_to_not_convert": ["lm_head", "gate"]},
            "fp8", ("attention", "experts"), "block-dynamic",
        ),
        (GPT_OSS, GPT_OSS["quantization_config"], "mxfp4", ("experts",), "static"),
        (LLAMA_8B, {"quant_method": "awq", "bits": 4, "group_size": 128}, "int4",
         ("attention", "dense"), "static"),
        (LLAMA_8B, {"quant_method": "gptq", "bits": 8}, "int8-weight-only",
         ("attention", "dense"), "static"),
        (LLAMA_8B, {"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4",
         ("attention", "dense"), "static"),
        (
            LLAMA_8B,
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": {
                "weights": {"num_bits": 8, "type": "int"},
                "input_activations": {"num_bits": 8, "type": "int"}}}, "ignore": ["lm_head"]},
            "int8", ("attention", "dense"), "static",
        ),
        (
            V3,
            {"quant_method": "compressed-tensors", "format": "pack-quantized",
             "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}},
             "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
                        "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]},
            "int4", ("experts",), "static",
        ),
        (
            V3,
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": [
                "lm_head", *(f"model.layers.{n}.self_attn*" for n in range(61))]},
            "nvfp4", ("dense", "experts"), "static",
        ),
        (
            QWEN35,
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": [
                "lm_head", "*.mlp.shared_expert.*",
                *(f"model.language_model.layers.{n}.linear_attn*" for n in range(60) if n % 4 != 3),
                *(f"model.language_model.layers.{n}.self_attn*" for n in range(3, 60, 4))]},
            "nvfp4", ("experts",), "static",
        ),
        (
            V3,
            {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
                **{f"model.layers.{n}.mlp.experts.0.down_proj": {"quant_algo": "NVFP4"}
                   for n in range(3, 61)},
                **{f"model.layers.{n}.self_attn.o_proj": {"quant_algo": "MXFP8"}
                   for n in range(61)}}},
            "nvfp4", ("experts",), "static",
        ),
    ],
    ids=["none", "block fp8", "static fp8", "gate is not gate_proj", "mxfp4", "awq", "gptq 8 bit",
         "bitsandbytes", "w8a8", "int4 experts by expression", "nvfp4 but attention",
         "nvfp4 in a hybrid", "mixed"],
)  # fmt: skip
def test_a_quantized_release_says_what_it_holds(config, quantization, native, groups, scaling):
    config = {key: value for key, value in config.items() if key != "quantization_config"}
    architecture = architecture_from_config(config | {"quantization_config": quantization}, "m")
    assert architecture.native_format == native
    checkpoint = architecture.checkpoints.get(native)
    assert (checkpoint and checkpoint.groups) == groups
    assert (checkpoint and checkpoint.scaling) == scaling


def test_an_unknown_quantization_is_refused_because_memory_would_be_wrong():
    config = LLAMA_8B | {"quantization_config": {"quant_method": "quip"}}
    with pytest.raises(InputError, match="quantization_config: quant_method 'quip' is not known"):
        architecture_from_config(config, "m")


def test_a_name_that_says_nvfp4_over_a_silent_config_is_noted():
    notes = architecture_from_config(V3, "DeepSeek-V3.1-NVFP4").notes
    assert "the name says NVFP4" in notes


def test_a_separate_quantization_file_is_read(tmp_path):
    folder = tmp_path / "DeepSeek-V3.1-NVFP4"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(V3))
    ignored = [f"model.layers.{n}.self_attn*" for n in range(61)]
    quantization = {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ignored}
    (folder / "hf_quant_config.json").write_text(json.dumps({"quantization": quantization}))
    architecture = read_architecture(folder)
    assert architecture.name == "DeepSeek-V3.1-NVFP4"
    assert architecture.checkpoints["nvfp4"].groups == ("dense", "experts")


def test_an_expression_that_could_run_for_ever_is_not_tried():
    quantization = {"quant_method": "awq", "bits": 4, "ignore": ["re:(.*a+)+$", "re:("]}
    config = LLAMA_8B | {"quantization_config": quantization}
    assert architecture_from_config(config, "m").checkpoints["int4"].groups == (
        "attention", "dense",
    )  # fmt: skip
