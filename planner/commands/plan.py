"""``plan --slo slo.yaml``: which deployments to buy. Files in, record out; read this first.

slo.yaml, catalog and space make a problem (search/setup.py); the search finds the best deployments
of every hardware class without looking at a price (search/search.py); selection prices them, keeps
what meets the limits and picks (select/). The record holds all of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from planner import __version__
from planner.candidates.demand import targets
from planner.candidates.quality import QualityCase
from planner.candidates.trace_load import TraceLoad
from planner.candidates.weights_on_disk import with_weights_on_disk
from planner.catalog import Catalog, load_catalog
from planner.commands.arguments import check_arguments
from planner.commands.day import checked_day
from planner.commands.inputs import placed, read_slo, read_space, recorded_load, served
from planner.commands.slo_names import known_model
from planner.cost import Quotes, allowed_offers, quote
from planner.cost_owned import owned_offers, use_of
from planner.deploy.needs import picks_need
from planner.errors import InputError
from planner.search.columns import archives
from planner.search.problem import Problem
from planner.search.search import CUT, INTERRUPTED, Found, Settings, search
from planner.search.setup import (
    Setting,
    everywhere,
    quality_case,
    reach_of,
    setting,
    with_reach,
)
from planner.search.shortage import shortage, unserved
from planner.search.storage import Address
from planner.search.stored_study import Identity, Store
from planner.select.answers import answers
from planner.select.checks import confirmed, verified
from planner.select.deploy import Scene
from planner.select.front import Front, front
from planner.select.options import Shop
from planner.select.resize import Desk
from planner.select.selection import UNKEPT, Selection, assumed, checked, not_sold, selection
from planner.select.trace_notes import trace_notes
from planner.spec.architecture import Architecture
from planner.spec.archive import ClassArchive
from planner.spec.calibration import read_calibration
from planner.spec.offer import Offer
from planner.spec.record import Inputs, PlanRecord, SearchReport
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace
from planner.spec.verification import Verification

Progress = Callable[[str, float], None]
Scored = Literal["formula", "simulate"]

SLACK = 1.5
"""Deployments up to so many times the latency targets are kept, for targets that move a little."""
NO_TIME = 1e-9
"""Time limit of a search that ends as soon as it can [s]; 0 would be none."""


def plan(  # noqa: PLR0913  (the options of the command line)
    slo: Path | str | Slo,
    *,
    catalog: Path | Catalog | None = None,
    prices: Sequence[Path] = (),
    calibration: Path | None = None,
    space: str | Path | SearchSpace = "default",
    seed: int = 0,
    trials: int | None = None,
    time_limit: float | None = None,
    prove: bool | None = None,
    verify: bool = True,
    as_of: str | None = None,
    storage: str | None = None,
    score: Scored = "formula",
    jobs: int = 1,
    progress: Progress | None = None,
) -> PlanRecord:
    """Return the Pareto-optimal deployments for an SLO, by cost per million tokens.

    Args:
        slo: slo.yaml, or what it says.
        catalog: Catalog folder, or a loaded one; None = the shipped one.
        prices: Price files laid over the catalog's offers.
        calibration: Factors of ``plan calibrate`` on predictions.
        space: Name of a shipped search space, or a file.
        seed: Of the search.
        trials: Trials of the Optuna study; None = the default.
        time_limit: Seconds for the search; None = no limit.
        prove: True = prove the formula's front exact, False = do not, None = where that is cheap.
        verify: Check the picks by simulation, and size them by it.
        as_of: YYYY-MM-DD that prices are judged by; None = the newest price's date.
        storage: Optuna URL, or path of a journal file, that keeps the search's study: a run that
            was cut short is taken up by the next one with the same inputs. None = in memory.
        score: ``simulate`` = search again around the front, scored by simulation: `trials` is
            then the number of its deployments. It promises no repeat of bytes.
        jobs: Processes that simulate.
        progress: Called with a phrase and the share done.

    Raises:
        InputError: A file, a name or a value that cannot be used.
    """
    check_arguments(
        "plan",
        {"score": (score, Scored)},
        seed=seed,
        trials=trials,
        time_limit=time_limit,
        jobs=jobs,
    )
    known = catalog if isinstance(catalog, Catalog) else load_catalog(catalog, prices=prices)
    asked, folder, written = read_slo(slo, known)
    recorded = recorded_load(asked, folder, written, known)
    asked = recorded.slo if recorded else asked
    if calibration is not None:
        known = replace(known, calibration=read_calibration(calibration))
    day = known.newest_seen if as_of is None else checked_day(as_of)
    chosen_space = read_space(space)
    named = known_model(asked, known, folder, written)
    model = with_weights_on_disk(named, known.precisions)
    asked, architecture = asked.model_copy(update={"model": model.name}), model.architecture
    with placed(written):
        asked = served(asked, architecture, recorded.trace if recorded else None)
    recorded = recorded and recorded.within(asked)
    asked = recorded.slo if recorded else asked
    with placed(written):
        offers = for_sale(known, asked, architecture, day)
        made = setting(asked, known, chosen_space, architecture, offers)
    made = replace(made, notes=(*model.notes, *made.notes))
    work = Work(asked, known, architecture, made, progress, recorded)
    inputs = Inputs(
        slo=asked.model_dump(mode="json", by_alias=True),
        catalog_digest=known.digest,
        basis_digest=known.basis_digest,
        calibration=known.calibration,
        space=chosen_space.model_dump(mode="json"),
        seed=int(seed),
        as_of=day,
        trace=recorded.summary if recorded else None,
    )
    store = Store(Address(storage), _identity(inputs)) if storage else None
    settings = Settings(int(seed), trials, time_limit, prove, store)
    result = work.simulated(settings, jobs) if score == "simulate" else work.answer(settings)
    if verify and asked.traffic.offline is None:
        result = work.checked(result, seed)
    return to_record(work, result, inputs)


def _identity(inputs: Inputs) -> Identity:
    """Return what a stored study is of: everything that the values of its trials rest on."""
    rests_on = inputs.model_dump(mode="json", exclude={"seed"})
    return Identity(
        inputs={**rests_on, "planner_version": __version__},
        about={
            "planner_version": __version__,
            "model": str(inputs.slo["model"]),
            "space": str(inputs.space["id"]),
            "prices_as_of": inputs.as_of,
        },
    )


@dataclass(frozen=True)
class Result:
    """What a search and a selection gave, and what simulations said of it."""

    found: Found
    archive: tuple[ClassArchive, ...]
    front: Front
    checks: tuple[Verification, ...] = ()
    simulated: int = 0

    def cut(self) -> Result:
        """Return the same, which Ctrl-C has cut short."""
        return replace(self, found=replace(self.found, stopped=INTERRUPTED))


@dataclass(frozen=True)
class Work:
    """One plan: everything that is fixed before the search."""

    slo: Slo
    catalog: Catalog
    architecture: Architecture
    made: Setting
    progress: Progress | None
    recorded: TraceLoad | None = None

    def answer(self, settings: Settings) -> Result:
        """Search near the targets; where nothing meets them, everywhere.

        That finds larger fleets, whose servers hardly work, or the nearest misses.

        Both searches share the time limit; one that was cut short is not followed by another.
        """
        end = time.monotonic() + (settings.time_limit or np.inf)
        near = with_reach(self.made.problem, reach_of(self.slo, SLACK))
        result = self._searched(near, _of_slack(settings, SLACK))
        if len(result.front.rows) or result.found.stopped in CUT:
            return result
        if settings.time_limit is not None:
            left = max(end - time.monotonic(), NO_TIME)
            settings = replace(settings, time_limit=left)
        return self._searched(everywhere(self.made.problem), _of_slack(settings, np.inf))

    def _searched(self, problem: Problem, settings: Settings) -> Result:
        found = search(problem, self.guide(), settings, self.progress)
        confidence = self.slo.targets.confidence
        kept = archives(self.made, problem, found, confidence, targets(self.slo))
        rows = answers(kept)
        return Result(found, kept, front(rows, kept, self.quotes(), self.slo))

    def simulated(self, settings: Settings, jobs: int) -> Result:
        """Search by formula, then around the front by simulation."""
        from planner.commands.simulate_scored import TRIALS, Effort, simulated_archive

        if self.slo.traffic.offline is not None:
            raise InputError("--score", ["simulate is for arrivals; offline work needs none"])
        result = self.answer(replace(settings, trials=None))
        if result.found.stopped == INTERRUPTED:
            return result
        desk = self.desk(result, settings.seed)
        effort = Effort(
            trials=settings.trials or TRIALS,
            seed=settings.seed,
            jobs=jobs,
            time_limit=settings.time_limit,
            store=settings.store,
        )
        problem = with_reach(self.made.problem, reach_of(self.slo, SLACK))
        made = replace(self.made, problem=problem)
        show = self.progress or (lambda *_: None)
        grown = simulated_archive(made, result.found, desk, self.guide(), effort, show)
        kept = grown.archives
        chosen = front(answers(kept), kept, self.quotes(), self.slo)
        count = sum(len(archive.simulated) for archive in kept)
        result = replace(result, archive=kept, front=chosen, simulated=count)
        return result.cut() if grown.interrupted else result

    def desk(self, result: Result, seed: int) -> Desk:
        """Return what all simulations of the plan share."""
        scene = Scene(self.catalog, self.architecture, result.archive)
        limits = tuple(int(limit) for limit in self.made.problem.inner.batch_limits)
        trace = self.recorded.trace if self.recorded else None
        return Desk(scene, self.quotes(), self.slo, limits, seed, trace)

    def checked(self, result: Result, seed: int) -> Result:
        """Check the picks by simulation; the archive grows by the sizes that it chose.

        Ctrl-C ends that with what has been checked.
        """
        desk = self.desk(result, seed)
        done = verified(desk, self.progress)
        known = {check.option for check in done.checks}
        checks, interrupted = done.checks, done.interrupted
        if result.simulated and not interrupted:
            try:
                let_in = confirmed(desk, done.archives, done.front)
                checks = (*checks, *(check for check in let_in if check.option not in known))
            except KeyboardInterrupt:
                interrupted = True
        result = replace(result, archive=done.archives, front=done.front, checks=checks)
        return result.cut() if interrupted else result

    def quotes(self) -> dict[str, Quotes]:
        """Return all prices by hardware class."""
        classes = self.made.problem.tables.hardware
        return {
            hardware.id: quote(self.catalog, offers)
            for hardware, offers in zip(classes, self.made.offers, strict=True)
        }

    def guide(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return the cheapest price of an instance of each class, which leads the sampler."""
        return np.array([quotes.prices[0] for quotes in self.quotes().values()])

    def case(self) -> QualityCase:
        """Return what the quality loss depends on."""
        return quality_case(self.slo, self.catalog, self.architecture)


def to_record(work: Work, result: Result, inputs: Inputs) -> PlanRecord:
    """Return the record of a finished plan."""
    sold = tuple(offer for offers in work.made.offers for offer in offers)
    scene = Scene(work.catalog, work.architecture, result.archive)
    chosen = selection(scene, work.slo, work.case(), Shop(work.quotes(), sold), result.front)
    found = result.found
    return PlanRecord(
        planner_version=__version__,
        inputs=inputs,
        offers=sold,
        archive=result.archive,
        options=chosen.options,
        picks=chosen.picks,
        shown=chosen.shown,
        untrusted=chosen.untrusted,
        misses=chosen.misses,
        relaxations=chosen.relaxations,
        obstacle=_obstacle(work, found, chosen),
        assumptions=(
            *((f"{UNKEPT}: {found.unkept}.",) if found.unkept else ()),
            *work.made.notes,
            *not_sold(work.slo, sold),
            *_of_trace(work, result),
            *assumed(work.catalog, work.slo, (*chosen.options, *chosen.untrusted)),
            *picks_need(
                work.catalog, work.architecture.native_format, chosen.options, chosen.picks
            ),
            *checked(work.slo, result.checks, chosen.picks),
        ),
        search=SearchReport(
            mode="search",
            shapes=len(found.table),
            candidates=found.candidates,
            scored=found.scored,
            trials=found.trials,
            proven=found.proven,
            missed=found.missed,
            simulated=result.simulated,
            hypervolume=chosen.hypervolume,
            stopped=found.stopped,
        ),
        verification=result.checks,
    )


def _of_trace(work: Work, result: Result) -> Iterator[str]:
    if work.recorded:
        yield from trace_notes(work.recorded, replayed=_requests(result.checks))


def _requests(checks: Sequence[Verification]) -> int:
    """Return the requests of the longest run; 0 = nothing was simulated."""
    return max((check.requests for check in checks), default=0)


def _obstacle(work: Work, found: Found, chosen: Selection) -> str:
    """Return why a plan has nothing to show, not even a miss; empty = it has something."""
    if not len(found.table):
        return shortage(work.made.problem)
    shown = chosen.options or chosen.untrusted or chosen.misses
    return "" if shown else unserved(work.slo, proven=found.proven)


def _of_slack(settings: Settings, slack: float) -> Settings:
    """Return settings whose stored study is that of this slack: verdicts depend on it."""
    store = settings.store
    if store is None:
        return settings
    return replace(settings, store=replace(store, identity=store.identity.of(slack=slack)))


def for_sale(catalog: Catalog, slo: Slo, architecture: Architecture, day: str) -> tuple[Offer, ...]:
    """Return the offers that slo.yaml allows, with what it says of hardware of one's own.

    Args:
        catalog: Offers, accelerators and what they draw.
        slo: What may be bought; lengths and rate filled in.
        architecture: The model; it decides what hardware draws.
        day: YYYY-MM-DD that prices are judged by.

    Raises:
        InputError: A name that nobody knows, a price that is missing, or nothing is left.
    """
    own = owned_offers(catalog, slo.purchase, use_of(slo, architecture), day)
    every = sorted((*catalog.offers, *own), key=lambda offer: offer.key)
    return allowed_offers(replace(catalog, offers=tuple(every)), slo.purchase, day)
