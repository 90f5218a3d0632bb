"""Engine commands: they run in a shell, use flags of their release, and say what was planned."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.candidates.models import architecture_of
from planner.catalog import load_catalog, version_numbers
from planner.deploy import Chosen, deployment, render
from planner.deploy.text import label_value, script
from planner.errors import InputError
from tests.deploy.known_flags import CACHE_TYPES, SERVE, TRTLLM_KEYS
from tests.deploy.plans import MODEL, record

ENGINES = ("vllm", "sglang", "tensorrt-llm")
GENERATIONS = {"vllm": "vllm-v1", "sglang": "sglang", "tensorrt-llm": "trtllm-1"}
each_engine = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


def of(engine, **changes):
    kv = {"kv": "fp8"} | changes
    return {"engine": engine, "generation": GENERATIONS[engine], **kv}


def value(words, flag):
    return words[words.index(flag) + 1]


@each_engine
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kv": "bf16", "weights": "bf16"},
        {"dp": 4, "tp": 1, "replicas": 1, "gpus_per_replica": 4},
        {"speculation": "ngram", "draft_tokens": 3, "acceptance": [0.3, 1.0]},
        {"speculation": "eagle3", "draft_tokens": 3, "acceptance": [0.7, 0.9]},
        {"speculation": "draft-model", "draft_tokens": 3, "acceptance": [0.7, 0.9]},
    ],
    ids=["fp8", "bf16", "attention dp", "n-gram", "EAGLE-3", "draft model"],
)
def test_a_command_runs_and_uses_only_flags_of_its_release(engine, changes, exported, words):
    made = exported(engine, **of(engine, **changes))
    text = next(text for name, text in made.files.items() if name.endswith(".sh"))
    called = words(text)
    flags = {word.split("=")[0] for word in called if word.startswith("--")}
    assert flags <= SERVE[engine]
    if engine != "tensorrt-llm":
        assert value(called, "--kv-cache-dtype") in CACHE_TYPES[engine]


def test_vllm_is_started_as_planned(exported, words):
    (text, _) = exported("vllm").files.values()
    assert words(text) == [
        "vllm", "serve", MODEL, "--host", "0.0.0.0", "--port", "8000",
        "--tensor-parallel-size", "4", "--quantization", "fp8", "--kv-cache-dtype", "fp8",
        "--max-model-len", "32768", "--max-num-seqs", "128",
        "--max-num-batched-tokens", "8192",
        # (20 + 100 + 6) of 140 GiB.
        "--gpu-memory-utilization", "0.9",
    ]  # fmt: skip


def test_vllms_config_file_says_the_same_as_its_command(exported, words):
    made = exported("vllm", speculation="ngram", draft_tokens=3, acceptance=[0.3, 1.0])
    (script_text, config_text) = made.files.values()
    called = words(script_text)[3:]
    config = yaml.safe_load(config_text)
    pairs = dict(zip(called[::2], called[1::2], strict=True))
    assert {f"--{key}": str(item) for key, item in config.items()} == pairs


def test_sglangs_sizes_count_all_ranks(exported, words):
    split = of("sglang", tp=2, dp=4, gpus_per_replica=8, replicas=1, max_num_seqs=32)
    made = exported("sglang", model="deepseek-ai/DeepSeek-R1", **split)
    called = words(*made.files.values())
    assert called[:3] == ["python3", "-m", "sglang.launch_server"]
    assert (value(called, "--tp-size"), value(called, "--dp-size")) == ("8", "4")
    assert "--enable-dp-attention" in called
    assert value(called, "--ep-size") == "8"
    assert value(called, "--max-running-requests") == "128"
    assert value(called, "--chunked-prefill-size") == "32768"
    # 20 + 100 GiB of the 134 that are free before the weights are loaded.
    assert value(called, "--mem-fraction-static") == "0.895"


def test_vllms_limits_are_those_of_a_rank_and_experts_are_spread(exported, words):
    split = of("vllm", tp=1, dp=8, gpus_per_replica=8, replicas=1)
    called = words(
        next(iter(exported("vllm", model="deepseek-ai/DeepSeek-R1", **split).files.values()))
    )
    assert value(called, "--data-parallel-size") == "8"
    assert value(called, "--max-num-seqs") == "128"
    assert "--enable-expert-parallel" in called
    assert "--quantization" not in called


def test_a_dense_model_has_no_experts_to_spread(exported, words):
    split = of("vllm", tp=1, dp=4, gpus_per_replica=4)
    called = words(next(iter(exported("vllm", **split).files.values())))
    assert "--enable-expert-parallel" not in called


def test_tensorrt_llms_file_holds_what_has_no_flag(exported, words):
    changes = of("tensorrt-llm", speculation="eagle3", draft_tokens=3, acceptance=[0.7, 0.9])
    made = exported("tensorrt-llm", checkpoint="nvidia/Llama-FP8", head="org/head", **changes)
    (text, config_text) = made.files.values()
    called = words(text)
    assert called[:2] == ["trtllm-serve", "nvidia/Llama-FP8"]
    # 100 of the 114 GiB that weights and buffers leave.
    assert value(called, "--kv_cache_free_gpu_memory_fraction") == "0.877"
    assert value(called, "--extra_llm_api_options") == f"./{list(made.files)[1]}"
    config = yaml.safe_load(config_text)
    assert set(config) <= TRTLLM_KEYS
    assert config["kv_cache_config"]["dtype"] in CACHE_TYPES["tensorrt-llm"]
    assert config["speculative_config"] == {
        "decoding_type": "Eagle3",
        "max_draft_len": 3,
        "speculative_model_dir": "org/head",
    }


DRAFTS = {
    ("vllm", "mtp"): {"method": "mtp", "num_speculative_tokens": 2},
    ("vllm", "ngram"): {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 4},
    ("vllm", "draft-model"): {
        "method": "draft_model",
        "model": "org/head",
        "num_speculative_tokens": 2,
    },
}


@pytest.mark.parametrize(("engine", "method"), list(DRAFTS))
def test_vllms_speculation_is_one_json_value(engine, method, exported, words):
    made = exported(engine, head="org/head", speculation=method, draft_tokens=2,
                    acceptance=[0.8, 0.9])  # fmt: skip
    called = words(next(iter(made.files.values())))
    assert json.loads(value(called, "--speculative-config")) == DRAFTS[engine, method]


def test_sglang_verifies_one_token_more_than_it_drafts(exported, words):
    changes = of("sglang", speculation="mtp", draft_tokens=2, acceptance=[0.8, 0.9])
    called = words(*exported("sglang", **changes).files.values())
    assert value(called, "--speculative-algorithm") == "EAGLE"
    assert value(called, "--speculative-num-steps") == "2"
    assert value(called, "--speculative-num-draft-tokens") == "3"


SPREAD = {
    "pipeline": ({"tp": 8, "pp": 2}, "--pipeline-parallel-size", "2"),
    "wide tensor parallelism": ({"tp": 16, "pp": 1}, "--tensor-parallel-size", "16"),
}


@pytest.mark.parametrize("case", list(SPREAD))
def test_a_vllm_replica_over_two_servers_has_a_leader_and_a_worker(case, exported, words):
    layout, flag, number = SPREAD[case]
    made = exported("vllm", **layout, gpus_per_replica=16, replicas=1, instances=2, gpus=16)
    leader, worker = made.files.values()
    first = words(leader, RANK="0", LEADER="10.0.0.1")
    second = words(worker, RANK="1", LEADER="10.0.0.1")
    assert value(first, flag) == number
    assert (value(first, "--nnodes"), value(first, "--node-rank")) == ("2", "0")
    assert value(second, "--node-rank") == "1"
    assert value(second, "--master-addr") == "10.0.0.1"
    assert "--headless" in second
    assert "--headless" not in first


def test_vllm_ranks_over_two_servers_start_where_the_first_server_ends(exported, words):
    layout = {"tp": 1, "dp": 16, "gpus_per_replica": 16, "replicas": 1}
    made = exported("vllm", model="deepseek-ai/DeepSeek-R1", instances=2, gpus=16, **layout)
    leader, worker = made.files.values()
    first = words(leader, RANK="0", LEADER="10.0.0.1")
    second = words(worker, RANK="1", LEADER="10.0.0.1")
    assert value(first, "--data-parallel-size-local") == "8"
    assert value(second, "--data-parallel-start-rank") == "8"
    assert value(second, "--data-parallel-address") == "10.0.0.1"


def test_an_sglang_replica_over_two_servers_meets_at_the_leader(exported, words):
    layout = of("sglang", tp=16, gpus_per_replica=16, replicas=1, instances=2, gpus=16)
    leader, worker = exported("sglang", **layout).files.values()
    assert value(words(leader, RANK="0", LEADER="a"), "--dist-init-addr") == "a:20000"
    assert value(words(worker, RANK="1", LEADER="a"), "--node-rank") == "1"


def test_a_script_for_several_servers_asks_for_its_rank(exported):
    layout = {"tp": 16, "gpus_per_replica": 16, "replicas": 1, "instances": 2, "gpus": 16}
    for text in exported("vllm", **layout).files.values():
        assert "${RANK:?number of this server, 0 to 1}" in text


REFUSED = {
    "SGLang drafts in a pipeline": (
        of("sglang", pp=2, tp=2, speculation="ngram", draft_tokens=3, acceptance=[0.3, 1]),
        "not compatible with speculative decoding",
    ),
    "SGLang looks up n-grams with attention dp": (
        of("sglang", tp=1, dp=4, speculation="ngram", draft_tokens=3, acceptance=[0.3, 1]),
        "no n-gram speculation with attention data parallelism",
    ),
    "TensorRT-LLM ranks of several GPUs": (
        of("tensorrt-llm", tp=2, dp=2),
        "it has no ranks of several GPUs",
    ),
    "TensorRT-LLM over two servers": (
        of("tensorrt-llm", tp=16, gpus_per_replica=16, instances=2, gpus=16, replicas=1),
        "spans 2 servers: trtllm-serve over several servers needs an MPI launcher",
    ),
    "a cache format that the engine cannot spell": (
        of("sglang", kv="int8"),
        "sglang has no spelling for a int8 KV cache",
    ),
    "a method that the engine lacks": (
        of("tensorrt-llm", speculation="eagle", draft_tokens=3, acceptance=[0.7, 1]),
        "trtllm-1 has no settings for eagle speculation",
    ),
    "a generation that is only scored": (
        {"engine": "vllm", "generation": "vllm-v0"},
        "is scored only, never deployed",
    ),
    "vLLM ranks that do not divide": (
        {"tp": 8, "dp": 3, "gpus_per_replica": 24, "instances": 3, "gpus": 24,
         "gpus_per_instance": 12},
        "3 dp ranks do not divide over the 2 servers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_an_engine_cannot_run_is_refused_with_the_reason(case, exported):
    changes, reason = REFUSED[case]
    with pytest.raises(InputError, match=reason):
        exported(changes.get("engine", "vllm"), **changes)


def test_a_cache_format_newer_than_the_pinned_release_raises_the_release(exported):
    made = exported("vllm", kv="int8")
    text = made.files[next(iter(made.files))]
    assert "--kv-cache-dtype int8_per_token_head" in text
    assert "vLLM 0.20.0" in text
    assert "NOTE: Release 0.20.0: the option needs it; predictions rest on 0.19.0" in text


def test_formats_that_need_a_checkpoint_name_it_or_a_placeholder(exported, words):
    made = exported("vllm", weights="int4")
    text = next(iter(made.files.values()))
    assert words(text)[2] == "CHECKPOINT-int4-OF-Llama-3.3-70B-Instruct"
    assert any("Replace CHECKPOINT-int4" in note for note in made.notes)
    named = exported("vllm", weights="int4", checkpoint="org/llama-awq")
    assert words(next(iter(named.files.values())))[2] == "org/llama-awq"
    assert named.notes == ("No revision of org/llama-awq is recorded, so the newest is loaded.",)


def test_a_released_fp8_checkpoint_is_not_quantized_again(exported, words):
    layout = {"tp": 8, "gpus_per_replica": 8, "replicas": 1}
    made = exported("vllm", model="deepseek-ai/DeepSeek-R1", **layout)
    called = words(next(iter(made.files.values())))
    assert called[2] == "deepseek-ai/DeepSeek-R1"
    assert "--quantization" not in called


@pytest.mark.parametrize(
    ("model", "served"),
    [
        ("mistral-small-24b-base-2501", "mistralai/Mistral-Small-24B-Base-2501"),
        ("QWEN/qwen3-8b", "Qwen/Qwen3-8B"),
        ("unsloth/Phi-4", "unsloth/phi-4"),
        ("someone/Llama-3.3-70B-Instruct", "someone/Llama-3.3-70B-Instruct"),
    ],
)
def test_a_model_is_served_by_its_full_name(model, served, exported, words):
    made = exported("vllm", model=model, weights="bf16", kv="bf16")
    assert words(next(iter(made.files.values())))[2] == served


def test_a_name_whose_organisation_nobody_knows_is_told(exported):
    made = exported("vllm", model="Llama-3.3-70B-Instruct-AWQ-INT4", weights="bf16", kv="bf16")
    assert any(note.startswith("No organisation of Llama-3.3-70B-Inst") for note in made.notes)
    assert not any("organisation" in note for note in exported("vllm", weights="bf16").notes)


def test_an_unknown_model_needs_its_checkpoint_named(exported, words):
    with pytest.raises(InputError, match="name a checkpoint"):
        exported("vllm", model="nobody/nothing")
    made = exported("vllm", model="nobody/nothing", checkpoint="./weights")
    assert words(next(iter(made.files.values())))[2] == "./weights"


def test_every_pinned_release_belongs_to_its_generation(catalog):
    for engine in catalog.engines.values():
        for generation in engine.generations:
            if generation.runtime is not None:
                found = catalog.generation(engine.id, generation.runtime.version)
                assert found.id == generation.id
            assert (generation.runtime is not None) == (generation.current and engine.searched)


def test_every_format_and_method_of_a_current_engine_can_be_spelt(catalog):
    for engine in catalog.engines.values():
        for generation in engine.generations:
            runtime = generation.runtime
            if runtime is None:
                continue
            for kv in {name for names in generation.kv.values() for name in names}:
                assert runtime.kv[kv].value in CACHE_TYPES[engine.id]
            methods = {name for names in generation.speculation.values() for name in names}
            assert methods <= set(runtime.speculation)


def test_later_names_replace_earlier_ones(catalog):
    runtime = catalog.engine("tensorrt-llm").generations[-1].runtime
    assert runtime.flag_names((1, 2))["config_file"] == "--extra_llm_api_options"
    assert runtime.flag_names((1, 3))["config_file"] == "--config"
    assert runtime.flag_names((1, 3))["tensor_parallel"] == "--tp_size"


PRINTABLE = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=80
).filter(lambda text: text == text.strip() and text.isprintable())


@given(model=PRINTABLE)
def test_any_model_name_gives_a_valid_object_name(model, catalog):
    plan = record(model=model)
    made = deployment(plan, plan.options[0], catalog, None, "d" * 64, Chosen(checkpoint="x"))
    assert label_value(made.name) == made.name
    assert made.name[0].isalpha()
    assert made.name == made.name.lower()
    assert len(made.name) <= 63


@settings(max_examples=25)
@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])), min_size=1))
def test_any_words_reach_the_program_unchanged(arguments):
    import subprocess
    import sys

    program = "import json, sys; print(json.dumps(sys.argv[1:]))"
    text = script([sys.executable, "-c", program, *arguments], "a comment\nof two lines")
    done = subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == arguments


def test_versions_compare_as_numbers():
    assert version_numbers("0.20.0") > version_numbers("0.5.10.post1")


COMMIT = "0e9e39f249a16976918f6564b8830bc894c89659"


@pytest.fixture
def pinned(catalog):
    """A deployment of a model of the hub, at a commit or at none."""

    def make(engine, revision, checkpoint=""):
        plan = record(model=f"hub:{MODEL}{revision}", weights="bf16", **of(engine, kv="bf16"))
        chosen = Chosen(checkpoint=checkpoint)
        return deployment(plan, plan.options[0], catalog, architecture_of(MODEL), "d" * 64, chosen)

    return make


@each_engine
def test_the_revision_that_was_planned_with_is_the_one_that_is_served(engine, pinned, words):
    made = pinned(engine, f"@{COMMIT}")
    text = next(text for name, text in render(made, engine).items() if name.endswith(".sh"))
    called = words(text)
    assert value(called, "--revision") == COMMIT
    assert MODEL in called
    assert "No revision" not in text


@each_engine
def test_where_no_revision_is_recorded_the_file_says_so(engine, pinned, words):
    for made in (pinned(engine, ""), pinned(engine, f"@{COMMIT}", checkpoint="org/other")):
        text = next(text for name, text in render(made, engine).items() if name.endswith(".sh"))
        assert "--revision" not in words(text)
        assert f"NOTE: No revision of {made.model} is recorded, so the newest is loaded" in text


def test_a_folder_has_no_revision_to_speak_of(pinned):
    assert "No revision" not in "".join(pinned("vllm", "", checkpoint="/models/llama").notes)


def test_kserve_names_the_revision_in_the_models_address(pinned):
    (text,) = render(pinned("vllm", f"@{COMMIT}"), "kserve").values()
    service = yaml.safe_load(text)
    assert service["spec"]["model"]["uri"] == f"hf://{MODEL}:{COMMIT}"
    assert "--revision" not in text
