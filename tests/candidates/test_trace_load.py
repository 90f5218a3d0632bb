"""Recorded traces as the model sees them."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates.demand import of_model
from planner.candidates.trace_load import (
    cut,
    equal_shares,
    peak_rate,
    trace_windows,
    whole_workload,
    window_seconds,
    with_trace,
)
from planner.errors import InputError
from planner.importers.traces import Trace
from planner.spec.lengths import SampledLengths
from planner.spec.load import load_with_lines
from planner.spec.slo import Slo


def a_trace(times, prompt=None, output=None) -> Trace:
    times = np.sort(np.asarray(times, dtype=float))
    count = len(times)
    prompt = np.full(count, 100) if prompt is None else np.asarray(prompt)
    output = np.full(count, 10) if output is None else np.asarray(output)
    return Trace("made.csv", "plain", times - times[0], prompt, output, ())


def poisson(rate: float, seconds: float, seed: int = 0) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, int(rate * seconds)))


def test_one_rate_describes_poisson_arrivals():
    trace = a_trace(poisson(20.0, 1200.0))
    assert window_seconds(trace) == 0.0
    (only,) = trace_windows(trace)
    assert (only.share, only.rate) == (1.0, trace.rate_per_s)


def test_minutes_of_their_own_describe_a_load_that_rises_for_minutes():
    # Five minutes at 2/s, five at 10/s, in even steps.
    quiet, busy = np.arange(600) / 2.0, 300.0 + np.arange(3000) / 10.0
    trace = a_trace(np.concatenate([quiet, busy]), np.r_[np.full(600, 50), np.full(3000, 400)])
    windows = trace_windows(trace)
    assert [round(window.rate, 1) for window in windows] == [2.0] * 5 + [10.0] * 5
    assert sum(window.share for window in windows) == pytest.approx(1.0)
    assert windows[0].share == pytest.approx(120 / 3600)
    assert windows[0].workload.prompt_mean == pytest.approx(50.0)
    assert windows[-1].workload.prompt_mean == pytest.approx(400.0)


def test_ten_seconds_describe_bursts_that_are_shorter_than_a_minute():
    # 200 requests within 2 s at the beginning of every minute.
    bursts = np.concatenate([60.0 * minute + np.linspace(0, 2, 200) for minute in range(20)])
    trace = a_trace(bursts)
    assert window_seconds(trace) == 10.0
    assert max(window.rate for window in trace_windows(trace)) == pytest.approx(20.0)


def outputs_that_grow(seconds: float) -> Trace:
    """Ten requests a second, even; outputs of the second half are six times as long."""
    times = np.arange(int(10 * seconds)) / 10.0
    return a_trace(times, output=np.where(times < seconds / 2, 50, 300))


@pytest.mark.parametrize(("seconds", "expected"), [(480.0, 60.0), (90.0, 10.0)])
def test_lengths_that_drift_at_a_steady_rate_have_windows(seconds, expected):
    assert window_seconds(outputs_that_grow(seconds)) == expected


def test_a_window_of_long_requests_is_sized_for_as_if_more_of_mean_length_came():
    # 10/s x 300 output tokens = 3,000 tokens/s = 17.14/s x 175, the mean of 50 and 300.
    assert peak_rate(outputs_that_grow(480.0)) == pytest.approx(3000 / 175, rel=2e-3)


def test_a_window_of_long_prompts_is_sized_for_alike():
    times = np.arange(4800) / 10.0
    trace = a_trace(times, prompt=np.where(times < 240, 300, 100))
    assert peak_rate(trace) == pytest.approx(10 * 300 / 200, rel=2e-3)


def test_a_window_with_few_requests_borrows_the_lengths_of_the_whole_trace():
    busy = np.arange(3000) / 50.0
    trace = a_trace(np.r_[busy, 70.0, 190.0], np.r_[np.full(3000, 400), 5, 5])
    few = trace_windows(trace)[-1].workload
    assert few.prompt_mean == pytest.approx(whole_workload(trace).prompt_mean)


def minutes(rates, tokens) -> Trace:
    """A trace whose minutes have these rates [1/s] and lengths [tokens], in even steps."""
    pairs = list(zip(rates, tokens, strict=True))
    times = [60.0 * n + np.arange(60 * rate) / rate for n, (rate, _) in enumerate(pairs)]
    lengths = [np.full(60 * rate, length) for rate, length in pairs]
    every = np.concatenate(lengths)
    return a_trace(np.concatenate(times), every, every)


def test_of_many_windows_the_busiest_stay_and_those_about_as_busy_are_joined():
    # Work by rate x tokens: 100, 400, 800, 1000, 1200, 2000 by hand.
    trace = minutes([1, 10, 2, 5, 6, 8], [100, 200, 200, 200, 200, 100])
    windows = trace_windows(trace, most=4)
    # The two busiest alone; the others by two: 1/s and 2/s, 5/s and 8/s.
    assert [round(window.rate, 1) for window in windows] == [1.5, 6.5, 6.0, 10.0]
    assert [window.share for window in windows] == pytest.approx([3 / 32, 13 / 32, 6 / 32, 10 / 32])
    # 60 requests of 100 tokens and 120 of 200; 300 of 200 and 480 of 100.
    means = [window.workload.prompt_mean for window in windows]
    assert means == pytest.approx([500 / 3, 1800 / 13, 200, 200])


def test_equal_shares_keep_the_mean_and_the_quantiles():
    tokens = np.exp(np.random.default_rng(3).normal(6.0, 1.0, 7777))
    lengths = SampledLengths(shares=equal_shares(tokens))
    assert lengths.mean == pytest.approx(tokens.mean(), rel=1e-5)
    for share in (0.05, 0.5, 0.9, 0.95):
        assert lengths.quantile(share) == pytest.approx(np.quantile(tokens, share), rel=0.02)


def test_three_requests_are_enough_for_equal_shares():
    assert SampledLengths(shares=equal_shares(np.array([30, 10, 20]))).mean == pytest.approx(20.0)


SLO = {"model": "x", "traffic": {"trace": "a.csv"}, "slo": {"ttft_p95_ms": 500}}


def test_the_rate_of_the_busiest_window_is_sized_for_and_the_mean_is_paid_for(tmp_path):
    quiet, busy = np.arange(600) / 2.0, 300.0 + np.arange(3000) / 10.0
    rows = "\n".join(f"{time},100,10" for time in np.concatenate([quiet, busy]))
    (tmp_path / "a.csv").write_text(f"arrival_s,prompt_tokens,output_tokens\n{rows}\n")
    got = with_trace(Slo.model_validate(SLO), tmp_path)
    traffic = got.slo.traffic
    assert traffic.trace is None
    assert traffic.rate_per_s == pytest.approx(10.0, rel=0.01)
    assert traffic.average_rate_per_s == pytest.approx(3599 / 599.9, rel=1e-3)
    assert got.summary.window_s == 60.0
    assert got.summary.requests == 3600
    assert "headroom" not in got.slo.model_fields_set


def test_a_window_is_not_the_busiest_by_requests_that_are_cut(tmp_path):
    # 10/s of 100 tokens for ten minutes, and one prompt of ten million; the context is 110.
    rows = [f"{n / 10},{10_000_000 if n == 30 else 100},10" for n in range(6000)]
    # Four minutes of them are twice as busy, or rate and lengths would have no windows.
    rows += [f"{600 + n / 20},100,10" for n in range(4800)]
    text = "\n".join(rows)
    (tmp_path / "a.csv").write_text(f"arrival_s,prompt_tokens,output_tokens\n{text}\n")
    whole = with_trace(Slo.model_validate(SLO), tmp_path)
    short = whole.within(of_model(whole.slo, 110))
    assert short.summary.peak_rate_per_s == pytest.approx(20.0, rel=0.01)
    assert short.slo.traffic.rate_per_s == short.summary.peak_rate_per_s
    assert short.slo.traffic.longest == 110
    assert short.trace.prompt_tokens.max() == 100


def test_lengths_beside_a_trace_are_refused(tmp_path):
    both = {**SLO, "traffic": {"trace": "a.csv", "prompt_tokens": 5, "output_tokens": 5}}
    with pytest.raises(InputError, match="prompt_tokens: the trace holds the lengths"):
        with_trace(Slo.model_validate(both), tmp_path)


def test_a_context_below_the_median_request_of_the_trace_is_refused_by_line(tmp_path):
    (tmp_path / "a.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,500,50\n9,500,50\n")
    (tmp_path / "slo.yaml").write_text(
        "model: x\ntraffic:\n  trace: a.csv\n  max_context_tokens: 100\nslo: {ttft_p95_ms: 500}\n"
    )
    slo, document = load_with_lines(tmp_path / "slo.yaml", Slo)
    with pytest.raises(InputError, match=r"line 4  traffic\.max_context_tokens: 100 is below"):
        with_trace(slo, tmp_path, document)


def test_a_trace_without_duration_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("arrival_s,prompt_tokens,output_tokens\n1,5,5\n")
    with pytest.raises(InputError, match="no duration"):
        with_trace(Slo.model_validate(SLO), tmp_path)


def test_requests_longer_than_what_is_served_are_cut_and_counted():
    trace = a_trace([0.0, 1.0, 2.0, 3.0], [900, 600, 600, 100], [100, 500, 2000, 10])
    short = cut(trace, 1000)
    # Prompts first; one token of them stays.
    assert short.prompt_tokens.tolist() == [900, 500, 1, 100]
    assert short.output_tokens.tolist() == [100, 500, 999, 10]
    assert short.notes == ("2 of 4 requests are longer than 1,000 tokens and are cut to that.",)
    assert cut(trace, None) is trace
    assert cut(trace, 2600) is trace
