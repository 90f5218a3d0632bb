"""What a plan for a recorded trace takes for granted."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.trace_load import TraceLoad
from planner.counting import request_rate


def trace_notes(load: TraceLoad, *, replayed: int) -> Iterator[str]:
    """Yield what a reader must know of the trace, in sentences.

    Args:
        load: The trace.
        replayed: Requests of it that were, to check the picks.
    """
    summary = load.summary
    peak, mean = (
        request_rate(f"{rate:.3g}") for rate in (summary.peak_rate_per_s, summary.mean_rate_per_s)
    )
    busiest = f"the rate of the whole trace ({peak})"
    if summary.window_s:
        busiest = f"its busiest {summary.window_s:g} s ({peak} of mean lengths bring its tokens)"
    yield f"{summary.file}: sized for {busiest}, paid for by its mean ({mean})."
    yield from load.trace.notes
    if summary.window_s and replayed:
        yield (
            f"Latencies by formula are of the busiest {summary.window_s:g} s, replayed ones of all"
            " that was replayed; by windows is the formula over that time, window by window."
        )
    if 0 < replayed < summary.requests:
        yield (
            f"Of the trace's {summary.requests:,} requests the {replayed:,} around its busiest"
            " minute were replayed; `plan simulate --trace` replays all."
        )
    if summary.window_s and not replayed:
        yield "One steady rate does not describe the trace: check a choice by its replay."
