"""The tables are the model's own steps: single requests take what the model's functions say."""

from dataclasses import replace

import numpy as np
import pytest

from planner.model.forward import decode_step, prefill
from planner.model.terms import terms
from planner.simulate import Arrivals, deployment, simulate
from tests.model.by_hand import constant

MOE = {
    "experts": 128,
    "active": 8,
    "moe_layers": 80,
    "expert_width": 1536,
    "expert_parameters": 80 * 3 * 8192 * 1536,
    "dense_parameters": 0,
}
SPECULATION = {"draft_tokens": 3, "accept_first": 0.8, "accept_decay": 0.9, "draft_layers": 1}
LAYOUTS = pytest.mark.parametrize(
    "changes",
    [
        {},
        {"token_budget": 512},
        {"pp": 4, "tp": 2},
        {"pp": 4, "token_budget": 512},
        MOE | {"dp": 4},
        {"mixed": 0},
        {"full_length": 1},
    ],
    ids=["one step", "chunks", "pipeline", "pipeline of chunks", "moe, dp", "prefill first", "trt"],
)


def one(prompt, output):
    return Arrivals(np.array([1.0]), np.array([prompt]), np.array([output]))


@LAYOUTS
def test_a_lone_request_waits_for_its_own_prefill_only(candidate, parameters, changes):
    c = candidate(**changes)
    run = simulate(deployment(c, parameters, constant(1024, 200)), one(1024, 1), warm_up=0)
    alone = prefill(
        terms(c, parameters), parameters, np.array([1024.0]), 0.0, c.layout.token_budget
    ).alone
    outside = 0.005 + 0.0057 + 1024 * 3.8e-6
    # Chunks of 512 tokens read weights and compute 512 at a time; the formula spreads the smooth
    # maximum of the whole prompt over them.
    np.testing.assert_allclose(
        run.ttft - outside, alone, rtol=0.05 if "token" in str(changes) else 1e-9
    )


@LAYOUTS
def test_a_lone_request_decodes_at_the_models_steps(candidate, parameters, changes):
    c = candidate(**changes)
    run = simulate(deployment(c, parameters, constant(1024, 200)), one(1024, 200), warm_up=0)
    t = terms(c, parameters)
    context = 1024.0 + np.arange(1, 200)
    steps = decode_step(t, parameters, np.ones_like(context), context)
    np.testing.assert_allclose(run.e2e - run.ttft, steps.sum(), rtol=1e-9)


def test_speculation_steps_verify_once_for_the_tokens_they_yield(candidate, parameters):
    c = candidate(**SPECULATION)
    # By hand: 1 + 0.8 + 0.8*0.72 + 0.8*0.72*0.648.
    accepted = 1 + 0.8 + 0.576 + 0.373248
    steps = int(np.ceil(999 / accepted))
    run = simulate(deployment(c, parameters, constant(1024, 1000)), one(1024, 1000), warm_up=0)
    t = terms(c, parameters)
    context = 1025.0 + accepted * np.arange(steps)
    verification = decode_step(t, parameters, np.ones_like(context), context) * accepted
    np.testing.assert_allclose(run.e2e - run.ttft, verification.sum(), rtol=1e-6)


@pytest.mark.parametrize("batch", [1, 7, 64, 256])
def test_decode_steps_of_any_batch_are_the_models(candidate, parameters, batch):
    c = candidate()
    d = deployment(c, parameters, constant(1024, 200))
    for context in (100.0, 1124.0, 9000.0):
        expected = decode_step(
            terms(c, parameters), parameters, np.array([float(batch)]), np.array([context])
        )
        got = d.decode[batch] + d.decode_context[batch] * batch * context
        np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_cached_prefixes_are_not_computed_but_attended_and_held(candidate, parameters):
    c = candidate()
    w = constant(4000, 10)
    full = deployment(c, parameters, w)
    half = deployment(c, parameters, replace(w, prefix_hit=0.5))
    run = simulate(half, one(4000, 1), warm_up=0)
    expected = prefill(terms(c, parameters), parameters, np.array([4000.0]), 0.5, 8192.0).alone
    np.testing.assert_allclose(run.ttft - 0.005 - 0.0057 - 4000 * 3.8e-6, expected, rtol=1e-9)
    assert half.blocks == full.blocks


def test_kv_blocks_are_the_memory_left_by_the_weights(candidate, parameters):
    d = deployment(candidate(), parameters, constant(1000, 24))
    weights = (12_079_595_520 + 56_371_445_760 + 2 * 2 * 128256 * 8192) / 4
    pool = 0.9 * 85e9 - 3e9 - weights
    per_token = 80 * 2 * 8 * 128 * 2 / 4
    assert d.blocks == int(pool / (16 * per_token))


def test_only_one_candidate_is_a_deployment(candidate, parameters):
    two = candidate().take(np.array([0, 0]))
    with pytest.raises(ValueError, match="one candidate, not 2"):
        deployment(two, parameters, constant(10, 10))
