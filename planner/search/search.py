"""The search: seeds, an Optuna study, polish, and the proof that nothing was missed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.model.arrays import Floats, Indices
from planner.search.archive import Archive, Entries
from planner.search.bounds import beatable, optimistic
from planner.search.inner import Parts, Rows, deployments, service, shared_parts
from planner.search.problem import Problem
from planner.search.seeds import neighbours, seed_shapes
from planner.search.shapes import ShapeTable, shape_table
from planner.search.study import Judge, explore, open_study, plant

Stopped = Literal["fixed point", "trials", "time limit", "interrupted"]
Progress = Callable[[str, float], None]

TRIALS = 50
"""Trials of the default search: enough to fill the archive before the proof prunes with it."""
PROOF_SHAPES = 60_000
"""Up to so many shapes the proof costs about a second and is always made."""
CHUNK = 8192
"""Deployments scored between two looks at the archive."""


@dataclass(frozen=True)
class Settings:
    """How to search.

    Attributes:
        seed: Of the sampler.
        trials: Trials of the Optuna study; None = the default.
        time_limit: Seconds after which the search stops; None = no limit.
        prove: True = always, False = never, None = where it is cheap.
        enumerate_all: Score every deployment instead of searching: the referee.
    """

    seed: int = 0
    trials: int | None = None
    time_limit: float | None = None
    prove: bool | None = None
    enumerate_all: bool = False


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes:
        table: Shapes searched.
        parts: Their shared parts.
        entries: The archive, in canonical order.
        candidates: Deployments that the shapes stand for; scored: those that were scored.
        trials: Trials run.
        proven: No deployment that was not scored can add anything.
        stopped: Why the search ended.
    """

    table: ShapeTable
    parts: Parts
    entries: Entries
    candidates: int
    scored: int
    trials: int
    proven: bool
    stopped: Stopped


class _Search:
    """One search: its archive, and what has been scored."""

    def __init__(self, problem: Problem, settings: Settings, progress: Progress | None) -> None:
        self.problem, self.settings = problem, settings
        self.progress = progress or (lambda *_: None)
        self.end = time.monotonic() + (settings.time_limit or np.inf)
        self.table = shape_table(problem)
        self.parts = shared_parts(problem, self.table)
        self.archive = Archive(problem, self.table)
        self.seen = np.zeros(len(self.table), dtype=bool)
        self.trials = 0
        self.proven = False
        self.stopped: Stopped = "fixed point"

    def late(self) -> bool:
        if time.monotonic() > self.end:
            self.stopped = "time limit"
        return self.stopped == "time limit"

    def run(self, guide: Floats) -> None:
        everything = np.arange(len(self.table), dtype=np.intp)
        if self.settings.enumerate_all:
            self.score(self.rows(everything))
            self.proven = True
            return
        try:
            self.outer(guide)
            offline = self.problem.demand.job is not None
            cheap = offline or len(self.table) <= PROOF_SHAPES
            if self.settings.prove or (cheap and self.settings.prove is None):
                self.prove(everything)
            else:
                self.polish()
        except KeyboardInterrupt:
            self.stopped = "interrupted"

    def rows(self, shapes: Indices) -> Rows:
        return deployments(self.problem, self.table, self.parts, shapes)

    def score(self, rows: Rows) -> None:
        self.archive.add(rows, service(self.problem, self.table, rows))

    def outer(self, guide: Floats) -> None:
        """Seeds, then the study."""
        self.progress("trying what is usual", 0.0)
        seeds = seed_shapes(self.problem, self.table)
        judge = Judge(self.archive, self.parts, guide)
        judge.judge(seeds)
        self.seen[seeds] = True
        trials = TRIALS if self.settings.trials is None else self.settings.trials
        if not trials or not len(seeds):
            return
        self.progress("sampling shapes", 0.2)
        study = open_study(self.problem, self.settings.seed)
        plant(study, judge, seeds)
        self.trials = explore(study, judge, trials, self.late)
        self.seen[list(judge.verdicts)] = True

    def polish(self) -> None:
        """Sweep the neighbourhood of the archive until it adds nothing."""
        while not self.late():
            near = neighbours(self.table, self.archive.shapes())
            fresh = near[~self.seen[near]]
            if not len(fresh):
                return
            self.seen[fresh] = True
            self.progress("sweeping around the best", 0.5)
            self.worthwhile(fresh)

    def prove(self, shapes: Indices) -> None:
        """Score every deployment whose optimistic values the archive does not match."""
        self.proven = self.worthwhile(shapes[~self.seen[shapes]])
        self.seen[shapes] = True

    def worthwhile(self, shapes: Indices) -> bool:
        """Score, most hopeful first, what the bounds leave of these shapes; False = cut short."""
        rows = self.rows(shapes)
        if self.problem.demand.job is not None:
            self.score(rows)
            return True
        hopes = optimistic(self.problem, self.table, rows)
        left = np.flatnonzero(beatable(self.archive, rows, hopes))
        left = left[np.argsort(_promise(self.table, rows, hopes)[left], kind="stable")]
        total = len(left)
        while len(left):
            if self.late():
                return False
            self.progress("proving the front", 1.0 - len(left) / total)
            self.score(rows.take(left[:CHUNK]))
            left = left[CHUNK:]
            if len(left):
                left = left[beatable(self.archive, rows.take(left), hopes[left])]
        return True


def _promise(table: ShapeTable, rows: Rows, hopes: Floats) -> Floats:
    """Rank rows: few GPUs and short optimistic latencies first, in log units."""
    layout = table.candidates.layout
    size = (layout.tp * layout.pp * layout.dp)[rows.shape] * rows.replicas
    with np.errstate(divide="ignore"):
        result: Floats = np.log(size) + np.log(hopes).sum(axis=1)
    return result


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
    settings = settings or Settings()
    work = _Search(problem, settings, progress)
    classes = len(problem.tables.hardware)
    work.run(np.ones(classes) if guide is None else guide)
    every = len(work.rows(np.arange(len(work.table), dtype=np.intp)))
    return Found(
        table=work.table,
        parts=work.parts,
        entries=work.archive.entries,
        candidates=every,
        scored=work.archive.scored,
        trials=work.trials,
        proven=work.proven,
        stopped=work.stopped,
    )
