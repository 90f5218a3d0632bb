"""80 % intervals of an option: predictions times quantiles of measured / predicted."""

from __future__ import annotations

from math import exp, hypot, inf, isfinite, log

from planner.candidates.efficiency import HIGH, LOW, interval
from planner.catalog import Catalog
from planner.pareto import rounded_number as number
from planner.select.acceptance_range import STEADY, Moves
from planner.spec.efficiency import Metric
from planner.spec.option import Interval, Intervals


def intervals(
    catalog: Catalog,
    stack: tuple[str, str],
    times: tuple[float | None, float | None, float | None],
    capacity: float,
    usd_per_mtok_full: float,
    moves: Moves = STEADY,
) -> Intervals:
    """Return where an option's figures lie in 80 of 100 cases.

    Args:
        catalog: For the measured errors.
        stack: Engine generation and accelerator id.
        times: p95 of TTFT and TPOT [ms], simulated where a simulation has checked the option, and
            the length of an offline run [h]; None = does not apply.
        capacity: Output at full utilization [tokens/s].
        usd_per_mtok_full: Cost per million output tokens at full utilization [USD].
        moves: How far the range of the drafts' acceptance moves the figures.
    """
    generation, chip = stack[0], catalog.accelerators[stack[1]]

    def ends(metric: Metric) -> tuple[float, float]:
        known = catalog.efficiency
        low, middle, high = (
            interval(known, generation, chip, metric, share) for share in (LOW, 0.5, HIGH)
        )
        least, most = moves.get(metric, (1.0, 1.0))
        return _further(middle, low, least), _further(middle, high, most)

    ttft, tpot, hours = times
    low, high = ends("throughput")
    return Intervals(
        ttft_p95_ms=None if ttft is None else _around(ttft, *ends("ttft")),
        tpot_p95_ms=None if tpot is None else _around(tpot, *ends("tpot")),
        run_hours=None if hours is None else _around(hours, *ends("time")),
        capacity_tokens_per_s=_around(capacity, low, high),
        # What is sold at the mean rate costs the same, whatever the fleet could carry beyond.
        usd_per_mtok_full=_around(usd_per_mtok_full, 1.0 / high, 1.0 / low),
    )


def _further(middle: float, end: float, moved: float) -> float:
    """Return the end of an interval with a second, independent error.

    Args:
        middle, end: Median and one end of measured / predicted.
        moved: What the other error multiplies by at its own end on the same side; infinity =
            the queue grows without end there.

    Source:
        Variances of independent errors add, here those of logarithms; the range is taken for
        the 10 and 90 % of its error (planner/model/README.md#speculation).

    >>> round(_further(1.0, 1.2, 1.2), 4), _further(1.0, 1.2, 1.0), _further(1.0, 1.2, inf)
    (1.2941, 1.2, inf)
    """
    if moved in (1.0, inf):
        return end * moved
    far = hypot(log(end / middle), log(moved))
    return middle * exp(far if moved > 1.0 else -far)


def _around(value: float, low: float, high: float) -> Interval:
    return Interval(low=number(value * low), high=number(value * high) if isfinite(high) else None)
