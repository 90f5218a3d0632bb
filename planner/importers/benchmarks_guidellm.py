"""Results of GuideLLM (``benchmarks.json`` or ``.yaml``), one run a benchmark.

Source: vllm-project/guidellm src/guidellm/benchmark/schemas/generative/metrics.py and
schemas/base/request_stats.py, retrieved 2026-11-29: its time_per_output_token_ms is
(last token - start) / output tokens and so includes the first token; its inter_token_latency_ms
is (last token - first token) / (output tokens - 1) of each request, which is our TPOT. It keeps
no gaps between tokens.
"""

from __future__ import annotations

import re

from planner.importers.benchmarks_entry import Entry, check_latencies, load_of, statistics
from planner.spec.result import Result, Statistics

SECOND = 1000.0
"""ms"""
SPAN = "inter_token_latency_ms"
WITH_FIRST = "time_per_output_token_ms"


def read_guidellm(entry: Entry, file: str) -> Result:
    """Return one benchmark of a GuideLLM report."""
    ttft = _metric(entry, "time_to_first_token_ms")
    output = entry.required("metrics", "output_token_count", "successful", "mean")
    tpot = _metric(entry, SPAN)
    notes = [f"TPOT is GuideLLM's {SPAN}: of each request, weighted by its tokens"]
    if tpot is None:
        tpot = _without_first(entry, ttft, output)
        notes = [f"TPOT converted from {WITH_FIRST}, which includes the first token: mean only"]
    concurrency, rate = _strategy(entry)
    requests = entry.get("metrics", "request_totals") or {}
    totals = Entry(requests if isinstance(requests, dict) else {}, faults=entry.faults)
    check_latencies(entry, ttft, tpot)
    return Result(
        tool="guidellm",
        file=file,
        place=entry.place,
        model=_model(entry),
        load=load_of(concurrency, rate),
        concurrency=concurrency,
        rate_per_s=rate,
        achieved_per_s=_rate(entry, "requests_per_second"),
        requests=max(totals.count("successful", required=True), 1),
        failed=totals.count("errored"),
        prompt_tokens=entry.required("metrics", "prompt_token_count", "successful", "mean"),
        output_tokens=output,
        ttft=ttft,
        tpot=tpot,
        e2e=_metric(entry, "request_latency", SECOND),
        output_tokens_per_s=_rate(entry, "output_tokens_per_second"),
        notes=tuple(notes),
    )


def _metric(entry: Entry, name: str, factor: float = 1.0) -> Statistics | None:
    """Return a metric of the successful requests; all zero means that nothing was streamed."""
    place = ("metrics", name, "successful")
    mean = entry.positive(*place, "mean")
    if mean is None:
        return None
    keys = entry.get(*place, "percentiles") or {}
    percentiles = {
        _percent(key): entry.number(*place, "percentiles", key)
        for key in keys
        if re.fullmatch(r"p\d{2,3}", str(key))
    }
    percentiles[50.0] = entry.number(*place, "median")
    return statistics(mean, percentiles, factor)


def _percent(key: str) -> float:
    """p001 -> 0.1, p05 -> 5, p999 -> 99.9."""
    digits = key.removeprefix("p")
    return int(digits) / 10 if len(digits) == 3 else float(digits)


def _without_first(entry: Entry, ttft: Statistics | None, output: float) -> Statistics | None:
    whole = entry.positive("metrics", WITH_FIRST, "successful", "mean")
    if whole is None or ttft is None or ttft.mean is None or output <= 1:
        return None
    return statistics(max(whole * output - ttft.mean, 0.0) / (output - 1), {})


def _strategy(entry: Entry) -> tuple[float | None, float | None]:
    """Return (requests in flight, arrival rate) that the run asked for."""
    place = next(
        (path for path in (("config", "strategy"), ("args", "strategy")) if entry.get(*path)),
        ("config", "strategy"),
    )
    kind = entry.text(*place, "kind") or entry.text(*place, "type_")
    if kind == "synchronous":
        return 1.0, None
    streams = entry.positive(*place, "streams") or entry.positive(*place, "max_concurrency")
    rate = entry.positive(*place, "rate")
    return (None, rate) if rate is not None else (streams, None)


def _rate(entry: Entry, name: str) -> float | None:
    return entry.positive("metrics", name, "successful", "mean") or entry.positive(
        "metrics", name, "total", "mean"
    )


def _model(entry: Entry) -> str:
    places = (("config", "backend"), ("args",), ("args", "backend"), ("worker",))
    names = (entry.text(*place, key) for place in places for key in ("model", "backend_model"))
    return next((name for name in names if name), "")
