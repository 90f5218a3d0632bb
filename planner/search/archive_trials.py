"""What sweeps and the proof found, as trials of the stored study: for people who look at it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError
from planner.model.arrays import Floats, Indices
from planner.pareto import ranks
from planner.search.archive import Archive
from planner.search.seeds import seed_shapes
from planner.search.stored_study import Store, known_shapes, search_study
from planner.search.study import HEURISTIC, PROOF, SWEEP, Judge, plant, told

if TYPE_CHECKING:
    from optuna import Study

MOST = 2000
"""Shapes of an archive that become trials, half a minute in SQLite; default spaces have fewer."""


def add_archive(
    store: Store,
    archive: Archive,
    guide: Floats,
    proof: NDArray[np.bool_],
    progress: Callable[[str, float], None],
) -> str:
    """Add every shape of the final archive that no trial stands for, as a completed trial.

    NSGA-II does not see these trials and no later run reads them, so that runs find what they
    would have found without them. Ctrl-C leaves the rest to the next run, and keeps the plan; so
    does a storage that fails, as on a full disk.

    Args:
        store: Has the study; seeds that it lacks are planted.
        archive: As the search left it; it stays so.
        guide: Weight of an instance of each hardware class, as for the search.
        proof: Shapes that were left to the proof, by row of the shape table.
        progress: Called with a phrase and the share done.

    Returns:
        Why the storage did not take all of them; empty = it did, or was not let.
    """
    wanted = _nearest(archive, guide)
    if not len(wanted):
        return ""
    try:
        with suppress(KeyboardInterrupt), search_study(archive.problem, 0, store) as study:
            _add(study, archive, guide, (wanted, proof), progress)
    except InputError as error:
        return error.faults[0].message
    return ""


def _add(
    study: Study,
    archive: Archive,
    guide: Floats,
    shapes: tuple[Indices, NDArray[np.bool_]],
    progress: Callable[[str, float], None],
) -> None:
    """Add the wanted shapes; the mask is of those that were left to the proof."""
    problem, table = archive.problem, archive.table
    wanted, proof = shapes
    # A judge of its own: what it scores is neither counted nor kept.
    judge = Judge(Archive(problem, table), guide)
    seeds = seed_shapes(problem, table)
    plant(study, judge, seeds, known_shapes(study, problem, table))
    missing = wanted[~np.isin(wanted, known_shapes(study, problem, table))]
    stages = np.where(proof[missing], PROOF, SWEEP)
    stages = np.where(np.isin(missing, seeds), HEURISTIC, stages)
    for number, trial in enumerate(told(judge, missing, stages.tolist(), {})):
        progress("adding what was found to the study", number / len(missing))
        study.add_trial(trial)


def _nearest(archive: Archive, guide: Floats) -> Indices:
    """Return the shapes that have an entry, the nearest to the front of these prices first."""
    entries = archive.entries
    points = entries.points.copy()
    points[:, 0] *= guide[entries.hardware]
    shapes, shape = np.unique(entries.rows.shape, return_inverse=True)
    rank = np.full(len(shapes), len(entries))
    np.minimum.at(rank, shape, ranks(points))
    nearest: Indices = shapes[np.argsort(rank, kind="stable")[:MOST]]
    return nearest
