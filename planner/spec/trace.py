"""What a plan keeps of a recorded trace."""

from __future__ import annotations

from planner.spec.base import Count, Name, NonNegative, Positive, Spec


class TraceSummary(Spec):
    """A trace in figures; its lengths stand in the record's ``slo`` as equal shares.

    Attributes:
        file, kind: The file and its format.
        requests: Requests recorded.
        duration_s: From the first to the last arrival [s].
        mean_rate_per_s: Over all of it [1/s]: what is paid for.
        peak_rate_per_s: Requests of mean lengths that bring the tokens of the busiest window
            [1/s]: what is sized for.
        window_s: Length of the windows [s]; None = one rate describes the trace.
        dispersion_10s, dispersion_60s: Variance over mean of the counts in such windows; Poisson
            arrivals have 1. None = the trace is too short.
    """

    file: Name
    kind: Name
    requests: Count
    duration_s: NonNegative
    mean_rate_per_s: Positive
    peak_rate_per_s: Positive
    window_s: Positive | None
    dispersion_10s: NonNegative | None
    dispersion_60s: NonNegative | None
