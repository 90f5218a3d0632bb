"""Why nothing works: the nearest deployments, the limits they break, and what would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.candidates.demand import sized_rate, slo_mixture, targets
from planner.cost import instances_needed
from planner.counting import counted
from planner.model.arrays import Candidates, Floats, Indices
from planner.model.queueing import gates, percentile, steady_state
from planner.pareto import rounded
from planner.select.answers import Mask, Priced
from planner.select.deploy import Scene, repeat
from planner.select.front import cost, reasons
from planner.spec.option import GATED, Option
from planner.spec.record import Miss, MissKind, Relaxation
from planner.spec.slo import Slo
from planner.units import MILLI

NEAREST = 3
"""Misses shown, each on another accelerator."""
WORDS = {
    "max_loss_percent": ("quality loss (p90)", "%", "quality.max_loss_percent"),
    "budget_usd_per_hour": ("price", "USD/h", "purchase.budget_usd_per_hour"),
    "max_gpus": ("GPUs", "", "purchase.max_gpus"),
    "max_power_kw": ("rated power", "kW", "purchase.max_power_kw"),
    "quota_instances": ("instances", "", "quota_instances in the price file"),
    "headroom": ("utilization", "", "headroom"),
    "deadline_hours": ("run", "h", "traffic.offline.deadline_hours"),
}
QUOTA = "quota_instances"
RATES = 24
MOST_REPLICAS = 4096


LEAVE = {
    "unvalidated evidence": "purchase.allow_unvalidated: true",
    "flagged price": "purchase.allow_flagged_prices: true",
}
"""Flag of an option -> what slo.yaml must say so that picks may rest on it."""
PURCHASE = ("budget_usd_per_hour", "max_gpus", "max_power_kw", "quota_instances")
"""Limits on what may be bought; the others are on how it serves."""


def nearest(every: Priced, scene: Scene, slo: Slo) -> list[tuple[int, MissKind]]:
    """Return the rows that come nearest to all limits.

    First that which comes nearest of those that may be bought, then that which does of those
    that serve well enough, if slo.yaml limits purchases and there are any; then the nearest of
    all, each on another accelerator.
    """
    buyable = np.flatnonzero(np.isfinite(every.bill.usd_per_hour))
    trust = np.array([len(reasons(every, slo, int(row))) for row in buyable], dtype=float)
    bought, served = _excess(every, PURCHASE)[buyable], _excess(every, _service(every))[buyable]

    def ordered(excess: Floats, mask: Mask) -> Indices:
        order = np.lexsort((cost(every)[buyable], trust, rounded(excess, 3)))
        rows: Indices = buyable[order[mask[order]]]
        return rows

    found: dict[int, MissKind] = {}
    if any(name in every.uses for name in PURCHASE):
        for row in ordered(served, bought <= 1.0)[:1]:
            found[int(row)] = "within the purchase limits"
        for row in ordered(bought, served <= 1.0)[:1]:
            found[int(row)] = "keeps the targets"
    chips = np.array([a.hardware.accelerator for a in scene.archives])[every.answers.place]
    taken = {chips[row] for row in found}
    for row in ordered(np.maximum(bought, served), np.ones(len(buyable), dtype=bool)):
        if len(found) >= NEAREST:
            break
        if chips[row] not in taken:
            taken.add(chips[row])
            found[int(row)] = "nearest"
    return list(found.items())


def _service(every: Priced) -> tuple[str, ...]:
    return tuple(name for name in every.uses if name not in PURCHASE)


def _excess(every: Priced, names: Sequence[str]) -> Floats:
    """Return the largest share of these limits that each row uses, at least 1, (n,)."""
    shares = [every.uses[name] for name in names if name in every.uses]
    result: Floats = np.max(np.stack([np.ones(len(every.answers)), *shares]), axis=0)
    return result


def relaxed(trusted: Priced, slo: Slo) -> list[tuple[str, int]]:
    """Return the limits that can be moved alone to make the plan work, and what needs the least.

    Args:
        trusted: Rows at prices that picks may rest on.
        slo: What picks may rest on.

    Returns:
        Limit and row.
    """
    good = np.isfinite(trusted.bill.usd_per_hour) & ~trusted.answers.gated
    if not slo.purchase.allow_unvalidated:
        good &= ~trusted.answers.unvalidated
    found: list[tuple[str, int]] = []
    for name, use in trusted.uses.items():
        others = [other for other in trusted.uses if other != name]
        rows = np.flatnonzero(good & (_excess(trusted, others) <= 1.0) & np.isfinite(use))
        if len(rows):
            order = np.lexsort((cost(trusted)[rows], rounded(use[rows])))
            found.append((name, int(rows[order[0]])))
    return found


def relaxation(slo: Slo, every: Priced, name: str, row: int, option: Option) -> Relaxation:
    """Return what a limit would have to be.

    Args:
        slo: Says what it is.
        every: Priced rows.
        name: The limit.
        row: Row that needs the least of it.
        option: The same, as it would be bought.
    """
    value = _value(every, row, option, name)
    asked = value / float(every.uses[name][row]) if name == QUOTA else _limit(slo, name)
    return Relaxation(
        limit=_key(name), asked=float(rounded(asked)), needed=float(_above(value)), option=option
    )


@dataclass(frozen=True)
class Case:
    """One miss: its row, its option, and its columns for the model."""

    every: Priced
    row: int
    option: Option
    candidates: Candidates
    factors: dict[str, float]


def miss(
    scene: Scene,
    slo: Slo,
    every: Priced,
    row: int,
    option: Option,
    kind: MissKind = "nearest",
) -> Miss:
    """Return what a deployment breaks, and what would make it work."""
    found = every.answers
    place = found.place[[row]]
    factors = {
        key: float(found.upper[key][row] / found.latency[key][row])
        if np.isfinite(found.latency[key][row])
        else 1.0
        for key in found.latency
    }
    case = Case(every, row, option, scene.candidates(place, found.row[[row]]), factors)
    broken = [name for name, uses in every.uses.items() if uses[row] > 1.0]
    words = [_broken(slo, case, name) for name in broken]
    return Miss(
        kind=kind,
        option=option,
        excess=float(rounded(min(max(float(every.worst()[row]), 1.0), 1e12))),
        misses=(*words, *option.flags),
        would_do=tuple(_would_do(scene, slo, case, broken)),
    )


def _limit(slo: Slo, name: str) -> float:
    limits = {target.key: target.limit for target in targets(slo)}
    limits["headroom"] = slo.headroom
    limits["max_loss_percent"] = slo.quality.max_loss_percent or 0.0
    limits["budget_usd_per_hour"] = slo.purchase.budget_usd_per_hour or 0.0
    limits["max_gpus"] = slo.purchase.max_gpus or 0.0
    limits["max_power_kw"] = slo.purchase.max_power_kw or 0.0
    limits[QUOTA] = 0.0
    offline = slo.traffic.offline
    limits["deadline_hours"] = offline.deadline_hours if offline else 0.0
    return limits[name]


def _value(every: Priced, row: int, option: Option, name: str) -> float:
    """Value of the limited quantity, latencies with their margin."""
    found = every.answers
    if name in found.upper:
        return float(found.upper[name][row])
    values = {
        "max_loss_percent": option.quality.p90,
        "budget_usd_per_hour": option.money.usd_per_hour,
        "max_gpus": float(option.gpus),
        "max_power_kw": float(every.power["rated_kw"][row]),
        QUOTA: float(option.instances),
        "headroom": option.utilization,
        "deadline_hours": float(found.columns["run_upper_hours"][row]),
    }
    return values[name]


def _text(value: float) -> str:
    return f"{float(rounded(value, 3)):g}" if value < 1e5 else f"{value:.0f}"


def _broken(slo: Slo, case: Case, name: str) -> str:
    value, limit = _value(case.every, case.row, case.option, name), _limit(slo, name)
    if name == QUOTA:
        return _quota(case.option, value / float(case.every.uses[name][case.row]))
    if name in WORDS and not np.isfinite(value):
        return f"{WORDS[name][0]} unknown, limit {_text(limit)}"
    if name in WORDS:
        title, unit, _ = WORDS[name]
        return f"{title} {_text(value)} {unit}".rstrip() + f", limit {_text(limit)}"
    of, _, plain = name.rpartition(".")
    metric, percentile_name, _ = plain.split("_")
    shown = f"{_text(value)} ms" if np.isfinite(value) else "without bound"
    who = f"{of}: " if of else ""
    return f"{who}{metric.upper()} {percentile_name} {shown}, target {_text(limit)}"


def _quota(option: Option, quota: float) -> str:
    price = option.money.price
    where = f"{price.provider} {price.instance_type}, {price.region}"
    return f"{counted(option.instances, 'instance')}, quota {quota:.0f} ({where})"


def _would_do(scene: Scene, slo: Slo, case: Case, broken: list[str]) -> Iterator[str]:
    values = [(name, _value(case.every, case.row, case.option, name)) for name in broken]
    leave = [LEAVE[flag] for flag in case.option.flags if flag in LEAVE]
    gated = GATED in case.option.flags
    if not gated and all(np.isfinite(value) for _, value in values):
        told = [f"{_key(name)}: {_above(value)}" for name, value in values]
        if told or leave:
            yield " with ".join((*told, *leave))
    if slo.traffic.offline is not None or not (broken or gated):
        return
    latencies = [name for name in broken if name not in WORDS]
    if len(latencies) == len(broken):
        rate = _rate_that_holds(scene, slo, case)
        if rate > 0:
            yield " with ".join((f"rate_per_s: {_text(rate)}", *leave))
        more = _replicas_more(scene, slo, case)
        if more:
            yield " with ".join((f"{counted(more, 'replica')} more", *leave))


def _key(name: str) -> str:
    return WORDS[name][2] if name in WORDS else f"slo.{name}"


def _above(value: float) -> str:
    """Return a limit that the value keeps, with three digits, rounded up."""
    short = float(rounded(value, 3))
    step = 10.0 ** (np.floor(np.log10(value)) - 2) if value > 0 else 0.0
    return f"{float(rounded(short + step if short < value else short, 3)):g}"


def _hold(scene: Scene, slo: Slo, case: Case, c: Candidates, rate: Floats) -> Floats:
    """Return the largest share of a latency target or of the headroom that is used, (n,).

    Infinity beyond the gates of the formula.
    """
    mixed = slo_mixture(slo)
    state = steady_state(c, scene.parameters, mixed.whole, rate, routing=slo.routing)
    worst = np.where(gates(state).all, state.utilization / slo.headroom, np.inf)
    for target in targets(slo):
        w, share = mixed.parts[max(target.kind, 0)], target.percentile / 100
        value = percentile(state, w, target.metric, share) / MILLI  # type: ignore[arg-type]
        worst = np.maximum(worst, value * case.factors[target.key] / target.limit)
    return worst


def _rate_that_holds(scene: Scene, slo: Slo, case: Case) -> float:
    """Return the largest rate at which the deployment keeps its latency targets; 0 = none."""
    rate = sized_rate(slo)
    rates = rate * np.arange(1, RATES) / RATES
    c = repeat(case.candidates, np.full(len(rates), float(case.option.replicas)))
    good = np.flatnonzero(_hold(scene, slo, case, c, rates) <= 1.0)
    return float(rates[good[-1]]) if len(good) else 0.0


def _replicas_more(scene: Scene, slo: Slo, case: Case) -> int:
    """Return the fewest further replicas that make the targets hold inside budget and quota.

    0 = none.
    """
    have, option = case.option.replicas, case.option
    counts = np.arange(have + 1, min(4 * have + 16, MOST_REPLICAS) + 1, dtype=float)
    c = repeat(case.candidates, counts)
    good = _hold(scene, slo, case, c, np.full(len(counts), sized_rate(slo))) <= 1.0
    per_instance = option.gpus // option.instances
    size = np.full(len(counts), float(option.gpus_per_replica))
    instances = instances_needed(counts + option.spare_replicas, size, per_instance)
    purchase = slo.purchase
    good &= instances * per_instance <= (purchase.max_gpus or np.inf)
    spent = instances * option.money.price.usd_per_instance_hour
    good &= spent <= (purchase.budget_usd_per_hour or np.inf)
    return int(counts[good.argmax()]) - have if good.any() else 0
