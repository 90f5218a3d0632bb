"""Fleets of two deployments that share the traffic: composed exactly from the pools of each part.

Cost and what counts against a limit add up, latency is the worse of the two, quality loss is the
mean over the requests. All of these only grow with the values of a part, so a deployment that
others of its pool beat in everything is never needed, and the pairs of what is left hold every
best fleet. As the two must come from different offers, it takes two that beat it: one of them is
always free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Columns, Floats, Indices
from planner.pareto import nondominated, rounded

PAIRS = 400_000
"""Pairs looked at in one block."""


@dataclass(frozen=True)
class Pool(Columns):
    """Deployments any of which can serve a part of the traffic, (n,).

    Attributes:
        cost: What is added up and minimised.
        uses: What counts against each limit, (n, r).
        latency: What the worse part decides, (n, l).
        loss: What is averaged over the requests, (n, q).
        offer: What the two deployments must differ in, (n,).
    """

    cost: Floats
    uses: Floats
    latency: Floats
    loss: Floats
    offer: Indices

    def __len__(self) -> int:
        return len(self.cost)

    def points(self) -> Floats:
        """Return everything that is compared, smaller is better, (n, 1 + r + l + q)."""
        return np.column_stack([self.cost, self.uses, self.latency, self.loss])

    def take(self, rows: Indices | NDArray[np.bool_]) -> Pool:
        """Return the named deployments."""
        return Pool(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


@dataclass(frozen=True)
class Pairs:
    """Fleets, (n,).

    Attributes:
        first, second: Row in either pool.
        whole: Each fleet as if it were one deployment.
    """

    first: Indices
    second: Indices
    whole: Pool

    def take(self, rows: Indices | NDArray[np.bool_]) -> Pairs:
        """Return the named fleets."""
        return Pairs(self.first[rows], self.second[rows], self.whole.take(rows))


def useful(pool: Pool) -> Indices:
    """Return the rows that a best fleet may need, in order; of equal ones the first.

    Those that nothing beats, and those that only one other offer beats, which the other part of
    the fleet may occupy.
    """
    if not len(pool):
        return np.zeros(0, dtype=np.intp)
    points = rounded(pool.points())
    best = np.flatnonzero(nondominated(points))
    beaten = np.ones((len(points), len(best)), dtype=bool)
    for column in range(points.shape[1]):
        beaten &= points[best, column] <= points[:, column, None]
    offers, at = np.unique(pool.offer[best], return_inverse=True)
    by_offer = np.zeros((len(points), len(offers)), dtype=bool)
    for number in range(len(offers)):
        by_offer[:, number] = beaten[:, at == number].any(axis=1)
    free = np.ones(len(points), dtype=bool)
    free[best] = False
    free &= by_offer.sum(axis=1) == 1
    second = np.flatnonzero(free)
    by = by_offer[second].argmax(axis=1)
    elsewhere = offers[by] != pool.offer[second]
    second, by = second[elsewhere], by[elsewhere]
    rows: Indices = np.sort(np.concatenate([best, second[nondominated(points[second], by)]]))
    return rows


def compose(first: Pool, second: Pool, share: float, most: Floats, most_loss: Floats) -> Pairs:
    """Return the best fleets of one deployment from each pool.

    Args:
        first, second: What can serve either part; sized for it.
        share: Share of the requests that goes to the first part.
        most: Most of each limited thing, (r,).
        most_loss: Largest mean losses, (q,).

    Returns:
        Every fleet of two offers within the limits that no other beats in cost, uses, latency and
        loss; of equal ones the first.

    Source:
        Our derivation; planner/search/README.md#fleets.
    """
    one, other = useful(first), useful(second)
    one = one[(first.uses[one] <= most).all(axis=1)]
    other = other[(second.uses[other] <= most).all(axis=1)]
    left, right = first.take(one), second.take(other)
    kept = _pairs(left, right, np.zeros(0, np.intp), np.zeros(0, np.intp), share)
    for rows, columns in _blocks(left, right):
        made = _pairs(left, right, rows, columns, share)
        over = (made.whole.uses > most).any(axis=1) | (made.whole.loss > most_loss).any(axis=1)
        kept = _best(kept, made.take(np.flatnonzero(~over)))
    return Pairs(one[kept.first], other[kept.second], kept.whole)


def _blocks(left: Pool, right: Pool) -> Iterator[tuple[Indices, Indices]]:
    """Yield all pairs of two offers, block by block, in row-major order."""
    step = max(PAIRS // max(len(right), 1), 1)
    every = np.arange(len(right))
    for start in range(0, len(left), step):
        some = np.arange(start, min(start + step, len(left)))
        rows, columns = np.repeat(some, len(every)), np.tile(every, len(some))
        apart = left.offer[rows] != right.offer[columns]
        yield rows[apart], columns[apart]


def _pairs(left: Pool, right: Pool, rows: Indices, columns: Indices, share: float) -> Pairs:
    loss = share * left.loss[rows] + (1.0 - share) * right.loss[columns]
    whole = Pool(
        cost=rounded(left.cost[rows] + right.cost[columns]),
        uses=rounded(left.uses[rows] + right.uses[columns]),
        latency=np.maximum(left.latency[rows], right.latency[columns]),
        loss=rounded(loss),
        offer=np.zeros(len(rows), dtype=np.intp),
    )
    return Pairs(rows, columns, whole)


def _best(kept: Pairs, made: Pairs) -> Pairs:
    whole = {
        name: np.concatenate([getattr(kept.whole, name), getattr(made.whole, name)])
        for name in Pool.__dataclass_fields__
    }
    first = np.concatenate([kept.first, made.first])
    both = Pairs(first, np.concatenate([kept.second, made.second]), Pool(**whole))
    return both.take(nondominated(both.whole.points()))


def part_burstiness(burstiness: float, share: float) -> float:
    """Return the squared CV of the gaps of a part that takes each request by chance.

    Args:
        burstiness: Squared CV of the gaps between all requests.
        share: Chance that a request goes to the part.

    Source:
        W. Whitt, "The Queueing Network Analyzer", Bell Syst. Tech. J. 62(9), 1983, section 4.4.

    >>> part_burstiness(4.0, 0.25)
    1.75
    """
    return 1.0 + share * (burstiness - 1.0)
