from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.figures import model_figures, parameter_counts
from planner.catalog.models import find_architecture
from planner.model.arrays import ModelFigures
from planner.spec.architecture import (
    Architecture,
    DenseFfn,
    ExplicitAttention,
    FullAttention,
    LayerGroup,
    MoeFfn,
    RecurrentAttention,
)

GQA = FullAttention(kind="full", heads=8, kv_heads=2, head_dim=64)
FFN = DenseFfn(kind="dense", width=1024)
MOE = MoeFfn(kind="moe", experts=16, active=2, width=256, shared_width=512)


def model(*layers, **changes):
    return Architecture(
        id="m",
        name="m",
        hidden_size=512,
        vocab_size=1000,
        tied_embeddings=False,
        max_context_tokens=4096,
        source="by hand",
        trust="given",
        layers=tuple(
            LayerGroup(count=count, attention=attention, ffn=ffn)
            for count, attention, ffn in layers
        ),
    ).model_copy(update=changes)


def test_the_figures_are_the_columns_of_the_model():
    columns = [field.name for field in dataclasses.fields(ModelFigures)]
    assert list(model_figures(model((2, GQA, FFN)))) == columns


def test_a_small_dense_model_by_hand():
    counts = parameter_counts(model((3, GQA, FFN)))
    assert counts.embedding == 2 * 1000 * 512
    assert counts.attention == 3 * 512 * (8 + 2 + 2 + 8) * 64
    assert counts.dense == 3 * 3 * 512 * 1024
    assert counts.norm == (2 * 3 + 1) * 512
    assert counts.total == counts.active == 1_024_000 + 1_966_080 + 4_718_592 + 3_584


def test_a_tied_table_is_counted_once():
    assert parameter_counts(model((1, GQA, FFN), tied_embeddings=True)).embedding == 1000 * 512


def test_a_small_mixture_of_experts_by_hand():
    architecture = model((1, GQA, FFN), (3, GQA, MOE))
    counts, figures = parameter_counts(architecture), model_figures(architecture)
    one = 3 * 512 * 256
    assert counts.expert == figures["expert_parameters"] == 3 * one
    assert counts.routed == 16 * 3 * one
    assert counts.routed_active == 2 * 3 * one
    assert counts.dense == 3 * 512 * 1024 + 3 * (512 * 16 + 3 * 512 * 512)
    assert counts.total - counts.active == 14 * 3 * one
    assert (figures["experts"], figures["active"], figures["moe_layers"]) == (16, 2, 3)
    assert figures["expert_width"] == 256


def test_a_latent_narrows_the_routed_experts_only():
    latent = MOE.model_copy(update={"latent": 128, "extra_parameters": 2 * 512 * 128})
    counts = parameter_counts(model((1, None, latent)))
    assert counts.expert == 3 * 128 * 256
    assert counts.dense == 512 * 16 + 3 * 512 * 512 + 2 * 512 * 128


def test_an_encoder_is_stored_but_not_active():
    counts = parameter_counts(model((1, GQA, FFN), encoder_parameters=123))
    assert counts.total - counts.active == 123
    assert model_figures(model((1, GQA, FFN), encoder_parameters=123))["other_parameters"] == (
        123 + 3 * 512
    )


def test_a_dense_model_has_one_expert_that_is_nothing():
    figures = model_figures(model((1, GQA, FFN)))
    assert (figures["experts"], figures["active"], figures["expert_parameters"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        ("meta-llama/Llama-3.1-8B", 131_072),
        ("meta-llama/Llama-3.1-70B", 327_680),
        ("meta-llama/Llama-3.1-405B", 516_096),
        ("deepseek-ai/DeepSeek-V3", 70_272),
        ("Qwen/Qwen3-32B", 262_144),
        ("Deci/DeciLM-7B", 67 * 128 * 2 * 2),
        ("tiiuae/falcon-7b", 32 * 64 * 2 * 2),
    ],
)
def test_kv_bytes_a_token_in_16_bit_match_hand_computed_ones(name, kv_bytes):
    assert 2 * model_figures(find_architecture(name))["full_kv"] == kv_bytes


def test_gpt_oss_has_half_its_layers_in_a_window():
    figures = model_figures(find_architecture("openai/gpt-oss-120b"))
    assert figures["full_kv"] == figures["window_kv"] == 18 * 2 * 8 * 64
    assert figures["window"] == 128
    assert figures["full_kv_heads"] == figures["window_kv_heads"] == 8
    assert figures["full_decode_flops"] == figures["window_decode_flops"] == 18 * 4 * 64 * 64


def test_glm_5_selects_in_every_layer():
    figures = model_figures(find_architecture("zai-org/GLM-5"))
    assert figures["index_bytes"] == 78 * 128
    assert (figures["top_k"], figures["indexer_layers"], figures["special_layers"]) == (
        2048,
        78,
        78,
    )
    assert figures["full_kv"] == 78 * 576


def test_qwen3_5_keeps_a_state_in_three_of_four_layers():
    figures = model_figures(find_architecture("Qwen/Qwen3.5-397B-A17B"))
    assert figures["state_elements"] == 45 * 64 * 128 * 128
    assert figures["full_kv"] == 15 * 2 * 2 * 256
    assert figures["special_layers"] == 45
    # The convolution and the heads' scalars are the 0.4 % that the plain count leaves out.
    plain = 15 * (4096 * (2 * 32 + 2 * 2) * 256 + 32 * 256 * 4096) + 45 * 4096 * (
        2 * 16 * 128 + 2 * 64 * 128 + 2 * 64 + 64 * 128
    )
    assert figures["attention_parameters"] == pytest.approx(plain, rel=4e-3)


def test_every_block_of_a_hybrid_counts_as_a_layer():
    figures = model_figures(find_architecture("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"))
    assert (figures["layers"], figures["moe_layers"], figures["special_layers"]) == (52, 23, 23)
    assert figures["full_kv"] == 6 * 2 * 2 * 128


def test_kv_heads_that_differ_split_like_the_layers_they_stand_for():
    # One layer of 4 heads and one of 1: 4 GPUs hold a quarter of the one, all of the other.
    wide = GQA.model_copy(update={"kv_heads": 4})
    narrow = GQA.model_copy(update={"kv_heads": 1})
    figures = model_figures(model((1, wide, FFN), (1, narrow, FFN)))
    on_one_of_four = 2 * 64 * (4 / 4 + 1)
    assert figures["full_kv"] / figures["full_kv_heads"] == pytest.approx(on_one_of_four)


def test_windows_that_differ_hold_the_same_when_full():
    short = GQA.model_copy(update={"window": 128})
    long = GQA.model_copy(update={"window": 1024, "kv_heads": 4})
    figures = model_figures(model((1, short, FFN), (2, long, FFN)))
    held = 2 * 64 * (2 * 128 + 2 * 4 * 1024)
    assert figures["window_kv"] * figures["window"] == pytest.approx(held)


def test_layers_that_read_all_beside_layers_that_select_count_as_a_window_without_end():
    # MiniMax-M3: 3 layers read all tokens, 57 select 16 blocks of 128.
    architecture = find_architecture("MiniMaxAI/MiniMax-M3")
    figures = model_figures(architecture)
    assert figures["full_kv"] == 57 * 2 * 4 * 128
    assert figures["window_kv"] == 3 * 2 * 4 * 128
    assert figures["window"] == architecture.max_context_tokens
    assert figures["top_k"] == 2048


def test_arithmetic_of_a_layer_with_two_caches_goes_with_what_is_read():
    both = ExplicitAttention(
        kind="explicit", variant="compressed", parameters=1, kv_elements=128.0,
        window_elements=512.0, window=128, decode_flops=100.0, prefill_flops=10.0,
    )  # fmt: skip
    figures = model_figures(model((2, both, FFN)))
    assert (figures["full_kv"], figures["window_kv"], figures["window"]) == (256, 1024, 128)
    assert (figures["full_decode_flops"], figures["window_decode_flops"]) == (200, 800)


def test_a_model_without_any_cache_still_has_figures():
    state = RecurrentAttention(kind="recurrent", variant="x", parameters=10, state_elements=5)
    figures = model_figures(model((4, state, FFN)))
    assert (figures["full_kv"], figures["full_kv_heads"], figures["state_elements"]) == (0, 1, 20)


@given(count=st.integers(1, 100), more=st.integers(1, 100))
def test_more_layers_mean_more_of_everything_per_token(count, more):
    few = model_figures(model((count, GQA, MOE)))
    many = model_figures(model((count + more, GQA, MOE)))
    for key in ("attention_parameters", "dense_parameters", "expert_parameters", "full_kv"):
        assert many[key] / few[key] == pytest.approx((count + more) / count)
    assert many["experts"] == few["experts"]


@given(first=st.integers(1, 50), second=st.integers(1, 50))
def test_splitting_a_group_of_equal_layers_changes_nothing(first, second):
    together = model_figures(model((first + second, GQA, MOE)))
    apart = model_figures(model((first, GQA, MOE), (second, GQA, MOE)))
    assert apart == pytest.approx(together)


@given(experts=st.integers(2, 512), active=st.integers(1, 2), gated=st.booleans())
def test_idle_experts_are_the_difference_of_total_and_active(experts, active, gated):
    ffn = MOE.model_copy(update={"experts": experts, "active": active, "gated": gated})
    counts = parameter_counts(model((5, GQA, ffn)))
    idle = 5 * (experts - active) * (2 + gated) * 512 * 256
    assert counts.total - counts.active == pytest.approx(idle)
