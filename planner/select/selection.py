"""A priced archive -> the parts of a record that a person reads; no search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.candidates.demand import kinds, slo_mixture, targets
from planner.candidates.quality import QualityCase
from planner.catalog import Catalog
from planner.model.arrays import Floats
from planner.pareto import hypervolume, rounded
from planner.select.affordable import within_limits
from planner.select.deploy import OFF, Scene
from planner.select.formula_misses import formula_misses
from planner.select.front import Front
from planner.select.misses import NEAREST, miss, nearest, relaxation, relaxed
from planner.select.options import Shop, options
from planner.select.picks import picks, shown
from planner.spec.accelerator import rests_on
from planner.spec.offer import Offer
from planner.spec.option import Option
from planner.spec.record import Miss, Relaxation
from planner.spec.slo import Slo
from planner.spec.verification import Verification

FORMULA_ONLY = "Latencies come from a closed formula; no simulation has checked these options."
PICKS_CHECKED = (
    "The picks have been checked by simulation; other options rest on the closed formula."
)
UNKEPT = "The stored study lacks a part of what was found, which the next run adds"
UNVERIFIED = "assumed, not verified"
NOT_SOLD = "No offer that may be bought has "
DRAFTS = "Draft acceptance ("
SHORT_RUN = 0.5
"""Offline runs below this length [h] say that starts and billing units are left out."""
ITL_COARSE = (
    "ITL by the closed formula is coarse: half of its p95s lie within 4 % of simulated ones, one in"
    " ten is off by a third or more (under bursts by half), as a percentile may fall on the wrong"
    " side between steps with and without prompts. Options that no simulation has checked are on"
    " the front or off it by that; simulate one (plan simulate) before you rely on its ITL."
)
FEW_TOKENS = 16.0
"""Median output [tokens] from which on the formula is compared with the simulator."""
SHORT_COARSE = (
    f"Half of the outputs, or of those of a class, are shorter than {FEW_TOKENS:g} tokens, where"
    " the closed formula is not compared with simulations: its TPOT and E2E may be several times"
    " too low where long prompts or bursts come in between. Simulate an option that no simulation"
    " has checked (plan simulate) before you rely on them."
)
ALIKE = 0.05**2
"""Squared CV below which outputs count as of one length."""
ENDS_TOGETHER = (
    "Outputs are of one length: requests that came together end together, and the least loaded"
    " server gets the next ones together. TTFT p95 of fleets may grow for hours to several times"
    " what the formula and short simulations show: simulate the whole fleet for long"
    " (plan simulate PLAN --option ID --requests 100000), or state how your lengths vary."
)
FOR_NO_CLASS = (
    "The targets under slo of the file hold for no class, since each has its own; repeat them in"
    " the classes if they should."
)
LEASES_LEFT_OUT = (
    "Costs per run and per Mtok, and the choice by them, count the hours of the run; a lease that"
    " is longer is due in full, which is told beside the run."
)
PICKS_BUT = "All picks but "
UNCHECKED = (
    "No simulation has checked the picks, only other options; latencies come from the formula."
)


@dataclass(frozen=True)
class Selection:
    """What a record says of its archive at some prices; fields as in ``PlanRecord``."""

    options: tuple[Option, ...]
    picks: dict[str, str]
    shown: tuple[str, ...]
    untrusted: tuple[Option, ...]
    misses: tuple[Miss, ...]
    relaxations: tuple[Relaxation, ...]
    hypervolume: float


def selection(scene: Scene, slo: Slo, case: QualityCase, shop: Shop, chosen: Front) -> Selection:
    """Return the options, picks, untrusted options and misses of a front.

    Args:
        scene: Catalog, model, archive.
        slo: What was asked.
        case: What the quality loss depends on.
        shop: All prices by hardware class id, flagged ones among them.
        chosen: Front of the archive at those prices.
    """
    clean = Shop({key: quotes.clean() for key, quotes in shop.quotes.items()}, shop.offers)
    trusted = shop if slo.purchase.allow_flagged_prices else clean
    best = options(scene, trusted, slo, case, (chosen.trusted, chosen.rows))
    picked = picks(chosen)
    return Selection(
        options=best,
        picks={name: best[position].id for name, position in picked.items()},
        shown=tuple(best[position].id for position in shown(chosen, picked)),
        untrusted=options(scene, shop, slo, case, (chosen.every, chosen.untrusted)),
        misses=() if best else _misses(scene, slo, case, shop, chosen),
        relaxations=() if best else _relaxations(scene, slo, case, trusted, chosen),
        hypervolume=_volume(chosen.points),
    )


def _misses(
    scene: Scene, slo: Slo, case: QualityCase, shop: Shop, chosen: Front
) -> tuple[Miss, ...]:
    found = nearest(chosen.every, scene, slo)
    rows = np.array([row for row, _ in found], dtype=np.intp)
    near = options(scene, shop, slo, case, (chosen.every, rows))
    misses = tuple(
        miss(scene, slo, chosen.every, row, option, kind)
        for (row, kind), option in zip(found, near, strict=True)
    )
    if any(one.kind == "within the purchase limits" for one in misses):
        return misses
    within = within_limits(scene, slo, case, shop, chosen.every)
    return misses if within is None else (within, *misses[: NEAREST - 1])


def _relaxations(
    scene: Scene, slo: Slo, case: QualityCase, shop: Shop, chosen: Front
) -> tuple[Relaxation, ...]:
    found = relaxed(chosen.trusted, slo)
    rows = np.array([row for _, row in found], dtype=np.intp)
    made = options(scene, shop, slo, case, (chosen.trusted, rows))
    return tuple(
        relaxation(slo, chosen.trusted, name, row, option)
        for (name, row), option in zip(found, made, strict=True)
    )


def _volume(points: Floats) -> float:
    """Return the hypervolume of a front in log units of its own box; the reference is 1.1."""
    if not len(points):
        return 0.0
    logs = np.log10(np.where((points == 0).any(axis=0), points + 1.0, points))
    low, high = logs.min(axis=0), logs.max(axis=0)
    unit = (logs - low) / np.where(high > low, high - low, 1.0)
    return float(rounded(hypervolume(unit, np.full(points.shape[1], 1.1))))


def assumed(catalog: Catalog, slo: Slo, chosen: Sequence[Option]) -> Iterator[str]:
    """Yield what options rest on that nobody has measured, in sentences."""
    for chip in dict.fromkeys(option.accelerator for option in chosen):
        accelerator = catalog.accelerators[chip]
        formats = {option.weights for option in chosen if option.accelerator == chip}
        guessed = [key for source in accelerator.sources if source.assumed for key in source.keys]
        keys = [key for key in guessed if any(rests_on(key, weights) for weights in formats)]
        if keys:
            yield f"{accelerator.name}: {UNVERIFIED}: {', '.join(dict.fromkeys(keys))}."
    if any(o.gpus_per_replica > o.gpus // o.instances for o in chosen):
        yield (
            "Replicas across instances rest on an assumed share of the network's rate; no public "
            "measurement identifies it."
        )
    lost = {option.money.price.interruption_share for option in chosen} - {0.0}
    if lost:
        shares = ", ".join(f"{share:.0%}" for share in sorted(lost))
        yield (
            f"Spot: {shares} of what is paid for is taken to do no work (interruptions, boots);"
            " amounts are for the rest, and offline runs take as much longer."
        )
    if any(option.money.price.term == "owned" for option in chosen):
        yield (
            "Owned hardware draws what the catalog's measured shares of its power limits give at"
            " the mean load; meter your own."
        )
    classes = slo.traffic.classes or ()
    if slo.targets.items() and classes and all(kind.slo.items() for kind in classes):
        yield FOR_NO_CLASS
    if _ends_together(slo) and any(option.replicas > 1 for option in chosen):
        yield ENDS_TOGETHER
    if any(option.lease_outlasts_run for option in chosen):
        yield LEASES_LEFT_OUT
    if any(option.run_hours is not None and option.run_hours < SHORT_RUN for option in chosen):
        yield (
            "Short runs: machines take minutes to start and load the weights, and sellers bill"
            " whole minutes or hours; neither is counted here."
        )
    yield from _drafts(slo, chosen)


def _ends_together(slo: Slo) -> bool:
    """Return whether requests that came together end together, and the next come together."""
    if slo.traffic.offline is not None or slo.routing != "least_loaded":
        return False
    whole = slo_mixture(slo).whole
    return whole.steps_mean > 0 and whole.steps_cv2 < ALIKE


def _drafts(slo: Slo, chosen: Sequence[Option]) -> Iterator[str]:
    """Yield whose acceptance of drafts is used, and how much of its spread is counted."""
    drafts = {option.speculation: option.acceptance_range for option in chosen}
    drafts.pop(OFF, None)
    given = sorted(drafts.keys() & set(slo.speculation.acceptance))
    for name in sorted(drafts.keys() - set(given)):
        ends = drafts[name]
        known = "No range of it is known: intervals and margins leave its spread out."
        if ends is not None:
            known = (
                f"Its range ({ends[0]:g}-{ends[1]:g} for the first token) widens the 80 %"
                " intervals, not the margins of the targets."
            )
        yield f"{DRAFTS}{name}) is the catalog's for this task; measure your own. {known}"
    if given:
        yield (
            f"{DRAFTS}{', '.join(given)}) is that of slo.yaml, taken as exact by"
            " intervals and margins."
        )


def not_sold(slo: Slo, offers: Sequence[Offer]) -> Iterator[str]:
    """Yield which price terms that slo.yaml allows no offer has, in a sentence.

    Args:
        slo: The terms.
        offers: What the plan could choose from.
    """
    sold = {offer.term for offer in offers}
    missing = [term for term in slo.purchase.terms if term not in sold]
    if missing:
        yield f"{NOT_SOLD}{' or '.join(missing)} as its term: not compared."


def checked(slo: Slo, checks: Sequence[Verification], picked: Mapping[str, str]) -> tuple[str, ...]:
    """Return how far the picks' latencies have been checked, and where the formula misses.

    Args:
        slo: Offline work has no latencies.
        checks: What simulations said.
        picked: Pick -> option id.
    """
    if slo.traffic.offline is not None:
        return ()
    return (*_simulated(checks, picked), *_coarse(slo))


def _coarse(slo: Slo) -> Iterator[str]:
    """Yield where latencies by formula are not to be relied on."""
    metrics = {target.metric for target in targets(slo)}
    if "itl" in metrics:
        yield ITL_COARSE
    short = any(kind.decodes and kind.output.median < FEW_TOKENS for kind in kinds(slo))
    if short and metrics & {"tpot", "e2e"}:
        yield SHORT_COARSE


def _simulated(checks: Sequence[Verification], picked: Mapping[str, str]) -> tuple[str, ...]:
    if not checks:
        return (FORMULA_ONLY,)
    held = {name for check in checks for name in check.held}
    open_ = [pick for pick, identity in picked.items() if identity not in held]
    missed = tuple(formula_misses(checks, picked))
    if not open_:
        return (PICKS_CHECKED, *missed)
    if len(open_) == len(picked):
        return (UNCHECKED, *missed)
    return (
        f"{PICKS_BUT}{', '.join(open_)} have been checked by simulation and hold;"
        f" {', '.join(open_)} and other options rest on the closed formula.",
        *missed,
    )
