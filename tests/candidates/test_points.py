from __future__ import annotations

import pytest

from planner.candidates.points import PointResolver, Rejected, to_batch
from planner.catalog import load_catalog
from planner.spec.point import parse_point

CATALOG = load_catalog()
CELLS = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "accelerator": "h100-sxm",
    "concurrency": "16",
    "prompt_tokens": "1000",
    "output_tokens": "200",
}


def resolve(**changed):
    return PointResolver(CATALOG).resolve(parse_point({**CELLS, **changed}))


def batch(**changed):
    return to_batch(CATALOG, [resolve(**changed)], [0])


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"model": "no/such-model"}, "unknown_model", "no/such-model"),
        ({"accelerator": "h1000"}, "unsupported", "h1000"),
        ({"tp": "3"}, "unsupported", "tp 3 does not divide 32 attention heads"),
        ({"pp": "64"}, "unsupported", "pp 64 is more than the 32 layers"),
        ({"ep": "5"}, "unsupported", "ep 5 must be 1 or tp * dp = 1"),
        ({"accelerator": "mi300x", "engine": "trtllm"}, "unsupported", "does not run on amd"),
        (
            {"engine_generation": "vllm-v9"},
            "invalid",
            "engine_generation: 'vllm-v9' is no generation of vllm;"
            " allowed are vllm-2023, vllm-v0, vllm-v1",
        ),
        ({"engine_gen": "0.6.1"}, "invalid", "a version belongs into engine_version"),
        ({"engine": "tgi", "dp": "2"}, "unsupported", "no attention data parallelism"),
    ],
)
def test_what_cannot_be_scored_says_why(changed, status, words):
    found = resolve(**changed)
    assert isinstance(found, Rejected)
    assert found.status == status
    assert words in found.reason


def test_names_aliases_and_versions_find_their_entries():
    found = resolve(accelerator="H100 SXM5", engine="trtllm", engine_version="0.12")
    assert found.accelerator.id == "h100-sxm"
    assert found.stack.generation.id == "trtllm-cpp"
    assert resolve(engine="vllm", engine_version="").stack.generation.id == "vllm-v1"
    assert resolve(engine_gen="vllm_v0").stack.generation.id == "vllm-v0"


@pytest.mark.parametrize(
    ("model", "expected"), [("openai/gpt-oss-120b", "mxfp4"), ("deepseek-ai/DeepSeek-R1", "nvfp4")]
)
def test_fp4_is_the_models_own_4_bit_format(model, expected):
    assert resolve(model=model, accelerator="b200-sxm", weights="fp4").weights.id == expected


def test_blank_weights_are_the_released_ones():
    assert resolve(model="deepseek-ai/DeepSeek-R1", tp="8").weights.id == "fp8"
    assert resolve().weights.id == "bf16"


def test_a_length_factor_scales_mean_lengths_and_marks_identical_ones():
    load = batch(length_factor="0.9").load
    assert (load.prompt[0], load.output[0], load.identical[0]) == (900, 180, 0)
    assert batch().load.identical[0] == 1


def test_requests_over_concurrency_are_prompts_a_slot():
    assert batch(num_requests="160").load.waves[0] == 10
    assert batch().load.waves[0] == float("inf")


def test_replicas_default_to_what_the_gpus_hold():
    assert batch(n_gpus="8", tp="2").candidates.layout.replicas[0] == 4
    assert batch(n_gpus="8", tp="2", replicas="3").candidates.layout.replicas[0] == 3


def test_limits_and_memory_of_a_point_replace_the_defaults():
    c = batch(max_num_seqs="32", token_budget="2048", gpu_memory_gib="40").candidates
    assert (c.layout.max_sequences[0], c.layout.token_budget[0]) == (32, 2048)
    assert c.chip.memory[0] == 40 * 2**30


def test_settings_of_schedulers_are_carried():
    c = batch(scheduler_poll_steps="30", batch_wait_steps="20").candidates
    assert (c.layout.poll_steps[0], c.layout.batch_wait_steps[0]) == (30, 20)
