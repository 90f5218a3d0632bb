"""Statistics of a run that can be worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from planner.simulate import Arrivals, Deployment, random_arrivals, sampled_arrivals, simulate

BY_HAND = Deployment(
    decode=(0.0, 0.010, 0.012),
    decode_context=(0.0, 0.0, 0.0),
    stall=tuple(0.001 * m for m in range(101)),
    alone=tuple(0.005 + 0.001 * m for m in range(101)),
    sequences=2,
    budget=100,
    first_token=0.004,
    frontend_request=0.002,
    frontend_token=0.0001,
)
"""First request: prefill 0.025 alone. Second: joins the first's step that begins after it came."""
TWO = Arrivals(np.array([0.0, 0.030]), np.array([20, 10]), np.array([4, 2]))


@pytest.fixture
def run():
    return simulate(BY_HAND, TWO, warm_up=0, cool_down=0)


def test_times_are_those_worked_out_by_hand(run):
    # 1: first token 0.025, tokens at 0.035, 0.055 (with 10 prompt tokens: 0.010 + 0.010), 0.067.
    # 2: came at 0.030, waits for the step until 0.035, first token 0.055, done 0.067.
    outside = np.array([0.004 + 0.002 + 0.002, 0.004 + 0.002 + 0.001])
    np.testing.assert_allclose(run.ttft, np.array([0.025, 0.025]) + outside)
    np.testing.assert_allclose(run.e2e, np.array([0.067, 0.037]) + outside)
    np.testing.assert_allclose(run.tpot, [(0.067 - 0.025) / 3, 0.012])
    np.testing.assert_allclose(run.admitted, [0.0, 0.035])


def test_gaps_are_those_worked_out_by_hand(run):
    gaps = sorted(zip(run.gap.round(6).tolist(), run.gaps.tolist(), strict=True))
    assert gaps == [(0.010, 1), (0.012, 2), (0.020, 1)]


def test_percentiles_are_the_smallest_value_that_the_share_does_not_exceed(run):
    low, high = run.percentiles("ttft", (0.5, 0.95))
    assert (low, high) == (pytest.approx(0.032), pytest.approx(0.033))


def test_goodput_counts_requests_that_meet_every_limit(run):
    assert run.attainment({"ttft": 0.0325}) == 0.5
    assert run.attainment({"ttft": 0.05, "tpot": 0.013}) == 0.5
    assert run.attainment({"e2e": 1.0}) == 1.0
    # One gap of 0.03 s between the two arrivals.
    assert run.goodput({"ttft": 0.0325}) == pytest.approx(0.5 / 0.030)


def test_a_request_may_have_limits_of_its_own(run):
    assert run.attainment({"ttft": np.array([0.0325, 0.0325])}) == 0.5
    assert run.attainment({"ttft": np.array([np.inf, 0.0325])}) == 1.0


def test_output_tokens_are_counted_while_requests_arrive_and_not_after(run):
    three = replace(
        run,
        arrival=np.array([0.0, 1.0, 2.0]),
        ttft=np.full(3, 0.5),
        e2e=np.full(3, 1.5),
        output=np.full(3, 11),
        measured=np.full(3, True),
    )
    # Until 2 s: all 11 of the first, 1 and half of 10 of the second, none of the third.
    assert three.output_rate() == pytest.approx(17 / 2)
    # From 1 s on: half of 10 of the first, and the 6 of the second.
    assert replace(three, measured=np.array([False, True, True])).output_rate() == pytest.approx(11)
    assert np.isnan(replace(three, measured=np.array([False, True, False])).output_rate())


def test_the_timeline_tells_mean_and_peak_of_queue_and_batch(run):
    line = run.timeline(3)
    np.testing.assert_allclose(line.time, [0.025, 0.050, 0.075])
    # The second waits from 0.030 to 0.035: 5 of 25 ms. Neither end of an interval sees it.
    np.testing.assert_allclose(line.queue.mean, [0, 0.2, 0], atol=1e-9)
    assert line.queue.largest.tolist() == [0, 1, 0]
    # First tokens at 0.033 and 0.062, with what is outside; done at 0.075 and 0.074.
    np.testing.assert_allclose(line.batch.mean, [0, 17 / 25, 1 + 12 / 25], atol=1e-9)
    assert line.batch.largest.tolist() == [0, 1, 2]
    np.testing.assert_allclose(line.in_flight.mean, [1, 1 + 20 / 25, 1 + 24 / 25])
    assert line.in_flight.largest.tolist() == [1, 2, 2]


def test_warm_up_and_cool_down_are_left_out():
    arrivals = random_arrivals(1.0, 100, lambda _: 10, lambda _: 2)
    run = simulate(BY_HAND, arrivals, warm_up=0.2, cool_down=0.1)
    assert run.measured.nonzero()[0].tolist() == list(range(20, 90))


def test_overload_is_told_from_a_busy_steady_state():
    # Two slots; a request of 20 + 50 tokens holds one for about 0.62 s, so at most 3.2 a second.
    for rate, expected in ((2.2, False), (4.0, True)):
        arrivals = random_arrivals(rate, 4000, lambda _: 20, lambda _: 50, seed=3)
        assert simulate(BY_HAND, arrivals).overloaded is expected


def test_the_rate_of_completions_in_overload_is_the_capacity():
    # The slots stay out of step: 48 steps of 0.012, the own prompt's and the other's of
    # 0.010 + 0.020 each.
    arrivals = random_arrivals(10.0, 4000, lambda _: 20, lambda _: 50)
    run = simulate(BY_HAND, arrivals)
    rate = ((run.done > 100.0) & (run.done <= 400.0)).sum() / 300.0
    assert rate == pytest.approx(2 / (48 * 0.012 + 2 * 0.030), rel=0.01)


def test_gamma_gaps_have_the_rate_and_spread_asked_for():
    a = random_arrivals(4.0, 200_000, lambda _: 1, lambda _: 1, burstiness=4.0)
    gaps = np.diff(a.time)
    assert gaps.mean() == pytest.approx(0.25, rel=0.02)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(4.0, rel=0.05)
    even = random_arrivals(4.0, 10, lambda _: 1, lambda _: 1, burstiness=0.0)
    np.testing.assert_allclose(np.diff(even.time), 0.25)


def test_lengths_follow_the_quantile_function_and_stay_when_the_rate_changes():
    slow, fast = (
        random_arrivals(rate, 50_000, lambda u: 100 * u, lambda u: 1 + 9 * u) for rate in (1.0, 5.0)
    )
    assert slow.prompt.mean() == pytest.approx(50, rel=0.02)
    assert (slow.prompt == fast.prompt).all()
    np.testing.assert_allclose(slow.time, 5.0 * fast.time)


def test_resampled_lengths_keep_their_pairs():
    lengths = np.array([10, 20, 30]), np.array([1, 2, 3])
    a = sampled_arrivals(2.0, 1000, lengths)
    assert (a.prompt == 10 * a.output).all()
    assert set(a.output.tolist()) == {1, 2, 3}


@pytest.mark.parametrize(
    ("time", "prompt", "output", "message"),
    [
        ([1.0, 0.5], [1, 1], [1, 1], "order of time"),
        ([0.0], [0], [1], "at least one token"),
        ([0.0, 1.0], [1], [1, 1], "one time, prompt and output"),
    ],
)
def test_requests_that_cannot_be_are_refused(time, prompt, output, message):
    with pytest.raises(ValueError, match=message):
        Arrivals(np.array(time), np.array(prompt), np.array(output))
