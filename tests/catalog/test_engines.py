"""The engine catalog: generations, look-up labels, and what each can run."""

from pathlib import Path

import pytest

from planner.catalog import version_numbers
from planner.files import read_yaml
from planner.spec.engine import Engine
from planner.spec.load import load
from planner.spec.precision import Precisions
from planner.spec.speculation import Speculation

CATALOG = Path(__file__).parents[2] / "hardware_catalog"
ENGINES = {
    engine.id: engine
    for engine in (
        load(read_yaml(path), Engine) for path in sorted((CATALOG / "engines").glob("*.yaml"))
    )
}
GENERATIONS = {g.id: g for engine in ENGINES.values() for g in engine.generations}
PRECISIONS = load(read_yaml(CATALOG / "precisions.yaml"), Precisions)
SPECULATION = load(read_yaml(CATALOG / "speculation.yaml"), Speculation)
FLAGS = {
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "expert_parallel",
    "max_num_seqs",
    "token_budget",
    "kv_cache_dtype",
    "quantization",
    "max_model_len",
    "memory_fraction",
    "speculative",
}
each_generation = pytest.mark.parametrize("generation", GENERATIONS.values(), ids=list(GENERATIONS))
each_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))


def test_a_file_is_named_after_its_engine():
    assert set(ENGINES) == {path.stem for path in (CATALOG / "engines").glob("*.yaml")}


def test_three_engines_are_searched_and_three_only_scored():
    assert {e.id for e in ENGINES.values() if e.searched} == {"vllm", "sglang", "tensorrt-llm"}
    assert {e.id for e in ENGINES.values() if not e.searched} == {
        "tgi",
        "turbomind",
        "deepspeed-mii",
    }


@pytest.mark.parametrize(
    ("label", "generation"),
    [
        ("vllm_v0", "vllm-v0"),
        ("vllm_v1", "vllm-v1"),
        ("vllm_2023", "vllm-2023"),
        ("trt_cpp", "trtllm-cpp"),
        ("trt_py", "trtllm-1"),
        ("sglang", "sglang"),
        ("tgi", "tgi"),
        ("dsmii", "deepspeed-mii"),
        ("turbomind", "turbomind"),
    ],
)
def test_labels_of_data_files_name_their_generation(label, generation):
    assert [g.id for g in GENERATIONS.values() if label in (g.id, *g.aliases)] == [generation]


@pytest.mark.parametrize(
    ("label", "engine"),
    [("trtllm", "tensorrt-llm"), ("TensorRT-LLM", "tensorrt-llm"), ("tensorrtllm", "tensorrt-llm")],
)
def test_other_names_of_engines_are_known_without_case(label, engine):
    known = [e.id for e in ENGINES.values() if label.casefold() in (e.id, *e.aliases)]
    assert known == [engine]


@each_engine
def test_an_engine_has_one_current_generation_the_newest(engine):
    starts = [g.first_version for g in engine.generations]
    assert starts == sorted(set(starts))
    assert [g.current for g in engine.generations] == [False] * (len(starts) - 1) + [True]


@pytest.mark.parametrize(
    ("engine", "version", "generation"),
    [
        ("vllm", (0, 2), "vllm-2023"),
        ("vllm", (0, 4, 2), "vllm-v0"),
        ("vllm", (0, 7, 3), "vllm-v0"),
        ("vllm", (0, 8, 5), "vllm-v1"),
        ("vllm", (0, 19, 0), "vllm-v1"),
        ("tensorrt-llm", (0, 17), "trtllm-cpp"),
        ("tensorrt-llm", (1, 2, 0), "trtllm-1"),
        ("sglang", (0, 5, 10), "sglang"),
        ("tgi", (1, 1, 0), "tgi"),
        ("turbomind", (0, 2, 0), "turbomind"),
    ],
)
def test_versions_of_measured_runs_fall_into_their_generation(engine, version, generation):
    begun = [g.id for g in ENGINES[engine].generations if g.first_version <= version]
    assert begun[-1] == generation


def test_names_and_aliases_are_unique_among_engines_and_among_generations():
    engines = [n.casefold() for e in ENGINES.values() for n in (e.id, *e.aliases)]
    generations = [n.casefold() for g in GENERATIONS.values() for n in (g.id, *g.aliases)]
    assert len(engines) == len(set(engines))
    assert len(generations) == len(set(generations))


@each_generation
def test_a_generation_names_only_formats_and_methods_of_the_catalog(generation):
    weights = {fmt.id: fmt for fmt in PRECISIONS.weights}
    kv = {fmt.id for fmt in PRECISIONS.kv}
    methods = {method.id for method in SPECULATION.methods}
    for vendor, offered in generation.weights.items():
        assert set(offered) <= set(weights)
        assert "bf16" in offered
        assert set(generation.kv[vendor]) <= kv
        assert "bf16" in generation.kv[vendor]
        assert set(generation.speculation.get(vendor, ())) <= methods
        fallback = set(generation.weight_only_fallback.get(vendor, ()))
        assert fallback <= set(offered)
        assert all(weights[name].weight_only_fallback for name in fallback)
    vendors = set(generation.weights)
    assert set(generation.kv) == vendors
    assert set(generation.speculation) | set(generation.weight_only_fallback) <= vendors


def test_every_format_and_method_runs_on_some_current_engine():
    current = [g for g in GENERATIONS.values() if g.current]
    weights = {name for g in current for offered in g.weights.values() for name in offered}
    kv = {name for g in current for offered in g.kv.values() for name in offered}
    methods = {name for g in current for offered in g.speculation.values() for name in offered}
    assert weights == {fmt.id for fmt in PRECISIONS.weights}
    assert kv == {fmt.id for fmt in PRECISIONS.kv}
    assert methods == {method.id for method in SPECULATION.methods}


def test_tensorrt_llm_runs_on_nvidia_alone():
    for generation in ENGINES["tensorrt-llm"].generations:
        assert set(generation.weights) == {"nvidia"}


# Combinations that public benchmarks ran (InferenceX, TensorRT-LLM performance tables, gpustack).
@pytest.mark.parametrize(
    ("generation", "vendor", "weights", "kv"),
    [
        ("vllm-v1", "nvidia", "fp8", "fp8"),
        ("vllm-v1", "nvidia", "nvfp4", "fp8"),
        ("vllm-v1", "nvidia", "mxfp4", "bf16"),
        ("vllm-v1", "nvidia", "int4", "bf16"),
        ("vllm-v1", "amd", "fp8", "fp8"),
        ("vllm-v0", "nvidia", "int8-weight-only", "bf16"),
        ("vllm-v0", "nvidia", "int4", "bf16"),
        ("vllm-v0", "amd", "fp8", "fp8"),
        ("sglang", "nvidia", "nvfp4", "fp8"),
        ("sglang", "nvidia", "int4", "bf16"),
        ("trtllm-1", "nvidia", "nvfp4", "fp8"),
        ("trtllm-1", "nvidia", "mxfp4", "fp8"),
        ("trtllm-cpp", "nvidia", "fp8", "fp8"),
        ("trtllm-cpp", "nvidia", "int8", "int8"),
    ],
)
def test_what_public_benchmarks_ran_is_supported(generation, vendor, weights, kv):
    assert weights in GENERATIONS[generation].weights[vendor]
    assert kv in GENERATIONS[generation].kv[vendor]


@pytest.mark.parametrize(
    ("generation", "weights"),
    [("vllm-v1", "fp8"), ("vllm-v1", "mxfp4"), ("trtllm-1", "mxfp4")],
    ids=["vLLM FP8 on A100", "vLLM MXFP4 on A100 and H100", "TensorRT-LLM MXFP4 on H100"],
)
def test_what_public_benchmarks_ran_weight_only_falls_back(generation, weights):
    assert weights in GENERATIONS[generation].weight_only_fallback["nvidia"]


def test_tensorrt_llm_has_no_fall_back_for_fp8_and_nvfp4():
    # Its hardware table has neither FP8 on Ampere nor NVFP4 on Hopper.
    assert GENERATIONS["trtllm-1"].weight_only_fallback == {"nvidia": ("mxfp4",)}


def test_only_sglang_runs_prompts_alone_and_only_router_or_no_evict_engines_reserve_the_answer():
    alone = {g.id for g in GENERATIONS.values() if g.scheduler == "prefill-first"}
    full = {g.id for g in GENERATIONS.values() if g.kv_reservation == "full-length"}
    assert alone == {"sglang"}
    assert full == {"trtllm-cpp", "trtllm-1", "tgi"}


@each_generation
def test_memory_rules_are_in_order_of_version_and_start_with_the_first(generation):
    versions = [rule.first_version for rule in generation.memory]
    assert versions == sorted(versions)
    assert versions[0] <= generation.first_version


def test_memory_shares_are_those_of_the_engines_manuals():
    # vLLM --gpu-memory-utilization 0.9, 0.92 since it counts CUDA graphs; TensorRT-LLM 0.9 of
    # what is free once the model is loaded; SGLang derives its share from a static reserve.
    newest = {id_: generation.memory[-1] for id_, generation in GENERATIONS.items()}
    assert (newest["vllm-v0"].fraction, newest["vllm-v0"].fraction_of) == (0.9, "total")
    assert (newest["vllm-v1"].fraction, newest["vllm-v1"].graph_gib) == (0.92, 0.3)
    assert newest["trtllm-1"].fraction_of == "free-after-weights"
    assert newest["sglang"].fraction is None
    assert newest["sglang"].static_reserve.floor_gib == 10


@pytest.mark.parametrize(
    ("generation", "block", "sequences", "budget"),
    [
        ("vllm-2023", 16, 256, 2560),
        ("vllm-v0", 16, 256, 2048),
        ("vllm-v1", 16, 1024, 8192),
        ("sglang", 1, 2048, 8192),
        ("trtllm-1", 32, 4096, 8192),
        ("tgi", 16, 128, 4096),
        ("turbomind", 64, 128, 8192),
        ("deepspeed-mii", 128, 512, 768),
    ],
)
def test_defaults_are_those_of_the_engines_sources(generation, block, sequences, budget):
    found = GENERATIONS[generation]
    assert (found.block_tokens, found.max_num_seqs, found.token_budget) == (
        block,
        sequences,
        budget,
    )


def test_a_current_searched_generation_names_the_flag_of_every_choice():
    for engine in ENGINES.values():
        if engine.searched:
            runtime = engine.generations[-1].runtime
            assert set(runtime.flag_names(version_numbers(runtime.version))) >= FLAGS
