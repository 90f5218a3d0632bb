"""The inference cheat-sheet: what every engineer computes on a napkin, through our functions."""

from __future__ import annotations

import numpy as np
import pytest

from planner.cost import usd_per_mtok
from planner.model.batching import closed_loop
from planner.model.bounds import bound_tpot, perfect_terms
from planner.model.forward import decode_step, touched_experts
from planner.model.memory import kv_bytes, kv_bytes_per_token, sequences_that_fit, weight_bytes
from planner.model.terms import accepted_tokens, terms
from tests.model.by_hand import MIXTURE, UNIFORM, candidate, floats, load, value

GB = 1e9
LONG = floats(8192)
MHA = {"full_kv": 32 * 2 * 32 * 128, "full_kv_heads": 32}
MQA = {"full_kv": 32 * 2 * 128, "full_kv_heads": 1}
NO_CACHE = {"full_kv": 0.0, "full_decode_flops": 0.0}


def cache(**changed):
    return 16 * value(kv_bytes(candidate(**changed), LONG)) / GB


def weights(bytes_per_parameter):
    form = {f"{part}_bytes": bytes_per_parameter for part in ("attention", "dense", "head")}
    return value(weight_bytes(candidate(weights=form))) / GB


def per_user(batch, **changed):
    return 1 / value(bound_tpot(candidate(**changed), floats(batch), LONG))


def intensity(tokens):
    """Arithmetic over bytes of the weights in a pass of some tokens [FLOP/B]."""
    t = perfect_terms(candidate())
    return tokens * value(t.dense_work) * 990e12 / (value(t.dense_read) * 3e12)


def speed_up(draft_share):
    """Of four drafts accepted with 0.8, memory-bound."""
    model, weights_ = NO_CACHE, {"attention_peak": 1e20, "dense_peak": 1e20}
    drafts = {"draft_tokens": 4, "accept_first": 0.8, "draft_share": draft_share}
    plain = candidate(model=model, weights=weights_)
    drafted = candidate(model=model, weights=weights_, layout=drafts)
    steps = [
        value(decode_step(terms(c, UNIFORM), UNIFORM, floats(1), LONG)) for c in (plain, drafted)
    ]
    return steps[0] / steps[1]


def touched(tokens):
    t = terms(candidate(model=MIXTURE), UNIFORM)
    return value(touched_experts(t, floats(tokens)))


def stored_experts():
    """Bytes that the mixture's 64 experts of 0.1e9 parameters add to the same model without."""
    without = value(weight_bytes(candidate(model={**MIXTURE, "experts": 1, "active": 1})))
    return (value(weight_bytes(candidate(model=MIXTURE))) - without) / GB


def little():
    out = closed_loop(candidate(), UNIFORM, load(concurrency=24))
    return value(out.output_rate) / 200 * value(out.e2e)


def decoding_time_share():
    out = closed_loop(candidate(), UNIFORM, load())
    return (value(out.e2e) - value(out.ttft)) / value(out.tpot)


def wasted_blocks(tokens):
    c = candidate()
    per_token = value(kv_bytes_per_token(c))
    return (value(kv_bytes(c, floats(tokens))) - tokens * per_token) / (16 * per_token)


@pytest.mark.parametrize(
    ("found", "expected", "within"),
    [
        (lambda: value(kv_bytes_per_token(candidate())), 131_072, 0),
        (cache, 17.18, 0.005),
        (lambda: cache(model=MHA), 68.72, 0.005),
        (lambda: cache(model=MQA), 2.15, 0.005),
        (lambda: cache(layout={"kv_bytes": 1}), 8.59, 0.005),
        (lambda: np.floor(value(sequences_that_fit(candidate(), LONG))), 59, 0),
        (lambda: per_user(1, model=NO_CACHE), 187.5, 0.05),
        (lambda: per_user(16), 90.4, 0.05),
        (lambda: 16 * per_user(16), 1447, 0.5),
        (lambda: weights(2), 16, 0.005),
        (lambda: weights(1), 8, 0.005),
        (lambda: weights(0.5), 4, 0.005),
        (lambda: intensity(1), 1, 1e-9),
        (lambda: intensity(64), 64, 1e-9),
        (lambda: intensity(330), 990e12 / 3e12, 1e-9),
        (lambda: value(accepted_tokens(floats(4), floats(0.8), floats(1))), 3.36, 0.005),
        (lambda: speed_up(0.05), 2.80, 0.005),
        (lambda: value(usd_per_mtok(floats(4), floats(1500))), 0.741, 0.0005),
        (lambda: value(usd_per_mtok(floats(4), floats(0.3 * 1500))), 2.47, 0.005),
        (lambda: wasted_blocks(8193), 15 / 16, 1e-9),
        (lambda: wasted_blocks(8192), 0, 1e-9),
        (lambda: touched(1), 4 / 64, 1e-9),
        (stored_experts, 63 * 0.1 * 2, 1e-6),
        (decoding_time_share, 199, 1e-9),
        (little, 24, 1e-9),
    ],
    ids=[
        "KV per token",
        "KV at 8k x 16, GQA",
        "MHA",
        "MQA",
        "FP8 KV",
        "largest batch at 8k",
        "decode bound, batch 1, no KV",
        "per user at 16 x 8k",
        "total at 16 x 8k",
        "8B in BF16",
        "8B in FP8",
        "8B in 4 bits",
        "decode intensity is the batch",
        "at 64 too",
        "at the ridge F/BW",
        "E(0.8, 4)",
        "speed-up at c = 0.05",
        "$4/h at 1500 tok/s",
        "at 30 % utilization",
        "one token into a block",
        "whole blocks",
        "a token reads the active experts",
        "all experts are stored",
        "E2E = TTFT + TPOT (n - 1)",
        "Little's law",
    ],
)
def test_napkin_numbers_come_out(found, expected, within):
    assert found() == pytest.approx(expected, abs=within)
