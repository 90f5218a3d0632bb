"""The same run as each benchmark tool would write it: keys and units as in the tools' sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Percentiles = Mapping[int, float]


@dataclass(frozen=True)
class Run:
    """A run; latencies in ms, percentiles by percent. TPOT as we define it."""

    ttft: Percentiles
    tpot: Percentiles
    e2e: Percentiles = field(default_factory=dict)
    ttft_mean: float = 0.0
    tpot_mean: float = 0.0
    rate: float | None = None
    concurrency: int | None = None
    requests: int = 1000
    failed: int = 0
    prompt: float = 1000.0
    output: float = 200.0
    throughput: float = 1000.0
    achieved: float = 5.0
    accept_length: float | None = None
    model: str = "meta-llama/Llama-3.1-8B-Instruct"

    @property
    def e2e_mean(self) -> float:
        return self.ttft_mean + (self.output - 1) * self.tpot_mean


def _flat(run: Run, e2e: str) -> dict[str, Any]:
    metrics = {"ttft": (run.ttft_mean, run.ttft), "tpot": (run.tpot_mean, run.tpot)}
    metrics |= {"itl": (run.tpot_mean, run.tpot), e2e: (run.e2e_mean, run.e2e)}
    out: dict[str, Any] = {
        "request_rate": run.rate if run.rate is not None else "inf",
        "max_concurrency": run.concurrency,
        "duration": run.requests / run.achieved,
        "completed": run.requests,
        "total_input_tokens": round(run.prompt * run.requests),
        "total_output_tokens": round(run.output * run.requests),
        "request_throughput": run.achieved,
        "output_throughput": run.throughput,
    }
    for name, (mean, percentiles) in metrics.items():
        out[f"mean_{name}_ms"] = mean
        out[f"std_{name}_ms"] = 0.1 * mean
        if 50 in percentiles:
            out[f"median_{name}_ms"] = percentiles[50]
        out |= {f"p{share}_{name}_ms": value for share, value in percentiles.items()}
    return out


def vllm(run: Run) -> str:
    data = {"date": "20261129-120000", "endpoint_type": "openai", "backend": "openai"}
    data |= {"model_id": run.model, "num_prompts": run.requests + run.failed, "burstiness": 1.0}
    if run.accept_length:
        data["spec_decode_acceptance_length"] = run.accept_length
    return json.dumps(data | _flat(run, "e2el") | {"failed": run.failed, "errors": [""]})


def sglang(run: Run) -> str:
    data = {"backend": "sglang", "dataset_name": "random", "random_input_len": run.prompt}
    data |= _flat(run, "e2e_latency") | {"accept_length": run.accept_length, "concurrency": 3.2}
    data["request_rate"] = run.rate if run.rate is not None else float("inf")
    data["num_prompts"] = run.requests + run.failed
    return json.dumps(data) + "\n"


def _distribution(mean: float, percentiles: Percentiles) -> dict[str, Any]:
    named = {f"p{share:02d}": value for share, value in percentiles.items()}
    good = {"mean": mean, "median": percentiles.get(50, mean), "std_dev": 0.1 * mean}
    good |= {"count": 10, "percentiles": named}
    return {"successful": good, "errored": None, "incomplete": None, "total": good}


def guidellm(run: Run, *, itl: bool = True) -> str:
    count = {"successful": run.requests, "errored": run.failed, "incomplete": 0}
    with_first = run.e2e_mean / run.output
    metrics: dict[str, Any] = {
        "request_totals": count | {"total": run.requests + run.failed},
        "requests_per_second": _distribution(run.achieved, {}),
        "request_latency": _distribution(
            run.e2e_mean / 1e3, {k: v / 1e3 for k, v in run.e2e.items()}
        ),
        "prompt_token_count": _distribution(run.prompt, {}),
        "output_token_count": _distribution(run.output, {}),
        "time_to_first_token_ms": _distribution(run.ttft_mean, run.ttft),
        "time_per_output_token_ms": _distribution(with_first, {}),
        "output_tokens_per_second": _distribution(run.throughput, {}),
    }
    if itl:
        metrics["inter_token_latency_ms"] = _distribution(run.tpot_mean, run.tpot)
    strategy = (
        {"type_": "poisson", "rate": run.rate}
        if run.rate is not None
        else {"type_": "concurrent", "streams": run.concurrency}
    )
    benchmark = {
        "type_": "generative_benchmark",
        "config": {"strategy": strategy, "backend": {"model": run.model}},
        "metrics": metrics,
    }
    return json.dumps({"metadata": {"version": 1}, "args": {}, "benchmarks": [benchmark]})


def _seconds(mean: float, percentiles: Percentiles) -> dict[str, Any]:
    out = {"mean": mean / 1e3, "min": 0.0, "max": mean / 1e3 * 9}
    if 50 in percentiles:
        out["median"] = percentiles[50] / 1e3
    return out | {f"p{share}": value / 1e3 for share, value in percentiles.items() if share != 50}


def inference_perf(run: Run) -> str:
    load: dict[str, Any] = {"count": run.requests, "schedule_accuracy": {"mean": 0.001}}
    load |= {"requested_rate": run.rate} if run.rate else {"concurrency": run.concurrency}
    successes = {
        "count": run.requests,
        "latency": {
            "request_latency": _seconds(run.e2e_mean, run.e2e),
            "time_per_output_token": _seconds(run.tpot_mean, run.tpot),
            "time_to_first_token": _seconds(run.ttft_mean, run.ttft),
            "inter_token_latency": _seconds(run.tpot_mean, run.tpot),
        },
        "throughput": {
            "requests_per_sec": run.achieved,
            "output_tokens_per_sec": run.throughput,
        },
        "prompt_tokens": {"total": run.prompt * run.requests, "mean": run.prompt},
        "output_tokens": {"total": run.output * run.requests, "mean": run.output},
    }
    failures = {"count": run.failed, "request_latency": None}
    return json.dumps(
        {"benchmark_time_seconds": 60.0, "load_summary": load}
        | {"successes": successes, "failures": failures}
    )


def _unit(mean: float, percentiles: Percentiles, unit: str) -> dict[str, Any]:
    factor = 1e-3 if unit.startswith("s") else 1.0
    out: dict[str, Any] = {"units": unit, "mean": mean * factor}
    return out | {f"p{share}": value * factor for share, value in percentiles.items()}


def llmd(run: Run, *, unit: str = "s", tool: str = "inference-perf") -> str:
    load = {"tool": tool, "rate_qps": run.rate, "concurrency": run.concurrency}
    engine = {"kind": "inference_engine", "model": {"name": run.model}}
    per_token = f"{unit}/token"
    aggregate = {
        "latency": {
            "time_to_first_token": _unit(run.ttft_mean, run.ttft, unit),
            "time_per_output_token": _unit(run.tpot_mean, run.tpot, per_token),
            "inter_token_latency": _unit(run.tpot_mean, run.tpot, per_token),
            "request_latency": _unit(run.e2e_mean, run.e2e, unit),
        },
        "requests": {
            "total": run.requests + run.failed,
            "failures": run.failed,
            "input_length": {"units": "count", "mean": run.prompt},
            "output_length": {"units": "count", "mean": run.output},
        },
        "throughput": {
            "output_token_rate": {"units": "tokens/s", "mean": run.throughput},
            "request_rate": {"units": "queries/s", "mean": run.achieved},
        },
    }
    return json.dumps(
        {
            "version": "0.2.1",
            "scenario": {"load": {"standardized": load}, "stack": [{"standardized": engine}]},
            "results": {"request_performance": {"aggregate": aggregate}},
        }
    )


WRITERS: Mapping[str, tuple[str, Callable[[Run], str]]] = {
    "vllm-bench": ("result.json", vllm),
    "sglang-bench": ("result.jsonl", sglang),
    "guidellm": ("benchmarks.json", guidellm),
    "inference-perf": ("stage_0_lifecycle_metrics.json", inference_perf),
    "llm-d-report": ("report.yaml", llmd),
}
"""Tool -> name of its file and its writer. JSON is YAML, so the report may be either."""
