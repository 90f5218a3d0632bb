from __future__ import annotations

import contextlib
import copy
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.candidates.figures import model_figures, parameter_counts
from planner.candidates.models import architecture_of
from planner.catalog.models import find_architecture
from planner.errors import InputError
from planner.importers.huggingface import architecture_from_config, read_architecture
from tests.importers.configs import PUBLISHED
from tests.importers.shapes import DEEPSEEK, GLM5, GPT_OSS, LLAMA, NEMOTRON, QWEN3, QWEN35, V3

LLAMA_8B = PUBLISHED["meta-llama/Llama-3.1-8B"][0]
MIXTRAL = PUBLISHED["mistralai/Mixtral-8x7B-v0.1"][0]


def faults(config, name="config.json"):
    with pytest.raises(InputError) as error:
        architecture_from_config(config, name)
    return {fault.key: fault.message for fault in error.value.faults}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_config_adds_up_to_the_published_parameters(name):
    config, billions = PUBLISHED[name]
    counts = parameter_counts(architecture_from_config(config, name))
    assert counts.total == pytest.approx(billions * 1e9, rel=0.01)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_config_gives_the_figures_of_the_known_model(name):
    # Two ways to the same figures: the typed keys of the config, and the entry of the catalog.
    read = model_figures(architecture_from_config(PUBLISHED[name][0], name))
    known = model_figures(find_architecture(name))
    # The short configs leave out encoders, context lengths and rotary scaling.
    for left_out in ("other_parameters", "encoder", "position_elements"):
        del read[left_out], known[left_out]
    assert read == pytest.approx(known, rel=2e-3)


def test_keys_have_many_names():
    # The shape of Llama 3.1 8B in the words of Mistral's params.json and of MPT.
    config = {
        "dim": 4096, "hidden_dim": 14336, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8,
        "vocab_size": 128256, "max_seq_len": 131072,
    }  # fmt: skip
    architecture = architecture_from_config(config, "params")
    assert parameter_counts(architecture).total == pytest.approx(8.03e9, rel=1e-3)
    assert "is not known" in architecture.notes


def test_linear_scaling_stretches_the_rotary_table():
    # Gemma 3: 131072 positions times 8, and a plain table for the windowed layers.
    stretched = {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    config = LLAMA_8B | {"max_position_embeddings": 131072} | stretched
    assert architecture_from_config(config, "m").position_rows == 8 * 131072
    both = config | {"rope_local_base_freq": 10000.0}
    assert architecture_from_config(both, "m").position_rows == 9 * 131072
    assert architecture_from_config(LLAMA_8B, "m").position_rows is None


def test_a_given_head_size_wins_over_the_derived_one():
    config = LLAMA_8B | {"head_dim": 64}
    assert architecture_from_config(config, "m").layers[0].attention.head_dim == 64


def test_an_absent_or_null_head_size_is_derived():
    config = LLAMA_8B | {"head_dim": None}
    assert architecture_from_config(config, "m").layers[0].attention.head_dim == 128


@pytest.mark.parametrize(
    ("model_type", "tied"),
    [("llama", False), ("qwen2", False), ("gemma", True), ("cohere", True), ("bloom", True)],
)
def test_a_family_says_whether_a_silent_config_ties_its_embeddings(model_type, tied):
    config = {key: value for key, value in LLAMA_8B.items() if key != "tie_word_embeddings"}
    architecture = architecture_from_config(config | {"model_type": model_type}, "m")
    assert architecture.tied_embeddings is tied


def test_the_wrapper_of_a_multimodal_model_may_say_that_it_is_tied():
    config = {"model_type": "qwen3_vl", "tie_word_embeddings": True, "text_config": LLAMA_8B.copy()}
    del config["text_config"]["tie_word_embeddings"]
    assert architecture_from_config(config, "m").tied_embeddings


def test_an_unused_window_is_no_window():
    config = PUBLISHED["Qwen/Qwen2.5-7B-Instruct"][0]
    assert architecture_from_config(config, "m").layers[0].attention.window is None


def test_a_window_from_some_layer_on():
    config = PUBLISHED["Qwen/Qwen2.5-7B-Instruct"][0] | {
        "use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 20,
    }  # fmt: skip
    layers = architecture_from_config(config, "m").layers
    assert [(group.count, group.attention.window) for group in layers] == [(20, None), (8, 4096)]


def test_a_window_longer_than_any_context_is_none():
    config = PUBLISHED["mistralai/Mistral-7B-v0.1"][0] | {"sliding_window": 262144}
    assert architecture_from_config(config, "m").layers[0].attention.window is None


def test_llama_4_chunks_three_of_four_layers():
    config = PUBLISHED["meta-llama/Llama-4-Maverick-17B-128E-Instruct"][0]
    layers = architecture_from_config(config, "m").layers
    shapes = {(group.attention.window, group.ffn.kind): group.count for group in layers}
    assert shapes == {(8192, "dense"): 24, (8192, "moe"): 12, (None, "moe"): 12}


def test_sparse_attention_of_glm_5_2_is_shared_by_most_layers():
    types = (["full"] * 3 + ["shared"]) * 3 + ["shared"] * 66
    figures = model_figures(architecture_from_config(GLM5 | {"indexer_types": types}, "m"))
    assert (figures["indexer_layers"], figures["top_k"]) == (9, 2048)


def test_compressed_attention_caches_a_fraction_of_an_entry_a_token():
    # DeepSeek-V4-Flash: 2 window layers, 21 with an entry every 4 tokens, 20 every 128.
    config = {
        "model_type": "deepseek_v4", "hidden_size": 4096, "head_dim": 512, "index_head_dim": 128,
        "index_n_heads": 64, "index_topk": 512, "moe_intermediate_size": 2048,
        "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 64,
        "num_experts_per_tok": 6, "num_hidden_layers": 43, "num_key_value_heads": 1,
        "num_nextn_predict_layers": 1, "o_groups": 8, "o_lora_rank": 1024, "q_lora_rank": 1024,
        "sliding_window": 128, "vocab_size": 129280, "max_position_embeddings": 1048576,
        "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0], "expert_dtype": "fp4",
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }  # fmt: skip
    architecture = architecture_from_config(config, "m")
    assert parameter_counts(architecture).total == pytest.approx(284e9, rel=0.01)
    figures = model_figures(architecture)
    assert figures["full_kv"] == 21 * 512 / 4 + 20 * 512 / 128
    assert figures["window_kv"] == 43 * 512
    assert figures["index_bytes"] == 21 * 128 / 4
    assert architecture.native_format == "mxfp4"
    assert architecture.mtp_layers == 1


def test_blocks_found_by_search_may_lack_attention():
    # Llama-Nemotron: two thirds of ffn_mult x hidden, rounded up to 256; 8 query heads a KV head.
    block = {"attention": {"n_heads_in_group": 8, "no_op": False}, "ffn": {"ffn_mult": 5.25}}
    bare = {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": 2.625}}
    config = LLAMA | {
        "model_type": "nemotron-nas", "hidden_size": 8192, "num_attention_heads": 64,
        "num_hidden_layers": 3, "block_configs": [block, bare, block],
    }  # fmt: skip
    first, second = architecture_from_config(config, "m").layers
    assert (first.count, first.attention.kv_heads, first.ffn.width) == (2, 8, 28672)
    assert (second.count, second.attention, second.ffn.width) == (1, None, 14336)


def test_a_hybrid_may_give_its_blocks_instead_of_a_layer_count():
    config = {key: value for key, value in NEMOTRON.items() if key != "num_hidden_layers"}
    config["layers_block_type"] = ["mamba", "moe", "attention", "moe"]
    del config["hybrid_override_pattern"]
    figures = model_figures(architecture_from_config(config, "m"))
    assert (figures["layers"], figures["moe_layers"]) == (4, 2)
    assert figures["full_kv"] == 2 * 2 * 128


def test_a_vision_encoder_is_counted_from_its_widths():
    # Qwen3-VL-8B: 0.576 B, the difference of 8.767 B and the language model's 8.191 B.
    config = PUBLISHED["Qwen/Qwen3-VL-8B-Instruct"][0]
    assert architecture_from_config(config, "m").encoder_parameters == pytest.approx(
        0.576e9, rel=0.01
    )


def test_an_encoder_without_widths_is_named():
    config = QWEN35 | {"vision_config": {"model_type": "new"}}
    assert "vision_config states no widths" in architecture_from_config(config, "m").notes


def test_an_unknown_model_type_is_read_by_the_usual_keys_and_says_so():
    architecture = architecture_from_config(MIXTRAL | {"model_type": "brandnew"}, "m")
    assert parameter_counts(architecture).total == pytest.approx(46.7e9, rel=1e-3)
    assert "model_type 'brandnew' is not known" in architecture.notes


def test_all_missing_keys_are_named_at_once():
    found = faults({"model_type": "llama", "num_hidden_layers": 32})
    assert set(found) == {
        "hidden_size", "vocab_size", "max_position_embeddings", "num_attention_heads",
        "intermediate_size",
    }  # fmt: skip
    assert found["hidden_size"] == "missing; add it (or as n_embd, d_model)"


def test_values_that_cannot_be_are_named_with_their_key():
    found = faults(
        MIXTRAL
        | {"num_hidden_layers": "many", "num_key_value_heads": 5, "num_experts_per_tok": 9,
           "vocab_size": -1, "max_position_embeddings": 0}
    )  # fmt: skip
    assert "'many' is not a whole number" in found["num_hidden_layers"]
    assert "5 KV heads do not divide 32" in found["num_key_value_heads"]
    assert "9 experts a token, of 8" in found["num_experts_per_tok"]
    assert "-1 must be between" in found["vocab_size"]
    assert "0 must be between 1" in found["max_position_embeddings"]


def test_a_list_that_is_too_short_is_named():
    found = faults(GPT_OSS | {"layer_types": ["full_attention"] * 3})
    assert "has 3 entries for 36 layers" in found["layer_types"]


def test_an_unknown_layer_type_is_named():
    found = faults(GPT_OSS | {"layer_types": ["quantum_attention"] * 36})
    assert "'quantum_attention' is not known" in found["layer_types"]


def test_too_many_layers_are_refused_at_once():
    start = time.process_time()
    assert (
        "1000000000 layers are more than"
        in faults(LLAMA_8B | {"num_hidden_layers": 10**9})["num_hidden_layers"]
    )
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"peft_type": "LORA", "base_model_name_or_path": "x"}, "a LoRA adapter's config"),
        ({"max_new_tokens": 5, "do_sample": True}, "a generation_config"),
        ({"_from_model_config": True, "eos_token_id": 2}, "a generation_config"),
        ({"model_max_length": 5, "tokenizer_class": "x"}, "a tokenizer's config"),
        ({"weight_map": {}}, "an index of weight files"),
        ({"is_encoder_decoder": True, "d_model": 512}, "encoder-decoder models are not covered"),
        ([1, 2], "not a JSON object"),
    ],
)
def test_other_files_are_recognised(tmp_path, content, words):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=words) as error:
        read_architecture(path)
    assert error.value.source == str(path)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("config.json", "{", "not valid JSON"),
        ("config.json", "", "empty"),
        ("config.json", "[" * 100_000, "nested too deeply"),
        ("config.json", '{"a": ' + "9" * 5000 + "}", "number too long"),
        ("model.gguf", "GGUF", "GGUF file"),
        ("model.safetensors", "x", "weight file"),
    ],
)
def test_files_that_are_no_config_are_refused_with_a_reason(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_architecture(path)


def test_a_folder_without_a_config_says_so(tmp_path):
    with pytest.raises(InputError, match=r"no config\.json in this folder"):
        read_architecture(tmp_path)


def test_infinity_in_a_config_is_no_fault(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(NEMOTRON | {"time_step_limit": [0.0, float("inf")]}))
    assert "Infinity" in path.read_text()
    assert parameter_counts(read_architecture(path)).total == pytest.approx(31.58e9, rel=1e-3)


def test_a_config_of_three_megabytes_reads_fast(tmp_path):
    names = {
        f"model.layers.{layer}.mlp.experts.{expert}.{part}_proj": {"quant_algo": "NVFP4"}
        for layer in range(3, 61)
        for expert in range(256)
        for part in ("gate", "up", "down")
    }
    quantization = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
    config = V3 | {"quantization_config": quantization | {"quantized_layers": names}}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert path.stat().st_size > 2_000_000
    start = time.process_time()
    assert read_architecture(path).native_format == "nvfp4"
    assert time.process_time() - start < 2


def test_a_path_or_a_name_gives_an_architecture(tmp_path, monkeypatch):
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA_8B))
    monkeypatch.chdir(tmp_path)
    assert architecture_of("my-model").trust == "given"
    assert architecture_of(str(folder / "config.json")).name == "my-model"
    assert architecture_of("Qwen/Qwen3-32B").trust == "seen"
    with pytest.raises(InputError, match="no such file"):
        architecture_of("./other/config.json")
    with pytest.raises(InputError, match="unknown model"):
        architecture_of("my-modell-of-nothing-known")


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**30, 2.5, 1e300, float("inf"), float("nan"), "", "x", "LLLG", "1,2"]),
    st.sampled_from([[], [1], ["a"], [None], {}, {"a": 1}, [0] * 100, ["full_attention"] * 100]),
)


@settings(max_examples=300, deadline=None)
@given(
    shape=st.sampled_from([V3, GLM5, GPT_OSS, NEMOTRON, QWEN35, MIXTRAL, QWEN3, DEEPSEEK]),
    changes=st.lists(st.tuples(st.integers(0, 1000), JUNK), max_size=4),
)
def test_any_config_gives_an_architecture_or_its_faults(shape, changes):
    config = copy.deepcopy(shape)
    inner = config.get("text_config", config)
    for place, value in changes:
        inner[list(inner)[place % len(inner)]] = value
    with contextlib.suppress(InputError):
        figures = model_figures(architecture_from_config(config, "m"))
        assert all(value >= 0 for value in figures.values())
