"""Metrics of a running vLLM -> rate, lengths and prefix hits of an slo.yaml.

Source:
    vllm-project/vllm, docs/design/metrics.md: names, and that prefix-cache counters count tokens.
    Retrieved 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from planner.counting import counted
from planner.errors import InputError
from planner.importers.draft import Draft, Given
from planner.importers.prometheus import Dump, Histogram, read_dump
from planner.importers.slo_words import Values, chosen, rounded
from planner.spec.lengths import QuantileLengths
from planner.units import MILLI

PREFIX = "vllm:"
REQUESTS = ("vllm:request_success_total", "vllm:request_prompt_tokens_count")
PROMPTS = ("vllm:request_prompt_tokens",)
OUTPUTS = ("vllm:request_generation_tokens",)
HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
QUERIES = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
STARTED = "process_start_time_seconds"
LATENCIES = (
    ("TTFT", ("vllm:time_to_first_token_seconds",)),
    ("TPOT", ("vllm:request_time_per_output_token_seconds",)),
    ("ITL", ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")),
    ("E2E", ("vllm:e2e_request_latency_seconds",)),
)
"""What is told of today's latencies, by histogram; the first that is there."""
FEW = 100
"""Requests below which percentiles say little."""
BLURRED = 0.15
"""A mean that the percentiles miss by more than this share is told."""
MOST_HITS = 0.99


def read_metrics(files: Sequence[Path], window_s: float | None = None, entry: str = "") -> Draft:
    """Read one dump of ``/metrics``, or an earlier and a later one.

    One dump counts from the start of the server; of two, what lies between counts.

    Args:
        files: One or two dumps; the earlier first.
        window_s: Seconds that the counters cover [s]; None = from the dumps.
        entry: Model, where the server serves several.

    Raises:
        InputError: A file is no dump of vLLM, holds no finished request, or does not tell how
            long it counted.
    """
    if not 1 <= len(files) <= 2:
        raise InputError("--from-metrics", ["takes one dump, or an earlier and a later one"])
    dumps = [read_dump(path) for path in files]
    last = dumps[-1]
    models = {name: name for name in last.labels("model_name", PREFIX)}
    if not models:
        message = "holds no metric of vLLM (vllm:...); give what GET /metrics of vLLM answers"
        raise InputError(last.source, [message])
    model = chosen(last.source, "model", models, entry)
    counted = last.since(dumps[0]) if len(dumps) > 1 else last
    return _draft(counted.only("model_name", model), model, _window(dumps, window_s))


def _draft(dump: Dump, model: str, window: tuple[float, str]) -> Draft:
    prompts, outputs = dump.histogram(*PROMPTS), dump.histogram(*OUTPUTS)
    requests = dump.total(*REQUESTS)
    if prompts is None or outputs is None or not requests:
        raise InputError(dump.source, ["holds no finished request; wait for traffic, dump again"])
    seconds, how = window
    values: Values = {
        "model": Given(model),
        "traffic.rate_per_s": Given(
            rounded(requests / seconds), "a mean; size for the busiest hour: raise it"
        ),
        "traffic.prompt_tokens": Given(_lengths(prompts), f"mean {prompts.mean:.0f}"),
        "traffic.output_tokens": Given(_lengths(outputs), f"mean {outputs.mean:.0f}"),
    }
    hits, queries = dump.total(*HITS), dump.total(*QUERIES)
    if hits is not None and queries:
        share = rounded(min(hits / queries, MOST_HITS))
        values["traffic.prefix_hit_rate"] = Given(share, "hits of this server's cache")
    notes = (
        f"{_requests(requests)} in {seconds:.0f} s ({how}).",
        *_doubts(requests, {"prompt": prompts, "output": outputs}),
        *_latencies(dump),
    )
    return Draft("vLLM metrics", values, (), notes)


def _window(dumps: Sequence[Dump], given: float | None) -> tuple[float, str]:
    """Return the seconds that the counters cover, and how they are known."""
    if given is not None:
        if not given > 0:
            raise InputError("--window", [f"{given:g} must be above 0; give seconds"])
        return given, "--window"
    last = dumps[-1]
    if len(dumps) > 1:
        start: float | None = dumps[0].end
        how = "between the two dumps, by their times"
    else:
        start = last.total(STARTED)
        how = "from the start of the server to the time of the dump"
    if start is None or last.end - start <= 0:
        message = "does not tell how long it counted; give the seconds with --window"
        raise InputError(last.source, [message])
    return last.end - start, how


def _lengths(histogram: Histogram) -> dict[str, float]:
    low, high = (max(histogram.quantile(share), 1.0) for share in (0.5, 0.95))
    return {"p50": rounded(low), "p95": rounded(high)}


def _requests(count: float) -> str:
    return counted(round(count), "request")


def _doubts(requests: float, lengths: dict[str, Histogram]) -> Iterator[str]:
    if requests < FEW:
        yield f"Only {_requests(requests)}: the percentiles say little."
    for name, histogram in lengths.items():
        read = QuantileLengths(**_lengths(histogram)).mean
        if abs(read / histogram.mean - 1) > BLURRED:
            yield (
                f"The {name} percentiles, read from coarse buckets, stand for a mean of {read:.0f}"
                f" tokens; the counters say {histogram.mean:.0f}. Mend p50 and p95."
            )


def _latencies(dump: Dump) -> Iterator[str]:
    for metric, names in LATENCIES:
        histogram = dump.histogram(*names)
        if histogram is not None:
            low, high = (histogram.quantile(share) / MILLI for share in (0.5, 0.95))
            yield f"{metric} today: p50 {low:.4g} ms, p95 {high:.4g} ms."
