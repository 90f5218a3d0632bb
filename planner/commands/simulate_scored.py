"""``plan --score simulate``: a second search around the front, scored by the step simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.demand import metric_of, sized_rate, targets
from planner.candidates.margins import margin
from planner.files.temporary import temporary_folder
from planner.model.arrays import Floats
from planner.model.queueing import steady_state
from planner.search.columns import archives
from planner.search.inner import Rows, row_candidates
from planner.search.problem import Problem
from planner.search.search import Found
from planner.search.setup import Setting
from planner.search.shapes import ShapeTable
from planner.search.simulated import Around, Sight, Simulated, around, with_rows
from planner.search.simulated_workers import Job, ending_in_order, run_here, run_processes
from planner.search.storage import Address
from planner.search.stored_study import Identity, Store
from planner.select.answers import MARGIN_OF, STANDARD, answers
from planner.select.front import front
from planner.select.resize import Desk, upper_ms, wanted_of
from planner.select.verification import observe
from planner.simulate import deployment
from planner.spec.archive import ClassArchive
from planner.spec.verification import Simulated as Checked

TRIALS = 100
"""Simulated deployments, seeds included, unless ``--trials`` says otherwise."""
SPREAD = 16
"""Deployments of the front that the study begins with."""
NEAR = 60
"""Deployments whose choices span the space."""
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Effort:
    """How long and where a simulated search works.

    Attributes:
        trials: Deployments simulated, seeds included.
        seed: Of the sampler.
        jobs: Processes of this machine.
        time_limit: Seconds after which no simulation begins; None = no limit.
        store: Keeps the study; None = nowhere.
    """

    trials: int
    seed: int
    jobs: int
    time_limit: float | None
    store: Store | None


@dataclass(frozen=True)
class Simulator:
    """Scores a deployment by simulation, with the requests of all other checks of the plan."""

    desk: Desk

    def __call__(self, problem: Problem, table: ShapeTable, rows: Rows) -> Sight:
        """Return what simulations show of the only row."""
        desk, slo, c = self.desk, self.desk.slo, row_candidates(problem, table, rows)
        p, w = problem.parameters, desk.workload
        rate = np.array([sized_rate(slo)])
        state = steady_state(c, p, w, rate, routing=slo.routing)
        fleet = deployment(c, p, w, routing=slo.routing)
        limits = {target.key: target for target in targets(slo)}
        factors = self._factors(problem, table, rows)
        wanted = tuple(
            wanted_of(key, limits.get(key), factors[MARGIN_OF[metric_of(key)]])
            for key in dict.fromkeys((*STANDARD, *limits))
        )
        in_flight = (1.3 * float(state.batch[0]) + 1.0) * fleet.servers
        seen = observe(fleet, desk.requests, wanted, in_flight).seen
        worst = max(seen[want.key].upper / want.limit for want in wanted)
        return Sight(
            ttft=seen["ttft_p95_ms"].value,
            tpot=seen["tpot_p95_ms"].value,
            upper_ms=upper_ms(seen),
            violation=worst - 1.0,
        )

    def _factors(self, problem: Problem, table: ShapeTable, rows: Rows) -> Mapping[str, float]:
        shape, tables = table.shapes.take(rows.shape), problem.tables
        generation = tables.stacks[shape.stack[0]].generation.id
        chip = tables.hardware[shape.hardware[0]].accelerator
        confidence = self.desk.slo.targets.confidence
        return margin(tables.efficiency, generation, chip, confidence).model_dump()


@dataclass(frozen=True)
class Grown:
    """An archive with the deployments whose simulations met every target.

    Attributes:
        archives: The archive.
        interrupted: Whether Ctrl-C has ended the search for more.
    """

    archives: tuple[ClassArchive, ...]
    interrupted: bool = False


def simulated_archive(
    made: Setting, found: Found, desk: Desk, guide: Floats, effort: Effort, progress: Progress
) -> Grown:
    """Return the archive with the deployments whose simulations met every target.

    Args:
        made: The problem as searched, and the names behind its indices.
        found: The analytic search of it.
        desk: What all simulations of the plan share.
        guide: Price of an instance of each hardware class [USD/h].
        effort: How long and where.
        progress: Called with a phrase and the share done.
    """
    confidence, limits = desk.slo.targets.confidence, targets(desk.slo)
    kept = archives(made, made.problem, found, confidence, limits)
    where = _around(made.problem, found, desk, guide, kept)
    if not len(where.seeds):
        return Grown(kept)
    best = _simulated(where, desk, effort, progress)
    grown = with_rows(made.problem, found.entries, found.table, best.rows)
    every = archives(made, made.problem, replace(found, entries=grown.entries), confidence, limits)
    first = np.searchsorted(grown.entries.hardware, grown.entries.hardware[grown.places])
    marks: dict[str, list[Checked]] = {}
    for place, begin, row in zip(grown.places, first, grown.row, strict=True):
        name = made.problem.tables.hardware[grown.entries.hardware[place]].id
        entry = Checked(row=int(place - begin), upper_ms=dict(best.upper_ms[row]))
        marks.setdefault(name, []).append(entry)
    marked = tuple(
        archive.model_copy(update={"simulated": tuple(marks.get(archive.hardware.id, ()))})
        for archive in every
    )
    return Grown(marked, best.interrupted)


def _around(
    problem: Problem, found: Found, desk: Desk, guide: Floats, kept: tuple[ClassArchive, ...]
) -> Around:
    """Return the neighbourhood of the front: rows spread over it, then those that nearly hold."""
    chosen = front(answers(kept), kept, desk.quotes, desk.slo)
    spread = np.unique(np.linspace(0, max(len(chosen.rows) - 1, 0), SPREAD).astype(int))
    near, price = chosen.every.worst(), chosen.every.money["usd_per_mtok_output"]
    order = np.lexsort((price, np.maximum(near, 1.0)))
    order = order[np.isfinite(near[order] + price[order])]
    rows = dict.fromkeys([*chosen.rows[spread[: len(chosen.rows)]].tolist(), *order.tolist()])
    # The record's rows have the order of the archive's entries: class by class.
    entries = np.array(list(rows)[:NEAR], dtype=np.intp)
    return around(problem, found.table, guide, found.entries.rows.take(entries))


def _simulated(where: Around, desk: Desk, effort: Effort, progress: Progress) -> Simulated:
    job = Job(
        around=where,
        score=Simulator(desk),
        seed=effort.seed,
        trials=effort.trials,
        time_limit=np.inf if effort.time_limit is None else effort.time_limit,
    )
    store = effort.store
    if store is not None:
        identity = store.identity.of(score="simulate", seed=desk.seed, around=dict(where.labels))
        store = replace(store, identity=identity)
    if effort.jobs == 1:
        return run_here(job, store, progress)
    with ending_in_order(), temporary_folder("plan-study-") as folder:
        alone = Store(Address(str(folder / "study.log")), Identity({}, {}))
        return run_processes(job, store or alone, effort.jobs, progress)
