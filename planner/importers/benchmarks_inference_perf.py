"""Results of inference-perf: its ``summary_`` and ``stage_N_lifecycle_metrics.json``.

Source: kubernetes-sigs/inference-perf inference_perf/reportgen/base.py and docs/reports.md,
retrieved 2026-11-29. Latencies are in seconds; its time_per_output_token is (last - first token) /
(tokens - 1) of each request, which is our TPOT.
"""

from __future__ import annotations

import re

from planner.importers.benchmarks_entry import Entry, check_latencies, load_of, statistics
from planner.spec.result import Result, Statistics

SECOND = 1000.0
"""ms"""
LATENCIES = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
    "e2e": "request_latency",
}


def read_inference_perf(entry: Entry, file: str) -> Result:
    """Return the run, or the stage of a run, that a lifecycle report is about."""
    found = {metric: _metric(entry, name) for metric, name in LATENCIES.items()}
    rate = entry.positive("load_summary", "requested_rate")
    concurrency = entry.positive("load_summary", "concurrency") or entry.positive(
        "load_summary", "concurrency_level"
    )
    achieved = entry.positive("successes", "throughput", "requests_per_sec")
    notes: tuple[str, ...] = ()
    if rate is None and concurrency is None:
        rate = achieved
        notes = ("a summary names no rate: the rate achieved is taken for the rate asked",)
    check_latencies(entry, found["ttft"], found["tpot"])
    return Result(
        tool="inference-perf",
        file=file,
        place=entry.place,
        load=load_of(concurrency, rate),
        concurrency=concurrency,
        rate_per_s=rate,
        achieved_per_s=achieved,
        requests=max(entry.count("successes", "count", required=True), 1),
        failed=entry.count("failures", "count"),
        prompt_tokens=_length(entry, "prompt_tokens", "prompt_len"),
        output_tokens=_length(entry, "output_tokens", "output_len"),
        output_tokens_per_s=entry.positive("successes", "throughput", "output_tokens_per_sec"),
        notes=notes,
        ttft=found["ttft"],
        tpot=found["tpot"],
        itl=found["itl"],
        e2e=found["e2e"],
    )


def _metric(entry: Entry, name: str) -> Statistics | None:
    place = ("successes", "latency", name)
    summary = entry.get(*place) or {}
    keys = [key for key in summary if re.fullmatch(r"p\d+(\.\d+)?", str(key))]
    percentiles = {float(key[1:]): entry.number(*place, key) for key in keys}
    percentiles[50.0] = entry.number(*place, "median")
    return statistics(entry.number(*place, "mean"), percentiles, SECOND)


def _length(entry: Entry, name: str, old: str) -> float:
    """Return a mean length; older reports call it ``prompt_len``, ``output_len``."""
    key = name if entry.get("successes", name, "mean") is not None else old
    key = key if entry.get("successes", key, "mean") is not None else name
    return entry.required("successes", key, "mean")
