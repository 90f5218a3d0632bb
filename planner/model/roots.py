"""Where a falling function crosses zero, for many rows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.model.arrays import Floats, Indices

PRECISION = 5e-9
"""Half the width of the last bracket."""
TRUNCATION = 5.0
"""How far an interpolated point is moved to the middle, over the square of the bracket."""
COARSE = 0.11
"""Wider brackets are halved: there a secant says little."""
ROUND = 8
"""Steps until rows that are found are left out."""

Function = Callable[[Floats], Floats]


def falling_root(
    rows: Callable[[Indices], Function], low: Floats, high: Floats, highest: Floats
) -> Floats:
    """Return the upper end of a bracket of width 2 PRECISION around each root, (n,).

    Args:
        rows: Row numbers, (k,) -> the function of these rows, (k,) -> (k,): above 0 at `low`,
            falling, jumps allowed.
        low, high: Where to look first, (n,).
        highest: Where the function is not above 0, (n,).

    Source:
        ITP (interpolate, truncate, project): I. F. D. Oliveira and R. H. C. Takahashi, ACM Trans.
        Math. Softw. 47(1), 2021: as fast as the secant method where the function is smooth, one
        step more than bisection at worst.
    """
    found, left = high.copy(), np.arange(len(high))
    over = rows(left)
    at_a, at_b = over(low), over(high)
    beyond = at_b > 0.0
    a, at_a = np.where(beyond, high, low), np.where(beyond, at_b, at_a)
    # Halved at first, so the value at the upper end does not matter yet.
    b, at_b = np.where(beyond, highest, high), np.where(beyond, -at_b, at_b)
    widest = float((b - a).max(initial=PRECISION))
    most = int(np.ceil(np.log2(widest / (2.0 * PRECISION)))) + 1
    for step in range(most + 1):
        if step % ROUND == 0 and step:
            found[left] = b
            still = np.flatnonzero(b - a > 2.0 * PRECISION)
            left = left[still]
            a, b, at_a, at_b = (values[still] for values in (a, b, at_a, at_b))
            over = rows(left)
        if not len(left):
            break
        x = _next(a, b, at_a, at_b, PRECISION * 2.0 ** (most - step))
        at_x = over(x)
        up = at_x > 0.0
        a, at_a = np.where(up, x, a), np.where(up, at_x, at_a)
        b, at_b = np.where(up, b, x), np.where(up, at_b, at_x)
    found[left] = b
    return found


def _next(a: Floats, b: Floats, at_a: Floats, at_b: Floats, reach: float) -> Floats:
    """Return the point to try: the secant's, moved towards the middle, as near as it must be."""
    middle, width = 0.5 * (a + b), b - a
    secant = (b * at_a - a * at_b) / np.where(at_a == at_b, 1.0, at_a - at_b)
    side = np.sign(middle - secant)
    moved = np.maximum(TRUNCATION * width * width, 0.9 * PRECISION)
    truncated = np.where(moved <= np.abs(middle - secant), secant + side * moved, middle)
    radius = np.maximum(reach - 0.5 * width, 0.0)
    near = np.abs(truncated - middle) <= radius
    projected = np.where(near, truncated, middle - side * radius)
    return np.where(width > COARSE, middle, projected)
