"""What a plan for a recorded trace takes for granted, and where one steady rate misleads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.candidates.trace_load import TraceLoad
from planner.spec.verification import Compared, Verification

MISS = 1.5
"""Factor between a formula and the replay from which the formula is said to miss."""
WARNED = ("ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms")


def trace_notes(load: TraceLoad, checks: Sequence[Verification]) -> Iterator[str]:
    """Yield what a reader must know of the trace, in sentences.

    Args:
        load: The trace.
        checks: What its replay said of the picks.
    """
    summary = load.summary
    busiest = (
        f"its busiest {summary.window_s:g} s" if summary.window_s else "the rate of the whole trace"
    )
    yield (
        f"{summary.file}: sized for {busiest} ({summary.peak_rate_per_s:.3g} requests/s), paid "
        f"for by its mean ({summary.mean_rate_per_s:.3g} requests/s)."
    )
    yield from load.trace.notes
    for check in checks[:1]:
        yield from (note for entry in check.latencies if (note := _miss(entry)))


def _miss(entry: Compared) -> str:
    steady, replayed = entry.formula_ms, entry.simulated_ms
    if entry.key not in WARNED or steady is None or replayed is None:
        return ""
    factor = max(steady / replayed, replayed / steady)
    if factor < MISS:
        return ""
    where = "above" if steady > replayed else "below"
    return (
        f"Formula at the steady peak rate: {entry.key} {steady:,.4g}, {factor:.1f} times {where} "
        f"the replay's {replayed:,.4g}; trust the replay."
    )
