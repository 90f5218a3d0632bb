"""A second search around the analytic front, whose score is a simulation instead of a formula.

A trial is one deployment. The front's own deployments are its first generation; what NSGA-II
breeds from them is simulated by this process or by several that share the study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from planner.model.arrays import Floats, Indices
from planner.model.queueing import capacity
from planner.search.archive import Entries, canonical, joined
from planner.search.inner import (
    EVERY_SIZE,
    Rows,
    bought,
    homes,
    objectives,
    only_full,
    row_candidates,
    service,
)
from planner.search.problem import Problem
from planner.search.shapes import ShapeTable
from planner.search.study import (
    FIRST_GENERATION,
    FOUND_BY,
    HEURISTIC,
    TARGETS,
    UNSUPPORTED,
    WORST,
    labels_of,
)

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, Trial

OBJECTIVES = 4
"""USD per hour, TTFT p95 [s], TPOT p95 [s], quality loss [%]."""
SEEDS = 24
"""Deployments of the front that the study begins with, and its population."""
LEAST_USE, MOST_USE = 0.01, 0.98
"""Utilization by the formula between which replicas are chosen."""
LIMIT, BUDGET, USE = "max_num_seqs", "token_budget", "utilization"
"""Parameters beside the axes of a shape."""
UPPER = "upper_ms"
"""User attribute: simulated percentiles at the upper end of their interval, by target key."""


@dataclass(frozen=True)
class Sight:
    """What simulations of a deployment showed.

    Attributes:
        ttft, tpot: p95 [s].
        upper_ms: Upper end of the interval of every percentile [ms]; None = without bound.
        violation: How far the worst of them is above its target, as a share; 0 or less = none is.
    """

    ttft: float
    tpot: float
    upper_ms: Mapping[str, float | None]
    violation: float


class Score(Protocol):
    """Simulates a deployment; pickled to the processes that share a study."""

    def __call__(self, problem: Problem, table: ShapeTable, rows: Rows) -> Sight:
        """Return what simulations show of the only row."""
        ...


@dataclass(frozen=True)
class Around:
    """The neighbourhood of the analytic front.

    Attributes:
        problem, table: What deployments point into.
        guide: Price of an instance of each hardware class [USD/h].
        labels: Choices on each axis: those that the front's deployments make.
        seeds: Deployments to begin with.
    """

    problem: Problem
    table: ShapeTable
    guide: Floats
    labels: Mapping[str, tuple[str, ...]]
    seeds: Rows

    def distributions(self) -> dict[str, Any]:
        """Return what each parameter may be."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution

        inner = self.problem.inner
        return {
            **{key: CategoricalDistribution(known) for key, known in self.labels.items()},
            LIMIT: CategoricalDistribution([int(limit) for limit in inner.batch_limits]),
            BUDGET: CategoricalDistribution([int(budget) for budget in inner.token_budgets]),
            USE: FloatDistribution(LEAST_USE, MOST_USE),
        }

    def suggested(self, trial: Trial) -> dict[str, Any]:
        """Return the parameters that a trial is to try."""
        chosen = {
            key: trial.suggest_categorical(key, spaces.choices)
            for key, spaces in self.distributions().items()
            if key != USE
        }
        return {**chosen, USE: trial.suggest_float(USE, LEAST_USE, MOST_USE)}

    def rows(self, parameters: Mapping[str, Any]) -> Rows | None:
        """Return the deployment of a trial; None = there is none, or it may not be bought."""
        problem, table, inner = self.problem, self.table, self.problem.inner
        codes = [[known.index(parameters[key]) for key, known in labels_of(problem).items()]]
        shape = table.find(np.array(codes, dtype=np.intp))
        if shape[0] < 0:
            return None
        limit = np.flatnonzero(inner.batch_limits == parameters[LIMIT])
        budget = np.flatnonzero(inner.token_budgets == parameters[BUDGET])
        one = Rows(shape, limit, budget, np.ones(1), np.full(1, EVERY_SIZE))
        each = self.carries(one)
        if not each[0] > 0:
            return None
        needed = np.ceil(problem.demand.rate / (each * parameters[USE]) * (1.0 - 1e-9))
        rows = only_full(problem, table, replace(one, replicas=needed))
        gpus = (rows.replicas[0] + problem.spare) * table.gpus[shape[0]]
        within = rows.replicas[0] <= inner.max_replicas and gpus <= problem.reach.gpus
        allowed = table.loss_p90[shape[0]] <= problem.reach.loss
        return rows if within and allowed else None

    def parameters(self, rows: Rows) -> dict[str, Any]:
        """Return what a trial of the only row would be asked."""
        codes = self.table.shapes.axes()[rows.shape[0]]
        labels, inner, demand = labels_of(self.problem), self.problem.inner, self.problem.demand
        use = demand.rate / (self.carries(rows)[0] * rows.replicas[0])
        return {
            **{key: known[code] for (key, known), code in zip(labels.items(), codes, strict=True)},
            LIMIT: int(inner.batch_limits[rows.limit[0]]),
            BUDGET: int(inner.token_budgets[rows.budget[0]]),
            USE: float(np.clip(use, LEAST_USE, MOST_USE)),
        }

    def carries(self, rows: Rows) -> Floats:
        """Return the requests per second that one replica can carry, (n,)."""
        c = row_candidates(self.problem, self.table, rows)
        return capacity(c, self.problem.parameters, self.problem.demand.workload)

    def usd_per_hour(self, rows: Rows) -> float:
        """Return the price of the only row on the cheapest of its hardware classes."""
        row, hardware = homes(self.table, rows)
        price = bought(self.problem, self.table, rows.take(row), hardware) * self.guide[hardware]
        return float(price.min())


def around(problem: Problem, table: ShapeTable, guide: Floats, front: Rows) -> Around:
    """Return the neighbourhood of a front.

    Args:
        problem: As searched.
        table: Its shapes.
        guide: Price of an instance of each hardware class [USD/h].
        front: Deployments of the front and near it, most wanted first.
    """
    codes = table.shapes.axes()[np.unique(front.shape)]
    labels = {
        key: tuple(known[code] for code in np.unique(codes[:, axis]))
        for axis, (key, known) in enumerate(labels_of(problem).items())
    }
    return Around(problem, table, guide, labels, front.take(np.arange(min(SEEDS, len(front)))))


@dataclass
class Simulation:
    """Objective of a study: simulates what a trial stands for, each deployment once.

    Attributes:
        around: Where.
        score: Simulates.
        marks: User attributes of every trial, such as the process that runs it.
    """

    around: Around
    score: Score
    marks: Mapping[str, str] = field(default_factory=dict)
    _known: dict[tuple[int, ...], Sight] = field(default_factory=dict)

    def __call__(self, trial: Trial) -> tuple[float, ...]:
        """Return the objectives of a trial; its constraint says how far the targets are missed."""
        for key, value in self.marks.items():
            trial.set_user_attr(key, value)
        rows = self.around.rows(self.around.suggested(trial))
        if rows is None:
            trial.set_constraint(TARGETS, UNSUPPORTED)
            return (WORST,) * OBJECTIVES
        sight = self._sight(rows)
        trial.set_user_attr(UPPER, dict(sight.upper_ms))
        trial.set_constraint(TARGETS, min(sight.violation, UNSUPPORTED - 1.0))
        loss = float(self.around.table.loss[rows.shape[0]])
        price = self.around.usd_per_hour(rows)
        return (price, min(sight.ttft, WORST), min(sight.tpot, WORST), loss)

    def _sight(self, rows: Rows) -> Sight:
        columns = (rows.shape, rows.limit, rows.budget, rows.replicas)
        key = tuple(int(column[0]) for column in columns)
        if key not in self._known:
            around = self.around
            self._known[key] = self.score(around.problem, around.table, rows)
        return self._known[key]


def breeder(seed: int) -> BaseSampler:
    """Return the sampler of deployments."""
    from optuna.samplers import NSGAIISampler

    return NSGAIISampler(population_size=SEEDS, seed=seed)


def enqueue(study: Study, where: Around) -> None:
    """Queue the seeds that the study does not have yet, as its first generation.

    In one place only: every process that queues them would repeat them.
    """
    import optuna

    spaces = where.distributions()
    from optuna.trial import TrialState

    trials = study.get_trials(deepcopy=False)
    known = [trial.params for trial in trials if trial.state != TrialState.FAIL]
    for number in range(len(where.seeds)):
        parameters = where.parameters(where.seeds.take(np.array([number])))
        if parameters in known:
            continue
        study.add_trial(
            optuna.create_trial(
                state=TrialState.WAITING,
                params=parameters,
                distributions=spaces,
                user_attrs={FOUND_BY: HEURISTIC},
                system_attrs=dict(FIRST_GENERATION),
            )
        )


def finished(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that have been told."""
    from optuna.trial import TrialState

    return [trial for trial in trials if trial.state == TrialState.COMPLETE]


@dataclass(frozen=True)
class Simulated:
    """Deployments whose simulations met every target, each once.

    Attributes:
        rows: The deployments, (n,).
        upper_ms: Of each.
        interrupted: Whether Ctrl-C has ended the search.
    """

    rows: Rows
    upper_ms: tuple[Mapping[str, float | None], ...]
    interrupted: bool = False


def holding(where: Around, trials: Sequence[FrozenTrial]) -> Simulated:
    """Return what the trials found to hold, in the order of shape, limits and replicas."""
    found: dict[tuple[int, ...], Mapping[str, float | None]] = {}
    for trial in finished(trials):
        rows = where.rows(trial.params) if trial.constraints.get(TARGETS, 1.0) <= 0 else None
        if rows is not None:
            columns = (rows.shape, rows.limit, rows.budget, rows.replicas)
            found[tuple(int(column[0]) for column in columns)] = trial.user_attrs[UPPER]
    keys = sorted(found)
    shape, limit, budget, replicas = np.array(keys, dtype=np.intp).reshape(len(keys), 4).T
    every = np.full(len(shape), EVERY_SIZE)
    rows = Rows(shape, limit, budget, replicas.astype(float), every)
    rows = only_full(where.problem, where.table, rows)
    return Simulated(rows, tuple(found[key] for key in keys))


@dataclass(frozen=True)
class Grown:
    """An archive with further deployments.

    Attributes:
        entries: The archive.
        places: Entries of the further deployments.
        row: Which of them each is.
    """

    entries: Entries
    places: Indices
    row: Indices


def with_rows(problem: Problem, entries: Entries, table: ShapeTable, rows: Rows) -> Grown:
    """Return an archive with further deployments, dominated or not, on all their homes.

    Args:
        problem, table: What deployments point into.
        entries: The archive, in canonical order.
        rows: Deployments; those that the archive has already are not added again.

    Returns:
        The grown archive, in canonical order.
    """
    row, hardware = homes(table, rows)
    placed, served = rows.take(row), service(problem, table, rows)[row]
    points = objectives(problem, table, placed, hardware, served)
    more = Entries(hardware, placed, points, served)
    index = {key: at for at, key in enumerate(_keys(entries))}
    fresh = [number for number, key in enumerate(_keys(more)) if key not in index]
    added = more.take(np.array(fresh, dtype=np.intp))
    every = canonical(table, joined([entries, added]))
    index = {key: at for at, key in enumerate(_keys(every))}
    places = np.array([index[key] for key in _keys(more)], dtype=np.intp)
    return Grown(every, places, row)


def _keys(entries: Entries) -> list[tuple[int, ...]]:
    rows = entries.rows
    columns = (entries.hardware, rows.shape, rows.limit, rows.budget, rows.replicas)
    return [tuple(map(int, key)) for key in zip(*columns, strict=True)]
