"""80 % intervals of an option: predictions times quantiles of measured / predicted."""

from __future__ import annotations

from planner.candidates.efficiency import HIGH, LOW, interval
from planner.catalog import Catalog
from planner.pareto import rounded_number as number
from planner.spec.efficiency import Metric
from planner.spec.option import Interval, Intervals, Latency


def intervals(
    catalog: Catalog,
    stack: tuple[str, str],
    times: tuple[Latency | None, Latency | None, float | None],
    capacity: float,
    usd_per_mtok_full: float,
) -> Intervals:
    """Return where an option's figures lie in 80 of 100 cases.

    Args:
        catalog: For the measured errors.
        stack: Engine generation and accelerator id.
        times: TTFT, TPOT, length of an offline run [h]; None = does not apply.
        capacity: Output at full utilization [tokens/s].
        usd_per_mtok_full: Cost per million output tokens at full utilization [USD].
    """
    generation, chip = stack[0], catalog.accelerators[stack[1]]

    def quantiles(metric: Metric) -> tuple[float, float]:
        known = catalog.efficiency
        low, high = (interval(known, generation, chip, metric, share) for share in (LOW, HIGH))
        return low, high

    def around(value: float, low: float, high: float) -> Interval:
        return Interval(low=number(value * low), high=number(value * high))

    ttft, tpot, hours = times
    low, high = quantiles("throughput")
    return Intervals(
        ttft_p95_ms=None if ttft is None else around(ttft.p95_ms, *quantiles("ttft")),
        tpot_p95_ms=None if tpot is None else around(tpot.p95_ms, *quantiles("tpot")),
        run_hours=None if hours is None else around(hours, *quantiles("time")),
        capacity_tokens_per_s=around(capacity, low, high),
        # What is sold at the mean rate costs the same, whatever the fleet could carry beyond.
        usd_per_mtok_full=around(usd_per_mtok_full, 1.0 / high, 1.0 / low),
    )
