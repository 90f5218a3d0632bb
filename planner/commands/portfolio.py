"""``plan portfolio slos/*.yaml``: many plans under shared limits. Files in, combined record out.

The slo.yaml files are sorted by workload; each workload is searched once and its archive answers
every plan for it (portfolio_task.py), here, in a pool of processes or on a cluster (workers.py).
Finished plans are kept as they come, under a digest of what they rest on, and not made again.
Then one way is chosen for each plan, at the least cost of all together (portfolio_choice.py).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner import __version__
from planner.candidates.weights_on_disk import with_weights_on_disk
from planner.catalog import Catalog, load_catalog
from planner.commands.arguments import check_arguments
from planner.commands.day import checked_day
from planner.commands.inputs import placed, read_slo, read_space, recorded_load, served
from planner.commands.plan import SLACK, for_sale
from planner.commands.portfolio_choice import combined, shared_limits
from planner.commands.portfolio_menu import Limited
from planner.commands.portfolio_parts import Part, part_slo
from planner.commands.portfolio_task import Asked, Common, Finished, Task, run
from planner.commands.slo_names import known_model
from planner.commands.workers import results
from planner.errors import Fault, InputError
from planner.files import check_writable, digest, make_folder, write_text
from planner.search.problem import Reach
from planner.search.search import Settings
from planner.search.setup import longest_request, reach_of
from planner.select.selection import assumed, not_sold
from planner.select.trace_notes import trace_notes
from planner.spec.architecture import Architecture
from planner.spec.calibration import read_calibration
from planner.spec.load import load_yaml
from planner.spec.portfolio import Choice, Limits, Outline, PortfolioRecord
from planner.spec.record import Inputs
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace

Progress = Callable[[str, float], None]

PLANS = "plans"
"""Folder, in that of the portfolio, of the finished plans."""
NOT_SEARCHED = ("slo", "purchase", "objectives", "autoscale", "model")
NOT_SEARCHED_OF_TRAFFIC = ("mean_rate_per_s", "load_profile")
"""Keys of slo.yaml that a search does not depend on: plans that differ in them share one."""


@dataclass(frozen=True)
class Store:
    """Where finished plans are kept; without a folder, nowhere."""

    folder: Path | None

    def prepare(self) -> None:
        """Make the folder (raises InputError where nothing can be written in it)."""
        if self.folder is None:
            return
        for folder in (self.folder, self.folder / PLANS):
            check_writable(make_folder(folder) / "portfolio.json")

    def name(self, plan: Asked) -> str:
        """Return the plan's file, from the folder of the portfolio; empty = it is not kept."""
        return f"{PLANS}/{plan.name}-{plan.key}.json" if self.folder else ""

    def read(self, plan: Asked) -> Outline | None:
        """Return the outline of a finished plan; None = it must be made."""
        if self.folder is None:
            return None
        record = self.folder / self.name(plan)
        try:
            text = record.with_suffix(".outline.json").read_text(encoding="utf-8")
            found = Outline.model_validate_json(text)
        except (OSError, ValidationError):
            return None
        return found if record.is_file() and found.key == plan.key else None

    def write(self, plan: Asked, finished: Finished) -> None:
        """Keep a plan; the outline comes last, so that where it is, the plan is whole."""
        if self.folder is None:
            return
        record = self.folder / self.name(plan)
        write_text(record, finished.record)
        outline = finished.outline.model_dump_json(by_alias=True) + "\n"
        write_text(record.with_suffix(".outline.json"), outline)


def portfolio(  # noqa: PLR0913  (the options of the command line)
    slos: Sequence[Path],
    limits: Limits | None = None,
    *,
    folder: Path | None = None,
    catalog: Path | Catalog | None = None,
    prices: Sequence[Path] = (),
    calibration: Path | None = None,
    space: str | Path | SearchSpace = "default",
    seed: int = 0,
    prove: bool | None = None,
    as_of: str | None = None,
    fleets: bool = False,
    verify: bool = False,
    jobs: int = 1,
    cluster: str = "",
    progress: Progress | None = None,
) -> PortfolioRecord:
    """Return one way to serve each of many SLOs, at the least cost of all together.

    Args:
        slos: slo.yaml files.
        limits: What all plans share; None = nothing.
        folder: Where finished plans are kept, and found again; None = nowhere.
        catalog: Catalog folder, or a loaded one; None = the shipped one.
        prices: Price files laid over the catalog's offers.
        calibration: Factors of ``plan calibrate``, on the predictions of every plan.
        space: Name of a shipped search space, or a file.
        seed: Of every search.
        prove: As for ``plan``.
        as_of: YYYY-MM-DD that prices are judged by; None = the newest price's date.
        fleets: Compose fleets of two deployments as well; three searches more a workload, and
            more where there are several kinds of request.
        verify: Check the picks of every plan by simulation, and size them by it.
        jobs: Processes on this machine.
        cluster: Address of a Dask scheduler instead.
        progress: Called with a phrase and the share done.

    Returns:
        The same record for the same files, limits and seed, however many workers there are.

    Raises:
        InputError: A file, a name or a value that cannot be used.
    """
    check_arguments("portfolio", {}, seed=seed, jobs=jobs)
    known = catalog if isinstance(catalog, Catalog) else load_catalog(catalog, prices=prices)
    if calibration is not None:
        known = replace(known, calibration=read_calibration(calibration))
    shared = shared_limits(limits or Limits(), known)
    common = Common(
        catalog=known,
        space=read_space(space),
        settings=Settings(seed=int(seed), prove=prove, processes=1),
        limited=Limited(
            shared.counted,
            shared.limits.budget_usd_per_hour is not None,
            shared.limits.max_gpus is not None,
        ),
        fleets=fleets,
        verify=verify,
    )
    day = known.newest_seen if as_of is None else checked_day(as_of)
    store = Store(folder)
    read = _read(slos, common, day)
    outlines = {plan.name: outline for plan, _ in read if (outline := store.read(plan))}
    tasks = list(_tasks(read, common, set(outlines)))
    store.prepare()
    total = len(read)
    for number, done in results(run, tasks, jobs=jobs, cluster=cluster):
        for plan, finished in zip(tasks[number].plans, done, strict=True):
            store.write(plan, finished)
            outlines[plan.name] = finished.outline
        if progress is not None:
            progress("planning", len(outlines) / total)
    return combined(
        [(outlines[plan.name], store.name(plan)) for plan, _ in read],
        shared,
        _header(common, day),
        lambda number, chosen: dict.fromkeys(_assumed(known, *read[number], chosen)),
    )


def _assumed(catalog: Catalog, plan: Asked, model: _Model, chosen: Choice) -> Iterator[str]:
    """Yield what a way to serve a plan rests on, as its own record says it of its options."""
    yield from model.notes
    yield from longest_request(plan.slo, model.architecture)[1]
    yield from not_sold(plan.slo, plan.offers)
    if plan.recorded:
        replayed = all(part.simulated for part in chosen.parts)
        whole = plan.recorded.summary.requests
        yield from trace_notes(plan.recorded, replayed=whole if replayed else 0)
    for part in chosen.parts:
        served = part_slo(plan.slo, Part(part.share, part.kinds))
        yield from assumed(catalog, served, [part.option])


def _header(common: Common, day: str) -> dict[str, Any]:
    return {
        "planner_version": __version__,
        "catalog_digest": common.catalog.digest,
        "space": common.space.id,
        "calibration": common.catalog.calibration,
        "seed": common.settings.seed,
        "as_of": day,
    }


def read_limits(
    file: Path | None, max_gpus: int | None = None, budget: float | None = None
) -> Limits:
    """Return shared limits: those of a file, and over them the ones that are given.

    Raises:
        InputError: The file cannot be used.
    """
    stated = Limits() if file is None else load_yaml(file, Limits)
    given = {"max_gpus": max_gpus, "budget_usd_per_hour": budget}
    return stated.model_copy(update={key: value for key, value in given.items() if value})


@dataclass(frozen=True)
class _Model:
    architecture: Architecture
    notes: tuple[str, ...]


def _read(files: Sequence[Path], common: Common, day: str) -> list[tuple[Asked, _Model]]:
    """Return every plan with its model; raises InputError with the faults of all files."""
    found: list[tuple[Asked, _Model]] = []
    errors: list[tuple[Path, InputError]] = []
    names = _names(files)
    for file, name in zip(files, names, strict=True):
        try:
            found.append(_one(file, name, common, day))
        except InputError as error:
            errors.append((file, error))
    if len(errors) == 1 and str(errors[0][0]) in errors[0][1].source:
        raise errors[0][1]
    if errors:
        faults = [
            Fault(
                str(file),
                "  ".join(part for part in (fault.where, fault.key) if part),
                fault.message,
            )
            for file, error in errors
            for fault in error.faults
        ]
        raise InputError("portfolio", faults)
    return found


def _names(files: Sequence[Path]) -> list[str]:
    """Return a name for each file: its stem, or its path where two have the same stem."""
    if not files:
        raise InputError("portfolio", ["no slo.yaml; name one or more"])
    repeated = [file for file, times in Counter(f.resolve() for f in files).items() if times > 1]
    if repeated:
        raise InputError("portfolio", [f"{file} is named twice; keep one" for file in repeated])
    stems = Counter(file.stem for file in files)
    names = [
        file.stem if stems[file.stem] == 1 else "-".join(file.resolve().with_suffix("").parts[1:])
        for file in files
    ]
    return [name[-150:] for name in names]


def _one(file: Path, name: str, common: Common, day: str) -> tuple[Asked, _Model]:
    asked, folder, written = read_slo(file, common.catalog)
    recorded = recorded_load(asked, folder, written, common.catalog)
    asked = recorded.slo if recorded else asked
    named = known_model(asked, common.catalog, folder, written)
    model = with_weights_on_disk(named, common.catalog.precisions)
    asked = asked.model_copy(update={"model": model.name})
    with placed(written):
        asked = served(asked, model.architecture, recorded.trace if recorded else None)
    recorded = recorded and recorded.within(asked)
    asked = recorded.slo if recorded else asked
    inputs = Inputs(
        slo=asked.model_dump(mode="json", by_alias=True),
        catalog_digest=common.catalog.digest,
        basis_digest=common.catalog.basis_digest,
        space=common.space.model_dump(mode="json"),
        calibration=common.catalog.calibration,
        seed=common.settings.seed,
        as_of=day,
        trace=recorded.summary if recorded else None,
    )
    with placed(written):
        offers = for_sale(common.catalog, asked, model.architecture, day)
    plan = Asked(
        name=name,
        key=_key(inputs, model.architecture, common),
        slo=asked,
        slack=SLACK,
        inputs=inputs,
        offers=offers,
        recorded=recorded,
    )
    return plan, _Model(model.architecture, model.notes)


def _key(inputs: Inputs, architecture: Architecture, common: Common) -> str:
    """Return the digest of all that a plan and its choices rest on."""
    limited = common.limited
    # How much a shared limit allows does not matter to what may be chosen; what it counts does.
    counted = [quota.model_copy(update={"gpus": 0}) for quota in limited.quotas]
    rest = (common.settings, common.fleets, common.verify, limited.budget, limited.gpus, counted)
    parts = (__version__, inputs.model_dump_json(), architecture.model_dump_json(), repr(rest))
    return digest(*parts)[:12]


def _tasks(
    read: Sequence[tuple[Asked, _Model]], common: Common, finished: set[str]
) -> Iterator[Task]:
    """Yield a task for each workload that has plans to make."""
    groups: dict[str, list[tuple[Asked, _Model]]] = {}
    for plan, model in read:
        groups.setdefault(_workload_key(plan.slo, model.architecture), []).append((plan, model))
    for group in groups.values():
        left = tuple(plan for plan, _ in group if plan.name not in finished)
        if not left:
            continue
        model = group[0][1]
        task = Task(
            common=common,
            architecture=model.architecture,
            notes=model.notes,
            plans=left,
            reach=_farthest(reach_of(plan.slo, plan.slack) for plan, _ in group),
            offers=_any_of(plan for plan, _ in group),
        )
        # Whatever cannot be planned for is said before any search.
        task.setting()
        yield task


def _workload_key(slo: Slo, architecture: Architecture) -> str:
    """Return the same text for plans that one search answers."""
    data = slo.model_dump(mode="json", by_alias=True)
    data["spare_replicas"] = slo.purchase.spare_replicas
    # Offline work is sized with its margin.
    data["confidence"] = slo.targets.confidence if slo.traffic.offline is not None else None
    for key in NOT_SEARCHED:
        del data[key]
    for key in NOT_SEARCHED_OF_TRAFFIC:
        del data["traffic"][key]
    for kind in data["traffic"]["classes"] or ():
        del kind["slo"]
    return json.dumps([data, architecture.model_dump(mode="json")], sort_keys=True)


def _farthest(reaches: Iterable[Reach]) -> Reach:
    every = list(reaches)
    names = Reach.__dataclass_fields__
    return replace(every[0], **{name: max(getattr(one, name) for one in every) for name in names})


def _any_of(plans: Iterable[Asked]) -> tuple[Any, ...]:
    """Return every offer that one of the plans may buy, in the order of its key."""
    sold = {offer.key: offer for plan in plans for offer in plan.offers}
    return tuple(sold[key] for key in sorted(sold))
