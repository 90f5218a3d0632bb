from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.attention import KINDS, FullLayer, LatentLayer, RecurrentLayer
from planner.spec import architecture

SPECS = {
    "full": architecture.FullAttention,
    "mla": architecture.LatentAttention,
    "recurrent": architecture.RecurrentAttention,
    "explicit": architecture.ExplicitAttention,
}
V3 = LatentLayer(heads=128, q_rank=1536, kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128)
GLM5 = LatentLayer(
    heads=64, q_rank=2048, kv_rank=512, rope_dim=64, nope_dim=192, value_dim=256,
    index_heads=32, index_dim=128, index_top_k=2048,
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_fields_of_its_spec(kind):
    ours = {field.name for field in dataclasses.fields(KINDS[kind])}
    assert ours == set(SPECS[kind].model_fields) - {"kind", "variant"}


def test_the_table_has_a_row_for_every_kind_of_the_spec():
    assert set(KINDS) == set(SPECS)


def test_llama_8b_caches_eight_keys_and_values_of_128():
    # 32 layers x 2048 elements x 2 B = 131,072 B a token.
    layer = FullLayer(heads=32, kv_heads=8, head_dim=128).figures(4096)
    assert layer.full_kv == 2 * 8 * 128
    assert layer.decode_flops == layer.prefill_flops == 4 * 32 * 128
    assert layer.parameters == 4096 * (32 + 8 + 8 + 32) * 128
    assert (layer.window, layer.special, layer.top_k) == (0, 0, 0)


def test_key_and_value_heads_of_different_size_are_counted_apart():
    # MiMo-V2-Flash: 4 KV heads, keys of 192, values of 128.
    layer = FullLayer(heads=64, kv_heads=4, head_dim=192, value_dim=128).figures(4096)
    assert layer.full_kv == 4 * (192 + 128)
    assert layer.decode_flops == 2 * 64 * (192 + 128)
    assert layer.parameters == 4096 * (64 * 192 + 4 * 192 + 4 * 128 + 64 * 128)


def test_a_window_moves_the_cache_to_the_window():
    layer = FullLayer(heads=64, kv_heads=8, head_dim=64, window=128).figures(2880)
    assert (layer.full_kv, layer.window_kv, layer.window) == (0, 2 * 8 * 64, 128)


def test_a_layer_that_reuses_a_cache_stores_none_and_computes_as_much():
    own = FullLayer(heads=8, kv_heads=1, head_dim=256).figures(1536)
    reuses = FullLayer(heads=8, kv_heads=1, head_dim=256, own_kv=False).figures(1536)
    assert reuses.full_kv == 0
    assert reuses.decode_flops == own.decode_flops
    assert own.parameters - reuses.parameters == 2 * 1536 * 256


def test_an_output_gate_doubles_the_query_projection():
    plain = FullLayer(heads=32, kv_heads=2, head_dim=256).figures(4096)
    gated = FullLayer(heads=32, kv_heads=2, head_dim=256, gate=True).figures(4096)
    assert gated.parameters - plain.parameters == 4096 * 32 * 256


def test_biases_are_those_of_query_key_and_value():
    # Qwen2.5-7B: 28 + 4 + 4 heads of 128.
    plain = FullLayer(heads=28, kv_heads=4, head_dim=128).figures(3584)
    biased = FullLayer(heads=28, kv_heads=4, head_dim=128, bias=True).figures(3584)
    assert biased.parameters - plain.parameters == 36 * 128


def test_keys_that_serve_as_values_need_one_projection_and_the_same_cache():
    # Gemma 4: 4 KV heads of 512 in the full layers.
    plain = FullLayer(heads=32, kv_heads=4, head_dim=512).figures(5376)
    shared = FullLayer(heads=32, kv_heads=4, head_dim=512, key_is_value=True).figures(5376)
    assert plain.parameters - shared.parameters == 5376 * 4 * 512
    assert shared.full_kv == plain.full_kv


def test_deepseek_v3_caches_one_latent_of_576():
    # arXiv:2412.19437: d_c = 512, d_h^R = 64; 187,107,328 parameters a layer by hand.
    layer = V3.figures(7168)
    assert (layer.full_kv, layer.kv_heads, layer.special) == (576, 1, 1)
    assert layer.decode_flops == 2 * 128 * (576 + 512)
    assert layer.prefill_flops == 2 * 128 * (128 + 64 + 128)
    by_hand = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    assert layer.parameters == by_hand == 187_105_280


def test_without_query_compression_the_query_projection_is_whole():
    # DeepSeek-V2-Lite: 16 heads, no query rank.
    layer = dataclasses.replace(V3, heads=16, q_rank=0).figures(2048)
    assert layer.parameters == 2048 * 16 * 192 + 2048 * 576 + 512 * 16 * 256 + 16 * 128 * 2048


def test_the_indexer_of_glm_5_caches_128_bytes_and_selects_2048_tokens():
    plain = dataclasses.replace(GLM5, index_heads=0, index_dim=0, index_top_k=0).figures(6144)
    layer = GLM5.figures(6144)
    assert (layer.index_bytes, layer.indexer, layer.top_k) == (128, 1, 2048)
    indexer = 2048 * 32 * 128 + 6144 * 128 + 6144 * 32
    assert layer.parameters - plain.parameters == indexer


def test_a_layer_that_shares_a_selection_has_no_indexer_of_its_own():
    layer = dataclasses.replace(GLM5, shares_index=True).figures(6144)
    assert (layer.index_bytes, layer.indexer, layer.top_k) == (0, 0, 2048)


def test_a_recurrent_layer_has_a_state_and_no_cache():
    # Qwen3.5-397B: 64 value heads of 128 x 128.
    layer = RecurrentLayer(parameters=1, state_elements=64 * 128 * 128).figures(4096)
    assert layer.state_elements == 1_048_576
    assert (layer.full_kv, layer.window_kv, layer.decode_flops) == (0, 0, 0)
    assert layer.special == 1


def test_an_explicit_layer_keeps_what_was_stated():
    layer = KINDS["explicit"](
        parameters=7, kv_elements=128.0, window_elements=512.0, window=128, decode_flops=3.0,
        prefill_flops=4.0, top_k=2048, index_elements=32.0,
    ).figures(1.0)  # fmt: skip
    assert (layer.full_kv, layer.window_kv, layer.window) == (128, 512, 128)
    assert (layer.index_bytes, layer.indexer, layer.special) == (32, 1, 1)


def test_attention_to_images_is_no_special_layer():
    layer = KINDS["explicit"](
        parameters=7, kv_elements=0.0, decode_flops=0.0, prefill_flops=0.0
    ).figures(1.0)
    assert layer.special == 0


@given(
    heads=st.integers(1, 128), groups=st.integers(1, 8), head_dim=st.integers(8, 512),
    hidden=st.integers(64, 16384),
)  # fmt: skip
def test_fewer_kv_heads_shrink_cache_and_weights_but_not_arithmetic(
    heads, groups, head_dim, hidden
):
    many = FullLayer(heads=heads * groups, kv_heads=heads * groups, head_dim=head_dim)
    few = FullLayer(heads=heads * groups, kv_heads=heads, head_dim=head_dim)
    assert few.figures(hidden).full_kv * groups == many.figures(hidden).full_kv
    assert few.figures(hidden).parameters <= many.figures(hidden).parameters
    assert few.figures(hidden).decode_flops == many.figures(hidden).decode_flops


@given(heads=st.integers(1, 256))
def test_a_latent_cache_does_not_grow_with_the_heads(heads):
    assert dataclasses.replace(V3, heads=heads).figures(7168).full_kv == 576
