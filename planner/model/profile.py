"""A daily cycle of load: rates by hour, and the instance-hours that following it takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.model.arrays import Floats


def hourly_rates(profile: Sequence[float], peak: float) -> Floats:
    """Rates of the hours of a day.

    Args:
        profile: Load of each hour relative to the others, (24,).
        peak: Rate of the busiest hour [1/s].

    Returns:
        Rates [1/s], (24,).

    >>> hourly_rates([1.0, 2.0], 10.0)
    array([ 5., 10.])
    """
    load = np.asarray(profile, dtype=np.float64)
    result: Floats = peak * load / load.max()
    return result


def paid_hours(instances: Floats, boot: float) -> float:
    """Instance-hours of a day on which the fleet follows the load.

    Args:
        instances: Instances needed in each hour of a day that repeats, (hours,).
        boot: Time from renting an instance to its serving [h].

    Returns:
        Hours paid for: those needed, and for every time an instance is off either its boot or,
        where that is shorter, the time until it is needed again, for which it is kept.

    One instance needed in hours 0 and 1 of four, with a boot of half an hour:

    >>> paid_hours(np.array([1.0, 1.0, 0.0, 0.0]), 0.5)
    2.5
    """
    total = 0.0
    for level in range(1, int(instances.max(initial=0.0)) + 1):
        needed = instances >= level
        total += float(needed.sum())
        total += sum(min(boot, gap) for gap in _gaps(needed))
    return total


def _gaps(needed: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[float]:
    """Return the lengths of the stretches without need, around the end of the day [h]."""
    if needed.all() or not needed.any():
        return []
    # The day is turned so that it begins where a need does.
    first = int(np.flatnonzero(needed & ~np.roll(needed, 1))[0])
    turned = np.roll(needed, -first)
    edges = np.flatnonzero(np.diff(np.concatenate([[True], turned, [True]]).astype(int)))
    return [float(end - begin) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
