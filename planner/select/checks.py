"""Checks the picks by simulation until every pick has been checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.pareto import rounded
from planner.select.answers import answers
from planner.select.contests import Kind, cheapest_cost, contenders, kind
from planner.select.deploy import Scene
from planner.select.front import Front, front, holds
from planner.select.options import identity
from planner.select.picks import picks
from planner.select.resize import (
    Desk,
    Sized,
    by_windows,
    extended,
    fewest,
    finite,
    formula,
    seen_ms,
    upper_ms,
)
from planner.select.verification import Observation
from planner.spec.archive import ClassArchive
from planner.spec.verification import Compared, Simulated, Verification
from planner.units import MILLI

CHECKED = 64
"""Deployments checked at most; what is picked after that stays unchecked, and says so."""
CONTESTS = 24
"""Deployments in a row that may fail to become cheaper than the cheapest pick."""
FOR_MONEY = {"cheapest": (), "best_quality": ("loss_objective", "loss_p90")}
"""Picks whose point is money -> what they have least of before. Others are faster for every replica
they have."""


@dataclass(frozen=True)
class Verified:
    """A plan's archive after its picks have been checked.

    Attributes:
        archives: The archive, with a row for each size that simulation chose.
        front: Its front.
        checks: What was checked, in that order.
        complete: Whether every pick has been checked.
        interrupted: Whether Ctrl-C has ended the checks.
    """

    archives: tuple[ClassArchive, ...]
    front: Front
    checks: tuple[Verification, ...]
    complete: bool
    interrupted: bool = False


def verified(desk: Desk, progress: Callable[[str, float], None] | None = None) -> Verified:
    """Check the picks by simulation, size them by it, and pick again until all picks are checked.

    A pick that cannot be made to hold leaves the front, so the next one moves up. What a
    simulation may make cheaper than the cheapest pick is tried, too. Ctrl-C ends that with what
    has been checked; the check that it meets is lost.
    """
    state = Verified(desk.scene.archives, _front(desk, desk.scene.archives), (), complete=False)
    settled: set[Kind] = set()
    try:
        while (after := _next(desk, state, settled, progress)) is not None:
            state = after
    except KeyboardInterrupt:
        return replace(state, interrupted=True)
    return replace(state, complete=not _pending(state.archives, state.front))


def _next(
    desk: Desk,
    state: Verified,
    settled: set[Kind],
    progress: Callable[[str, float], None] | None,
) -> Verified | None:
    """Return the state after one more check; None = there is nothing to check, or no more may be.

    Args:
        desk: What all checks share.
        state: What has been checked.
        settled: Deployments whose size simulations have settled; grows.
        progress: Called with a phrase and the share done.
    """
    if len(state.checks) >= CHECKED:
        return None
    scene, done = replace(desk.scene, archives=state.archives), len(state.checks)
    pending = _pending(state.archives, state.front)
    sized = _first(desk, scene, state, pending) or _contender(desk, scene, state.front, settled)
    if sized is None:
        return None
    if progress is not None:
        progress("simulating the picks", done / (done + max(len(pending), 1)))
    if set(sized.names) & set(FOR_MONEY):
        settled.add(kind(state.archives, sized.place, sized.row))
    archives, check = _checked(sized, _worth(sized, state.front))
    checks = (*state.checks, check)
    return Verified(archives, _front(desk, archives), checks, complete=False)


def _front(desk: Desk, archives: tuple[ClassArchive, ...]) -> Front:
    return front(answers(archives), archives, desk.quotes, desk.slo)


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


def _first(
    desk: Desk,
    scene: Scene,
    state: Verified,
    pending: Mapping[tuple[int, int], tuple[str, ...]],
) -> Sized | None:
    """Return the option that is pending for the pick with the fewest checks; None = none is.

    So none of them waits for another, for which options that hardly differ may fail one by one.
    """
    done = Counter(name for check in state.checks for name in check.picks)
    turns = sorted(pending.items(), key=lambda item: min(done[name] for name in item[1]))
    return Sized(desk, scene, *turns[0][0], turns[0][1]) if turns else None


def _worth(sized: Sized, chosen: Front) -> float:
    """Return the price below which the option, with more replicas, would be the pick [USD/h].

    Args:
        sized: The option.
        chosen: Front of the archive; what it knows to hold is not to be beaten by what costs more.
    """
    answer, found = chosen.trusted, chosen.trusted.answers
    known = found.simulated & holds(answer)
    if not sized.desk.slo.purchase.allow_unvalidated:
        known &= ~found.unvalidated
    own = (found.place == sized.place) & (found.row == sized.row)
    worth = 0.0
    for name in sized.names:
        if name not in FOR_MONEY:
            return np.inf
        least = (found.columns[column] for column in FOR_MONEY[name])
        rivals = np.logical_and.reduce([known, *(values <= values[own] for values in least)])
        worth = max(worth, float(np.min(answer.bill.usd_per_hour, initial=np.inf, where=rivals)))
    return worth


def _contender(desk: Desk, scene: Scene, chosen: Front, settled: set[Kind]) -> Sized | None:
    """Return a deployment that costs less than the cheapest pick and holds; None = none does.

    Args:
        desk: What all checks share.
        scene: With the archive as it is now.
        chosen: Its front.
        settled: Deployments whose size simulations have settled; those that lose here join them.
    """
    cost, lost = cheapest_cost(chosen), 0
    for place, row in contenders(desk, scene.archives, chosen):
        one = kind(scene.archives, place, row)
        if one in settled:
            continue
        sized = Sized(desk, scene, place, row, ("cheapest",))
        size = sized.cheaper(cost)
        if size and sized.try_(size):
            return sized
        settled.add(one)
        lost += 1
        if lost == CONTESTS:
            break
    return None


def _checked(sized: Sized, worth: float) -> tuple[tuple[ClassArchive, ...], Verification]:
    """Return the archive with what a simulation said of one row, and the record of it.

    Args:
        sized: The row.
        worth: Price from which on more replicas are not tried [USD/h].
    """
    now, archive = sized.value("replicas"), sized.archive
    start = min(sized.observed, default=now)
    levels = sized.levels(below=worth)
    best = fewest(levels, start, sized.try_, down=bool(set(sized.names) & set(FOR_MONEY)))
    entries = [_simulated(sized.row, sized.observed[now])] if now in sized.observed else []
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
    seen = observation.seen
    return Simulated(row=row, upper_ms=upper_ms(seen), seen_ms=seen_ms(seen))
