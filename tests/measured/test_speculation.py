"""Speculation against measured pairs: the same stack with and without it.

DeepSeek-R1 NVFP4 on B200, TensorRT-LLM, MTP: InferenceX runs as collected in
ai-dynamo/aiconfigurator silicon_sample.csv (commit 095f58a5), median speed-up of TPOT by requests
in flight over 34 pairs. One acceptance, 0.63, was fitted on these pairs, so this tests the shape
over the load, not the level.
"""

import pytest

from planner.candidates.score import score_points
from planner.catalog import load_catalog
from planner.spec.point import Point

CATALOG = load_catalog()
R1 = {"model": "deepseek-ai/DeepSeek-R1", "accelerator": "b200-sxm", "engine": "tensorrt-llm",
      "weights": "nvfp4", "kv": "fp8", "tp": 8, "length_factor": 0.9}  # fmt: skip
LLAMA = {"model": "meta-llama/Meta-Llama-3-70B", "accelerator": "h100-sxm", "engine": "vllm",
         "weights": "bf16", "kv": "bf16", "tp": 4}  # fmt: skip
MEASURED = [
    (3, 4, 1.83), (3, 8, 1.52), (3, 16, 1.48), (3, 32, 1.47), (3, 64, 1.60), (3, 128, 1.31),
    (3, 256, 1.25), (1, 128, 1.50), (1, 256, 1.42),
]  # fmt: skip


def speed_up(stack, concurrency, method, drafts, acceptance):
    load = {"concurrency": concurrency, "num_requests": 10 * concurrency,
            "prompt_tokens": 1024, "output_tokens": 1024}  # fmt: skip
    plain = Point(**stack, **load)
    drafted = Point(**stack, **load, speculation=method, draft_tokens=drafts, acceptance=acceptance)
    off, on = score_points(CATALOG, [plain, drafted])
    return off.figures["tpot_ms"] / on.figures["tpot_ms"]


def errors():
    return [speed_up(R1, n, "mtp", g, 0.63) / measured - 1.0 for g, n, measured in MEASURED]


@pytest.mark.parametrize(("drafts", "concurrency", "measured"), MEASURED)
def test_the_speed_up_of_mtp_is_within_a_sixth_of_the_measured(drafts, concurrency, measured):
    got = speed_up(R1, concurrency, "mtp", drafts, 0.63)
    assert got == pytest.approx(measured, rel=1 / 6)


def test_the_speed_up_of_mtp_is_right_within_a_tenth_on_average():
    assert sum(abs(error) for error in errors()) / len(MEASURED) <= 0.1


def test_more_drafts_pay_less_at_a_large_batch_than_at_a_small_one():
    assert speed_up(R1, 256, "mtp", 3, 0.63) < speed_up(R1, 4, "mtp", 3, 0.63)


def test_n_grams_that_pay_for_one_request_cost_under_load():
    assert speed_up(LLAMA, 1, "ngram", 5, 0.4) > 1.0
    assert speed_up(LLAMA, 256, "ngram", 5, 0.4) < 1.0
