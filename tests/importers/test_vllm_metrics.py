from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.importers.prometheus import Histogram, read_dump
from planner.importers.vllm_metrics import read_metrics

MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def histogram(name: str, counts: dict[str, float], total: float, engine: str = "0") -> str:
    labels = f'engine="{engine}",model_name="{MODEL}"'
    lines = [f'{name}_bucket{{{labels},le="{le}"}} {count}' for le, count in counts.items()]
    last = list(counts.values())[-1]
    return "\n".join(
        [*lines, f"{name}_count{{{labels}}} {last}", f"{name}_sum{{{labels}}} {total}"]
    )


def dump(scale: float = 1.0, engine: str = "0") -> str:
    """Return 1,000 finished requests: prompts p50 600, outputs p50 150."""
    prompts = {"200.0": 100, "500.0": 400, "1000.0": 900, "2000.0": 1000, "+Inf": 1000}
    outputs = {"50.0": 0, "100.0": 250, "200.0": 750, "500.0": 1000, "+Inf": 1000}
    first = {"0.1": 500, "0.2": 900, "0.4": 1000, "+Inf": 1000}
    grown = [{le: scale * n for le, n in counts.items()} for counts in (prompts, outputs, first)]
    labels = f'engine="{engine}",model_name="{MODEL}"'
    return "\n".join(
        [
            "# HELP vllm:request_prompt_tokens Number of prefill tokens processed.",
            "# TYPE vllm:request_prompt_tokens histogram",
            histogram("vllm:request_prompt_tokens", grown[0], scale * 700_000.0, engine),
            histogram("vllm:request_generation_tokens", grown[1], scale * 180_000.0, engine),
            histogram("vllm:time_to_first_token_seconds", grown[2], scale * 120.0, engine),
            f'vllm:request_success_total{{finished_reason="stop",{labels}}} {scale * 900}',
            f'vllm:request_success_total{{finished_reason="length",{labels}}} {scale * 100}',
            f"vllm:prefix_cache_queries_total{{{labels}}} {scale * 700_000}",
            f"vllm:prefix_cache_hits_total{{{labels}}} {scale * 210_000}",
            "process_start_time_seconds 1.7e+09",
            "",
        ]
    )


def written(folder: Path, text: str, name: str = "metrics.txt", at: float = 1.7e9 + 500) -> Path:
    path = folder / name
    path.write_text(text)
    os.utime(path, (at, at))
    return path


def values(draft) -> dict[str, object]:
    return {key: given.value for key, given in draft.values.items()}


def test_a_dump_gives_rate_lengths_and_prefix_hits(tmp_path):
    # By hand: prompts 500 + 500 * (500 - 400) / 500 = 600, and 1000 + 1000 * 50 / 100 = 1500;
    # outputs 100 + 100 * 250 / 500 = 150, and 200 + 300 * 200 / 250 = 440.
    draft = read_metrics([written(tmp_path, dump())], window_s=200)
    assert values(draft) == {
        "model": MODEL,
        "traffic.rate_per_s": 5,
        "traffic.prompt_tokens": {"p50": 600, "p95": 1500},
        "traffic.output_tokens": {"p50": 150, "p95": 440},
        "traffic.prefix_hit_rate": 0.3,
    }
    assert draft.notes[0] == "1000 requests in 200 s (--window)."
    assert "TTFT today: p50 100 ms, p95 300 ms." in draft.notes


def test_without_a_window_the_counters_run_since_the_start_of_the_server(tmp_path):
    draft = read_metrics([written(tmp_path, dump())])
    assert draft.values["traffic.rate_per_s"].value == 2
    assert "from the start of the server" in draft.notes[0]


def test_engines_of_one_server_add_up(tmp_path):
    draft = read_metrics([written(tmp_path, dump() + dump(engine="1"))], window_s=200)
    assert draft.values["traffic.rate_per_s"].value == 10
    assert draft.values["traffic.prompt_tokens"].value == {"p50": 600, "p95": 1500}


def test_of_two_dumps_what_lies_between_counts(tmp_path):
    early = written(tmp_path, dump(), "early.txt", at=1.7e9 + 500)
    late = written(tmp_path, dump(scale=4), "late.txt", at=1.7e9 + 800)
    draft = read_metrics([early, late])
    assert draft.values["traffic.rate_per_s"].value == 10  # 3000 requests in 300 s
    assert draft.notes[0].startswith("3000 requests in 300 s")


def test_a_server_that_was_started_anew_between_two_dumps_is_found_out(tmp_path):
    early = written(tmp_path, dump(scale=4), "early.txt")
    late = written(tmp_path, dump(), "late.txt")
    with pytest.raises(InputError, match="two dumps of one run"):
        read_metrics([early, late], window_s=100)


def test_a_time_stamp_in_the_dump_wins_over_the_time_of_the_file(tmp_path):
    text = dump() + 'vllm:num_requests_running{model_name="m"} 3 1700000250000\n'
    path = written(tmp_path, text)
    assert read_dump(path).end == 1.7e9 + 250


def test_several_models_must_be_chosen_from(tmp_path):
    other = dump().replace(MODEL, "other/model")
    path = written(tmp_path, dump() + other)
    with pytest.raises(InputError, match="more than one model; name one with --entry"):
        read_metrics([path], window_s=200)
    draft = read_metrics([path], window_s=200, entry="other/model")
    assert draft.values["traffic.rate_per_s"].value == 5


def test_old_names_of_the_prefix_counters_are_read_too(tmp_path):
    text = dump().replace("vllm:prefix_cache", "vllm:gpu_prefix_cache")
    draft = read_metrics([written(tmp_path, text)], window_s=1)
    assert draft.values["traffic.prefix_hit_rate"].value == 0.3


def test_a_mean_that_the_buckets_blur_is_told(tmp_path):
    # p50 600, p95 1500 stand for a log-normal mean of 701; the sum says 1200.
    text = dump().replace("700000.0", "1200000.0")
    notes = read_metrics([written(tmp_path, text)], window_s=200).notes
    assert any("a mean of 701 tokens; the counters say 1200" in note for note in notes)


def test_few_requests_are_told(tmp_path):
    notes = read_metrics([written(tmp_path, dump(scale=0.01))], window_s=2).notes
    assert "Only 10 requests: the percentiles say little." in notes


@pytest.mark.parametrize(
    ("text", "window", "message"),
    [
        ("process_start_time_seconds 1\n", 10, r"no metric of vLLM"),
        ("<html>\n", 10, "line 1: is no line of a Prometheus text dump"),
        (dump(scale=0), 10, "no finished request"),
        (dump().replace("process_start", "other"), None, "give the seconds with --window"),
        (dump().replace("1.7e+09", "1.8e+09"), None, "give the seconds with --window"),
        (dump(), -5, "-5 must be above 0"),
        (dump(), 0, "0 must be above 0"),
    ],
    ids=["no vllm", "html", "no traffic", "no start", "start after the dump", "negative", "zero"],
)
def test_a_dump_that_cannot_be_used_says_why(text, window, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_metrics([written(tmp_path, text)], window_s=window)


@given(
    sample=st.lists(st.floats(0.01, 999.0), min_size=1, max_size=60),
    share=st.floats(0.01, 0.99),
)
def test_a_quantile_lies_in_the_bucket_of_the_sample_quantile(sample, share):
    edges = np.array([1.0, 2.0, 5.0, 10.0, 100.0, 1000.0])
    counts = [float(np.sum(np.array(sample) <= edge)) for edge in edges]
    made = Histogram((*edges, math.inf), (*counts, float(len(sample))), float(np.sum(sample)))
    exact = float(np.quantile(sample, share, method="inverted_cdf"))
    high = edges[np.searchsorted(edges, exact)]
    low = max((edge for edge in edges if edge < high), default=0.0)
    assert low - 1e-9 <= made.quantile(share) <= high + 1e-9


def test_beyond_the_last_finite_bound_a_quantile_is_that_bound():
    assert Histogram((10.0, math.inf), (1.0, 10.0), 500.0).quantile(0.95) == 10.0


@given(text=st.text(max_size=80))
def test_no_text_whatever_raises_anything_but_an_input_error(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "metrics.txt"
    path.write_text("vllm:" + text, encoding="utf-8")
    with pytest.raises(InputError):
        read_metrics([path])
