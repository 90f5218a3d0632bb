"""What a worker does for a portfolio: one workload searched once, and every plan for it answered.

A task carries everything it needs, so that it may run on another machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from planner.candidates.demand import targets
from planner.candidates.margins import margin
from planner.candidates.trace_load import TraceLoad
from planner.catalog import Catalog
from planner.commands.plan import Result, Work, to_record
from planner.commands.portfolio_menu import Limited, Menu, Stand, menu
from planner.commands.portfolio_parts import WHOLE, Part, part_slo, splits
from planner.commands.stored import by_class
from planner.cost import quote
from planner.counting import counted
from planner.model.arrays import Floats, Indices
from planner.search.columns import STANDARD, archives
from planner.search.problem import Reach
from planner.search.search import INTERRUPTED, Found, Settings, search
from planner.search.setup import Setting, everywhere, reach_of, setting, with_reach
from planner.select.answers import Mask, answers
from planner.select.deploy import Scene
from planner.select.front import front
from planner.spec.architecture import Architecture
from planner.spec.archive import ClassArchive, Rows
from planner.spec.offer import Offer
from planner.spec.option import Option
from planner.spec.portfolio import Outline
from planner.spec.record import Inputs, PlanRecord
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace
from planner.units import MILLI, SECONDS_PER_HOUR

ANY_CONFIDENCE = 0.5
"""Margins of the shared archive are replaced by each plan's own."""


@dataclass(frozen=True)
class Asked:
    """One plan to make.

    Attributes:
        name, key: Its name and digest.
        slo: What is asked, the figures of a trace filled in.
        slack: Factor on its latency targets up to which deployments are kept.
        inputs: For its record.
        offers: What it may buy.
        recorded: Its trace; None = it has none.
    """

    name: str
    key: str
    slo: Slo
    slack: float
    inputs: Inputs
    offers: tuple[Offer, ...]
    recorded: TraceLoad | None = None


@dataclass(frozen=True)
class Common:
    """What all tasks share.

    Attributes:
        catalog, space, settings: What to search, and how.
        limited: What shared limits count.
        fleets: Whether fleets of two deployments are composed.
        verify: Whether picks are checked by simulation.
    """

    catalog: Catalog
    space: SearchSpace
    settings: Settings
    limited: Limited
    fleets: bool = False
    verify: bool = False


@dataclass(frozen=True)
class Task:
    """Plans for one workload of one model.

    Attributes:
        architecture, notes: The model, and what is to be known of where it comes from.
        plans: Those that are to be made.
        reach: The farthest of all plans for the workload, finished ones among them.
        offers: What any of those may buy.
    """

    common: Common
    architecture: Architecture
    notes: tuple[str, ...]
    plans: tuple[Asked, ...]
    reach: Reach
    offers: tuple[Offer, ...]

    def setting(self, part: Part = WHOLE) -> Setting:
        """Return the problem that a part of the traffic poses.

        Raises:
            InputError: Names or lengths that cannot be planned for.
        """
        catalog, asked = self.common.catalog, part_slo(self.plans[0].slo, part)
        made = setting(asked, catalog, self.common.space, self.architecture, self.offers)
        return replace(made, notes=(*self.notes, *made.notes))


@dataclass(frozen=True)
class Finished:
    """One plan: its outline, and its record as JSON text."""

    outline: Outline
    record: str


@dataclass(frozen=True)
class _Searched:
    made: Setting
    found: Found
    archive: tuple[ClassArchive, ...]


@dataclass
class _Workload:
    """The searches of a task, each made once."""

    task: Task
    done: dict[tuple[Part, bool], _Searched] = field(default_factory=dict)

    def searched(self, part: Part = WHOLE, *, near: bool = True) -> _Searched:
        """Return the search of a part of the traffic, near the targets or everywhere."""
        if (part, near) not in self.done:
            self.done[part, near] = self._search(part, near)
        return self.done[part, near]

    def _search(self, part: Part, near: bool) -> _Searched:
        task, common = self.task, self.task.common
        made = task.setting(part)
        reach = _part_reach(task.reach, part)
        problem = with_reach(made.problem, reach) if near else everywhere(made.problem)
        guide = np.array([quote(common.catalog, sold).prices[0] for sold in made.offers])
        found = search(problem, guide, common.settings)
        if found.stopped == INTERRUPTED:
            raise KeyboardInterrupt
        every = (part_slo(plan.slo, part) for plan in task.plans)
        wanted = {target.key: target for slo in every for target in targets(slo)}
        kept = archives(made, problem, found, ANY_CONFIDENCE, tuple(wanted.values()))
        return _Searched(made, found, kept)


def _part_reach(reach: Reach, part: Part) -> Reach:
    """Return how far the deployments of a part may lie: only a fleet's mean loss is limited."""
    return reach if part == WHOLE else replace(reach, loss=np.inf)


def run(task: Task) -> tuple[Finished, ...]:
    """Return every plan of a task."""
    workload = _Workload(task)
    return tuple(_finished(workload, plan) for plan in task.plans)


def _finished(workload: _Workload, plan: Asked) -> Finished:
    common = workload.task.common
    work, record = _planned(workload, plan)
    whole = _stand(work, record.archive, WHOLE)
    sides = []
    if common.fleets:
        for pair in splits(plan.slo):
            one, other = (_side(workload, plan, work, part) for part in pair)
            sides.append((one, other))
    outline = _outline(plan, record, menu(whole, sides, common.limited))
    return Finished(outline, record.model_dump_json(by_alias=True) + "\n")


def _planned(workload: _Workload, plan: Asked) -> tuple[Work, PlanRecord]:
    """Return the plan, from what meets its targets, or else from everything."""
    task, common = workload.task, workload.task.common
    for near in (True, False):
        searched = workload.searched(near=near)
        made = _own_offers(searched.made, plan, common.catalog)
        work = Work(plan.slo, common.catalog, task.architecture, made, None, plan.recorded)
        reach = reach_of(plan.slo, plan.slack) if near else Reach()
        kept = own_archive(searched.archive, plan, common.catalog, WHOLE, reach)
        chosen = front(answers(kept), kept, work.quotes(), plan.slo)
        if len(chosen.rows):
            break
    result = Result(searched.found, kept, chosen)
    if common.verify and plan.slo.traffic.offline is None:
        result = work.checked(result, common.settings.seed)
        if result.found.stopped == INTERRUPTED:
            raise KeyboardInterrupt
    return work, to_record(work, result, plan.inputs)


def _own_offers(made: Setting, plan: Asked, catalog: Catalog) -> Setting:
    """Return a setting that sells what this plan may buy."""
    own = by_class(catalog, plan.offers)
    classes = made.problem.tables.hardware
    return replace(made, offers=tuple(tuple(own.get(hardware.id, ())) for hardware in classes))


def _stand(work: Work, archive: tuple[ClassArchive, ...], part: Part) -> Stand:
    slo = part_slo(work.slo, part)
    quotes = work.quotes()
    if not slo.purchase.allow_flagged_prices:
        quotes = {key: one.clean() for key, one in quotes.items()}
    scene = Scene(work.catalog, work.architecture, archive)
    sold = tuple(offer for offers in work.made.offers for offer in offers)
    return Stand(scene, slo, work.case(), quotes, sold, part)


def _side(workload: _Workload, plan: Asked, work: Work, part: Part) -> Stand:
    """Return what may serve a part of a plan's traffic."""
    reach = _part_reach(reach_of(plan.slo, 1.0), part)
    found = workload.searched(part).archive
    return _stand(work, own_archive(found, plan, work.catalog, part, reach), part)


def own_archive(
    shared: Sequence[ClassArchive], plan: Asked, catalog: Catalog, part: Part, reach: Reach
) -> tuple[ClassArchive, ...]:
    """Return what one plan keeps of the archive of its workload.

    Deployments within a smaller reach that nothing beats within a larger one are those that
    nothing beats within the smaller: what beats them would lie within it, too. (Where a replica
    of more GPUs beats them, it does so with no more instances, so it can be bought as well.)

    Args:
        shared: Archive of the workload.
        plan: The plan.
        catalog: Hardware and fitted errors.
        part: Part of its traffic.
        reach: Largest values it keeps.
    """
    classes = by_class(catalog, plan.offers)
    slo = part_slo(plan.slo, part)
    own = []
    for archive in shared:
        rows = np.flatnonzero(_within(archive.rows, slo.purchase.spare_replicas, reach))
        if archive.hardware.id not in classes or not len(rows):
            continue
        kept = _cut(archive.rows, rows, slo)
        chip = catalog.accelerators[archive.hardware.accelerator]
        confidence = slo.targets.confidence
        names = sorted(set(kept.generation))
        margins = tuple(margin(catalog.efficiency, name, chip, confidence) for name in names)
        own.append(ClassArchive(hardware=archive.hardware, margins=margins, rows=kept))
    return tuple(own)


def _within(rows: Rows, spare: int, reach: Reach) -> Mask:
    offline = rows.run_hours and rows.run_hours[0] is not None
    limits = {"loss_p90": reach.loss}
    if offline:
        limits["run_hours"] = reach.run / SECONDS_PER_HOUR
    else:
        limits |= {"ttft_p95_ms": reach.ttft / MILLI, "tpot_p95_ms": reach.tpot / MILLI}
    replica = np.array(rows.tp) * np.array(rows.pp) * np.array(rows.dp)
    good: Mask = (np.array(rows.replicas) + spare) * replica <= reach.gpus
    for name, limit in limits.items():
        good &= _numbers(getattr(rows, name)) <= limit
    return good


def _numbers(column: Sequence[float | None]) -> Floats:
    return np.array([np.inf if value is None else value for value in column])


def _cut(rows: Rows, some: Indices, slo: Slo) -> Rows:
    """Return some of the rows, with the percentiles that one slo.yaml limits."""
    at = some.tolist()
    further = {target.key for target in targets(slo)} - {target.key for target in STANDARD}
    columns: dict[str, Any] = {
        name: tuple(column[i] for i in at) for name, column in rows if name != "further_ms"
    }
    columns["further_ms"] = {
        target.key: tuple(rows.further_ms[target.key][i] for i in at)
        for target in targets(slo)
        if target.key in further
    }
    return Rows.model_construct(None, **columns)


def _outline(plan: Asked, record: PlanRecord, found: Menu) -> Outline:
    nearest = record.misses[0] if record.misses else None
    return Outline(
        name=plan.name,
        key=plan.key,
        model=plan.slo.model,
        load=load_words(plan.slo),
        options=len(record.options),
        proven=record.search.proven,
        choices=found.choices,
        fleets=found.fleets,
        misses=nearest.misses if nearest else _untrusted(record.untrusted),
        would_do=nearest.would_do if nearest else (),
    )


def _untrusted(options: Sequence[Option]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(flag for option in options for flag in option.flags))


def load_words(slo: Slo) -> str:
    """Return what is asked of a plan, in a few words."""
    offline = slo.traffic.offline
    if offline is not None:
        return f"{counted(offline.requests, 'request')} within {offline.deadline_hours:g} h"
    limits = [f"{target.key} {target.limit:g}" for target in targets(slo)]
    return f"{slo.traffic.rate_per_s:g}/s, {', '.join(limits)}"[:500]
