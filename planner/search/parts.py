"""Parts of a sweep: shapes of some accelerators, decided without a look at the others.

A hardware class has one accelerator, and so has a shape: what is known of others never matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Floats, Indices
from planner.search.archive import Archive
from planner.search.inner import deployments
from planner.search.screen import screen

AT_ONCE = 40_000
"""Shapes whose optimistic values are held at once: those of all would fill the memory."""
LEAST = 1_000
"""Fewer shapes are one part: calls of the model on few rows take as long as those on many."""
HALVES = 2
"""Parts of a usual sweep or proof: each further one adds a twentieth to it."""
MOST = 20_000
"""Shapes of a part where that makes more parts than two: it then costs nothing."""
ENTRY = 25.0
"""Shapes that take as long as what a known entry of the archive stands for: where some are known,
more will be found, and scored on the way."""


@dataclass(frozen=True)
class Part:
    """Shapes to decide.

    Attributes:
        archive: What is known of the hardware classes of their accelerators; takes what is found.
        shapes: Rows of the shape table.
    """

    archive: Archive
    shapes: Indices

    def decide(self, stop: Callable[[], bool], done: Callable[[float], None]) -> bool:
        """Score what may add something; see ``screen``."""
        problem, table = self.archive.problem, self.archive.table
        count = max(-(-len(self.shapes) // AT_ONCE), 1)
        for number, some in enumerate(np.array_split(self.shapes, count)):

            def share(of_some: float, number: int = number) -> None:
                done((number + of_some) / count)

            if stop():
                return False
            if not screen(self.archive, deployments(problem, table, some), stop, share):
                return False
        return True


def divided(archive: Archive, shapes: Indices) -> list[Part]:
    """Return the same parts for the same shapes, whoever decides them; the longest first.

    Args:
        archive: What is known; ``Archive.rejoin`` gives it back what the parts have found.
        shapes: Rows of the shape table.
    """
    of_class = archive.problem.accelerators()
    chip = of_class[archive.table.shapes.hardware[shapes]]
    pieces = 1 if len(shapes) < LEAST else max(HALVES, len(shapes) // MOST)
    piece, sums = _spread(_work(archive, chip), pieces)
    parts = [
        Part(one, shapes[piece[chip] == number])
        for number, one in enumerate(archive.split(piece[of_class]))
    ]
    return [parts[number] for number in np.argsort(-sums[: len(parts)], kind="stable")]


def _work(archive: Archive, chip: Indices) -> Floats:
    """Return how long the shapes of each accelerator take to decide, in shapes, (accelerators,).

    Args:
        archive: What is known.
        chip: Accelerator of each shape, (n,).
    """
    of_class = archive.problem.accelerators()
    most = int(of_class.max()) + 1
    shapes = np.bincount(chip, minlength=most)
    known = np.bincount(of_class[archive.entries.hardware], minlength=most)
    work: Floats = np.where(shapes > 0, shapes + ENTRY * known, 0.0)
    return work


def _spread(work: Floats, pieces: int) -> tuple[Indices, Floats]:
    """Return a piece for each item so that the sums of their work are about equal, (items,).

    Returns:
        The pieces, and those sums.
    """
    sums, piece = np.zeros(pieces), np.zeros(len(work), dtype=np.intp)
    for number in np.argsort(-work, kind="stable"):
        piece[number] = sums.argmin()
        sums[piece[number]] += work[number]
    return piece, sums
