from __future__ import annotations

import pytest

from planner.candidates.memory_figures import memory_columns
from planner.candidates.memory_rule import memory_row, memory_rule, startup
from planner.catalog import load_catalog
from planner.catalog.models import find_architecture

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("model", "full", "window", "state"),
    [
        ("google/gemma-3-27b-it", 1, 60 / 52, 1),
        ("google/gemma-3-4b-it", 1, 30 / 29, 1),
        ("google/gemma-2-9b-it", 1, 1, 1),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 1, 1, 1),
        ("openai/gpt-oss-120b", 1, 1, 1),
        ("Qwen/Qwen3.5-35B-A3B", 1, 1, 1),
        ("meta-llama/Llama-3.1-8B", 1, 1, 1),
    ],
    ids=["62 -> 70 (log)", "34 -> 35 (log)", "21 and 21", "12 and 36", "18 and 18", "10 and 30",
         "one kind"],
)  # fmt: skip
def test_layers_are_padded_to_groups_of_the_rarer_kind(model, full, window, state):
    columns = memory_columns(find_architecture(model))
    assert columns["full_padding"] == pytest.approx(full)
    assert columns["window_padding"] == pytest.approx(window)
    assert columns["state_padding"] == pytest.approx(state)


def test_deepseek_v3_copies_its_down_projections_and_keeps_its_up_projections_twice():
    columns = memory_columns(find_architecture("deepseek-ai/DeepSeek-V3"))
    assert columns["replicated_parameters"] == 61 * 7168 * (1536 + 512 + 64)
    assert columns["absorbed_parameters"] == 61 * 512 * 128 * (128 + 128)
    assert columns["router_parameters"] == 58 * 7168 * 256
    assert columns["kv_parameters"] == 0


def test_deepseek_v32_keeps_scales_and_index_scales():
    # 656 - 576 and 132 - 128 bytes a layer.
    columns = memory_columns(find_architecture("deepseek-ai/DeepSeek-V3.2"))
    assert columns["single_byte_extra"] == 61 * 80
    assert columns["index_scale"] == 61 * 4


def test_a_state_page_is_a_state_in_tokens_of_a_layer():
    # 32 heads x 128 x 128 in FP32, 8192 channels x 3 in BF16; a layer caches 2 x 2 x 256.
    columns = memory_columns(find_architecture("Qwen/Qwen3.5-35B-A3B"))
    assert columns["state_page"] == (32 * 128 * 128 * 4 + 8192 * 3 * 2) / 1024


@pytest.mark.parametrize(
    ("version", "sampler", "cache"),
    [
        ((0, 9, 2), 38.3, "whole"),
        ((0, 11, 0), 38.3, "grouped"),
        ((0, 19, 0), 14.9, "grouped"),
        ((), 14.9, "grouped"),
        ((0, 1), 38.3, "whole"),
    ],
    ids=["before groups", "sorting sampler", "Triton sampler", "newest", "before the first"],
)
def test_a_version_follows_its_rule(version, sampler, cache):
    rule = memory_rule(CATALOG.generation("vllm", "vllm-v1"), version)
    assert (rule.sampler_bytes, rule.cache) == (sampler, cache)


def test_communication_buffers_depend_on_the_link():
    generation = CATALOG.generation("vllm", "vllm-v1")
    over_nvlink = memory_row(generation, (0, 19), "nvlink")
    over_pcie = memory_row(generation, (0, 19), "pcie_host")
    assert over_nvlink["group_reserve"] == 1.84 * 2**30
    assert over_pcie["group_reserve"] == pytest.approx(0.1 * 2**30)


@pytest.mark.parametrize(
    ("accelerator", "memory", "expected"),
    [
        ("h100-sxm", 79.19, (1024, 8192)),
        ("a100-sxm-80", 79.15, (256, 2048)),
        ("rtx4090", 23.5, (256, 2048)),
    ],
)
def test_vllm_profiles_large_cards_with_more_sequences(accelerator, memory, expected):
    rule = memory_rule(CATALOG.generation("vllm", "vllm-v1"), ())
    assert startup(rule, CATALOG.accelerator(accelerator), memory, 8192) == expected


def test_older_versions_profile_whole_prompts_up_to_32k():
    rule = memory_rule(CATALOG.generation("vllm", "vllm-v0"), ())
    card = CATALOG.accelerator("a100-sxm-40")
    assert startup(rule, card, 39.5, 8192) == (256, 8192)
    assert startup(rule, card, 39.5, 131072) == (256, 2048)
