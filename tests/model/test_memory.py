from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.arrays import (
    Candidates,
)
from planner.model.memory import (
    admitted_kv_bytes,
    block_tokens,
    forward_bytes,
    kv_bytes,
    kv_bytes_per_token,
    kv_pool_bytes,
    longest_that_fits,
    memory_share,
    printed_tokens,
    reserve_bytes,
    reserved_tokens,
    sampling_bytes,
    sequences_that_fit,
    weight_bytes,
)
from tests.model.by_hand import KINDS

GIB = 2.0**30
# Llama 3.1 8B: 32 layers of 4096, 8 KV heads of 128, FFN 14336, 128256 words.
LLAMA = {
    "layers": 32, "hidden": 4096, "vocab": 128256, "embedding_parameters": 2 * 128256 * 4096,
    "attention_parameters": 32 * 4096 * (4096 + 1024 + 1024 + 4096),
    "kv_parameters": 32 * 4096 * 2048,
    "dense_parameters": 32 * 3 * 4096 * 14336, "ffn_elements": 3 * 14336,
    "full_kv": 32 * 2048, "full_kv_heads": 8, "experts": 1, "active": 1,
    "position_elements": 131072 * 128,
}  # fmt: skip
BF16 = {"attention_bytes": 2, "dense_bytes": 2, "expert_bytes": 2, "head_bytes": 2}
PLAIN = {"block": 16, "memory_share": 1.0, "window_saves": 1}
NOTHING = math.nan
"""The start-up profile takes the layout's limits."""


def candidate(model=None, engine=None, layout=None, **chip) -> Candidates:
    """One candidate; what is not given is 0 (heads, degrees, layers and KV bytes: 1 or 2)."""
    given_ = {
        "model": {"full_kv_heads": 1, "window_kv_heads": 1, "full_padding": 1,
                  "window_padding": 1, "state_padding": 1, "vocab": 64, **(model or LLAMA)},
        "weights": BF16,
        "chip": {"memory": 80e9, **chip},
        "engine": {"startup_sequences": NOTHING, "startup_tokens": NOTHING,
                   **PLAIN, **(engine or {})},
        "layout": {"tp": 1, "pp": 1, "dp": 1, "replicas": 1, "kv_bytes": 2,
                   "max_sequences": 256, "token_budget": 8192, **(layout or {})},
    }  # fmt: skip
    parts = {
        name: kind(
            **{f.name: np.array([float(given_[name].get(f.name, 0.0))]) for f in fields(kind)}
        )
        for name, kind in KINDS.items()
    }
    return Candidates(**parts)


def value(array) -> float:
    assert array.shape == (1,)
    return float(array[0])


# --- weights ---------------------------------------------------------------------------------


def test_llama_8b_takes_the_bytes_a_server_prints():
    # vllm-project/vllm, start-up log: "model weights take 14.9888GiB" (norms left out here).
    norms = 65 * 4096 * 2
    assert value(weight_bytes(candidate())) + norms == pytest.approx(14.9888 * GIB, rel=1e-5)


@pytest.mark.parametrize(("tp", "printed"), [(2, 7.51), (4, 3.77)])
def test_tensor_parallel_weights_include_the_rotary_table_on_every_gpu(tp, printed):
    # llm-d-incubation/llm-d-planner PR#205; half and a quarter of 14.99 would be 7.49 and 3.75.
    assert value(weight_bytes(candidate(layout={"tp": tp}))) / GIB == pytest.approx(
        printed, abs=0.006
    )


def test_key_and_value_projections_are_copied_beyond_one_head_a_gpu():
    by_hand = (
        2
        * (LLAMA["attention_parameters"] - LLAMA["kv_parameters"] + LLAMA["dense_parameters"])
        / 16
        + 2 * LLAMA["kv_parameters"] / 8
        + 2 * LLAMA["embedding_parameters"] / 16
        + 2 * LLAMA["position_elements"]
    )
    assert value(weight_bytes(candidate(layout={"tp": 16}))) == by_hand


def test_the_vocabulary_is_padded_to_64():
    # CodeLlama-7b has 32016 words: the table holds 32064 rows.
    model = {"layers": 1, "hidden": 8, "vocab": 32016, "embedding_parameters": 32016 * 8}
    assert value(weight_bytes(candidate(model))) == pytest.approx(32064 * 8 * 2)


def test_experts_spread_over_all_gpus_and_routers_and_latents_do_not():
    model = {
        "layers": 2, "attention_parameters": 1000, "replicated_parameters": 200,
        "absorbed_parameters": 80, "dense_parameters": 500, "router_parameters": 100,
        "experts": 8, "expert_parameters": 600,
    }  # fmt: skip
    by_hand = 2 * (800 / 4 + 200) + 2 * (400 / 4 + 100) + 2 * 8 * 600 / 8 + 2 * 80 / 4
    assert value(weight_bytes(candidate(model, layout={"tp": 4, "dp": 2}))) == by_hand


def test_the_first_stage_holds_the_table_and_the_spare_layer():
    # 33 layers on 4 stages: 9 and 8, 8, 8; a tied table is needed at both ends.
    model = {"layers": 33, "hidden": 10, "embedding_parameters": 640, "attention_parameters": 33e3}
    assert value(weight_bytes(candidate(model, layout={"pp": 4}))) == 2 * 9e3 + 2 * 640


# --- cache -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tp", "kv", "expected"),
    [(1, 2, 131072), (4, 2, 32768), (8, 1, 8192), (16, 2, 16384)],
    ids=["2 x 32 x 8 x 128 x 2 B", "a quarter", "one head, FP8", "replicated beyond 8 heads"],
)
def test_gqa_caches_split_by_heads(tp, kv, expected):
    c = candidate(layout={"tp": tp, "kv_bytes": kv})
    assert value(kv_bytes_per_token(c)) == expected


def test_latents_are_on_every_gpu():
    # DeepSeek-V3: 61 layers x (512 + 64) x 2 B = 70,272 B whatever the width.
    c = candidate({"layers": 61, "full_kv": 61 * 576}, layout={"tp": 8})
    assert value(kv_bytes_per_token(c)) == 70272


@pytest.mark.parametrize(("kv", "expected"), [(1, 656 + 132), (2, 1152 + 132)])
def test_a_sparse_latent_keeps_scales_and_a_16_bit_rotary_part(kv, expected):
    # 512 FP8 + 4 FP32 scales + 64 BF16 = 656 B, and 128 + 4 B of the index key.
    model = {"layers": 1, "full_kv": 576, "single_byte_extra": 80, "index_bytes": 128,
             "index_scale": 4}  # fmt: skip
    assert value(kv_bytes_per_token(candidate(model, layout={"kv_bytes": kv}))) == expected


GEMMA = {
    "layers": 62, "full_kv": 10 * 4096, "window_kv": 52 * 4096, "full_kv_heads": 16,
    "window_kv_heads": 16, "window": 1024, "window_padding": 60 / 52,
}  # fmt: skip


def test_grouped_pages_pad_gemma_3_to_70_layers():
    # A log of google/gemma-3-27b-it: 19.53 GiB hold 36560 tokens, so 573440 B a token.
    c = candidate(GEMMA, {"grouped": 1})
    assert value(kv_bytes_per_token(c)) == 573440
    assert value(kv_bytes_per_token(candidate(GEMMA))) == 62 * 4096 * 2


def test_a_window_is_admitted_with_the_step_in_flight():
    # The same log: 15997 blocks, 4.46 requests of 8192 tokens: 512 + 6 x 513 pages of 10 layers.
    c = candidate(GEMMA, {"grouped": 1}, memory=15997 * 10 * 16 * 8192.0)
    requests = kv_pool_bytes(c) / admitted_kv_bytes(c, np.array([8192.0]))
    assert value(requests) == pytest.approx(15997 / (512 + 6 * 513), rel=1e-12)
    assert value(printed_tokens(c, np.array([8192.0]))) == 15997 // 7 * 16


def test_newer_engines_print_the_pool_in_longest_requests():
    c = candidate(GEMMA, {"grouped": 1, "by_request": 1}, memory=15997 * 10 * 16 * 8192.0)
    assert value(printed_tokens(c, np.array([8192.0]))) == math.floor(15997 / 3590 * 8192)


def test_a_running_sequence_holds_its_window_only():
    c = candidate(GEMMA)
    by_hand = 2 * 4096 * (10 * 4096 + 52 * 1024)
    assert value(kv_bytes(c, np.array([4096.0]))) == by_hand
    whole = candidate(GEMMA, {"window_saves": 0})
    assert value(kv_bytes(whole, np.array([4096.0]))) == 2 * 4096 * 62 * 4096


def test_a_block_grows_to_hold_a_recurrent_state():
    # Qwen3.5-35B-A3B, FP8 cache: (524288 x 4 + 24576 x 2) B / (2 x 256 x 2) B = 2096 tokens.
    model = {"layers": 40, "full_kv": 10 * 1024, "full_kv_heads": 2, "state_elements": 30 * 524288,
             "state_page": (524288 * 4 + 24576 * 2) / 1024}  # fmt: skip
    c = candidate(model, {"grouped": 1}, {"kv_bytes": 1})
    assert value(block_tokens(c)) == 2096
    assert value(kv_bytes(c, np.array([1.0]))) == 2096 * 10 * 1024 + 30 * 524288 * 4


def test_engines_that_reserve_hold_the_whole_answer():
    c = candidate()
    full = candidate(engine={"full_length": 1})
    lengths = np.array([1000.0]), np.array([500.0])
    assert value(reserved_tokens(c, *lengths)) == 1250
    assert value(reserved_tokens(full, *lengths)) == 1500


# --- what is left ----------------------------------------------------------------------------

VLLM_019 = {"memory_share": 0.95, "reserve": 0.25 * GIB, "group_reserve": 1.84 * GIB,
            "sampler_bytes": 14.9, "forward_copies": 4.3, "startup_sequences": 1024,
            "startup_tokens": 8192}  # fmt: skip


def test_the_sampler_decides_the_peak_of_a_large_vocabulary():
    # Log of vLLM 0.19 on an H100: 1.89 GiB of activations, with or without tensor parallelism.
    for tp in (1, 2, 4):
        c = candidate(engine=VLLM_019, layout={"tp": tp})
        assert value(sampling_bytes(c)) / GIB == pytest.approx(1.89, abs=0.01)
        assert value(forward_bytes(c)) < value(sampling_bytes(c))


def test_the_dense_block_decides_the_peak_of_a_small_vocabulary():
    # CodeLlama-7b in the same logs: 0.77 GiB.
    model = LLAMA | {"vocab": 32016, "ffn_elements": 3 * 11008}
    c = candidate(model, VLLM_019)
    assert value(forward_bytes(c)) / GIB == pytest.approx(0.77, abs=0.01)
    assert value(sampling_bytes(c)) < value(forward_bytes(c))


def test_the_workspace_of_experts_stays_allocated_while_sampling():
    # Qwen1.5-MoE-A2.7B in the same logs: 2.47 GiB (60 experts of 1408, 4 active, hidden 2048).
    model = {"layers": 24, "hidden": 2048, "vocab": 151936, "moe_layers": 24, "active": 4,
             "expert_width": 1408}  # fmt: skip
    assert value(sampling_bytes(candidate(model, VLLM_019))) / GIB == pytest.approx(2.47, abs=0.03)


@pytest.mark.parametrize(
    ("layout", "tokens"),
    [({}, 476000), ({"tp": 2}, 1044688), ({"tp": 4}, 2209792), ({"pp": 2}, 1075312),
     ({"pp": 4}, 2257264), ({"kv_bytes": 1}, 952032)],
    ids=str,
)  # fmt: skip
def test_llama_8b_on_an_h100_has_the_tokens_that_vllm_prints(layout, tokens):
    # llm-d-incubation/llm-d-planner PR#205, vLLM 0.19.0, 0.95 of 79.19 GiB.
    c = candidate(LLAMA | {"other_parameters": 65 * 4096}, VLLM_019, layout, memory=79.19 * GIB)
    assert value(printed_tokens(c, np.array([8192.0]))) == pytest.approx(tokens, rel=2e-3)


def test_the_poorest_stage_decides_the_pool():
    # Two stages of 16 and 15 layers of 1 MB; sampling costs the last one 1 or 20 MB.
    model = {"layers": 31, "hidden": 1, "attention_parameters": 31 * 5e5, "full_kv": 31,
             "embedding_parameters": 128, "vocab": 64}  # fmt: skip
    c = candidate(model, {"sampler_bytes": 1e6 / 64, "forward_copies": 1e-9}, memory=100e6)
    c = replace(c, layout=replace(c.layout, pp=np.array([2.0]), max_sequences=np.array([1.0])))
    first = (100e6 - 16e6 - 128) / 16
    assert value(kv_pool_bytes(c)) / 16 == pytest.approx(first, rel=1e-3)
    heavier = replace(c, engine=replace(c.engine, sampler_bytes=np.array([20e6 / 64])))
    assert value(kv_pool_bytes(heavier)) / 16 == pytest.approx((100e6 - 35e6) / 15, rel=1e-3)


def test_a_share_of_what_the_weights_leave_free():
    # A log of TensorRT-LLM: 17.83 GiB free after the engine, 0.9 of it is 16.05 GiB of KV cache.
    model = {"layers": 1, "hidden": 1, "attention_parameters": 14.01 * GIB / 2}
    c = candidate(model, {"memory_share": 0.9, "of_free": 1}, memory=31.84 * GIB)
    assert value(kv_pool_bytes(c)) / GIB == pytest.approx(16.05, abs=0.005)


def test_a_static_share_leaves_activations_outside():
    model = {"layers": 1, "hidden": 1, "vocab": 64, "attention_parameters": 10e9}
    engine = {"memory_share": 0.8, "of_start": 1, "reserve": 1e9, "sampler_bytes": 1e6,
              "forward_copies": 1}  # fmt: skip
    # 256 sequences x 64 words x 1e6 B = 16.4 GB of sampling need more than 0.2 of 79 GB.
    assert value(kv_pool_bytes(candidate(model, engine))) == pytest.approx(
        79e9 - 256 * 64e6 - 2 * 8192 - 20e9
    )
    small = engine | {"sampler_bytes": 1e5}
    assert value(kv_pool_bytes(candidate(model, small))) == pytest.approx(0.8 * 79e9 - 20e9)


@pytest.mark.parametrize(
    ("memory", "kept"),
    [(141, 1 + 1.5 * 8 + 1), (80, 1 + 1.5 * 8 + 1), (24, 1 + 1.5 * 8 + 1)],
)
def test_sglang_derives_its_static_share(memory, kept):
    # 1.5 MiB per token of a chunk of 8192, 1 GiB for 8 GPUs, 1 GiB constant.
    engine = {"memory_share": math.nan, "static_reserve": GIB, "static_token": 1.5 * 2**20,
              "static_gpu": GIB / 8, "static_floor": 10 * GIB,
              "static_floor_above": 60 * GIB}  # fmt: skip
    c = candidate(engine=engine, layout={"tp": 8}, memory=memory * GIB)
    assert value(memory_share(c)) == pytest.approx(1 - kept / memory)
    small = replace(c, layout=replace(c.layout, token_budget=np.array([2048.0])))
    expected = max(1 + 3 + 1, 10) if memory > 60 else 1 + 3 + 1
    assert value(memory_share(small)) == pytest.approx(1 - expected / memory)


def test_the_cheat_sheet_batch_fits():
    # 8B of 16 GB on 80e9 B: (80 - 16) GB / (8192 x 131072 B) = 59 sequences.
    model = {"layers": 32, "attention_parameters": 8e9, "full_kv": 32 * 2048, "full_kv_heads": 8}
    c = candidate(model, {"block": 1})
    assert math.floor(value(sequences_that_fit(c, np.array([8192.0])))) == 59


# --- laws ------------------------------------------------------------------------------------

LATENT = {
    "layers": 61, "full_kv": 61 * 576, "attention_parameters": 9e9, "replicated_parameters": 5e8,
    "experts": 256, "expert_parameters": 2e9,
}  # fmt: skip
SOME = st.sampled_from([LLAMA, GEMMA, LATENT])
RULES = st.sampled_from([{}, {"grouped": 1}, {"window_saves": 0}, VLLM_019, {"block": 64}])


@given(model=SOME, tp=st.integers(1, 32), rules=RULES)
def test_more_tensor_parallelism_never_means_more_weights_or_cache_per_gpu(model, tp, rules):
    fewer = candidate(model, rules, {"tp": tp})
    more = candidate(model, rules, {"tp": 2 * tp})
    assert value(weight_bytes(more)) <= value(weight_bytes(fewer))
    assert value(kv_bytes_per_token(more)) <= value(kv_bytes_per_token(fewer))


@given(model=SOME, rules=RULES, tokens=st.integers(0, 200_000), further=st.integers(0, 5000))
def test_a_longer_sequence_never_needs_less(model, rules, tokens, further):
    c = candidate(model, rules)
    for need in (kv_bytes, admitted_kv_bytes):
        assert value(need(c, np.array([float(tokens)]))) <= value(
            need(c, np.array([float(tokens + further)]))
        )


@given(model=SOME, block=st.sampled_from([1, 16, 64]), tokens=st.integers(1, 100_000))
def test_paging_wastes_less_than_one_block_a_sequence(model, block, tokens):
    paged, exact = candidate(model, {"block": block}), candidate(model, {"block": 1})
    length = np.array([float(tokens)])
    waste = value(kv_bytes(paged, length)) - value(kv_bytes(exact, length))
    assert 0 <= waste < block * value(kv_bytes_per_token(exact)) or (block == 1 and waste == 0)


@given(model=SOME, rules=RULES, tokens=st.integers(1, 100_000))
def test_what_runs_was_admitted(model, rules, tokens):
    c, length = candidate(model, rules), np.array([float(tokens)])
    assert value(kv_bytes(c, length)) <= value(admitted_kv_bytes(c, length))


@given(model=SOME, rules=RULES, memory=st.floats(1e9, 300e9), budget=st.sampled_from([512, 8192]))
def test_the_longest_request_fits_and_one_more_block_does_not(model, rules, memory, budget):
    c = candidate(model, rules, {"token_budget": budget}, memory=memory)
    pool, longest = value(kv_pool_bytes(c)), longest_that_fits(c)
    if value(longest) > 0:
        assert value(admitted_kv_bytes(c, longest)) <= pool * (1 + 1e-12)
    assert value(admitted_kv_bytes(c, longest + 2 * block_tokens(c))) > pool


@given(rules=RULES, memory=st.floats(1e9, 300e9), more=st.floats(0, 50e9))
def test_more_memory_never_means_a_smaller_pool(rules, memory, more):
    small, large = (candidate(engine=rules, memory=m) for m in (memory, memory + more))
    assert value(kv_pool_bytes(small)) <= value(kv_pool_bytes(large))


SHARES = st.sampled_from([{}, {"of_free": 1}, {"of_start": 1}])


@given(model=SOME, shares=SHARES, fraction=st.floats(0.5, 1.0), tp=st.sampled_from([1, 4]))
def test_the_share_is_of_what_each_engine_says(model, shares, fraction, tp):
    engine = VLLM_019 | shares | {"memory_share": fraction, "driver": 5e8}
    c = candidate(model, engine, {"tp": tp})
    weights, pool, reserve = (value(f(c)) for f in (weight_bytes, kv_pool_bytes, reserve_bytes))
    unused = 80e9 - weights - pool - reserve
    filled, of = {
        (): (weights + pool + reserve - 5e8, 80e9 - 5e8),
        ("of_free",): (pool, pool + unused),
        ("of_start",): (weights + pool, weights + pool + unused),
    }[tuple(shares)]
    if "of_start" in shares:
        outside = value(sampling_bytes(c)), value(forward_bytes(c))
        assert filled == pytest.approx(min(fraction * of, of - max(outside)), rel=1e-9, abs=1)
    else:
        assert filled == pytest.approx(fraction * of, rel=1e-9, abs=1)


@given(pp=st.integers(1, 32))
def test_stages_hold_all_weights_together(pp):
    whole = value(weight_bytes(candidate()))
    assert value(weight_bytes(candidate(layout={"pp": pp}))) * pp >= whole - 1
