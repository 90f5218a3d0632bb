"""The llm-d benchmark report, version 0.2 and later: one run, with a unit beside every figure.

Source: llm-d/llm-d-benchmark benchmark-report/llmd_benchmark_report/br_v0_2_1_example.yaml and
its JSON schema, retrieved 2026-11-29. The report passes on what its tool measured, so TPOT of a
GuideLLM run still includes the first token.
"""

from __future__ import annotations

import re

from planner.importers.benchmarks_entry import Entry, check_latencies, load_of, statistics
from planner.spec.result import Result, Statistics

IN_MS = {"s": 1e3, "s/token": 1e3, "ms": 1.0, "ms/token": 1.0, "us": 1e-3, "us/token": 1e-3}
AGGREGATE = ("results", "request_performance", "aggregate")
LOAD = ("scenario", "load", "standardized")
FIRST_TOKEN_TOOLS = ("guidellm",)
"""Tools whose time per output token includes the first token."""


def read_llmd(entry: Entry, file: str) -> Result:
    """Return the run that a benchmark report is about."""
    tool = entry.text(*LOAD, "tool").casefold()
    first = tool in FIRST_TOKEN_TOOLS
    ttft = _metric(entry, "time_to_first_token")
    tpot = _metric(entry, "inter_token_latency" if first else "time_per_output_token")
    rate = entry.positive(*LOAD, "rate_qps")
    concurrency = entry.positive(*LOAD, "concurrency")
    total = entry.count(*AGGREGATE, "requests", "total", required=True)
    failed = entry.count(*AGGREGATE, "requests", "failures")
    if failed >= total and not entry.faults:
        entry.faults.append(f"every request failed ({total})")
    check_latencies(entry, ttft, tpot)
    return Result(
        tool="llm-d-report",
        file=file,
        place=entry.place,
        model=_model(entry),
        load=load_of(concurrency, rate),
        concurrency=concurrency,
        rate_per_s=rate,
        achieved_per_s=entry.positive(*AGGREGATE, "throughput", "request_rate", "mean"),
        requests=max(total - failed, 1),
        failed=failed,
        prompt_tokens=entry.required(*AGGREGATE, "requests", "input_length", "mean"),
        output_tokens=entry.required(*AGGREGATE, "requests", "output_length", "mean"),
        ttft=ttft,
        tpot=tpot,
        itl=None if first else _metric(entry, "inter_token_latency"),
        e2e=_metric(entry, "request_latency"),
        output_tokens_per_s=entry.positive(*AGGREGATE, "throughput", "output_token_rate", "mean"),
        notes=("TPOT is the run's inter-token latency: this tool's TPOT includes the first token",)
        if first
        else (),
    )


def _metric(entry: Entry, name: str) -> Statistics | None:
    place = (*AGGREGATE, "latency", name)
    summary = entry.get(*place)
    if not summary:
        return None
    unit = entry.text(*place, "units")
    if unit not in IN_MS:
        known = ", ".join(IN_MS)
        entry.faults.append(f"{name}: unit {unit!r} is not one of {known}")
        return None
    keys = [key for key in summary if re.fullmatch(r"p\d+(p\d+)?", str(key))]
    percentiles = {float(key[1:].replace("p", ".")): entry.number(*place, key) for key in keys}
    return statistics(entry.number(*place, "mean"), percentiles, IN_MS[unit])


def _model(entry: Entry) -> str:
    """Return the model of the first inference engine in the stack."""
    for part in entry.get("scenario", "stack") or ():
        name = Entry(part if isinstance(part, dict) else {}).text("standardized", "model", "name")
        if name:
            return name
    return ""
