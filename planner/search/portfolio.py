"""Choosing under shared limits: one way for each plan, at the least cost of all together.

A multiple-choice knapsack with several limits. First as many plans as possible are served, then
for the least money. Prices on the limits (Lagrange multipliers) give a bound that no choice can
beat; partial choices that the bound rules out are dropped, so what is left at the end is optimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Floats, Indices
from planner.pareto import nondominated

UNSERVED = -1
STEPS = 400
"""Steps of the subgradient method that prices the limits."""
FINE = 3.0
"""An unserved plan, in the dearest way of any, for a first answer."""
BEAM = 300
"""Partial choices kept for the first, perhaps not optimal, answer."""
STATES = 4_000
STEPS_IN_ALL = 500_000
"""Partial choices kept at most, of one plan and of all; if more are left, the answer is not
proven optimal."""
DENSE = 500
"""Partial choices from which on beaten ones are looked for."""
SAFETY = 1e-9
"""Share of the cost that is left for rounding."""


@dataclass(frozen=True)
class Menu:
    """The ways to serve one plan, (k,).

    Attributes:
        cost: What is minimised.
        uses: What counts against each limit, (k, r).
    """

    cost: Floats
    uses: Floats


@dataclass(frozen=True)
class Chosen:
    """One way for each plan.

    Attributes:
        rows: Row of each plan's menu; UNSERVED = none.
        cost: Of all together.
        bound: What no choice that serves as many plans can cost less than.
        exact: Nothing serves more plans, nor as many for less.
    """

    rows: tuple[int, ...]
    cost: float
    bound: float
    exact: bool


@dataclass(frozen=True)
class _Task:
    """Menus side by side: one row a plan, padded with infinite cost.

    Attributes:
        cost: (p, k).
        uses: (p, k, r), in shares of the limits, so that every limit is 1.
        whole: The cost is a whole number.
    """

    cost: Floats
    uses: Floats
    whole: bool = False

    def of(self, rows: Indices) -> tuple[float, Floats]:
        """Return cost and uses of one row a plan."""
        plans = np.arange(len(rows))
        return float(self.cost[plans, rows].sum()), self.uses[plans, rows].sum(axis=0)


@dataclass(frozen=True)
class _Answer:
    rows: Indices
    cost: float
    bound: float
    exact: bool


def choose(menus: Sequence[Menu], most: Floats) -> Chosen:
    """Return one way for each plan under shared limits.

    Args:
        menus: Ways to serve each plan; may be empty.
        most: Most of each limited thing, (r,); infinity = no limit.

    Returns:
        As many plans served as possible, for the least money; the same for the same menus.
    """
    some = [number for number, menu in enumerate(menus) if len(menu.cost)]
    rows = np.full(len(menus), UNSERVED)
    if not some:
        return Chosen(tuple(rows.tolist()), 0.0, 0.0, True)
    padded = _padded([menus[number] for number in some], most)
    last = padded.cost.shape[1] - 1
    first, prices = _first(padded)
    served = _answer(_serving(padded), first, prices)
    fewest = int((served.rows == last).sum())
    paid = _answer(_paying(padded, fewest), served.rows)
    rows[some] = np.where(paid.rows == last, UNSERVED, paid.rows)
    return Chosen(
        tuple(int(row) for row in rows), paid.cost, paid.bound, served.exact and paid.exact
    )


def _padded(menus: Sequence[Menu], most: Floats) -> _Task:
    """Return the menus as one task, with not serving the plan as the last column, for nothing."""
    width = max(len(menu.cost) for menu in menus) + 1
    cost = np.full((len(menus), width), np.inf)
    uses = np.zeros((len(menus), width, len(most)))
    scale = np.where(np.isfinite(most) & (most > 0), most, 1.0)
    for number, menu in enumerate(menus):
        fits = (menu.uses <= most * (1 + SAFETY)).all(axis=1)
        cost[number, : len(menu.cost)] = np.where(fits, menu.cost, np.inf)
        uses[number, : len(menu.cost)] = menu.uses / scale
    cost[:, -1] = 0.0
    return _Task(cost, _binding(cost, uses, most))


def _binding(cost: Floats, uses: Floats, most: Floats) -> Floats:
    """Return the columns of the limits that can bind at all."""
    seen = np.where(np.isfinite(cost)[:, :, None], uses, 0.0)
    highest = seen.max(axis=1, initial=0.0).sum(axis=0)
    tight: Floats = seen[:, :, np.isfinite(most) & (highest > 1.0)]
    return tight


def _first(task: _Task) -> tuple[Indices, Floats]:
    """Return a good way, by taking an unserved plan to be dear, and prices for `_serving`."""
    fine = FINE * float(task.cost.max(initial=1.0, where=np.isfinite(task.cost)))
    dear = replace(task, cost=np.column_stack([task.cost[:, :-1], np.full(len(task.cost), fine)]))
    nothing = np.full(len(task.cost), task.cost.shape[1] - 1)
    cost = dear.of(nothing)[0]
    prices, _ = _prices(dear, cost, np.zeros(task.uses.shape[2]))
    found = _walk(dear, prices, cost, BEAM)
    return nothing if found is None or not len(found.rows) else found.rows, prices / fine


def _serving(task: _Task) -> _Task:
    """Return the task of leaving the fewest plans unserved."""
    cost = np.where(np.isfinite(task.cost), 0.0, np.inf)
    cost[:, -1] = 1.0
    return _Task(cost, task.uses, whole=True)


def _paying(task: _Task, unserved: int) -> _Task:
    """Return the task of paying least with so many plans unserved at most."""
    if not unserved:
        cost = task.cost.copy()
        cost[:, -1] = np.inf
        return replace(task, cost=cost)
    left_out = np.zeros(task.cost.shape)
    left_out[:, -1] = 1.0 / unserved
    return replace(task, uses=np.concatenate([task.uses, left_out[:, :, None]], axis=2))


def _answer(task: _Task, known: Indices, guess: Floats | None = None) -> _Answer:
    """Return the cheapest way within the limits.

    Args:
        task: The menus.
        known: A way within the limits.
        guess: Prices on the limits to begin with; None = 0.
    """
    cheapest = task.cost.argmin(axis=1)
    cost, uses = task.of(cheapest)
    if (uses <= 1.0 + SAFETY).all():
        return _Answer(cheapest, cost, cost, True)
    best, (cost, _) = known, task.of(known)
    none = np.zeros(task.uses.shape[2])
    prices, bound = _prices(task, cost, none if guess is None else guess)
    bound = min(_lowest(task, bound), cost)
    if bound < cost - SAFETY * abs(cost):
        found = _walk(task, prices, cost, BEAM)
        if found is not None and found.cost < cost:
            best, cost = found.rows, found.cost
    if bound >= cost - SAFETY * abs(cost):
        return _Answer(best, cost, bound, True)
    found = _walk(task, prices, cost, min(STATES, max(STEPS_IN_ALL // len(task.cost), BEAM + 1)))
    if found is None:
        return _Answer(best, cost, cost, True)
    if found.cost < cost:
        best, cost = found.rows, found.cost
    return _Answer(best, cost, cost if found.exact else bound, found.exact)


def _lowest(task: _Task, bound: float) -> float:
    return float(np.ceil(bound - 1e-6)) if task.whole else bound


def _reduced(task: _Task, prices: Floats) -> Floats:
    return task.cost + task.uses @ prices


def _prices(task: _Task, cost: float, prices: Floats) -> tuple[Floats, float]:
    """Return prices on the limits, and the bound that they give: subgradient with Polyak steps.

    Source:
        M. L. Fisher, "The Lagrangian Relaxation Method for Solving Integer Programming Problems",
        Management Science 27(1), 1981.
    """
    count = task.uses.shape[2]
    best, best_prices = -np.inf, prices
    factor, stalled = 1.0, 0
    plans = np.arange(len(task.cost))
    for _ in range(STEPS if count else 1):
        reduced = _reduced(task, prices)
        rows = reduced.argmin(axis=1)
        bound = float(reduced[plans, rows].sum() - prices.sum())
        if bound > best + 1e-12 * abs(bound):
            best, best_prices, stalled = bound, prices, 0
        else:
            stalled += 1
        if stalled >= 15:
            factor, stalled, prices = factor / 2.0, 0, best_prices
            continue
        excess = task.uses[plans, rows].sum(axis=0) - 1.0
        length = float((excess**2).sum())
        gap = max(cost - bound, 1e-9 * max(abs(cost), 1.0))
        if length <= 1e-18 or factor < 1e-6:
            break
        prices = np.maximum(prices + factor * gap / length * excess, 0.0)
    return best_prices, best


@dataclass(frozen=True)
class _Walked:
    rows: Indices
    cost: float
    exact: bool


def _walk(task: _Task, prices: Floats, known: float, width: int) -> _Walked | None:
    """Go through the plans, keeping the partial choices that may still beat a known cost.

    Returns:
        The best found; None = the known cost is optimal, or nothing was found in the width.
    """
    reduced = _reduced(task, prices)
    least = reduced.min(axis=1)
    order = np.argsort(np.isfinite(reduced).sum(axis=1), kind="stable")
    bound = float(least.sum() - prices.sum())
    limit = known - (1.0 - 1e-6 if task.whole else SAFETY * abs(known))
    # A partial choice costs at least the bound plus what its rows cost beyond the cheapest.
    extra, cost, used = np.zeros(1), np.zeros(1), np.zeros((1, task.uses.shape[2]))
    steps: list[tuple[Indices, Indices]] = []
    exact = True
    for plan in order:
        rows = np.flatnonzero(bound + reduced[plan] - least[plan] <= limit)
        parent = np.repeat(np.arange(len(cost)), len(rows))
        row = np.tile(rows, len(cost))
        further = extra[parent] + reduced[plan, row] - least[plan]
        total = used[parent] + task.uses[plan, row]
        good = (bound + further <= limit) & (total <= 1.0 + SAFETY).all(axis=1)
        kept = np.flatnonzero(good)
        paid = cost[parent[kept]] + task.cost[plan, row[kept]]
        kept, paid, cut = _fewer(kept, further[kept], paid, total[kept], width)
        exact = exact and not cut
        if not len(kept):
            return _Walked(np.zeros(0, np.intp), np.inf, False) if not exact else None
        extra, cost, used = further[kept], paid, total[kept]
        steps.append((parent[kept], row[kept]))
    end = int(cost.argmin())
    chosen = np.zeros(len(order), dtype=np.intp)
    for plan, (parent, row) in zip(order[::-1], steps[::-1], strict=True):
        chosen[plan], end = row[end], int(parent[end])
    return _Walked(chosen, float(task.of(chosen)[0]), exact)


def _fewer(
    kept: Indices, further: Floats, paid: Floats, total: Floats, width: int
) -> tuple[Indices, Floats, bool]:
    """Return the partial choices that are not beaten, at most so many, the most hopeful."""
    some: NDArray[np.intp] = np.arange(len(kept))
    if len(some) > DENSE and width > BEAM:
        some = np.flatnonzero(nondominated(np.column_stack([paid, total])))
    cut = len(some) > width
    if cut:
        some = np.sort(some[np.argsort(further[some], kind="stable")[:width]])
    return kept[some], paid[some], cut
