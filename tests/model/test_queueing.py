"""Textbook queues, laws, and the marks of trust."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.mixture import mixture
from planner.model.queueing import (
    capacity,
    gates,
    percentile,
    safe_share,
    steady_state,
    survival,
)
from planner.model.queueing.saturation import saturation
from planner.model.queueing.service import service
from planner.model.workload import workload
from tests.model.by_hand import constant
from tests.model.queueing_candidates import PARAMETERS, server, with_layout
from tests.random_candidates import Kinds, parameters, random_candidates

METRICS = ("ttft", "tpot", "e2e", "itl")
NORMAL = NormalDist()


def exponential(mean, least=0.0):
    return lambda rank: least - mean * math.log1p(-rank)


def log_normal(median, sigma):
    return lambda rank: median * math.exp(sigma * NORMAL.inv_cdf(rank))


def erlang_c(servers, load):
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = load * blocked / (k + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


def md1_quantile(load, share):
    """Crommelin's series for the wait of M/D/1 with service time 1."""

    def below(t):
        return (1 - load) * sum(
            (-load * (t - k)) ** k * math.exp(load * (t - k)) / math.factorial(k)
            for k in range(int(t) + 1)
        )

    low, high = 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return high


# One prompt at a time: prompts of 1 s that fill many steps, one output token, no decoding.
SINGLE = server(token_time=1e-3, launch=1e-7, token_budget=16)


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
def test_constant_prompts_and_no_decoding_are_an_md1_queue(load):
    w = constant(1000, 1)
    state = steady_state(SINGLE, PARAMETERS, w, np.array([load]))
    # Pollaczek-Khinchine, and Crommelin for the tail; a last step that is not full adds 0.008 s.
    assert state.wait_mean[0] == pytest.approx(load / (2 * (1 - load)), abs=0.01)
    exact = 1 + md1_quantile(load, 0.95)
    assert percentile(state, w, "ttft", 0.95)[0] == pytest.approx(exact, rel=0.08)


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
def test_exponential_prompts_and_no_decoding_are_an_mm1_queue(load):
    w = workload(exponential(1000), lambda _: 1.0)
    state = steady_state(SINGLE, PARAMETERS, w, np.array([load]))
    assert state.wait_mean[0] == pytest.approx(load / (1 - load), rel=0.05)
    for share in (0.5, 0.95):
        exact = -math.log(1 - share) / (1 - load)
        assert percentile(state, w, "ttft", share)[0] == pytest.approx(exact, rel=0.06)


@pytest.mark.parametrize("slots", [16, 64, 256])
@pytest.mark.parametrize("load", [0.7, 0.8, 0.9])
def test_a_step_that_does_not_depend_on_the_batch_makes_slots_an_mmc_queue(slots, load):
    c = server(launch=0.01, max_sequences=slots)
    w = workload(lambda _: 1.0, exponential(500, least=1.0))
    most = capacity(c, PARAMETERS, w)
    # A slot is kept for 501 steps of 10 ms on average.
    assert most[0] == pytest.approx(slots / 5.01, rel=1e-3)
    state = steady_state(c, PARAMETERS, w, load * most)
    assert state.batch[0] == pytest.approx(load * slots, rel=0.01)
    assert state.slot_wait[0] == pytest.approx(1 / (most[0] * (1 - load)), rel=1e-6)
    assert state.wait_probability[0] == pytest.approx(
        erlang_c(slots, load * slots), rel=0.12, abs=0.01
    )


def test_a_step_linear_in_the_batch_gives_the_negative_binomial_batch():
    # Steps of 10 ms + 0.1 ms a sequence, 200 steps, 25 requests a second: r = rate * 200 * 0.1 ms.
    c = server(token_time=1e-4, launch=0.01)
    w = constant(1, 201)
    state = steady_state(c, PARAMETERS, w, np.array([25.0]))
    # Each request also brings one prompt token of 0.1 ms.
    free = 1 - 25 * 1e-4
    gain = 25 * 200 * 1e-4 / free
    mean = (25 * 200 * 0.01 / free + gain) / (1 - gain)
    assert state.batch[0] == pytest.approx(mean, rel=0.02)
    step = (0.01 + (mean + 1) * 1e-4) / free
    assert percentile(state, w, "tpot", 0.5)[0] == pytest.approx(step, rel=0.02)


def test_an_idle_server_answers_after_its_own_prefill():
    # 1000 tokens of 0.1 ms, then 100 steps of 10 ms + 0.1 ms, and 5 ms on the way.
    c = server(token_time=1e-4, launch=0.01)
    w = constant(1000, 101)
    p = replace(PARAMETERS, first_token=0.005)
    state = steady_state(c, p, w, np.array([1e-6]))
    assert percentile(state, w, "ttft", 0.95)[0] == pytest.approx(0.105, rel=1e-3)
    assert percentile(state, w, "e2e", 0.5)[0] == pytest.approx(0.105 + 100 * 0.0101, rel=2e-3)


def test_a_new_request_waits_for_half_of_the_running_step_on_average():
    # Hardly any prompt work, always decoding: the wait is uniform over a step of 10 ms, then the
    # own step follows.
    c = server(token_time=1e-9, launch=0.01)
    w = constant(10, 1001)
    state = steady_state(c, PARAMETERS, w, np.array([1.0]))
    for share in (0.05, 0.5, 0.95):
        expected = 0.01 + 0.01 * share
        assert percentile(state, w, "ttft", share)[0] == pytest.approx(expected, rel=0.02)


def test_speculation_waits_for_whole_verifications():
    # One draft token, always accepted: a step of 10 ms yields 2 tokens.
    c = server(token_time=1e-9, launch=0.01, draft_tokens=1, accept_first=1)
    w = constant(10, 1001)
    state = steady_state(c, PARAMETERS, w, np.array([1.0]))
    assert state.accepted[0] == pytest.approx(2)
    assert percentile(state, w, "tpot", 0.5)[0] == pytest.approx(0.005, rel=0.01)
    assert percentile(state, w, "ttft", 0.5)[0] == pytest.approx(0.015, rel=0.02)


def test_a_prefix_hit_saves_its_share_of_the_prefill():
    c = server(token_time=1e-4, launch=0.01)
    w = replace(constant(1000, 101), prefix_hit=0.4)
    state = steady_state(c, PARAMETERS, w, np.array([1e-6]))
    assert percentile(state, w, "ttft", 0.5)[0] == pytest.approx(0.06, rel=1e-3)


def test_capacity_without_slots_or_tokens_in_the_way_is_the_work_a_request_brings():
    # 100 slots that share steps of 10 ms + 1 ms a sequence, 200 steps, 1000 prompt tokens of 1 ms.
    c = server(token_time=1e-3, launch=0.01, max_sequences=100)
    w = constant(1000, 201)
    batch = 100 * 200 / 201
    step = 0.01 + batch * 1e-3 + batch / 200 * 1.0
    assert capacity(c, PARAMETERS, w)[0] == pytest.approx(batch / 200 / step, rel=1e-3)


def test_a_token_budget_binds_when_every_step_is_full():
    # A request brings 900 prompt tokens and 100 decode tokens: 1000 of a budget of 500.
    c = server(token_time=1e-4, launch=0.01, token_budget=500)
    w = constant(900, 101)
    step = 0.01 + 500 * 1e-4
    assert capacity(c, PARAMETERS, w)[0] == pytest.approx(0.5 / step, rel=2e-3)


def with_engine(c, **values):
    columns = {name: np.full(len(c), float(value)) for name, value in values.items()}
    return replace(c, engine=replace(c.engine, **columns))


def test_where_prompts_run_alone_every_slot_decodes_in_every_step():
    # They take neither decode steps nor tokens of one: 32 sequences, 0.32 prompts of 0.1 s a step.
    c = server(token_time=1e-4, launch=0.01, max_sequences=32, token_budget=250)
    got = capacity(with_engine(c, mixed=0), PARAMETERS, constant(1000, 101))
    assert got[0] == pytest.approx(0.32 / (0.01 + 32 * 1e-4 + 0.32 * 0.1), rel=1e-3)


def share_of_steps_with_prompts(arriving, lengths, room, steps=40_000):
    """Poisson arrivals; a step takes up to `room` tokens, the rest goes on in the next."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(arriving, steps)
    brought = np.zeros(steps)
    np.add.at(brought, np.repeat(np.arange(steps), counts), rng.choice(lengths, counts.sum()))
    left, carrying = 0.0, 0
    for tokens in brought.tolist():
        carrying += left + tokens > 0
        left = max(left + tokens - room, 0.0)
    return carrying / steps


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("prompt", [50, 300, 600, 1500, 4000])
@pytest.mark.parametrize("use", [0.1, 0.4, 0.8])
def test_a_step_with_prompts_is_paid_once_however_many_share_it(prompt, sigma, use):
    # Every step with prompts costs 1 s more and all else nothing; 8 slots leave a room of 1000.
    steps = 8 * prompt * math.exp(sigma**2 / 2) / (use * 1000)
    w = workload(log_normal(prompt, sigma), lambda _: 1 + steps)
    c = with_engine(server(launch=1e-9, max_sequences=8, token_budget=1008), prefill_layer=1.0)
    full = saturation(service(c, replace(PARAMETERS, unshared_prefill=1.0), w))
    lengths = [log_normal(prompt, sigma)((i + 0.5) / 2000) for i in range(2000)]
    expected = share_of_steps_with_prompts(full.prompts[0], lengths, 1000)
    assert full.prompts[0] / full.rate[0] == pytest.approx(expected, abs=0.035)


def test_more_slots_carry_no_less_where_tokens_run_out():
    # All steps become full: no jump there, and the finer chunks cost little.
    c = random_candidates(300, 7, Kinds(engines=(0, 1), draft_tokens=(0, 0, 3)))
    for w in WORKLOADS.values():
        roomy = replace(c, chip=replace(c.chip, memory=np.full(len(c), 1e15)))
        rates = [
            capacity(with_layout(roomy, max_sequences=slots), parameters(), w)
            for slots in np.unique(np.geomspace(4, 1024, 60).round())
        ]
        highest = np.maximum.accumulate(rates)
        assert (np.array(rates) >= 0.999 * highest).all()


def test_attention_data_parallel_ranks_count_as_servers_of_their_own():
    one = server(token_time=1e-4, launch=0.01, max_sequences=64)
    two = with_layout(one, dp=2)
    w = constant(500, 200)
    assert capacity(two, PARAMETERS, w)[0] == pytest.approx(2 * capacity(one, PARAMETERS, w)[0])
    rate = capacity(one, PARAMETERS, w)
    alone = steady_state(one, PARAMETERS, w, 0.5 * rate, routing="random")
    both = steady_state(two, PARAMETERS, w, rate, routing="random")
    assert both.batch[0] == pytest.approx(alone.batch[0])


def test_a_model_that_does_not_fit_has_no_capacity_and_infinite_percentiles():
    c = server(token_time=1e-4, launch=0.01)
    c = replace(c, chip=replace(c.chip, memory=np.array([-1.0])))
    w = constant(500, 200)
    state = steady_state(c, PARAMETERS, w, np.array([1.0]))
    assert capacity(c, PARAMETERS, w)[0] == 0
    assert state.utilization[0] == np.inf
    assert survival(state, w, "ttft", 1e9)[0] == 1
    assert percentile(state, w, "e2e", 0.5)[0] == np.inf


def test_marks_are_given_by_the_published_limits():
    c = server(launch=0.01, rows=3, max_sequences=[256, 256, 7])
    w = constant(10, 500)
    rate = capacity(c, PARAMETERS, w) * np.array([0.84, 0.86, 0.3])
    marks = gates(steady_state(c, PARAMETERS, w, rate))
    assert marks.utilization.tolist() == [True, False, True]
    assert marks.slots.tolist() == [True, True, False]
    assert marks.all.tolist() == [True, False, False]


def test_the_safe_share_is_smaller_for_short_outputs():
    assert (safe_share(99), safe_share(100)) == (0.7, 0.8)


CHAT = workload(log_normal(800, 0.8), log_normal(200, 0.7))
CODE = workload(log_normal(3000, 1.0), log_normal(30, 0.8))
LONG = workload(log_normal(8000, 0.5), log_normal(600, 0.5), burstiness=4.0)
WORKLOADS = {"chat": CHAT, "code": CODE, "long": LONG}
KINDS = Kinds(engines=(0, 1, 2), replicas=(1, 2, 5))


@settings(max_examples=10)
@given(
    seed=st.integers(0, 1000),
    kind=st.sampled_from(sorted(WORKLOADS)),
    use=st.floats(0.0, 3.0),
)
def test_states_are_numbers_and_survivals_fall_from_one_to_zero(seed, kind, use):
    c, p, w = random_candidates(200, seed, KINDS), parameters(), WORKLOADS[kind]
    rate = use * capacity(c, p, w) * c.layout.replicas
    state = steady_state(c, p, w, rate)
    stable = state.utilization < 1
    for metric in METRICS:
        over = np.array([survival(state, w, metric, t) for t in (1e-6, 1e-2, 1.0, 100.0, 1e9)])
        assert not np.isnan(over).any()
        assert (np.diff(over, axis=0) <= 1e-12).all()
        assert (over[0] > 0.999).all()
        assert (over[-1][stable] < 1e-3).all()
        assert (over[-1][~stable] == 1).all()


@given(seed=st.integers(0, 100))
@settings(max_examples=5)
def test_blocks_of_rows_give_what_single_rows_give(seed):
    c, p = random_candidates(12, seed, KINDS), parameters()
    rate = 0.6 * capacity(c, p, CHAT) * c.layout.replicas
    together = percentile(steady_state(c, p, CHAT, rate), CHAT, "e2e", 0.95)
    rows = [np.array([i]) for i in range(len(c))]
    parts = [steady_state(c.take(row), p, CHAT, rate[row]) for row in rows]
    joined = type(parts[0]).join(parts)
    np.testing.assert_allclose(percentile(joined, CHAT, "e2e", 0.95), together, rtol=1e-9)
    picked = joined.take(np.array([3, 1]))
    np.testing.assert_allclose(picked.own, joined.own[:, [3, 1]])


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
@settings(max_examples=20)
@given(
    seed=st.integers(0, 1000),
    output=st.floats(1.0, 60.0),
    sigma=st.sampled_from([0.0, 0.3, 1.0]),
    use=st.floats(0.02, 0.99),
)
def test_nobody_gets_the_last_token_before_the_first(share, seed, output, sigma, use):
    w = workload(log_normal(800, 0.8), log_normal(output, sigma))
    c, p = random_candidates(50, seed, KINDS), parameters()
    state = steady_state(c, p, w, use * capacity(c, p, w) * c.layout.replicas)
    first, last = (percentile(state, w, metric, share) for metric in ("ttft", "e2e"))
    assert (last >= first * (1 - 1e-5)).all()


def test_the_only_token_is_the_first():
    one, chat = workload(log_normal(800, 0.8), lambda _: 1.0), CHAT
    c, p = random_candidates(200, 5, KINDS), parameters()
    mixed = mixture([one, chat], [0.4, 0.6])
    for whole, part in ((one, one), (mixed.whole, mixed.parts[0])):
        state = steady_state(c, p, whole, 0.6 * capacity(c, p, whole) * c.layout.replicas)
        first, last = (percentile(state, part, metric, 0.95) for metric in ("ttft", "e2e"))
        np.testing.assert_allclose(last, first, rtol=1e-6)


def test_requests_of_one_token_leave_the_tpot_of_the_others_alone():
    one = workload(log_normal(800, 0.8), lambda _: 1.0)
    c, p = random_candidates(200, 5, KINDS), parameters()
    mixed = mixture([one, CHAT], [0.4, 0.6])
    state = steady_state(c, p, mixed.whole, 0.6 * capacity(c, p, mixed.whole) * c.layout.replicas)
    every, chat = (percentile(state, w, "tpot", 0.95) for w in (mixed.whole, mixed.parts[1]))
    np.testing.assert_allclose(every, chat, rtol=1e-6)
