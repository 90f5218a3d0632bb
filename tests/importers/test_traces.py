"""Trace formats as their publishers write them, a few rows each, typed here."""

import numpy as np
import pytest

from planner.errors import InputError
from planner.importers.traces import Trace, read_trace

AZURE_2023 = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:16:00.0000000,879,55
"""
AZURE_2024 = """TIMESTAMP,ContextTokens,GeneratedTokens
2024-05-10 00:00:00.009930+00:00,2162,5
2024-05-10 00:00:01.017335+00:00,2399,6
"""
BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,230,1317,Conversation log
118,GPT-4,417,0,417,Conversation log
"""
BURSTGPT_SESSIONS = """Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens
5.5,1,0.2,ChatGPT,472,18
"""
MOONCAKE = """{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46, 2353]}
"""
PLAIN = "arrival_s,prompt_tokens,output_tokens\n0.5,10,2\n1.25,20,3\n"


def saved(tmp_path, text):
    path = tmp_path / "trace"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "kind", "arrival", "prompt", "output"),
    [
        (AZURE_2023, "azure", [0, 4.314579, 13.31941], [374, 396, 879], [44, 109, 55]),
        (AZURE_2024, "azure", [0, 1.007405], [2162, 2399], [5, 6]),
        (BURSTGPT, "burstgpt", [0, 40], [472, 1087], [18, 230]),
        (BURSTGPT_SESSIONS, "burstgpt", [0], [472], [18]),
        (MOONCAKE, "mooncake", [0, 3.053], [6955, 6472], [52, 26]),
        (PLAIN, "plain", [0, 0.75], [10, 20], [2, 3]),
        (PLAIN.replace("\n", "\r\n") + "\r\n", "plain", [0, 0.75], [10, 20], [2, 3]),
        ("﻿" + PLAIN.upper(), "plain", [0, 0.75], [10, 20], [2, 3]),
    ],
)
def test_each_format_gives_the_same_columns(tmp_path, text, kind, arrival, prompt, output):
    trace = read_trace(saved(tmp_path, text))
    assert trace.kind == kind
    np.testing.assert_allclose(trace.arrival_s, arrival, atol=1e-6)
    assert trace.prompt_tokens.tolist() == prompt
    assert trace.output_tokens.tolist() == output


def test_requests_that_failed_are_left_out_and_counted(tmp_path):
    notes = read_trace(saved(tmp_path, BURSTGPT)).notes
    assert notes == ("Left out: 1 request without prompt or output tokens.",)


def test_rows_out_of_order_are_sorted_and_it_is_said(tmp_path):
    trace = read_trace(saved(tmp_path, PLAIN + "0.75,30,4\n"))
    assert trace.arrival_s.tolist() == [0.0, 0.25, 0.75]
    assert trace.prompt_tokens.tolist() == [10, 30, 20]
    assert "sorted" in trace.notes[0]


def test_stamps_in_batches_are_spread_until_the_next(tmp_path):
    stamps = np.repeat(3000 * np.arange(200), 10)
    lines = [f'{{"timestamp": {t}, "input_length": 9, "output_length": 9}}' for t in stamps]
    path = saved(tmp_path, "\n".join(lines))
    trace, again = read_trace(path), read_trace(path)
    assert (trace.arrival_s == again.arrival_s).all()
    assert "(3 s apart)" in trace.notes[0]
    # Ten requests stay within each 3 s (the first of all lies at 0, not at its stamp).
    shift = trace.arrival_s - stamps / 1000
    assert shift.min() > -3.0
    assert shift.max() < 3.0
    assert np.diff(trace.arrival_s).std() == pytest.approx(0.3, rel=0.1)


def test_a_rare_shared_stamp_is_left_alone(tmp_path):
    rows = "".join(f"{t},10,2\n" for t in (0, 1, 1, 2, 3, 4))
    trace = read_trace(saved(tmp_path, PLAIN.splitlines()[0] + "\n" + rows))
    assert trace.arrival_s.tolist() == [0, 1, 1, 2, 3, 4]
    assert trace.notes == ()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            PLAIN + "2.0,-5,2\n2.5,1.5,x\nlater,1,1\nnan,1,1\n",
            [
                "line 4  prompt_tokens: '-5' is not a number of tokens",
                "line 5  prompt_tokens: '1.5'",
                "line 5  output_tokens: 'x'",
                "line 6  arrival_s: 'later' is not a number of seconds",
                "line 7  arrival_s: 'nan'",
            ],
        ),
        (PLAIN + "2.0,5\n", ["line 4: 2 values for 3 columns"]),
        (
            AZURE_2023 + "yesterday,1,1\n2023-11-16 18:15:46.x,1,1\n",
            ["line 5  TIMESTAMP: 'yesterday' is not a UTC time", "line 6  TIMESTAMP"],
        ),
        (AZURE_2023 + "2023-11-16 18:15:46+02:00,1,1\n", ["line 5  TIMESTAMP"]),
        (
            MOONCAKE + '{"timestamp": 3, "input_length": 5}\n{"timestamp"\n[1]\n',
            [
                "line 3  output_length: missing",
                "line 4: not a JSON object on one line",
                "line 5: not a JSON object",
            ],
        ),
        (MOONCAKE.replace("6472", '"many"'), ["line 2  input_length: 'many'"]),
        (MOONCAKE.replace("6472", "true"), ["line 2  input_length: 'True'"]),
        (MOONCAKE.replace("6472", "1e400"), ["line 2  input_length: 'inf'"]),
        ("a,b,c\n1,2,3\n", ["line 1: no known trace columns in 'a, b, c'", "arrival_s"]),
        (PLAIN.splitlines()[0] + "\n", ["no requests"]),
        (PLAIN.splitlines()[0] + "\n1,0,0\n", ["every request has 0 tokens"]),
        ("", ["the file is empty"]),
    ],
)
def test_all_faults_are_named_with_line_and_column(tmp_path, text, place):
    with pytest.raises(InputError) as caught:
        read_trace(saved(tmp_path, text))
    for fragment in place:
        assert fragment in str(caught.value)


def test_a_thousand_faults_are_cut_short(tmp_path):
    with pytest.raises(InputError) as caught:
        read_trace(saved(tmp_path, PLAIN + "1,x,1\n" * 1000))
    assert "... and 900 more" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 102


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_trace(tmp_path / "none.csv")


def of_times(time):
    ones = np.ones(len(time), dtype=np.int64)
    return Trace("here", "plain", np.asarray(time, dtype=float), ones, ones, ())


def test_dispersion_is_variance_over_mean_of_the_window_counts():
    # Windows of 10 s hold 3, 1 and 2 requests: mean 2, variance 2/3; the rest is no full window.
    trace = of_times([0, 1, 2, 11, 25, 26, 31])
    assert trace.dispersion(10.0) == pytest.approx(1 / 3)
    assert np.isnan(trace.dispersion(20.0))
    assert trace.rate_per_s == pytest.approx(6 / 31)


def test_dispersion_of_poisson_arrivals_is_one_and_of_a_slow_wave_grows_with_the_window():
    stream = np.random.default_rng(0)
    steady = of_times(np.cumsum(stream.exponential(0.2, 20_000)))
    assert steady.dispersion(10.0) == pytest.approx(1.0, abs=0.2)
    busy = np.where(np.arange(20_000) // 1000 % 2, 0.1, 0.3)
    wave = of_times(np.cumsum(stream.exponential(1.0, 20_000) * busy))
    assert wave.dispersion(10.0) > 4
    assert wave.dispersion(60.0) > 3 * wave.dispersion(10.0)


def drawn(tmp_path, gaps, prompts):
    times = np.cumsum(gaps)
    rows = [f"{t:.4f},{p},10" for t, p in zip(times, prompts, strict=True)]
    return read_trace(saved(tmp_path, "\n".join([PLAIN.splitlines()[0], *rows])))


def test_a_trace_whose_rate_or_lengths_drift_says_so(tmp_path):
    stream = np.random.default_rng(1)
    gaps = stream.exponential(0.2, 5000)
    prompts = stream.integers(10, 2000, 5000)
    assert drawn(tmp_path, gaps, prompts).notes == ()
    slower = drawn(tmp_path, gaps * np.linspace(0.7, 1.5, 5000), prompts)
    assert [note[:26] for note in slower.notes] == [
        "Counts in 10 s and 60 s wi",
        "The rate drifts between 3.",
    ]
    longer = drawn(tmp_path, gaps, (prompts * np.linspace(0.5, 1.5, 5000)).astype(int))
    assert [note[:24] for note in longer.notes] == ["The mean prompt drifts b"]


def test_counts_that_vary_more_than_those_of_poisson_arrivals_are_told_in_both_windows(tmp_path):
    # By hand: 20 at once in every other ten seconds: mean 10, variance 100, in a minute 60 and 0.
    # Counts of a shorter trace are known for ten seconds alone.
    times = np.repeat(20.0 * np.arange(30), 20) + np.tile(0.01 * np.arange(20), 30)
    for until, told in (
        (601.0, "10 s and 60 s windows vary 10 and 0"),
        (101.0, "10 s windows vary 10"),
    ):
        rows = [f"{t:.2f},{5},10" for t in [*times[times < until - 1.0], until]]
        notes = read_trace(saved(tmp_path, "\n".join([PLAIN.splitlines()[0], *rows]))).notes
        assert f"Counts in {told} times as much as those of Poisson arrivals." in notes


@pytest.mark.parametrize("text", ['{\n  "slo": {\n    "model": "x"\n  }\n}\n', "[\n  1,\n  2\n]\n"])
def test_json_that_is_no_trace_is_refused_in_one_line(tmp_path, text):
    with pytest.raises(InputError) as caught:
        read_trace(saved(tmp_path, text))
    (fault,) = caught.value.faults
    assert str(fault).startswith("line 1: no known trace; give JSON lines, each with timestamp,")


def test_the_first_requests_say_so_and_drift_by_themselves(tmp_path):
    rows = [f"{n},{100 if n < 500 else 900},10" for n in range(1000)]
    whole = read_trace(saved(tmp_path, "\n".join([PLAIN.splitlines()[0], *rows])))
    assert [note[:24] for note in whole.notes] == ["The mean prompt drifts b"]
    assert whole.first(400).notes == ("Only the first 400 of 1,000 requests.",)
    assert whole.first(None) is whole.first(1000) is whole


@pytest.mark.parametrize(
    ("stamps", "told"),
    [
        # Nanoseconds since 1970, 0.2 s apart: 4e8 s are 4629.63 days.
        ((1_700_000_000_200_000_000, 1_700_000_000_600_000_000), "4,629.63 days from the first"),
        (
            (0, 1_700_000_001, 1_700_000_002),
            "19,675.9 of them between the 1. and the next in order of time",
        ),
        ((1e300, -1e300), "days from the first request to the last"),
    ],
    ids=["nanoseconds", "one that is stray", "beyond all bounds"],
)
def test_stamps_of_another_unit_and_stray_ones_are_refused(tmp_path, stamps, told):
    rows = [f"{stamp},300,40" for stamp in stamps]
    text = "\n".join(["arrival_s,prompt_tokens,output_tokens", *rows, ""])
    with pytest.raises(InputError) as refused:
        read_trace(saved(tmp_path, text))
    (fault,) = refused.value.faults
    assert fault.key == "arrival_s"
    assert told in fault.message
    assert "a number of seconds" in fault.message
