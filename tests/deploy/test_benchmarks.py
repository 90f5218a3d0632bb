"""Verification runs: the planned rate and lengths, the targets as limits."""

import csv
import io
import json
import shlex

import jsonschema
import numpy as np
import pytest
import yaml

from planner.errors import InputError
from tests.deploy.known_flags import GUIDELLM, SERVE, VLLM_BENCH, VLLM_SWEEP
from tests.deploy.schemas import INFERENCE_PERF
from tests.deploy.test_engines import of, value

# Log-normal by hand: mean = p50 exp(s^2 / 2), s = ln(p95 / p50) / 1.6449.
MEAN_PROMPT, MEAN_OUTPUT = 1212, 304
OFFLINE = {
    "traffic": {"rate_per_s": None, "offline": {"requests": 9000, "deadline_hours": 2.0}},
    "targets": {},
}


PREFIXED = {"traffic": {"prefix_hit_rate": 0.25}}
CONSTANT = {"traffic": {"prompt_tokens": 1000.0, "output_tokens": 200.0}}


def text_of(made):
    """The script or configuration, which comes first; a file of lengths may follow."""
    return next(iter(made.files.values()))


def lengths_of(made):
    """Prompt and output of each request, as vLLM picks them: columns 3 and 4 of model GPT-4."""
    (text,) = [text for name, text in made.files.items() if name.endswith("-lengths.csv")]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == [
        "Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type",
    ]  # fmt: skip
    assert {row["Model"] for row in rows} == {"GPT-4"}
    return np.array([(int(r["Request tokens"]), int(r["Response tokens"])) for r in rows])


def test_vllm_bench_runs_at_the_planned_rate_and_lengths(exported, words):
    called = words(text_of(exported("vllm-bench")))
    assert {word for word in called if word.startswith("--")} <= VLLM_BENCH
    assert called[:3] == ["vllm", "bench", "serve"]
    assert float(value(called, "--request-rate")) == 12.0
    # Five minutes at 12 per second.
    assert value(called, "--num-prompts") == "3600"
    good = called[called.index("--goodput") + 1 :][:2]
    assert good == ["ttft:800", "tpot:40"]
    assert value(called, "--metric-percentiles") == "50,90,95,99"


def test_vllm_bench_draws_the_plans_own_lengths(exported, words):
    made = exported("vllm-bench")
    called = words(text_of(made))
    assert value(called, "--dataset-name") == "burstgpt"
    assert value(called, "--dataset-path") in made.files
    drawn = lengths_of(made)
    for column, p50, p95, mean in ((0, 900, 3200, MEAN_PROMPT), (1, 250, 700, MEAN_OUTPUT)):
        assert np.median(drawn[:, column]) == pytest.approx(p50, rel=0.01)
        assert np.quantile(drawn[:, column], 0.95) == pytest.approx(p95, rel=0.02)
        assert drawn[:, column].mean() == pytest.approx(mean, rel=0.01)
    # Long prompts do not come with long answers, nor with short ones.
    assert abs(np.corrcoef(np.argsort(np.argsort(drawn, axis=0), axis=0).T)[0, 1]) < 0.03
    assert "NOTE: the lengths" not in text_of(made)


def test_no_request_of_the_file_is_longer_than_the_server_accepts(exported):
    drawn = lengths_of(exported("vllm-bench", traffic={"max_context_tokens": 4000}))
    assert drawn.sum(axis=1).max() <= 4000
    assert drawn.min() >= 1


@pytest.mark.parametrize("target", ["guidellm", "inference-perf", "vllm-bench", "vllm-sweep"])
def test_a_run_with_symmetric_lengths_says_so_and_what_it_means(target, exported):
    text = text_of(exported(target, **PREFIXED))
    note = text[text.index("NOTE: the lengths of this run lie evenly") :].split("\n# ")[0]
    # p95 as the plan states it.
    for words in ("longer than 3,200 tokens", "output in 20 than 700", "come out lower here"):
        assert words in note.replace("\n", " ")


@pytest.mark.parametrize("target", ["guidellm", "inference-perf", "vllm-bench", "vllm-sweep"])
def test_constant_lengths_need_no_such_note(target, exported):
    made = exported(target, **CONSTANT)
    assert "NOTE: the lengths" not in text_of(made)
    assert not [name for name in made.files if name.endswith("-lengths.csv")]


def test_rate_and_address_can_be_changed_for_one_replica(exported, words):
    text = text_of(exported("vllm-bench"))
    assert "for one replica alone run with RATE=6" in text
    called = words(text, RATE="6", URL="http://10.0.0.1:9000")
    assert value(called, "--request-rate") == "6"
    assert value(called, "--base-url") == "http://10.0.0.1:9000"


def test_cached_prefixes_are_shared_by_all_prompts(exported, words):
    called = words(text_of(exported("vllm-bench", **PREFIXED)))
    prefix, rest = (int(value(called, f"--random-{part}-len")) for part in ("prefix", "input"))
    assert prefix + rest == pytest.approx(MEAN_PROMPT, abs=1)
    assert prefix == pytest.approx(0.25 * MEAN_PROMPT, abs=1)


def test_burstier_arrivals_have_a_smaller_shape(exported, words):
    # A gamma distribution of shape k has a squared CV of 1 / k.
    called = words(text_of(exported("vllm-bench", traffic={"burstiness": 4.0})))
    assert value(called, "--burstiness") == "0.25"


@pytest.mark.parametrize("cv", [0.0, 0.2, 3.0])
def test_uniform_lengths_have_the_plans_spread_as_far_as_they_can(cv, exported, words):
    lengths = {"mean": 1000.0, "cv": cv}
    # Prompts that share a prefix cannot come from a file.
    traffic = {"prompt_tokens": lengths, "output_tokens": lengths, "prefix_hit_rate": 0.5}
    called = words(text_of(exported("vllm-bench", traffic=traffic)))
    # Uniform in (1 +- r) x mean has a standard deviation of r / sqrt(3) x mean.
    assert float(value(called, "--random-range-ratio")) == pytest.approx(
        min(3**0.5 * cv, 0.99), abs=0.01
    )


def test_offline_work_is_sent_at_once(exported, words):
    called = words(text_of(exported("vllm-bench", **OFFLINE)))
    assert "--request-rate" not in called
    assert "--goodput" not in called
    assert value(called, "--num-prompts") == "1000"
    guide = words(text_of(exported("guidellm", **OFFLINE)))
    assert value(guide, "--profile") == "kind=throughput"


def test_guidellm_gets_the_same_run(exported, words):
    called = words(text_of(exported("guidellm")))
    assert {word for word in called if word.startswith("--")} <= GUIDELLM
    assert value(called, "--profile") == "kind=poisson,rate=12"
    data = json.loads(value(called, "--data"))
    assert (data["prompt_tokens"], data["output_tokens"]) == (MEAN_PROMPT, MEAN_OUTPUT)
    metrics = json.loads(value(called, "--metrics"))
    assert metrics == {"kind": "generative", "slo": {"ttft_ms": 800.0, "tpot_ms": 40.0}}
    assert value(called, "--constraint") == "kind=max_duration,seconds=300"
    assert value(called, "--backend").endswith("model=meta-llama/Llama-3.3-70B-Instruct")


def test_bells_are_cut_evenly_so_that_their_mean_stays(exported, words):
    data = json.loads(value(words(text_of(exported("guidellm"))), "--data"))
    for key in ("prompt_tokens", "output_tokens"):
        low, high = data[f"{key}_min"], data[f"{key}_max"]
        assert (low + high) / 2 == pytest.approx(data[key], abs=1)
        assert low >= 2


def test_a_bursty_plan_says_that_guidellm_is_not(exported):
    text = text_of(exported("guidellm", traffic={"burstiness": 4.0}))
    assert "NOTE: the plan's gaps have a squared CV of 4; these have 1." in text


@pytest.mark.parametrize("changes", [{}, {"traffic": {"prefix_hit_rate": 0.5}}, OFFLINE])
def test_inference_perfs_file_fits_its_schema(changes, exported):
    jsonschema.validate(yaml.safe_load(text_of(exported("inference-perf", **changes))),
                        INFERENCE_PERF)  # fmt: skip


def test_inference_perf_takes_limits_in_seconds(exported):
    config = yaml.safe_load(text_of(exported("inference-perf", **of("sglang"))))
    assert config["load"]["stages"] == [{"rate": 12.0, "duration": 300}]
    assert config["report"]["goodput"]["constraints"] == {"ttft": 0.8, "tpot": 0.04}
    assert config["server"]["type"] == "sglang"
    assert config["server"]["base_url"] == "http://localhost:30000"
    lengths = config["data"]["input_distribution"]
    assert lengths["mean"] == MEAN_PROMPT
    assert (lengths["min"] + lengths["max"]) / 2 == pytest.approx(MEAN_PROMPT, abs=1)


def test_the_sweep_surrounds_the_option_and_the_rate_of_one_replica(exported, words):
    made = exported("vllm-sweep")
    script_text, serve_text, bench_text, _ = made.files.values()
    called = words(script_text)
    assert {word for word in called if word.startswith("--")} <= VLLM_SWEEP
    serve, bench = json.loads(serve_text), json.loads(bench_text)
    assert {"max_num_seqs": 128, "max_num_batched_tokens": 8192} in serve
    assert len({tuple(point.values()) for point in serve}) == 9
    assert [point["request_rate"] for point in bench] == pytest.approx([4.8, 6.0, 7.2])
    inner = shlex.split(value(called, "--serve-cmd"))
    assert {word for word in inner if word.startswith("--")} <= SERVE["vllm"]
    bench_words = shlex.split(value(called, "--bench-cmd"))
    assert value(bench_words, "--request-rate") == "6"
    assert value(bench_words, "--dataset-path") in made.files
    assert {value(called, "--serve-params"), value(called, "--bench-params")} <= set(made.files)


def test_a_sweep_over_servers_is_refused(exported):
    wide = {"tp": 16, "gpus_per_replica": 16, "replicas": 1, "instances": 2, "gpus": 16}
    with pytest.raises(InputError, match="starts one server, not 2"):
        exported("vllm-sweep", **wide)


@pytest.mark.parametrize("target", ["guidellm", "vllm-bench", "inference-perf"])
def test_every_run_says_what_to_do_with_its_result(target, exported):
    text = text_of(exported(target))
    assert "plan verify PLAN" in text
    assert "plan calibrate" in text


def test_a_batch_job_fills_the_batch_of_every_replica_twice_and_names_no_rate(exported, words):
    # By hand: 2 x 8 replicas x 2 ranks x 512 sequences.
    sized = {"replicas": 8, "dp": 2, "max_num_seqs": 512}
    text = text_of(exported("vllm-bench", **OFFLINE, **sized))
    assert value(words(text), "--num-prompts") == "16384"
    assert "RATE" not in text
    assert "requests/s" not in text
    assert "As a batch job of 9,000 requests" in text
    assert "for one replica alone run with 1/8 of the requests" in text


def test_a_sweep_of_a_batch_job_sends_all_at_once(exported):
    made = exported("vllm-sweep", **OFFLINE, max_num_seqs=512)
    (bench,) = [json.loads(t) for name, t in made.files.items() if name.endswith("-bench.json")]
    # By hand: twice the largest limit tried, 2 x 512.
    assert bench == [{"num_prompts": 2048}]
