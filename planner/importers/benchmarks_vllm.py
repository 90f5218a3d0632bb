"""Results of ``vllm bench serve`` and of SGLang's ``bench_serving``, which share their roots.

Sources: vllm-project/vllm vllm/benchmarks/serve.py, sgl-project/sglang
python/sglang/bench_serving.py, retrieved 2026-11-29. Both take TPOT as (latency - TTFT) /
(output tokens - 1) per request, as we do, and give latencies in ms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.importers.benchmarks_entry import Entry, check_latencies, load_of, statistics
from planner.spec.result import LatencyMetric, Result, Statistics, Tool

VLLM_METRICS: Mapping[LatencyMetric, str] = {
    "ttft": "ttft",
    "tpot": "tpot",
    "itl": "itl",
    "e2e": "e2el",
}
SGLANG_METRICS: Mapping[LatencyMetric, str] = {**VLLM_METRICS, "e2e": "e2e_latency"}


def read_vllm(entry: Entry, file: str) -> Result:
    """Return a run of ``vllm bench serve``."""
    accepted = entry.number("spec_decode_acceptance_length")
    return _read(entry, file, "vllm-bench", VLLM_METRICS, None if accepted is None else True)


def read_sglang(entry: Entry, file: str) -> Result:
    """Return a run of SGLang's ``bench_serving``: one line of its JSONL file."""
    accepted = entry.number("accept_length")
    speculated = accepted > 1.0 if accepted else None
    return _read(entry, file, "sglang-bench", SGLANG_METRICS, speculated)


def _read(
    entry: Entry,
    file: str,
    tool: Tool,
    metrics: Mapping[LatencyMetric, str],
    speculated: bool | None,
) -> Result:
    found = {metric: _metric(entry, name) for metric, name in metrics.items()}
    requests = entry.count("completed", required=True)
    concurrency = entry.positive("max_concurrency")
    rate = entry.positive("request_rate")
    prompt = entry.required("total_input_tokens") / requests
    output = entry.required("total_output_tokens") / requests
    asked = entry.count("num_prompts") or requests
    check_latencies(entry, found["ttft"], found["tpot"])
    return Result(
        tool=tool,
        file=file,
        place=entry.place,
        model=entry.text("model_id"),
        load=load_of(concurrency, rate),
        concurrency=concurrency,
        rate_per_s=rate,
        achieved_per_s=entry.positive("request_throughput"),
        requests=max(requests, 1),
        failed=entry.count("failed") or max(asked - requests, 0),
        prompt_tokens=prompt,
        output_tokens=output,
        output_tokens_per_s=entry.positive("output_throughput"),
        speculated=speculated,
        ttft=found["ttft"],
        tpot=found["tpot"],
        itl=found["itl"],
        e2e=found["e2e"],
    )


def _metric(entry: Entry, name: str) -> Statistics | None:
    key = re.compile(rf"p(\d+(?:\.\d+)?)_{name}_ms")
    percentiles = {
        float(match.group(1)): entry.number(key_name)
        for key_name in entry.data
        if (match := key.fullmatch(key_name)) and 0 < float(match.group(1)) < 100
    }
    percentiles[50.0] = entry.number(f"median_{name}_ms")
    return statistics(entry.number(f"mean_{name}_ms"), percentiles)
