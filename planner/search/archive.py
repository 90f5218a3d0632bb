"""The best deployments found so far, per hardware class and free of prices."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.candidates.efficiency import unmeasured
from planner.model.arrays import Columns, Floats, Indices
from planner.pareto import nondominated
from planner.search.inner import Rows, homes, objectives, within_reach
from planner.search.problem import Problem
from planner.search.shapes import ShapeTable

UNSEEN = 1
"""What a layout that no measurement has seen adds to the number of its set."""


@dataclass(frozen=True)
class Entries(Columns):
    """Deployments on hardware classes, (n,).

    Attributes:
        hardware: Hardware class.
        rows: The deployment.
        points: Objectives, (n, m).
        served: Latencies or run as scored, (n, k).
    """

    hardware: Indices
    rows: Rows
    points: Floats
    served: Floats

    def take(self, rows: Indices | NDArray[np.bool_]) -> Entries:
        """Return the named entries, in that order."""
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Entries(self.hardware[at], self.rows.take(at), self.points[at], self.served[at])


def joined(parts: list[Entries]) -> Entries:
    """Return the entries of all parts, one after the other."""
    return Entries(
        np.concatenate([part.hardware for part in parts]),
        Rows.join([part.rows for part in parts]),
        np.concatenate([part.points for part in parts]),
        np.concatenate([part.served for part in parts]),
    )


def canonical(table: ShapeTable, entries: Entries) -> Entries:
    """Return the entries by hardware class and engine, however they were found."""
    r = entries.rows
    points, engine = entries.points.T[::-1], table.shapes.stack[r.shape]
    keys = (r.replicas, r.budget, r.limit, r.shape, *points, engine, entries.hardware)
    return entries.take(np.lexsort(keys))


@dataclass
class Archive:
    """Non-dominated entries per hardware class, engine and kind of layout; of equals the first.

    An engine dominates nothing of another: how far predictions may be off, and so what they must
    keep to hold a target with confidence, differs by engine, and where a simulation refutes the
    best of one, another takes its place. And layouts that no measurement has seen (pipeline
    stages, replicas across servers) dominate nothing of those that some has, though these do:
    picks may not rest on them.

    Attributes:
        problem, table: What the entries point into.
        entries: In canonical order.
        scored: Deployments that the open-loop formula was asked for; the callers count.
    """

    problem: Problem
    table: ShapeTable
    entries: Entries = field(init=False)
    scored: int = 0

    def __post_init__(self) -> None:
        """Begin with nothing."""
        offline = self.problem.demand.job is not None
        none = np.zeros(0, dtype=np.intp)
        rows = Rows(none, none, none, np.zeros(0), none)
        width = 1 if offline else 2
        self.entries = Entries(none, rows, np.zeros((0, width + 2)), np.zeros((0, width)))

    def add(self, rows: Rows, served: Floats) -> None:
        """Keep what is not dominated.

        Args:
            rows: Scored deployments.
            served: Their service, as ``inner.service`` returns it.
        """
        good = within_reach(self.problem, self.table, rows, served)
        rows, served = rows.take(good), served[good]
        if not len(rows):
            return
        row, hardware = homes(self.table, rows)
        placed, seen = rows.take(row), served[row]
        points = objectives(self.problem, self.table, placed, hardware, seen)
        new = Entries(hardware, placed, points, seen)
        concerned = np.isin(self.sets(self.entries) // 2, np.unique(self.sets(new) // 2))
        some = canonical(self.table, joined([self.entries.take(concerned), new]))
        kind = self.sets(some)
        hidden = (kind % 2 == UNSEEN) & ~nondominated(some.points, kind // 2)
        some = some.take(nondominated(some.points, kind) & ~hidden)
        self.entries = self._by_set(joined([self.entries.take(~concerned), some]))

    def sets(self, entries: Entries) -> Indices:
        """Return the number of the set that each entry is compared in, (n,).

        Twice that of its hardware class and engine, and UNSEEN more for layouts that no
        measurement has seen.
        """
        return self.sets_of(entries.hardware, entries.rows)

    def sets_of(self, hardware: Indices, rows: Rows) -> Indices:
        """Return the same of rows on hardware classes, (n,)."""
        tables = self.problem.tables
        stacks = len(tables.stacks)
        layout, base = self.table.bases.layout, self.table.base_of[rows.shape]
        inside = np.array([h.gpus for h in tables.hardware])[hardware]
        unseen = unmeasured(layout.tp[base], layout.pp[base], layout.dp[base], inside)
        pair = hardware * stacks + self.table.shapes.stack[rows.shape]
        numbers: Indices = 2 * pair + UNSEEN * unseen
        return numbers

    def _by_set(self, entries: Entries) -> Entries:
        return entries.take(np.argsort(self.sets(entries), kind="stable"))

    def split(self, piece: Indices) -> list[Archive]:
        """Return an archive of each piece of the hardware classes, to go on with by itself.

        Args:
            piece: Number of the piece that each hardware class belongs to, (hardware,).
        """
        pieces = []
        for number in range(int(piece.max(initial=0)) + 1):
            one = Archive(self.problem, self.table)
            one.entries = self.entries.take(piece[self.entries.hardware] == number)
            pieces.append(one)
        return pieces

    def rejoin(self, pieces: list[Archive]) -> None:
        """Take back what has become of the pieces of ``split``."""
        every = canonical(self.table, joined([piece.entries for piece in pieces]))
        self.entries = self._by_set(every)
        self.scored += sum(piece.scored for piece in pieces)

    def shapes(self) -> Indices:
        """Return the shapes that have an entry, sorted."""
        return np.unique(self.entries.rows.shape)
