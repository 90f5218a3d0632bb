"""Five tools' result files say the same about the same run."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.importers.benchmarks import read_results
from tests.importers.benchmark_files import WRITERS, Run, guidellm, llmd, sglang, vllm

RUN = Run(
    ttft={50: 180.0, 90: 310.0, 95: 402.0, 99: 950.0},
    tpot={50: 9.5, 90: 11.0, 95: 12.25, 99: 15.0},
    e2e={50: 2100.0, 90: 2500.0, 95: 2900.0, 99: 4000.0},
    ttft_mean=200.0,
    tpot_mean=10.0,
    rate=5.0,
    requests=1200,
    failed=3,
)
each_tool = pytest.mark.parametrize("tool", list(WRITERS))


def stored(tmp_path, tool, run):
    name, write = WRITERS[tool]
    path = tmp_path / name
    path.write_text(write(run), encoding="utf-8")
    return path


@each_tool
def test_every_tool_tells_the_same_run_in_the_same_units(tool, tmp_path):
    file = read_results(stored(tmp_path, tool, RUN))
    (result,) = file.results
    assert file.unusable == ()
    assert result.tool == tool
    assert (result.load, result.rate_per_s, result.concurrency) == ("open_loop", 5.0, None)
    assert (result.requests, result.failed) == (1200, 3)
    assert result.prompt_tokens == pytest.approx(1000)
    assert result.output_tokens == pytest.approx(200)
    assert result.output_tokens_per_s == pytest.approx(1000)
    assert result.achieved_per_s == pytest.approx(5)
    assert result.ttft.mean == pytest.approx(200)
    assert result.tpot.mean == pytest.approx(10)
    # E2E = TTFT + 199 further tokens.
    assert result.e2e.mean == pytest.approx(200 + 199 * 10)
    for share in (50.0, 90.0, 95.0, 99.0):
        assert result.ttft.percentiles[share] == pytest.approx(RUN.ttft[round(share)])
        assert result.tpot.percentiles[share] == pytest.approx(RUN.tpot[round(share)])
        assert result.e2e.percentiles[share] == pytest.approx(RUN.e2e[round(share)])


@each_tool
def test_a_limit_in_flight_is_a_closed_loop(tool, tmp_path):
    run = Run(RUN.ttft, RUN.tpot, ttft_mean=200.0, tpot_mean=10.0, concurrency=64)
    (result,) = read_results(stored(tmp_path, tool, run)).results
    assert (result.load, result.concurrency, result.rate_per_s) == ("closed_loop", 64.0, None)


@pytest.mark.parametrize("tool", ["vllm-bench", "guidellm", "llm-d-report"])
def test_the_model_is_taken_where_the_tool_names_it(tool, tmp_path):
    (result,) = read_results(stored(tmp_path, tool, RUN)).results
    assert result.model == "meta-llama/Llama-3.1-8B-Instruct"


def test_guidellms_time_per_output_token_loses_its_first_token(tmp_path):
    # 200 tokens in 2190 ms, the first after 200 ms: GuideLLM says 10.95, the 199 others took 10.
    path = tmp_path / "old.json"
    path.write_text(guidellm(RUN, itl=False))
    raw = json.loads(path.read_text())["benchmarks"][0]["metrics"]["time_per_output_token_ms"]
    assert raw["successful"]["mean"] == pytest.approx(10.95)
    (result,) = read_results(path).results
    assert result.tpot.mean == pytest.approx(10.0)
    assert result.tpot.percentiles == {}
    assert "includes the first token" in result.notes[0]


def test_a_report_made_from_guidellm_takes_its_inter_token_latency(tmp_path):
    data = json.loads(llmd(RUN, tool="guidellm"))
    latency = data["results"]["request_performance"]["aggregate"]["latency"]
    latency["time_per_output_token"]["mean"] = 0.01095
    path = tmp_path / "report.json"
    path.write_text(json.dumps(data))
    (result,) = read_results(path).results
    assert result.tpot.mean == pytest.approx(10.0)
    assert result.itl is None


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_report_is_read_by_its_units(unit, tmp_path):
    path = tmp_path / "report.yaml"
    path.write_text(llmd(RUN, unit=unit))
    (result,) = read_results(path).results
    assert result.ttft.mean == pytest.approx(200)


def test_a_unit_nobody_knows_is_no_guess(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(llmd(RUN).replace('"s/token"', '"fortnights"'))
    with pytest.raises(InputError, match="unit 'fortnights' is not one of s, s/token"):
        read_results(path)


def test_every_line_of_a_jsonl_file_is_a_run_and_bad_ones_say_why(tmp_path):
    broken = json.loads(sglang(RUN))
    del broken["total_output_tokens"]
    path = tmp_path / "runs.jsonl"
    path.write_text(sglang(RUN) + json.dumps(broken) + "\n" + sglang(RUN))
    file = read_results(path)
    assert [result.place for result in file.results] == ["line 1", "line 3"]
    assert [(bad.place, bad.reasons) for bad in file.unusable] == [
        ("line 2", ("total_output_tokens is missing",))
    ]


def test_every_benchmark_of_a_guidellm_sweep_is_a_run(tmp_path):
    data = json.loads(guidellm(RUN))
    data["benchmarks"] *= 3
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(data))
    places = [result.place for result in read_results(path).results]
    assert places == ["benchmarks[0]", "benchmarks[1]", "benchmarks[2]"]


def test_infinite_concurrency_in_yaml_is_no_limit(tmp_path):
    text = """
version: 0.2.1
scenario:
  load:
    standardized:
      tool: inference-perf
      concurrency: .inf
      rate_qps: 10.0
results:
  request_performance:
    aggregate:
      latency:
        time_to_first_token: {mean: 0.25, p99: 0.9, p99p9: 1.5, units: s}
      requests:
        total: 500
        failures: 0
        input_length: {mean: 2262.448, units: count}
        output_length: {mean: 100, units: count}
"""
    path = tmp_path / "report.yaml"
    path.write_text(text)
    (result,) = read_results(path).results
    assert (result.load, result.concurrency) == ("open_loop", None)
    assert result.ttft.percentiles == {99.0: 900.0, 99.9: 1500.0}
    assert result.tpot is None


@pytest.mark.parametrize(("length", "speculated"), [(2.4, True), (None, None)])
@pytest.mark.parametrize("tool", ["vllm-bench", "sglang-bench"])
def test_accepted_drafts_show_that_the_server_speculated(tool, length, speculated, tmp_path):
    run = Run(RUN.ttft, RUN.tpot, ttft_mean=1, tpot_mean=1, rate=1.0, accept_length=length)
    (result,) = read_results(stored(tmp_path, tool, run)).results
    assert result.speculated is speculated


BAD = {
    "no JSON at all": ("a.json", "hello", "neither JSON, JSON lines nor YAML"),
    "another program's JSON": ("a.json", '{"a": 1}', "not a result file of guidellm"),
    "a list of numbers": ("a.json", "[1, 2]", "holds no run"),
    "an old report": ("a.json", '{"metrics": {}, "scenario": {}}', "before 0.2"),
    "no requests": ("a.json", vllm(Run(RUN.ttft, RUN.tpot, requests=0)), "completed is 0"),
    "text for a number": (
        "a.json",
        vllm(RUN).replace('"mean_ttft_ms": 200.0', '"mean_ttft_ms": "fast"'),
        "mean_ttft_ms: 'fast' is not a number",
    ),
    "a negative latency": (
        "a.json",
        vllm(RUN).replace('"mean_ttft_ms": 200.0', '"mean_ttft_ms": -1'),
        "mean_ttft_ms: -1 is below 0",
    ),
    "no streaming": (
        "a.json",
        json.dumps(
            {k: v for k, v in json.loads(vllm(RUN)).items() if "ttft" not in k and "tpot" not in k}
        ),
        "neither TTFT nor TPOT; run the tool with streaming on",
    ),
    "an empty sweep": ("a.json", '{"benchmarks": []}', "holds no run"),
    "a broken sweep": ("a.json", '{"benchmarks": [7]}', "is missing"),
    "half a file": ("a.json", vllm(RUN)[:200], "is the file whole"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_a_file_that_cannot_be_used_says_why(case, tmp_path):
    name, text, message = BAD[case]
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_results(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(key=st.sampled_from(sorted(json.loads(vllm(RUN)))), value=JSON)
def test_any_value_in_any_key_ends_in_a_result_or_a_reason(key, value, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "result.json"
    path.write_text(json.dumps(json.loads(vllm(RUN)) | {key: value}))
    with contextlib.suppress(InputError):
        assert read_results(path).results[0].requests >= 1
