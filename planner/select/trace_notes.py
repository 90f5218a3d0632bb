"""What a plan for a recorded trace takes for granted."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.trace_load import TraceLoad
from planner.counting import request_rate


def trace_notes(load: TraceLoad) -> Iterator[str]:
    """Yield what a reader must know of the trace, in sentences."""
    summary = load.summary
    busiest = (
        f"its busiest {summary.window_s:g} s" if summary.window_s else "the rate of the whole trace"
    )
    peak, mean = (
        request_rate(f"{rate:.3g}") for rate in (summary.peak_rate_per_s, summary.mean_rate_per_s)
    )
    yield f"{summary.file}: sized for {busiest} ({peak}), paid for by its mean ({mean})."
    yield from load.trace.notes
