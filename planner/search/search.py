"""The search: seeds, an Optuna study, polish, and the proof that nothing was missed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from planner.model.arrays import Floats, Indices
from planner.search.archive import Archive, Entries
from planner.search.archive_trials import add_archive
from planner.search.inner import deployments, service, trusted_parts
from planner.search.parts import HALVES, Part, divided
from planner.search.problem import Problem
from planner.search.seeds import corner_shapes, neighbours, seed_shapes
from planner.search.shapes import ShapeTable, shape_table
from planner.search.stored_study import Store, recovered, search_study
from planner.search.study import Judge, explore, plant

if TYPE_CHECKING:
    from planner.search.crew import Crew

Stopped = Literal["fixed point", "trials", "time limit", "interrupted"]
OUT_OF_TIME: Final = "time limit"
INTERRUPTED: Final = "interrupted"
CUT = (OUT_OF_TIME, INTERRUPTED)
"""Why a search ends that has not looked at everything it wanted to; the second by Ctrl-C."""
Progress = Callable[[str, float], None]

TRIALS = 50
"""Trials of the default search: enough to fill the archive before the proof prunes with it."""
PROOF_SHAPES = 40_000
"""Up to so many shapes the proof costs no more than sweeps, a second or two: it is always made."""
SHARED_SHAPES = 15_000
"""From so many shapes on processes share sweeps and proofs: a further one takes 0.4 s to start."""
PROVERS = 4
"""Processes that a proof on request may have, each with a copy of the shape table."""


@dataclass(frozen=True)
class Settings:
    """How to search.

    Attributes:
        seed: Of the sampler.
        trials: Trials of the Optuna study; None = the default.
        time_limit: Seconds after which the search stops; None = no limit.
        prove: True = always, False = never, None = where it is cheap.
        store: Keeps the study, so that a run that was cut short is taken up; None = in memory.
        enumerate_all: Score every deployment instead of searching: the referee.
        processes: That share the sweeps and proofs of a large space; None = as the machine has
            cores. The result does not depend on it.
    """

    seed: int = 0
    trials: int | None = None
    time_limit: float | None = None
    prove: bool | None = None
    store: Store | None = None
    enumerate_all: bool = False
    processes: int | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes:
        table: Shapes searched.
        entries: The archive, in canonical order.
        candidates: Deployments that the shapes stand for; scored: those that the open-loop formula
            was asked for.
        trials: Trials run.
        proven: No deployment that was not scored can add anything.
        missed: Points of the archive that the search had missed and a proof that was asked for
            has added; None = none was asked for.
        stopped: Why the search ended.
        unkept: Why the storage lacks a part of the archive; empty = it has it, or there is none.
    """

    table: ShapeTable
    entries: Entries
    candidates: int
    scored: int
    trials: int
    proven: bool
    missed: int | None
    stopped: Stopped
    unkept: str = ""


class _Search:
    """One search: its archive, and which shapes have been decided."""

    def __init__(self, problem: Problem, settings: Settings, progress: Progress | None) -> None:
        self.problem, self.settings = problem, settings
        self.progress = progress or (lambda *_: None)
        self.end = time.monotonic() + (settings.time_limit or np.inf)
        self.table = shape_table(problem)
        self.archive = Archive(problem, self.table)
        self.seen = np.zeros(len(self.table), dtype=bool)
        self.left_to_proof = np.zeros(len(self.table), dtype=bool)
        self.trials = 0
        self.proven = False
        self.missed: int | None = None
        self.stopped: Stopped = "fixed point"
        self.unkept = ""
        self.crew: Crew | None = None

    def late(self) -> bool:
        if time.monotonic() > self.end:
            self.stopped = OUT_OF_TIME
        return self.stopped == OUT_OF_TIME

    def run(self, guide: Floats) -> None:
        if self.settings.enumerate_all:
            self.enumerate()
            return
        offline = self.problem.demand.job is not None
        alone = offline or len(self.table) < SHARED_SHAPES
        try:
            with nullcontext() if alone else self.started() as self.crew:
                self.search(guide, cheap=offline or len(self.table) <= PROOF_SHAPES)
        except KeyboardInterrupt:
            self.stopped = INTERRUPTED
        if self.settings.store is not None:
            store, left = self.settings.store, self.left_to_proof
            self.unkept = add_archive(store, self.archive, guide, left, self.progress)

    def started(self) -> Crew:
        """Start the processes that share the work of a large space."""
        from planner.search.crew import Crew, usable_cores

        useful = PROVERS if self.settings.prove else HALVES
        count = self.settings.processes or min(usable_cores(), useful)
        chips = int(self.problem.accelerators().max()) + 1
        return Crew(self.problem, self.table, min(count, chips), self.end)

    def search(self, guide: Floats, *, cheap: bool) -> None:
        """Seeds and study, then sweeps, a proof, or both."""
        self.outer(guide)
        asked = self.settings.prove
        if asked is not None or not cheap:
            self.polish()
        before = _vectors(self.archive.entries)
        if asked or (cheap and asked is None):
            self.proven = self.prove()
        if asked:
            self.missed = len(_vectors(self.archive.entries) - before)

    def enumerate(self) -> None:
        """Score everything, without bounds: the referee."""
        rows = deployments(self.problem, self.table, np.arange(len(self.table)))
        self.archive.scored += len(rows)
        self.archive.add(rows, service(self.problem, self.table, rows))
        self.proven = True

    def outer(self, guide: Floats) -> None:
        """Seeds, then the study."""
        self.progress("trying what is usual", 0.0)
        seeds = seed_shapes(self.problem, self.table)
        judge = Judge(self.archive, guide)
        judge.judge(seeds)
        self.seen[seeds] = True
        trials = TRIALS if self.settings.trials is None else self.settings.trials
        if not trials or not len(seeds):
            return
        self.progress("sampling shapes", 0.1)
        with search_study(self.problem, self.settings.seed, self.settings.store) as study:
            known = recovered(study, judge)
            plant(study, judge, seeds, known.planted)
            left = max(trials - known.sampled, 0)
            self.trials = known.sampled + explore(study, judge, left, self.late)
        self.seen[list(judge.verdicts)] = True

    def polish(self) -> None:
        """Try every corner of the space, then sweep around the archive until that adds nothing.

        Where no corner is worth keeping, there is nothing to sweep around: all shapes are decided.
        """
        fresh, swept = corner_shapes(self.problem, self.table), np.zeros(0, dtype=np.intp)
        while len(fresh) and not self.late():
            self.decide(fresh, lambda share: self.progress("sweeping around the best", share))
            best = self.archive.shapes()
            near = neighbours(self.problem, self.table, np.setdiff1d(best, swept))
            fresh, swept = near[~self.seen[near]], np.union1d(swept, best)
        if not len(self.archive.entries):
            self.proven = self.prove()

    def prove(self) -> bool:
        """Decide every shape that the search has not looked at; False = cut short."""
        left = np.flatnonzero(~self.seen)
        self.left_to_proof[left] = True
        return not self.late() and self.decide(
            left, lambda share: self.progress("proving the front", share)
        )

    def decide(self, shapes: Indices, done: Callable[[float], None]) -> bool:
        """Score what may add something of these shapes; False = cut short."""
        fresh = shapes[~self.seen[shapes]]
        self.seen[fresh] = True
        if self.crew is None:
            return Part(self.archive, fresh).decide(self.late, done)
        parts = divided(self.archive, fresh)
        try:
            return self.crew.decide(parts, self.late, done)
        finally:
            self.archive.rejoin([part.archive for part in parts])

    def candidates(self) -> int:
        """Deployments that the space stands for: all combinations of the inner choices."""
        inner = self.problem.inner
        counts = len(inner.spread) * len(trusted_parts(self.problem.demand.headroom))
        return len(self.table) * len(inner.batch_limits) * len(inner.token_budgets) * counts


def _vectors(entries: Entries) -> set[tuple[float, ...]]:
    """Return the distinct objectives of an archive, with their hardware class."""
    return set(map(tuple, np.column_stack([entries.hardware, entries.points]).tolist()))


def search(
    problem: Problem,
    guide: Floats | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Found:
    """Return the best deployments of every hardware class.

    Args:
        problem: What to search.
        guide: Weight of an instance of each hardware class (its price) that leads the sampler;
            the archive does not depend on it.
        settings: How to search.
        progress: Called with a phrase and the share done.

    Returns:
        The archive. Same problem, guide and settings, same result, a time limit aside.
    """
    work = _Search(problem, settings or Settings(), progress)
    work.run(np.ones(len(problem.tables.hardware)) if guide is None else guide)
    return Found(
        table=work.table,
        entries=work.archive.entries,
        candidates=work.candidates(),
        scored=work.archive.scored,
        trials=work.trials,
        proven=work.proven,
        missed=work.missed,
        stopped=work.stopped,
        unkept=work.unkept,
    )
