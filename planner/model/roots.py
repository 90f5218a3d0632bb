"""Where a falling function crosses zero, for many rows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Floats, Indices

NARROW, STEEP = 1e-6, 50.0
"""A bracket so narrow is crossed in a straight line, unless so steep a fall may be a jump."""
NARROWEST = 1e-12
"""Width of a bracket across a jump in the end: where the search began does not show."""
BESIDE = 0.4 * NARROWEST
"""How far from a jump its sides are tried."""
TRUNCATION = 2.0
"""How far an interpolated point is moved to the middle, over the square of the bracket."""
COARSE = 0.11
"""Wider brackets are halved: there a secant says little."""
ROUND = 6
"""Steps until rows that are found are left out."""

Function = Callable[[Floats], Floats]


def falling_root(
    rows: Callable[[Indices], Function],
    first: tuple[Floats, Floats],
    ends: tuple[Floats, Floats],
    jumps: Floats | None = None,
) -> Floats:
    """Return where each row's function crosses zero, to about NARROWEST, (n,).

    Args:
        rows: Row numbers, (k,) -> the function of these rows, (k,) -> (k,): falling, jumps allowed.
        first: Between which two places to look first, (n,) each.
        ends: Where the function is above 0, and where it is not, (n,) each.
        jumps: Where it may jump: that is tried before it would be found by halving, (k, n).

    Source:
        ITP (interpolate, truncate, project): I. F. D. Oliveira and R. H. C. Takahashi, ACM Trans.
        Math. Softw. 47(1), 2021: as fast as the secant method where the function is smooth, one
        step more than bisection at worst.
    """
    (low, high), (lowest, highest) = first, ends
    found, left = high.copy(), np.arange(len(high))
    over = rows(left)
    at_low, at_high = over(low), over(high)
    before, beyond = (at_low <= 0.0) & (low > lowest), at_high > 0.0
    # Elsewhere it is halved at first, so that the value at the other end does not matter yet.
    a = np.where(before, lowest, np.where(beyond, high, low))
    b = np.where(before, low, np.where(beyond, highest, high))
    at_a = np.where(before, 1.0, np.where(beyond, at_high, at_low))
    at_b = np.where(before, at_low, np.where(beyond, -1.0, at_high))
    widest = float((b - a).max(initial=NARROWEST))
    most = int(np.ceil(np.log2(widest / NARROWEST))) + 1
    if jumps is not None:
        # Two steps of each round may narrow nothing.
        most = most * ROUND // (ROUND - 2) + 2
    for step in range(1, most + 1):
        x = _next(a, b, at_a, at_b, 0.5 * NARROWEST * 2.0 ** (most - step))
        if jumps is not None and (step + 1) % ROUND < 2:
            x = _beside(jumps, x, (a, b), -BESIDE if step % ROUND else BESIDE)
        at_x = over(x)
        up = at_x > 0.0
        a, at_a = np.where(up, x, a), np.where(up, at_x, at_a)
        b, at_b = np.where(up, b, x), np.where(up, at_b, at_x)
        if step % ROUND == 0 or step == most:
            found[left] = _secant(a, b, at_a, at_b)
            still = np.flatnonzero(~_crossed(a, b, at_a, at_b))
            if not len(still):
                break
            left = left[still]
            a, b, at_a, at_b = (values[still] for values in (a, b, at_a, at_b))
            jumps = None if jumps is None else jumps[:, still]
            over = rows(left)
    return found


def _beside(jumps: Floats, x: Floats, ends: tuple[Floats, Floats], by: float) -> Floats:
    """Return the points beside the jumps nearest to the middles of brackets; `x` where none is."""
    a, b = ends
    nearest = np.abs(jumps - 0.5 * (a + b)).argmin(axis=0)
    beside = jumps[nearest, np.arange(len(x))] + by
    return np.where((a < beside) & (beside < b), beside, x)


def _secant(a: Floats, b: Floats, at_a: Floats, at_b: Floats) -> Floats:
    return (b * at_a - a * at_b) / np.where(at_a == at_b, 1.0, at_a - at_b)


def _crossed(a: Floats, b: Floats, at_a: Floats, at_b: Floats) -> NDArray[np.bool_]:
    straight = (b - a <= NARROW) & (at_a - at_b <= STEEP * (b - a))
    return straight | (b - a <= NARROWEST)


def _next(a: Floats, b: Floats, at_a: Floats, at_b: Floats, reach: float) -> Floats:
    """Return the point to try: the secant's, moved towards the middle, as near as it must be."""
    middle, width = 0.5 * (a + b), b - a
    secant = _secant(a, b, at_a, at_b)
    side = np.sign(middle - secant)
    moved = np.maximum(TRUNCATION * width * width, 0.4 * NARROWEST)
    truncated = np.where(moved <= np.abs(middle - secant), secant + side * moved, middle)
    radius = np.maximum(reach - 0.5 * width, 0.0)
    near = np.abs(truncated - middle) <= radius
    projected = np.where(near, truncated, middle - side * radius)
    return np.where(width > COARSE, middle, projected)
