from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import load_catalog
from planner.model.forward import (
    communication,
    decode_core,
    decode_step,
    forward_decode,
    prefill,
    smooth_maximum,
)
from planner.model.forward import touched_experts as touched
from planner.model.terms import accepted_tokens, terms
from tests.model.by_hand import MIXTURE, UNIFORM, candidate, floats, value
from tests.random_candidates import Kinds, parameters, random_candidates

KINDS = Kinds(engines=(0, 1, 2), draft_tokens=(0,))


@pytest.mark.parametrize(
    ("a", "b", "expected"), [(3, 0, 3), (1, 1, 2**0.25), (3, 4, (81 + 256) ** 0.25)]
)
def test_the_smooth_maximum_is_the_fourth_norm(a, b, expected):
    assert value(smooth_maximum(floats(a), floats(b))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("shape", "tokens", "expected"),
    [
        (math.inf, 1, 4 / 64),
        (math.inf, 8, 1 - (60 / 64) ** 8),
        # x = -8 ln(60/64) hits an expert; with shape 1 one minus 1 / (1 + x).
        (1.0, 8, 1 - 1 / (1 - 8 * math.log(60 / 64))),
        (1.0, 1e9, 1.0),
    ],
    ids=["k of E", "uniform", "popularity exponential", "all in the end"],
)
def test_experts_are_touched_as_computed_by_hand(shape, tokens, expected):
    t = terms(candidate(model=MIXTURE), replace(UNIFORM, expert_popularity=shape))
    assert value(touched(t, floats(tokens))) == pytest.approx(expected, rel=1e-6)


@given(shape=st.floats(0.3, 50), tokens=st.floats(1, 4096))
def test_popular_experts_leave_more_of_the_others_untouched(shape, tokens):
    skewed, flat = (
        terms(candidate(model=MIXTURE), replace(UNIFORM, expert_popularity=a))
        for a in (shape, math.inf)
    )
    assert value(touched(skewed, floats(tokens))) <= value(touched(flat, floats(tokens)))


def plain_step(c, p, batch, context):
    """One decode step of one candidate, slowly: no arrays, no parts computed ahead."""
    m, w, chip, e, o = c.model, c.weights, c.chip, c.engine, c.layout

    def smax(a, b):
        return (a**4 + b**4) ** 0.25

    bandwidth = chip.bandwidth * e.hbm
    batch = max(batch / o.pp, min(batch, 1))

    def rate(peak, stored):
        time = 1 / (peak * e.gemm)
        if w.block_scaled and stored < 2:
            time += 1 / (128 * 16 * chip.exponentials * p.block_fp8_promotion)
        return time

    dense_band = bandwidth * (p.weight_only_dense_read if w.weight_only_dense else 1)
    total = 0.0
    for count, stored, peak in (
        (m.attention_parameters, w.attention_bytes, w.attention_peak),
        (m.dense_parameters, w.dense_bytes, w.dense_peak),
    ):
        read = count * stored / (o.tp * dense_band)
        total += smax(read, 2 * count * batch / o.tp * rate(peak, stored))
    gpus = o.tp * o.dp
    hits = -batch * o.dp * math.log(1 - min(m.active / m.experts, 0.999999))
    share = 1 - (1 + hits / p.expert_popularity) ** -p.expert_popularity
    expert_band = bandwidth * (p.weight_only_expert_read if w.weight_only_experts else 1)
    read = share * m.experts * m.expert_parameters * w.expert_bytes / (gpus * expert_band)
    seen = min(batch * o.dp, p.grouped_gemm_token_cap) * m.active / m.experts
    seen *= min(m.expert_width / p.grouped_gemm_width, 1)
    fade = seen / (seen + p.grouped_gemm_half_tokens)
    grouped = p.grouped_gemm_efficiency + (1 - p.grouped_gemm_efficiency) * fade
    work = 2 * m.active * m.expert_parameters * batch * o.dp / gpus
    total += smax(read, work * rate(w.expert_peak, w.expert_bytes) / grouped)
    passes = p.expert_activation_passes * m.active * m.moe_layers
    passes += p.token_activation_passes * m.layers
    total += passes * 2 * m.hidden * batch / bandwidth
    total += m.vocab * m.hidden * w.head_bytes / (o.tp * bandwidth)
    attended = min(context, m.top_k or math.inf)
    near = min(context, m.window or math.inf)
    cache = attended * m.full_kv * o.kv_bytes / min(o.tp, m.full_kv_heads)
    cache += near * m.window_kv * o.kv_bytes / min(o.tp, m.window_kv_heads)
    cache += context * m.index_bytes + 8 * m.state_elements / o.tp
    flops = attended * m.full_decode_flops + near * m.window_decode_flops
    attention = o.tp * chip.peak16 * p.attention_efficiency
    total += smax(batch * cache / (bandwidth * e.kv_read), batch * flops / attention)
    total += plain_links(c, batch)
    launch = e.launch * m.layers + e.special_layer * m.special_layers + e.step_constant
    launch += p.block_fp8_layer * m.layers * w.block_scaled + p.indexer_layer * m.indexer_layers
    launch += e.weight_only_layer * m.moe_layers * w.weight_only_experts
    return total + min(e.sequence * batch, total) + launch


def plain_links(c, batch):
    m, chip, e, o = c.model, c.chip, c.engine, c.layout
    total, gpus, link = 0.0, o.tp * o.dp, chip.link * e.link_share
    if o.tp > 1:
        message = 2 * m.hidden * batch
        one_stage = e.link_latency + (o.tp - 1) * message / link
        two_stages = 2 * e.link_latency + 2 * (o.tp - 1) / o.tp * message / link
        total += 2 * m.layers * min(one_stage, two_stages)
    if o.dp > 1:
        across = min(link, chip.internode) if gpus > chip.gpus_per_node else link
        message = 3 * m.hidden * batch * min(o.dp - 1, m.active)
        total += m.moe_layers * (2 * e.link_latency + message / across)
    hop = min(link, chip.internode) if gpus * o.pp > chip.gpus_per_node else link
    return total + (o.pp - 1) * (e.link_latency + 2 * m.hidden * batch / hop)


class Row:
    """Row i of columns, as plain numbers."""

    def __init__(self, columns, i):
        self.__dict__.update({name: float(x[i]) for name, x in vars(columns).items()})


def test_a_decode_step_agrees_with_a_slow_plain_version():
    c, p = random_candidates(200, 7, KINDS), parameters()
    rng = np.random.default_rng(1)
    batch, context = rng.uniform(1, 300, len(c)), rng.uniform(10, 60_000, len(c))
    fast = decode_step(terms(c, p), p, batch, context)
    for i in range(len(c)):
        parts = {name: Row(columns, i) for name, columns in vars(c).items()}
        row = type("C", (), parts)
        assert fast[i] == pytest.approx(plain_step(row, p, batch[i], context[i]), rel=1e-9)


def test_a_prefill_of_a_small_model_is_its_arithmetic():
    # 1000 tokens x 2 x 8e9 FLOP / 990e12, and 32 layers of attention over 500 tokens on average;
    # the head is read, not computed.
    c = candidate(chip={"bandwidth": 1e20})
    found = prefill(terms(c, UNIFORM), UNIFORM, floats(1000))
    gemm = 1000 * 2 * (8e9 - 64 * 4096) / 990e12
    attention = 1000 * 500 * 32 * 4 * 32 * 128 / 990e12
    assert value(found.alone) == pytest.approx(gemm + attention, rel=1e-6)
    assert value(found.stall) == pytest.approx(value(found.alone), rel=1e-6)


def test_softmax_takes_its_slots_of_the_special_function_units():
    # One slot a score of 512 FLOP: 1000 x 500 tokens x 32 layers x 32 heads at 3.9e12 a second.
    c, fast = candidate(chip={"bandwidth": 1e20}), floats(1000)
    slow = replace(UNIFORM, softmax_slots=1.0)
    with_softmax, without = (value(prefill(terms(c, p), p, fast).alone) for p in (slow, UNIFORM))
    assert with_softmax - without == pytest.approx(1000 * 500 * 32 * 32 / 3.9e12, rel=1e-6)


def test_a_cached_prefix_leaves_the_rest_to_compute_over_the_whole_context():
    c = candidate(chip={"bandwidth": 1e20})
    found = value(prefill(terms(c, UNIFORM), UNIFORM, floats(1000), 0.75).alone)
    gemm = 250 * 2 * (8e9 - 64 * 4096) / 990e12
    attention = 250 * (750 + 125) * 32 * 4 * 32 * 128 / 990e12
    assert found == pytest.approx(gemm + attention, rel=1e-6)


def test_a_prompt_beyond_the_budget_pays_the_fixed_cost_of_each_chunk():
    c = candidate(engine={"prefill_layer": 1e-3})
    t = terms(c, UNIFORM)
    whole = prefill(t, UNIFORM, floats(8000))
    three = prefill(t, UNIFORM, floats(8000), 0.0, 3000.0)
    # Two further launches of 32 ms, and reading the weights where arithmetic does not hide it.
    extra = value(three.alone) - value(whole.alone)
    assert 0.064 <= extra <= 0.064 + 2 * 16e9 / 3e12


@pytest.mark.parametrize(
    ("tp", "tokens", "microseconds"),
    [
        # A token is a message of 8192 bytes, 0.0364 us at 225 GB/s.
        (1, 1000, 0.0),
        (2, 1000, 5 + 1 * 36.41),
        (8, 1, 5 + 7 * 0.03641),
        (8, 1000, 5 + 5 + 2 * 7 / 8 * 36.41),
    ],
    ids=["alone", "two stages move as much", "small: one stage", "large: two stages"],
)
def test_all_reduces_take_the_faster_of_one_stage_and_two(tp, tokens, microseconds):
    c = candidate(layout={"tp": tp}, engine={"link_share": 0.5, "link_latency": 5e-6})
    found = value(communication(terms(c, UNIFORM), floats(tokens)))
    assert found == pytest.approx(2 * 32 * microseconds * 1e-6, rel=1e-3)


@pytest.mark.parametrize(
    ("tp", "kib", "microseconds"),
    [
        (2, 64, 4.5), (2, 256, 5.2), (2, 1024, 8.3),
        (4, 64, 5.2), (4, 256, 7.2), (4, 1024, 12.8),
        (8, 64, 6.4), (8, 256, 10.8), (8, 1024, 15.0),
    ],
)  # fmt: skip
def test_all_reduces_of_decode_steps_take_about_as_long_as_measured(tp, kib, microseconds):
    """vLLM's all-reduce under CUDA graphs, H100 SXM: ai-dynamo/aiconfigurator, vLLM 0.14."""
    link = load_catalog().efficiency.links["nvlink"]
    engine = {"link_share": link.share.value, "link_latency": link.latency_s.value}
    c = candidate(layout={"tp": tp}, engine=engine)
    found = value(communication(terms(c, UNIFORM), floats(kib * 1024 / (2 * 4096)))) / (2 * 32)
    assert found * 1e6 == pytest.approx(microseconds, rel=1 / 3)


@pytest.mark.parametrize("tp", [1, 4])
def test_tokens_are_carried_to_each_of_their_experts_whatever_the_tensor_parallelism(tp):
    # 100 tokens x 4 experts x 32 layers x 5 crossings of 4096 BF16 values at 3 TB/s.
    p = replace(UNIFORM, expert_activation_passes=5.0)
    c = candidate(model=MIXTURE, layout={"tp": tp})
    expected = 100 * 4 * 32 * 5 * 4096 * 2 / 3e12
    steps, prompts = (
        [value(took(terms(c, own), own)) for own in (p, UNIFORM)]
        for took in (
            lambda t, own: decode_step(t, own, floats(100), floats(10)),
            lambda t, own: prefill(t, own, floats(100)).alone,
        )
    )
    assert steps[0] - steps[1] == pytest.approx(expected, rel=1e-6)
    assert prompts[0] - prompts[1] == pytest.approx(expected, rel=1e-6)


def test_small_kernels_move_the_hidden_states_of_decoding_tokens():
    # 100 tokens x 32 layers x 40 crossings of 4096 BF16 values at 3 TB/s; prompts pay in the GEMMs.
    p = replace(UNIFORM, token_activation_passes=40.0)
    t, without = (terms(candidate(), own) for own in (p, UNIFORM))
    batch, context = floats(100), floats(10)
    slower = value(decode_step(t, p, batch, context) - decode_step(without, p, batch, context))
    assert slower == pytest.approx(100 * 32 * 40 * 4096 * 2 / 3e12, rel=1e-6)
    prompts = [value(prefill(own, p, floats(100)).alone) for own in (t, without)]
    assert prompts[0] == prompts[1]


def test_block_scaled_weights_add_the_promotion_of_their_sums():
    form = {"dense_bytes": 1, "dense_peak": 1980e12, "block_scaled": 1}
    p = replace(UNIFORM, block_fp8_promotion=0.25)
    per_flop = value(terms(candidate(weights=form), p).dense_work) / (2 * 6e9)
    expected = 1 / 1980e12 + 1 / (128 * 16 * 3.9e12 * 0.25)
    assert per_flop == pytest.approx(expected, rel=1e-3)


def test_acceptance_that_decays_gives_fewer_tokens_than_the_textbook():
    # 1 + 0.8 + 0.8 x 0.72 + 0.8 x 0.72 x 0.648.
    found = value(accepted_tokens(floats(3), floats(0.8), floats(0.9)))
    assert found == pytest.approx(1 + 0.8 + 0.576 + 0.373248)


def test_speculation_pays_less_the_larger_the_batch_and_may_cost():
    drafts = {"draft_tokens": 4, "accept_first": 0.7, "draft_share": 0.05}
    gains = []
    for batch in (1, 64, 512):
        steps = [
            value(decode_step(terms(c, UNIFORM), UNIFORM, floats(batch), floats(10)))
            for c in (candidate(), candidate(layout=drafts))
        ]
        gains.append(steps[0] / steps[1])
    assert gains[0] > 2
    assert gains[0] > gains[1] > gains[2]
    assert gains[2] < 1


@given(seed=st.integers(0, 10_000), factor=st.floats(1.01, 4))
def test_more_bandwidth_or_arithmetic_never_slows_a_step(seed, factor):
    c, p = random_candidates(8, seed, KINDS), parameters()
    batch, context = np.full(len(c), 20.0), np.full(len(c), 3000.0)
    before = decode_step(terms(c, p), p, batch, context)
    for name in ("bandwidth", "peak16", "link", "exponentials"):
        faster = replace(c, chip=replace(c.chip, **{name: getattr(c.chip, name) * factor}))
        assert (decode_step(terms(faster, p), p, batch, context) <= before * (1 + 1e-12)).all()


@given(
    seed=st.integers(0, 10_000),
    batch=st.floats(1, 500),
    more=st.floats(0, 500),
    far=st.floats(1, 4),
)
def test_a_larger_batch_or_a_longer_context_never_makes_a_pass_faster(seed, batch, more, far):
    c, p = random_candidates(8, seed, KINDS), parameters()
    t, ones = terms(c, p), np.ones(len(c))
    near, beyond = (decode_core(t, context * ones) for context in (1000, 1000 * far))
    step = forward_decode(t, p, batch * ones, near)
    assert (forward_decode(t, p, (batch + more) * ones, near) >= step * (1 - 1e-9)).all()
    assert (forward_decode(t, p, batch * ones, beyond) >= step * (1 - 1e-12)).all()
