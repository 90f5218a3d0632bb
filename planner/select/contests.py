"""Deployments that a simulation may make cheaper than the cheapest pick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from planner.model.arrays import Floats, Indices
from planner.select.answers import Answers
from planner.select.front import Front, holds
from planner.select.picks import picks
from planner.select.resize import Desk, fewest_stable, purchase_of
from planner.spec.archive import ClassArchive

KIND = (
    "generation", "weights", "kv", "tp", "pp", "dp", "speculation", "draft_tokens", "token_budget",
)  # fmt: skip
"""Columns of the archive in which the sizes of one deployment agree."""

LESS = 1.0 - 1e-6
"""What costs more than this share of the cheapest pick costs as much, for rounding."""

Kind = tuple[object, ...]


def kind(archives: Sequence[ClassArchive], place: int, row: int) -> Kind:
    """Return what all sizes of a deployment have in common."""
    rows = archives[place].rows
    return place, *(getattr(rows, name)[row] for name in KIND)


def cheapest_cost(chosen: Front) -> float:
    """Return the price of the cheapest pick [USD/h], a last bit less; infinity = there is none."""
    if not len(chosen.rows):
        return np.inf
    row = chosen.rows[picks(chosen)["cheapest"]]
    return float(chosen.trusted.bill.usd_per_hour[row]) * LESS


def contenders(
    desk: Desk, archives: Sequence[ClassArchive], chosen: Front
) -> Iterator[tuple[int, int]]:
    """Yield the rows that would cost less than the cheapest pick if they needed no headroom.

    The formula sizes every row with headroom, a simulation without: a row may hold on fewer
    replicas and then cost less than the pick. The cheapest come first.
    """
    answer, found = chosen.trusted, chosen.trusted.answers
    good = holds(answer) & ~found.gated & ~found.simulated
    if not desk.slo.purchase.allow_unvalidated:
        good &= ~found.unvalidated
    rows = np.flatnonzero(good)
    least = _least_costs(desk, archives, found, rows)
    order = np.argsort(least, kind="stable")
    for at in order[least[order] < cheapest_cost(chosen)]:
        yield int(found.place[rows[at]]), int(found.row[rows[at]])


def _least_costs(
    desk: Desk, archives: Sequence[ClassArchive], found: Answers, rows: Indices
) -> Floats:
    """Return what rows would cost on the fewest replicas worth a simulation [USD/h], (n,)."""
    costs = np.full(len(rows), np.inf)
    for place in np.unique(found.place[rows]):
        mine = np.flatnonzero(found.place[rows] == place)
        archive, at = archives[place], found.row[rows[mine]].tolist()
        counts = np.array(
            [fewest_stable(archive, row, desk.trusted_share) for row in at], dtype=float
        )
        degrees = [getattr(archive.rows, name) for name in ("tp", "pp", "dp")]
        sizes = np.array([[degree[row] for row in at] for degree in degrees], dtype=float)
        costs[mine] = purchase_of(desk, archive, counts, sizes.prod(axis=0)).usd_per_hour
    return costs
