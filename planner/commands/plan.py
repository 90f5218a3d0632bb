"""``plan --slo slo.yaml``: which deployments to buy. Files in, record out; read this first.

slo.yaml, catalog and space make a problem (search/setup.py); the search finds the best deployments
of every hardware class without looking at a price (search/search.py); selection prices them, keeps
what meets the limits and picks (select/). The record holds all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from planner import __version__
from planner.candidates.quality import QualityCase
from planner.catalog import Catalog, data_root, load_catalog
from planner.catalog.models import find_architecture
from planner.cost import Quotes, allowed_offers, quote
from planner.errors import Fault, InputError, suggestion
from planner.files import read_yaml
from planner.importers.huggingface import read_architecture
from planner.pareto import hypervolume, rounded
from planner.search.columns import archives
from planner.search.search import Found, Settings, search
from planner.search.setup import Setting, quality_case, reach_of, setting, with_reach
from planner.select.answers import answers
from planner.select.deploy import Scene
from planner.select.front import Front, front
from planner.select.misses import miss, nearest
from planner.select.options import Shop, options
from planner.select.picks import picks, shown
from planner.select.resize import Desk, verified
from planner.spec.architecture import Architecture
from planner.spec.load import load
from planner.spec.record import ClassArchive, Inputs, Miss, Option, PlanRecord, SearchReport
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace
from planner.spec.verification import Verification

Progress = Callable[[str, float], None]

SLACK = 1.5
"""Deployments up to so many times the latency targets are kept, for targets that move a little."""
LATER: dict[str, Callable[[Slo], bool]] = {
    "traffic.trace": lambda s: s.traffic.trace is not None,
    "traffic.classes": lambda s: s.traffic.classes is not None,
    "traffic.load_profile": lambda s: s.traffic.load_profile is not None,
    "autoscale": lambda s: s.autoscale is not None,
    "purchase.owned": lambda s: s.purchase.owned is not None,
}
"""Keys of slo.yaml that this version reads but cannot plan for."""


def plan(  # noqa: PLR0913  (the options of the command line)
    slo: Path | str | Slo,
    *,
    catalog: Path | Catalog | None = None,
    prices: Sequence[Path] = (),
    space: str | Path | SearchSpace = "default",
    seed: int = 0,
    trials: int | None = None,
    time_limit: float | None = None,
    prove: bool | None = None,
    verify: bool = True,
    as_of: str | None = None,
    progress: Progress | None = None,
) -> PlanRecord:
    """Return the Pareto-optimal deployments for an SLO, by cost per million tokens.

    Args:
        slo: slo.yaml, or what it says.
        catalog: Catalog folder, or a loaded one; None = the shipped one.
        prices: Price files laid over the catalog's offers.
        space: Name of a shipped search space, or a file.
        seed: Of the search.
        trials: Trials of the Optuna study; None = the default.
        time_limit: Seconds for the search; None = no limit.
        prove: True = prove the front exact, False = do not, None = where that is cheap.
        verify: Check the picks by simulation, and size them by it.
        as_of: YYYY-MM-DD that prices are judged by; None = the newest price's date.
        progress: Called with a phrase and the share done.

    Raises:
        InputError: A file, a name or a value that cannot be used.
    """
    asked, folder = _slo(slo)
    _refuse_later(asked)
    known = catalog if isinstance(catalog, Catalog) else load_catalog(catalog, prices=prices)
    day = as_of or known.newest_seen
    chosen_space = _space(space)
    architecture = _architecture(asked.model, folder)
    offers = allowed_offers(known, asked.purchase, day)
    made = setting(asked, known, chosen_space, architecture, offers)
    work = _Work(asked, known, architecture, made, progress)
    settings = Settings(seed=seed, trials=trials, time_limit=time_limit, prove=prove)
    result = work.answer(settings)
    if verify and asked.traffic.offline is None:
        result = work.checked(result, seed)
    inputs = Inputs(
        slo=asked.model_dump(mode="json", by_alias=True),
        catalog_digest=known.digest,
        space=chosen_space.model_dump(mode="json"),
        seed=seed,
        as_of=day,
    )
    return _record(work, result, inputs)


@dataclass(frozen=True)
class _Result:
    """What a search and a selection gave, and what simulations said of it."""

    found: Found
    archive: tuple[ClassArchive, ...]
    front: Front
    checks: tuple[Verification, ...] = ()
    complete: bool = False


@dataclass(frozen=True)
class _Work:
    """One plan: everything that is fixed before the search."""

    slo: Slo
    catalog: Catalog
    architecture: Architecture
    made: Setting
    progress: Progress | None

    def answer(self, settings: Settings) -> _Result:
        """Search near the targets; where nothing meets them, everywhere, for the nearest misses."""
        result = self._searched(settings, SLACK)
        if not len(result.front.rows) and not len(result.front.untrusted):
            result = self._searched(settings, np.inf)
        return result

    def _searched(self, settings: Settings, slack: float) -> _Result:
        problem = with_reach(self.made.problem, reach_of(self.slo, slack))
        found = search(problem, self.guide(), settings, self.progress)
        targets = tuple((m, share) for m, share, _ in self.slo.targets.items())
        kept = archives(self.made, problem, found, self.slo.targets.confidence, targets)
        rows = answers(kept)
        return _Result(found, kept, front(rows, kept, self.quotes(), self.slo))

    def checked(self, result: _Result, seed: int) -> _Result:
        """Check the picks by simulation; the archive grows by the sizes that it chose."""
        scene = Scene(self.catalog, self.architecture, result.archive)
        limits = tuple(int(limit) for limit in self.made.problem.inner.batch_limits)
        done = verified(Desk(scene, self.quotes(), self.slo, limits, seed), self.progress)
        return replace(
            result,
            archive=done.archives,
            front=done.front,
            checks=done.checks,
            complete=done.complete,
        )

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


def _record(work: _Work, result: _Result, inputs: Inputs) -> PlanRecord:
    sold = tuple(offer for offers in work.made.offers for offer in offers)
    scene = Scene(work.catalog, work.architecture, result.archive)
    every = Shop(work.quotes(), sold)
    allowed = work.slo.purchase.allow_flagged_prices
    clean = every if allowed else Shop({k: q.clean() for k, q in every.quotes.items()}, sold)
    chosen, case = result.front, work.case()
    best = options(scene, clean, work.slo, case, (chosen.trusted, chosen.rows))
    doubtful = options(scene, every, work.slo, case, (chosen.every, chosen.untrusted))
    picked = picks(chosen)
    missed = () if best else _misses(work, scene, every, chosen)
    return PlanRecord(
        planner_version=__version__,
        inputs=inputs,
        offers=sold,
        archive=result.archive,
        options=best,
        picks={name: best[position].id for name, position in picked.items()},
        shown=tuple(best[position].id for position in shown(chosen, picked)),
        untrusted=doubtful,
        misses=missed,
        assumptions=(*_assumptions(work, (*best, *doubtful)), *_checks(work, result)),
        search=_report(result),
        verification=result.checks,
    )


def _misses(work: _Work, scene: Scene, shop: Shop, chosen: Front) -> tuple[Miss, ...]:
    rows = nearest(chosen.every, scene, work.slo)
    shown_options = options(scene, shop, work.slo, work.case(), (chosen.every, rows))
    return tuple(
        miss(scene, work.slo, chosen.every, int(row), option)
        for row, option in zip(rows, shown_options, strict=True)
    )


def _report(result: _Result) -> SearchReport:
    found, values = result.found, result.front.points
    volume = 0.0
    if len(values):
        logs = np.log10(np.where((values == 0).any(axis=0), values + 1.0, values))
        low, high = logs.min(axis=0), logs.max(axis=0)
        unit = (logs - low) / np.where(high > low, high - low, 1.0)
        volume = hypervolume(unit, np.full(values.shape[1], 1.1))
    return SearchReport(
        mode="search",
        shapes=len(found.table),
        candidates=found.candidates,
        scored=found.scored,
        trials=found.trials,
        proven=found.proven,
        hypervolume=float(rounded(volume)),
        stopped=found.stopped,
    )


def _assumptions(work: _Work, chosen: Sequence[Option]) -> tuple[str, ...]:
    """Return what the options rest on that nobody has measured, in sentences."""
    notes = list(work.made.notes)
    accelerators = work.catalog.accelerators
    for chip in dict.fromkeys(option.accelerator for option in chosen):
        guessed = [
            key for source in accelerators[chip].sources if source.assumed for key in source.keys
        ]
        if guessed:
            names = ", ".join(dict.fromkeys(guessed))
            notes.append(f"{accelerators[chip].name}: assumed, not verified: {names}.")
    if any(o.gpus_per_replica > o.gpus // o.instances for o in chosen):
        notes.append(
            "Replicas across instances rest on an assumed share of the network's rate; no public "
            "measurement identifies it."
        )
    drafts = {option.speculation for option in chosen} - {"off"}
    if drafts:
        names = ", ".join(sorted(drafts))
        notes.append(
            f"Draft acceptance ({names}) is the catalog's for this task; measure your own."
        )
    return tuple(notes)


def _checks(work: _Work, result: _Result) -> tuple[str, ...]:
    """Return how far the latencies have been checked, in sentences."""
    if work.slo.traffic.offline is not None:
        return ()
    if not result.checks:
        return ("Latencies come from a closed formula; no simulation has checked these options.",)
    rest = "The picks have been checked by simulation; other options rest on the closed formula."
    if result.complete:
        return (rest,)
    return (rest, "Not every pick has been checked: too many did not hold.")


def _slo(slo: Path | str | Slo) -> tuple[Slo, Path]:
    if isinstance(slo, Slo):
        return slo, Path()
    path = Path(slo)
    return load(read_yaml(path), Slo), path.parent


def _refuse_later(slo: Slo) -> None:
    faults = [
        Fault("", key, "this version cannot plan for it yet; remove it")
        for key, given in LATER.items()
        if given(slo)
    ]
    if faults:
        raise InputError("slo.yaml", faults)


def _space(space: str | Path | SearchSpace) -> SearchSpace:
    if isinstance(space, SearchSpace):
        return space
    shipped = data_root() / "search_spaces"
    path = shipped / f"{space}.yaml"
    if isinstance(space, Path) or not path.is_file():
        path = Path(space)
    if not path.is_file() and path.suffix not in (".yaml", ".yml"):
        names = sorted(file.stem for file in shipped.glob("*.yaml"))
        hint = suggestion(str(space), names) or f"; known are {', '.join(names)}"
        raise InputError("--space", [f"unknown space '{space}'{hint}, or give a file"])
    return load(read_yaml(path), SearchSpace)


def _architecture(model: str, folder: Path) -> Architecture:
    """Return the model: a path relative to slo.yaml if there is one, else a known name."""
    path = folder / model
    if path.exists() or model.endswith(".json") or model.startswith((".", "/", "~")):
        return read_architecture(path.expanduser())
    return find_architecture(model)
