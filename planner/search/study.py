"""The outer search as an Optuna study: a trial is a shape, its inner solve is exact."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Floats, Indices
from planner.search.archive import Archive
from planner.search.inner import bought, deployments, homes, service, within_reach
from planner.search.problem import Problem

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, Trial

POPULATION = 50
FIRST_GENERATION = {"NSGAIISampler:generation": 0}
"""NSGA-II breeds only from trials that carry its own mark; added trials lack it otherwise."""
WORST = 1e6
"""Value of every objective of a trial that has no deployment."""
UNSUPPORTED = 10.0
"""Constraint value of a shape that does not exist; a missed target is below."""

TARGETS = "targets"
"""Name of the constraint: by how much the nearest deployment misses a target; met = 0 or less."""
FOUND_BY = "found_by"
"""User attribute of the trials that the sampler did not propose: which stage found the shape."""
HEURISTIC, SWEEP, PROOF = "heuristic", "sweep", "proof"
"""Its values: a seed; a sweep around the archive; the proof."""

Parameters = dict[str, str]


@dataclass(frozen=True)
class Names:
    """What a trial's parameters are called: labels of every axis, fixed for the whole study."""

    hardware: tuple[str, ...]
    engine: tuple[str, ...]
    weights: tuple[str, ...]
    kv: tuple[str, ...]
    layout: tuple[str, ...]
    speculation: tuple[str, ...]

    def axes(self) -> dict[str, tuple[str, ...]]:
        """Return the labels by parameter name, in the order of the shape table's axes."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def names(problem: Problem) -> Names:
    """Return the labels of a problem's choices."""
    t = problem.tables
    return Names(
        hardware=tuple(h.id for h in t.hardware),
        engine=tuple(s.generation.id for s in t.stacks),
        weights=tuple(fmt.id for fmt in t.weights),
        kv=tuple(fmt.id for fmt in t.kv),
        layout=tuple(f"tp{x.tp} pp{x.pp} dp{x.dp}" for x in problem.layouts),
        speculation=tuple(_draft_name(problem, index) for index in range(len(problem.drafts))),
    )


def labels_of(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Return the labels of a problem's choices by parameter name."""
    return names(problem).axes()


def objective_count(problem: Problem) -> int:
    """Return how many objectives a trial has."""
    return 4 if problem.demand.job is None else 3


def _draft_name(problem: Problem, index: int) -> str:
    draft = problem.drafts[index]
    method = problem.tables.methods[draft.method]
    return "off" if method is None else f"{method.id} {draft.tokens}"


@dataclass(frozen=True)
class Verdict:
    """What a trial is told of its shape.

    Attributes:
        values: The best of each objective over its deployments.
        violation: How far the nearest deployment is from the targets; 0 or less = it meets them.
    """

    values: tuple[float, ...]
    violation: float


@dataclass
class Judge:
    """Scores shapes, keeps what is good, and remembers its verdicts.

    Attributes:
        archive: Takes the deployments.
        guide: Weight of an instance of each hardware class, such as its price: tells the sampler
            which shapes are cheap and changes nothing in the archive.
        verdicts: By row of the shape table.
    """

    archive: Archive
    guide: Floats
    verdicts: dict[int, Verdict] = field(default_factory=dict)

    def judge(self, shapes: Indices) -> list[Verdict]:
        """Return a verdict for each row of the shape table; -1 = there is no such shape."""
        fresh = sorted({int(shape) for shape in shapes if shape >= 0} - self.verdicts.keys())
        if fresh:
            self._score(np.array(fresh, dtype=np.intp))
        width = self.archive.entries.points.shape[1]
        nothing = Verdict((WORST,) * width, UNSUPPORTED)
        return [self.verdicts.get(int(shape), nothing) for shape in shapes]

    def _score(self, shapes: Indices) -> None:
        problem, table = self.archive.problem, self.archive.table
        rows = deployments(problem, table, shapes)
        served = service(problem, table, rows)
        self.archive.scored += len(rows)
        self.archive.add(rows, served)
        good = np.zeros(len(rows), dtype=bool)
        good[within_reach(problem, table, rows, served)] = True
        row, hardware = homes(table, rows)
        weight = bought(problem, table, rows.take(row), hardware) * self.guide[hardware]
        cheapest = np.full(len(rows), np.inf)
        np.minimum.at(cheapest, row, weight)
        points = np.column_stack([cheapest, served, table.loss[rows.shape]])
        excess = _excess(problem, served, table.loss_p90[rows.shape])
        for shape in shapes:
            mine = np.flatnonzero(rows.shape == shape)
            self.verdicts[int(shape)] = _verdict(points[mine], good[mine], excess[mine])


def _excess(problem: Problem, served: Floats, loss: Floats) -> Floats:
    reach = problem.reach
    limits = (reach.ttft, reach.tpot) if problem.demand.job is None else (reach.run,)
    ratio = np.minimum(served, WORST) / np.array(limits)
    over = np.maximum(ratio.max(axis=1), np.where(loss <= reach.loss, 0.0, 2.0))
    excess: Floats = np.minimum(over - 1.0, UNSUPPORTED - 1.0)
    return excess


def _verdict(points: Floats, good: NDArray[np.bool_], excess: Floats) -> Verdict:
    width = points.shape[1]
    if not len(points):
        return Verdict((WORST,) * width, UNSUPPORTED)
    best = points[good] if good.any() else points[[int(excess.argmin())]]
    ideal = np.minimum(best.min(axis=0), WORST)
    violation = -1.0 if good.any() else max(float(excess.min()), 1e-6)
    return Verdict(tuple(float(value) for value in ideal), violation)


def open_study(problem: Problem, seed: int) -> Study:
    """Return a fresh in-memory study, minimising each objective."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        directions=["minimize"] * objective_count(problem), sampler=sampler(seed)
    )


def sampler(seed: int) -> BaseSampler:
    """Return the sampler of shapes."""
    from optuna.samplers import NSGAIISampler

    return NSGAIISampler(population_size=POPULATION, seed=seed)


def explore(study: Study, judge: Judge, trials: int, stop: Callable[[], bool]) -> int:
    """Ask the study for shapes, batch by batch, and tell it what they are worth.

    Args:
        study: From ``open_study``; seeds may have been planted.
        judge: Scores the shapes.
        trials: Shapes to ask for.
        stop: Polled before each batch.

    Returns:
        Trials run.
    """
    problem, table = judge.archive.problem, judge.archive.table
    axes, spaces = labels_of(problem), _distributions(problem)
    index = {key: {label: i for i, label in enumerate(labels)} for key, labels in axes.items()}
    done = 0
    while done < trials and not stop():
        asked = [study.ask(spaces) for _ in range(min(POPULATION, trials - done))]
        codes = [[index[key][trial.params[key]] for key in axes] for trial in asked]
        verdicts = judge.judge(table.find(np.array(codes, dtype=np.intp)))
        for trial, verdict in zip(asked, verdicts, strict=True):
            _tell(study, trial, verdict)
        done += len(asked)
    return done


def _tell(study: Study, trial: Trial, verdict: Verdict) -> None:
    from optuna.exceptions import UpdateFinishedTrialError

    # Another run of the same plan on the same storage takes over trials that it finds unfinished.
    with suppress(UpdateFinishedTrialError):
        trial.set_constraint(TARGETS, verdict.violation)
        study.tell(trial, list(verdict.values), skip_if_finished=True)


def plant(study: Study, judge: Judge, shapes: Indices, planted: Collection[int] = ()) -> None:
    """Add shapes to the study as its first generation: one population, the most hopeful.

    Args:
        study: From ``open_study``.
        judge: Scores the shapes.
        shapes: Rows of the shape table.
        planted: Those that the study has already.
    """
    verdicts = judge.judge(shapes)
    order = np.argsort([verdict.violation for verdict in verdicts], kind="stable")[:POPULATION]
    chosen = shapes[order]
    missing = chosen[~np.isin(chosen, list(planted))]
    for trial in told(judge, missing, [HEURISTIC] * len(missing), FIRST_GENERATION):
        study.add_trial(trial)


def told(
    judge: Judge, shapes: Indices, found_by: Sequence[str], system_attrs: Mapping[str, Any]
) -> list[FrozenTrial]:
    """Return completed trials of shapes that the sampler did not propose.

    Args:
        judge: Scores the shapes.
        shapes: Rows of the shape table.
        found_by: The stage that found each.
        system_attrs: Optuna's own marks.
    """
    import optuna

    problem = judge.archive.problem
    axes, spaces = labels_of(problem), _distributions(problem)
    codes = judge.archive.table.shapes.take(shapes).axes()
    return [
        optuna.create_trial(
            params={key: axes[key][at] for key, at in zip(axes, code, strict=True)},
            distributions=spaces,
            values=list(verdict.values),
            constraints={TARGETS: verdict.violation},
            user_attrs={FOUND_BY: stage},
            system_attrs=dict(system_attrs),
        )
        for code, verdict, stage in zip(codes, judge.judge(shapes), found_by, strict=True)
    ]


def _distributions(problem: Problem) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution

    return {key: CategoricalDistribution(labels) for key, labels in labels_of(problem).items()}
