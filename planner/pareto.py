"""Rounding, the non-dominated filter and the hypervolume. Smaller is better in every column."""

from __future__ import annotations

import math
from typing import cast

import moocore
import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

DIGITS = 6
"""Significant digits of every number that is compared or recorded."""
TINY = 1e-290
"""Smaller numbers are 0: they would lose digits on the way."""


def rounded(values: ArrayLike, digits: int = DIGITS) -> Floats:
    """Return the values with that many significant digits; infinities and NaN stay.

    Two figures that differ in the last bit of a float must not both stay on a front.

    >>> rounded([123456.7, 0.0012345678, 0.0])
    array([1.23457e+05, 1.23457e-03, 0.00000e+00])
    """
    array = np.asarray(values, dtype=float)
    usable = np.isfinite(array) & (np.abs(array) > TINY)
    magnitude = np.floor(np.log10(np.abs(np.where(usable, array, 1.0))))
    power = digits - 1 - magnitude
    # Multiplying and dividing by exact powers of ten gives the double nearest to the decimal.
    up, down = 10.0 ** np.maximum(power, 0), 10.0 ** np.maximum(-power, 0)
    short = np.round(np.where(usable, array, 1.0) * up / down) / up * down
    return np.where(usable | ~np.isfinite(array), np.where(usable, short, array), 0.0)


_TENS = tuple(10.0**power for power in range(309))


def rounded_number(value: float) -> float:
    """Return one value as :func:`rounded` returns it, many times as fast.

    >>> rounded_number(0.0012345678)
    0.00123457
    """
    if not math.isfinite(value):
        return value
    if abs(value) <= TINY:
        return 0.0
    power = DIGITS - 1 - math.floor(math.log10(abs(value)))
    up, down = _TENS[max(power, 0)], _TENS[max(-power, 0)]
    return round(value * up / down) / up * down


def nondominated(points: Floats, sets: NDArray[np.intp] | None = None) -> NDArray[np.bool_]:
    """Mark the rows that no other row dominates; of equal rows the first.

    Args:
        points: Objectives, (n, m), smaller is better; infinite rows never count as good.
        sets: Set number of each row, (n,): rows of different sets are not compared.

    Returns:
        Mask, (n,).

    Source:
        moocore (Kung, Luccio & Preparata, J. ACM 22(4), 1975).
    """
    if not len(points):
        return np.zeros(0, dtype=bool)
    capped = np.where(np.isfinite(points), points, np.finfo(float).max)
    if sets is None:
        return cast(NDArray[np.bool_], moocore.is_nondominated(capped))
    order = np.argsort(sets, kind="stable")
    mask = np.empty(len(points), dtype=bool)
    mask[order] = moocore.is_nondominated_within_sets(capped[order], sets=sets[order])
    return mask


def ranks(points: Floats) -> NDArray[np.intp]:
    """Return how far each row is from the front: 0 = on it, 1 = on it without those, and so on.

    Args:
        points: Objectives, (n, m), smaller is better.

    Source:
        K. Deb et al., "NSGA-II", IEEE Trans. Evol. Comput. 6(2), 2002, doi:10.1109/4235.996017.

    >>> ranks(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    array([0, 0, 1, 2])
    """
    if not len(points):
        return np.zeros(0, dtype=np.intp)
    return np.asarray(moocore.pareto_rank(np.minimum(points, np.finfo(float).max)), dtype=np.intp)


def hypervolume(points: Floats, reference: Floats) -> float:
    """Return the volume that the points dominate inside the reference point, (n, m) and (m,)."""
    if not len(points):
        return 0.0
    return float(moocore.hypervolume(points, ref=reference))
