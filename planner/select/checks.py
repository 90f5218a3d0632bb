"""Checks the picks by simulation until every pick has been checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.cost import instances_needed
from planner.pareto import rounded
from planner.select.answers import answers
from planner.select.front import Front, front, holds
from planner.select.options import identity
from planner.select.picks import picks
from planner.select.resize import (
    Desk,
    Sized,
    by_windows,
    extended,
    fewest,
    fewest_stable,
    finite,
    formula,
    upper_ms,
)
from planner.select.verification import Observation
from planner.spec.archive import ClassArchive
from planner.spec.verification import Compared, Simulated, Verification
from planner.units import MILLI

CHECKED = 8
"""Deployments checked at most; what is picked after that stays unchecked, and says so."""
CONTESTS = 2
"""Rows tried at most that might be cheaper than the cheapest pick."""
WORTH_A_TRY = 0.01
"""Least saving that is worth a simulation."""
SIZED_DOWN = ("cheapest", "best_quality")
"""Picks whose point is money. The others are faster for every replica they have."""


@dataclass(frozen=True)
class Verified:
    """A plan's archive after its picks have been checked.

    Attributes:
        archives: The archive, with a row for each size that simulation chose.
        front: Its front.
        checks: What was checked, in that order.
        complete: Whether every pick has been checked.
    """

    archives: tuple[ClassArchive, ...]
    front: Front
    checks: tuple[Verification, ...]
    complete: bool


def verified(desk: Desk, progress: Callable[[str, float], None] | None = None) -> Verified:
    """Check the picks by simulation, size them by it, and pick again until all picks are checked.

    A pick that cannot be made to hold leaves the front, so the next one moves up. What a
    simulation may make cheaper than the cheapest pick is tried, too.
    """
    archives = desk.scene.archives
    checks: list[Verification] = []
    contests = 0
    while True:
        chosen = front(answers(archives), archives, desk.quotes, desk.slo)
        pending = _pending(archives, chosen)
        complete = not pending
        if complete and contests < CONTESTS:
            pending, contests = _contender(desk, archives, chosen), contests + 1
        if not pending or len(checks) >= CHECKED:
            return Verified(archives, chosen, tuple(checks), complete)
        if progress is not None:
            progress("simulating the picks", len(checks) / (len(checks) + len(pending)))
        (place, row), names = next(iter(pending.items()))
        scene = replace(desk.scene, archives=archives)
        sized = Sized(desk, scene, place, row, names)
        archives, check = _checked(sized)
        checks.append(check)


def _pending(
    archives: Sequence[ClassArchive], chosen: Front
) -> dict[tuple[int, int], tuple[str, ...]]:
    """Return the picks that no simulation has checked, by class archive and row."""
    found = chosen.trusted.answers
    pending: dict[tuple[int, int], tuple[str, ...]] = {}
    for name, position in picks(chosen).items():
        place, row = (int(column[chosen.rows[position]]) for column in (found.place, found.row))
        if row not in {entry.row for entry in archives[place].simulated}:
            pending[place, row] = (*pending.get((place, row), ()), name)
    return pending


def _contender(
    desk: Desk, archives: Sequence[ClassArchive], chosen: Front
) -> dict[tuple[int, int], tuple[str, ...]]:
    """Return the row that would be cheaper than the cheapest pick if it needed no headroom.

    The formula sizes every row with headroom, a simulation without: a row may hold on fewer
    replicas and then cost less than the pick. Empty = no row can.
    """
    if not len(chosen.rows):
        return {}
    answer, found = chosen.trusted, chosen.trusted.answers
    best = answer.bill.usd_per_hour[chosen.rows[picks(chosen)["cheapest"]]]
    good = holds(answer) & ~found.gated & ~found.simulated
    if not desk.slo.purchase.allow_unvalidated:
        good &= ~found.unvalidated
    rows = np.flatnonzero(good)
    least = np.array([_least_cost(desk, archives, chosen, int(row)) for row in rows])
    if not len(rows) or least.min() >= best * (1.0 - WORTH_A_TRY):
        return {}
    row = int(rows[least.argmin()])
    return {(int(found.place[row]), int(found.row[row])): ("cheapest",)}


def _least_cost(desk: Desk, archives: Sequence[ClassArchive], chosen: Front, row: int) -> float:
    """Return what a row would cost on the fewest replicas worth a simulation [USD/h]."""
    answer, columns = chosen.trusted, chosen.trusted.answers.columns
    hardware = archives[int(answer.answers.place[row])].hardware
    spare = desk.slo.purchase.spare_replicas
    rows = archives[int(answer.answers.place[row])].rows
    at = int(answer.answers.row[row])
    size = float(rows.tp[at] * rows.pp[at] * rows.dp[at])
    counts = np.array([float(fewest_stable(archives[int(answer.answers.place[row])], at) + spare)])
    instances = instances_needed(counts, np.array([size]), hardware.gpus_per_instance)[0]
    return float(answer.bill.usd_per_hour[row] * instances / columns["instances"][row])


def _checked(sized: Sized) -> tuple[tuple[ClassArchive, ...], Verification]:
    """Return the archive with what a simulation said of one row, and the record of it."""
    now, archive = sized.value("replicas"), sized.archive
    down = bool(set(sized.names) & set(SIZED_DOWN))
    best = fewest(sized.levels(), now, sized.try_, down=down)
    entries = [_simulated(sized.row, sized.observed[now])]
    final = sized.row
    if best not in (0, now):
        final = len(archive.rows.engine)
        archive = archive.model_copy(update={"rows": extended(sized, best)})
        entries.append(_simulated(final, sized.observed[best]))
    archive = archive.model_copy(update={"simulated": (*archive.simulated, *entries)})
    archives = list(sized.scene.archives)
    archives[sized.place] = archive
    after = replace(sized.scene, archives=tuple(archives))
    shown = best or now
    identities = (
        identity(sized.scene, sized.place, sized.row),
        identity(after, sized.place, final),
    )
    return after.archives, _report(sized, shown, identities, holds=best > 0)


def confirmed(
    desk: Desk, archives: tuple[ClassArchive, ...], chosen: Front
) -> tuple[Verification, ...]:
    """Return the record of picks that an earlier simulation has let in, as they are."""
    scene, found = replace(desk.scene, archives=archives), chosen.trusted.answers
    named: dict[tuple[int, int], tuple[str, ...]] = {}
    for name, position in picks(chosen).items():
        row = chosen.rows[position]
        key = int(found.place[row]), int(found.row[row])
        if found.simulated[row]:
            named[key] = (*named.get(key, ()), name)
    checks = []
    for (place, row), names in named.items():
        sized = Sized(desk, scene, place, row, names)
        own, now = identity(scene, place, row), sized.value("replicas")
        holds = sized.try_(now)
        checks.append(_report(sized, now, (own, own), holds=holds))
    return tuple(checks)


def _report(sized: Sized, shown: int, identities: tuple[str, str], *, holds: bool) -> Verification:
    """Return what is recorded of a check: the size shown, and the ids before and after it."""
    observation = sized.observed[shown]
    return Verification(
        picks=sized.names,
        checked=identities[0],
        option=identities[1],
        holds=holds,
        trials=tuple(sized.trials),
        latencies=tuple(
            Compared(
                key=want.key,
                formula_ms=finite(formula(sized, shown, want)),
                windows_ms=by_windows(sized, shown, want),
                simulated_ms=finite(observation.seen[want.key].value / MILLI),
                upper_ms=finite(observation.seen[want.key].upper / MILLI),
            )
            for want in sized.wanted
            if not observation.seen[want.key].empty
        ),
        utilization=float(rounded(observation.utilization)),
        seeds=observation.seeds,
        requests=observation.requests,
        replicas_simulated=observation.replicas,
    )


def _simulated(row: int, observation: Observation) -> Simulated:
    return Simulated(row=row, upper_ms=upper_ms(observation.seen))
