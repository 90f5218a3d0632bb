"""What a plan for a recorded trace takes for granted."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.trace_load import TraceLoad


def trace_notes(load: TraceLoad) -> Iterator[str]:
    """Yield what a reader must know of the trace, in sentences."""
    summary = load.summary
    busiest = (
        f"its busiest {summary.window_s:g} s" if summary.window_s else "the rate of the whole trace"
    )
    yield (
        f"{summary.file}: sized for {busiest} ({summary.peak_rate_per_s:.3g} requests/s), paid "
        f"for by its mean ({summary.mean_rate_per_s:.3g} requests/s)."
    )
    yield from load.trace.notes
