"""The round trip: option -> exported run -> result file -> calibrate -> verify."""

import json
import shlex

import numpy as np
import pytest

from planner.commands.calibrate import calibrate
from planner.commands.export import export
from planner.commands.verify import verify
from planner.errors import InputError
from tests.deploy.plans import record, stored
from tests.importers.benchmark_files import WRITERS, Run

TOOLS = tuple(WRITERS)
TARGETS = {
    "ttft_p95_ms": (800.0, 400.0, 560.0),
    "tpot_p95_ms": (40.0, 22.0, 28.0),
    "e2e_p95_ms": (20000.0, 14000.0, 17000.0),
}
"""Key -> limit, predicted, with margin."""


def load_of(plan):
    """Rate and mean lengths that the exported run asks for."""
    (text,) = export(plan, "cheapest", "guidellm").files.values()
    words = shlex.split(text.replace("\\\n", " "), comments=True)
    data = json.loads(words[words.index("--data") + 1])
    lengths = (data[f"{name}_tokens"] for name in ("prompt", "output"))
    (rate,) = [line for line in text.splitlines() if line.startswith("RATE=")]
    return float(rate.split(":-")[1].rstrip('}"')), *lengths


def result(tmp_path, tool, plan, *, seed, slower=1.0, load=1.0, requests=3600):
    """A result file: predicted percentiles times a factor, with 3 % noise."""
    rate, prompt, output = load_of(plan)
    noise = np.random.default_rng(seed)

    def spread(p95):
        value = p95 * slower * float(np.exp(noise.normal(0, 0.03)))
        return {50: 0.5 * value, 90: 0.9 * value, 95: value, 99: 1.3 * value}

    run = Run(
        ttft=spread(400.0),
        tpot=spread(22.0),
        e2e=spread(14000.0),
        ttft_mean=220.0 * slower,
        tpot_mean=18.0 * slower,
        rate=rate * load,
        achieved=rate * load,
        requests=requests,
        prompt=prompt,
        output=output,
        throughput=rate * load * output,
        model="meta-llama/Llama-3.3-70B-Instruct",
    )
    name, write = WRITERS[tool]
    path = tmp_path / f"{seed}-{name}"
    path.write_text(write(run))
    return path


# 20 cases: every tool x a run that holds, one that misses TPOT, one that misses all, a lighter one.
KINDS = {
    "as predicted": ({"slower": 1.0}, ("holds", "holds", "holds")),
    "half as slow again": ({"slower": 1.65}, ("holds", "holds", "misses")),
    "three times as slow": ({"slower": 3.0}, ("misses", "misses", "misses")),
    "at half the rate": ({"load": 0.5}, ("not comparable",) * 3),
}
CASES = [(tool, kind) for tool in TOOLS for kind in KINDS]


@pytest.fixture
def plan(tmp_path):
    return stored(tmp_path / "plan.json", record(targets=TARGETS))


@pytest.mark.parametrize(("tool", "kind"), CASES)
def test_an_exported_run_comes_back_with_the_right_verdicts(tool, kind, plan, tmp_path):
    changes, verdicts = KINDS[kind]
    seed = CASES.index((tool, kind))
    path = result(tmp_path, tool, plan, seed=seed, **changes)
    (checked,) = verify(plan, [path])
    assert checked.result.tool == tool
    assert tuple(check.verdict for check in checked.checks) == verdicts
    by_key = {check.key: check for check in checked.checks}
    slower = changes.get("slower", 1.0)
    for key, (limit, predicted, _) in TARGETS.items():
        assert (by_key[key].limit, by_key[key].predicted) == (limit, predicted)
        assert by_key[key].measured == pytest.approx(predicted * slower, rel=0.12)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_same_files_calibrate_the_option(tool, plan, tmp_path):
    paths = [
        result(tmp_path, tool, plan, seed=seed, slower=slower, load=load)
        for seed, (slower, load) in enumerate([(1.2, 1.0), (1.0, 0.7), (1.1, 0.9)])
    ]
    found = calibrate(paths, plan=plan, option="cheapest", date="2026-11-20")
    (entry,) = found.entries
    assert (entry.accelerator, entry.generation, entry.weights) == ("h200-sxm", "vllm-v1", "fp8")
    assert entry.tpot.points == 3
    assert entry.tpot.low <= entry.tpot.high
    assert len(entry.sources) == 3


def test_a_run_on_one_replica_is_held_to_its_share_of_the_rate(plan, tmp_path):
    path = result(tmp_path, "vllm-bench", plan, seed=1, load=0.5)
    (whole,) = verify(plan, [path])
    (one,) = verify(plan, [path], replicas=1)
    assert whole.holds is None
    assert one.holds is True
    assert one.planned.rate_per_s == pytest.approx(6.0)
    with pytest.raises(InputError, match="3 is not between 1 and the option's 2"):
        verify(plan, [path], replicas=3)


def test_every_run_of_every_file_is_judged(plan, tmp_path):
    one = result(tmp_path, "sglang-bench", plan, seed=1)
    one.write_text(one.read_text() * 2)
    other = result(tmp_path, "guidellm", plan, seed=2, slower=3.0)
    checked = verify(plan, [one, other])
    assert [found.holds for found in checked] == [True, True, False]
    assert [found.result.place for found in checked] == ["line 1", "line 2", "benchmarks[0]"]


def test_the_lengths_of_the_plan_are_what_the_run_is_compared_with(plan, tmp_path):
    path = result(tmp_path, "vllm-bench", plan, seed=1)
    data = json.loads(path.read_text())
    data["total_input_tokens"] //= 3
    path.write_text(json.dumps(data))
    (checked,) = verify(plan, [path])
    assert {check.verdict for check in checked.checks} == {"not comparable"}
    assert "prompts" in checked.checks[0].reason


def test_a_run_against_classes_is_held_to_their_mean_lengths(tmp_path):
    classes = [
        {"name": "chat", "share": 0.75, "prompt_tokens": 800.0, "output_tokens": 200.0},
        {"name": "rag", "share": 0.25, "prompt_tokens": 4000.0, "output_tokens": 600.0},
    ]
    for kind in classes:
        for key in ("prompt_tokens", "output_tokens"):
            kind[key] = {"p50": kind[key], "p95": kind[key]}
    traffic = {"classes": classes, "prompt_tokens": None, "output_tokens": None}
    plan = stored(tmp_path / "classes.json", record(targets=TARGETS, traffic=traffic))
    path = tmp_path / "run.json"
    path.write_text(WRITERS["vllm-bench"][1](Run(ttft={}, tpot={95: 22.0}, tpot_mean=18.0)))
    (checked,) = verify(plan, [path])
    # 0.75 x 800 + 0.25 x 4000 and 0.75 x 200 + 0.25 x 600.
    assert checked.planned.prompt_tokens == pytest.approx(1600)
    assert checked.planned.output_tokens == pytest.approx(300)
    with pytest.raises(InputError, match="a trace or classes; replay those"):
        export(plan, "cheapest", "guidellm")
