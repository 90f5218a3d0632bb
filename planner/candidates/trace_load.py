"""A recorded trace -> the load as the model sees it: lengths, a rate, windows of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

import numpy as np

from planner.errors import InputError
from planner.files import Document
from planner.importers.traces import (
    LONG_WINDOW_S,
    SHORT_WINDOW_S,
    Trace,
    drift,
    read_trace,
)
from planner.model.arrays import Floats, Indices
from planner.model.windows import Window
from planner.model.workload import Workload, workload_from_samples
from planner.pareto import rounded
from planner.spec.load import load
from planner.spec.slo import Slo
from planner.spec.trace import TraceSummary

DISPERSED = 1.5
"""Variance over mean of the counts of a minute from which one rate does not describe a trace."""
BURSTY = 4.0
"""The same of ten seconds within a minute, from which bursts are shorter than a minute."""
ENOUGH = 10
"""Requests from which a window has lengths of its own."""
MOST_WINDOWS = 100
"""Windows that a formula is asked for: of more, those that are about as busy are joined."""
SHARES = 200
"""Equal shares of the requests that lengths are kept as."""
UNWRITTEN = Document("slo", {}, {})
"""An SLO that comes from no file."""


@dataclass(frozen=True)
class TraceLoad:
    """A trace, and slo.yaml with the trace's figures in its place.

    Attributes:
        slo: Rate that the busiest window is worth, mean rate and lengths instead of
            ``traffic.trace``.
        trace: The requests.
        summary: For the record.
    """

    slo: Slo
    trace: Trace
    summary: TraceSummary

    def within(self, slo: Slo) -> TraceLoad:
        """Return the same for slo.yaml as it now is, with its requests cut at the longest served.

        Few that are longer must not make their window the busiest.
        """
        trace = cut(self.trace, slo.traffic.longest)
        summary = summarized(trace)
        traffic = slo.traffic.model_copy(update={"rate_per_s": summary.peak_rate_per_s})
        return TraceLoad(slo.model_copy(update={"traffic": traffic}), trace, summary)


def with_trace(slo: Slo, folder: Path, document: Document = UNWRITTEN) -> TraceLoad:
    """Read the trace that slo.yaml names, relative to the folder it lies in.

    Args:
        slo: What slo.yaml says.
        folder: Where the trace's path starts from.
        document: The file, for lines.

    Raises:
        InputError: The trace cannot be used, or does not agree with what stands beside it.
    """
    traffic = slo.traffic
    both = [key for key in ("prompt_tokens", "output_tokens") if getattr(traffic, key) is not None]
    if both:
        message = "the trace holds the lengths; remove it"
        faults = [document.fault(("traffic", key), message) for key in both]
        raise InputError(document.source, faults)
    trace = timed_trace(folder / Path(str(traffic.trace)).expanduser())
    summary = summarized(trace)
    figures = {
        "trace": None,
        "rate_per_s": summary.peak_rate_per_s,
        "mean_rate_per_s": summary.mean_rate_per_s,
        "prompt_tokens": {"shares": equal_shares(trace.prompt_tokens)},
        "output_tokens": {"shares": equal_shares(trace.output_tokens)},
    }
    data = slo.model_dump(by_alias=True, exclude_unset=True)
    data["traffic"] = {**data["traffic"], **figures}
    return TraceLoad(load(replace(document, data=data), Slo), trace, summary)


def timed_trace(path: Path, requests: int | None = None) -> Trace:
    """Read a trace, or its first requests, which must not all come at one time.

    Raises:
        InputError: The trace cannot be used.
    """
    every = read_trace(path)
    trace = every.first(requests)
    if isfinite(trace.rate_per_s):
        return trace
    if isfinite(every.rate_per_s):
        message = f"the first {len(trace):,} requests of the trace come at one time; replay more"
        raise InputError("--requests", [message])
    raise InputError(every.source, ["has no duration; give requests at different times"])


def cut(trace: Trace, longest: int | None) -> Trace:
    """Return a trace with prompts cut, then outputs, so that both together fit, and a note of it.

    Args:
        trace: The requests.
        longest: Most tokens of prompt and output; None = any.
    """
    both = trace.prompt_tokens + trace.output_tokens
    if longest is None or both.max() <= longest:
        return trace
    output = np.minimum(trace.output_tokens, longest - 1)
    prompt = np.minimum(trace.prompt_tokens, longest - output)
    told = (
        f"{np.count_nonzero(both > longest):,} of {len(trace):,} requests are longer than"
        f" {longest:,} tokens and are cut to that."
    )
    return replace(
        trace, prompt_tokens=prompt, output_tokens=output, changes=(*trace.changes, told)
    )


def summarized(trace: Trace) -> TraceSummary:
    """Return the figures of a trace."""
    seconds = window_seconds(trace)
    dispersion = [trace.dispersion(window) for window in (SHORT_WINDOW_S, LONG_WINDOW_S)]
    short, long = (float(rounded(value)) if isfinite(value) else None for value in dispersion)
    return TraceSummary(
        file=Path(trace.source).name,
        kind=trace.kind,
        requests=len(trace),
        duration_s=float(rounded(trace.arrival_s[-1])),
        mean_rate_per_s=float(rounded(trace.rate_per_s)),
        peak_rate_per_s=float(rounded(peak_rate(trace))),
        window_s=seconds or None,
        dispersion_10s=short,
        dispersion_60s=long,
    )


def equal_shares(tokens: Indices | Floats) -> tuple[float, ...]:
    """Return the means of equal shares of sorted lengths; their mean is that of all [tokens]."""
    ordered = np.sort(np.asarray(tokens, dtype=float))
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    edges = np.linspace(0.0, len(ordered), SHARES + 1)
    at = np.interp(edges, np.arange(len(ordered) + 1.0), total)
    return tuple(rounded(np.diff(at) / np.diff(edges)).tolist())


def whole_workload(trace: Trace, *, prefix_hit: float = 0.0) -> Workload:
    """Return the lengths of a whole trace, with Poisson arrivals."""
    prompt, output = trace.prompt_tokens.astype(float), trace.output_tokens.astype(float)
    return workload_from_samples(prompt, output, prefix_hit=prefix_hit)


def window_seconds(trace: Trace) -> float:
    """Return the length of the windows that describe a trace [s]; 0 = one rate does.

    The dispersion of counts decides, not the spread of the gaps: gaps know nothing of load that
    rises for a minute. Lengths that drift do as much as a rate that does. Source: our replay of
    public traces, planner/model/README.md#queueing.
    """
    if _within_minutes(trace) > BURSTY:
        return SHORT_WINDOW_S
    if trace.dispersion(LONG_WINDOW_S) > DISPERSED:
        return LONG_WINDOW_S
    if any(drift(trace)):
        several = trace.arrival_s[-1] >= 2.0 * LONG_WINDOW_S
        return LONG_WINDOW_S if several else SHORT_WINDOW_S
    return 0.0


def peak_rate(trace: Trace) -> float:
    """Return the rate at the mean lengths that brings the tokens of the busiest window [1/s].

    As many prompt tokens a second as any window, and as many output tokens: a window of long
    requests is as busy as one of many.
    """
    seconds = window_seconds(trace)
    busiest = float(_parts(trace, seconds).work.max()) if seconds else 0.0
    return max(busiest, trace.rate_per_s)


def trace_windows(
    trace: Trace, *, prefix_hit: float = 0.0, most: int = MOST_WINDOWS
) -> tuple[Window, ...]:
    """Return the windows of a trace, each with its own rate and lengths.

    Windows without requests are left out: nobody waits in them. Beyond `most` the half that is
    busiest stays as it is, and the others are joined with those that are about as busy.

    Args:
        trace: The requests.
        prefix_hit: Share of prompt tokens found in the prefix cache.
        most: Windows returned at most, at least two.
    """
    seconds, whole = window_seconds(trace), whole_workload(trace, prefix_hit=prefix_hit)
    if not seconds:
        return (Window(1.0, trace.rate_per_s, whole),)
    parts = _parts(trace, seconds)
    group = _joined(parts.work, most)
    spans, member = np.bincount(group, parts.seconds), group[parts.number]
    windows = []
    for at, span in enumerate(spans.tolist()):
        mine = np.flatnonzero(member == at)
        own = whole
        if len(mine) >= ENOUGH:
            prompt, output = (tokens[mine].astype(float) for tokens in _lengths(trace))
            own = workload_from_samples(prompt, output, prefix_hit=prefix_hit)
        windows.append(Window(len(mine) / len(trace), len(mine) / span, own))
    return tuple(windows)


@dataclass(frozen=True)
class _Parts:
    """Windows of a trace that hold requests, in order of time.

    Attributes:
        number: Window of each request, (requests,).
        seconds: How long each lasts [s], (windows,).
        work: Rate of requests of the trace's mean lengths that brings its tokens [1/s].
    """

    number: Indices
    seconds: Floats
    work: Floats


def _parts(trace: Trace, seconds: float) -> _Parts:
    # Less than half a window at the end goes to the one before: its own rate would be chance.
    last = max(round(float(trace.arrival_s[-1]) / seconds) - 1, 0)
    at = np.minimum((trace.arrival_s // seconds).astype(int), last)
    held, number, count = np.unique(at, return_inverse=True, return_counts=True)
    spans = np.where(held < last, seconds, float(trace.arrival_s[-1]) - last * seconds)
    means = [np.bincount(number, tokens) / count / tokens.mean() for tokens in _lengths(trace)]
    longer = np.where(count >= ENOUGH, np.maximum(*means), 1.0)
    return _Parts(number, spans, count / spans * longer)


def _lengths(trace: Trace) -> tuple[Indices, Indices]:
    return trace.prompt_tokens, trace.output_tokens


def _joined(work: Floats, most: int) -> Indices:
    """Return the group of each window: its own, or that of the windows that are about as busy."""
    if len(work) <= most:
        return np.arange(len(work))
    alone = most // 2
    ranks = np.empty(len(work), dtype=np.intp)
    ranks[np.argsort(work, kind="stable")] = np.arange(len(work))
    joined, groups = len(work) - alone, most - alone
    return np.where(ranks < joined, ranks * groups // joined, ranks - joined + groups)


def _within_minutes(trace: Trace) -> float:
    """Return variance over mean of the counts of ten seconds, each minute around its own mean."""
    parts = round(LONG_WINDOW_S / SHORT_WINDOW_S)
    minutes = int(trace.arrival_s[-1] // LONG_WINDOW_S)
    if not minutes:
        return trace.dispersion(SHORT_WINDOW_S)
    edges = SHORT_WINDOW_S * np.arange(parts * minutes + 1)
    counts = np.diff(np.searchsorted(trace.arrival_s, edges)).reshape(minutes, parts)
    return float(counts.var(axis=1, ddof=1).mean() / max(counts.mean(), 1e-12))
