"""How firm the picks of a plan are: tornado, flips, regret, break-even."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.demand import sized_rate
from planner.candidates.quality import QualityCase
from planner.cost import Quotes
from planner.model.arrays import Floats
from planner.select.answers import Mask, answers
from planner.select.firmness import (
    Bar,
    BreakEven,
    Effect,
    Firmness,
    Flip,
    PickFirmness,
    RateFlip,
    Regret,
)
from planner.select.front import Front, front
from planner.select.objectives import chosen as objectives
from planner.select.objectives import points
from planner.select.options import Shop, options
from planner.select.picks import picks
from planner.select.scenarios import Scenario, Subjects, effects, limit_use, number
from planner.spec.offer import Offer, Term
from planner.spec.option import Option
from planner.spec.record import PlanRecord

CHANGE = 0.2
"""Share by which prices, traffic and lengths are moved."""
BISECTIONS = 20
MOST_RATE = 64.0
"""Rates beyond so many times the planned one are not looked for."""
SAME_FOR_ALL = ("price", "mean load")
"""Drivers that change no ranking: every option moves alike."""
ROUNDING = 1e-5
"""Figures of a record have 6 digits: what is nearer to a limit than this keeps it."""
COMMITTED: tuple[Term, ...] = ("reserved_1y", "reserved_3y", "prepaid", "owned")


@dataclass(frozen=True)
class Ground:
    """What the picks of a plan stand on.

    Attributes:
        record: The plan.
        subjects: Its front, asked of the model.
        quotes: Prices by hardware class id that picks may rest on.
        case: What the quality loss depends on.
    """

    record: PlanRecord
    subjects: Subjects
    quotes: Mapping[str, Quotes]
    case: QualityCase


def firmness(ground: Ground, change: float = CHANGE) -> Firmness:
    """Return how firm the picks of a plan are.

    Args:
        ground: The plan, its prices and the model.
        change: Share by which prices, traffic and lengths are moved.
    """
    record, subjects = ground.record, ground.subjects
    picked = list(dict.fromkeys(record.picks.values()))
    at = {option.id: number for number, option in enumerate(record.options)}
    online = subjects.slo.traffic.offline is None
    pairs = list(_pairs(change, online=online))
    ends = {s.name: effects(subjects, s) for _, low, high in pairs for s in (low, high)}
    now = effects(subjects, Scenario("as planned"))
    highest = _highest_rates(subjects) if online else None
    flips = {
        identity: _flip(ground, record.options[at[identity]], cheapest=_is(record, identity))
        for identity in picked
    }
    rivals = [flip.replacement for flip in flips.values() if flip is not None]
    return Firmness(
        change=change,
        picks=tuple(
            PickFirmness(
                option=identity,
                now=now[at[identity]],
                bars=_bars(pairs, ends, at[identity], now[at[identity]]),
                flip=flips[identity],
                highest_rate=None if highest is None else number(highest[at[identity]]),
                fewer_rate=_fewer_rate(subjects, at[identity]) if online else None,
                regrets=tuple(_regrets(ground, ends, at[identity], change, rivals)),
                break_evens=tuple(_terms(ground.quotes, record.options[at[identity]])),
            )
            for identity in picked
        ),
        rate_flips=() if highest is None else tuple(_rate_flips(subjects, highest)),
    )


def _is(record: PlanRecord, identity: str) -> bool:
    return record.picks.get("cheapest") == identity


def _pairs(change: float, *, online: bool) -> Iterator[tuple[str, Scenario, Scenario]]:
    """Yield what may turn out lower and higher."""
    percent = f"{change * 100:g} %"
    names = ["price", "traffic", *(["mean"] if online else []), "prompt", "output"]
    titles = {
        "price": "price",
        "traffic": "traffic" if online else "requests",
        "mean": "mean load alone",
        "prompt": "prompt length",
        "output": "output length",
    }
    for name in names:
        low, high = (
            Scenario(f"{titles[name]} {sign}{percent}", **{name: factor})
            for sign, factor in (("-", 1.0 - change), ("+", 1.0 + change))
        )
        yield titles[name], low, high
    yield (
        "model error",
        Scenario("model error q10", error=0.1),
        Scenario("model error q90", error=0.9),
    )


def _bars(
    pairs: Sequence[tuple[str, Scenario, Scenario]],
    ends: Mapping[str, Sequence[Effect]],
    at: int,
    now: Effect,
) -> tuple[Bar, ...]:
    """Return the bars of one option: those that move its cost most, then its limits, first."""
    bars = [
        Bar(
            title,
            low.name.removeprefix(f"{title} "),
            high.name.removeprefix(f"{title} "),
            ends[low.name][at],
            ends[high.name][at],
        )
        for title, low, high in pairs
    ]

    def width(bar: Bar) -> tuple[float, float]:
        cost = abs(bar.high.usd_per_mtok_output - bar.low.usd_per_mtok_output)
        uses = [np.inf if e.use is None else e.use for e in (bar.low, bar.high)]
        use = abs(uses[1] - uses[0]) if np.isfinite(uses).any() else 0.0
        return -cost / now.usd_per_mtok_output, -use

    return tuple(sorted(bars, key=width))


def _flip(ground: Ground, option: Option, *, cheapest: bool) -> Flip | None:
    """Return the price of an option's row from which on another option takes its place.

    The cheapest pick is beaten by anything that keeps the limits; the others only by what is at
    least as good in every other objective.
    """
    price = option.money.price
    key = (price.provider, price.instance_type, price.region, price.term)
    quotes = {name: _without(one, key) for name, one in ground.quotes.items()}
    scene, slo = ground.subjects.scene, ground.subjects.slo
    chosen = front(answers(scene.archives), scene.archives, quotes, slo)
    if not len(chosen.rows):
        return None
    shop = Shop(quotes, ground.record.offers)
    best = [picks(chosen)["cheapest"]] if cheapest else _as_good(ground, chosen, option)
    rows = chosen.rows[best]
    if not len(rows):
        return None
    (other,) = options(scene, shop, slo, ground.case, (chosen.trusted, rows[:1]))
    ratio = other.money.usd_per_mtok_output / option.money.usd_per_mtok_output
    return Flip(number(price.quoted_usd_per_hour * ratio), number(ratio - 1.0), other)


def _without(quotes: Quotes, key: tuple[str, ...]) -> Quotes:
    return quotes.where(lambda offer: offer.key != key)


def _as_good(ground: Ground, chosen: Front, option: Option) -> Mask:
    """Mark the rows of a front that match an option in every objective but money."""
    slo, found = ground.subjects.slo, chosen.trusted.answers
    names = [objective for objective in objectives(slo) if not objective.name.startswith("usd")]
    at = [one.id for one in ground.record.options].index(option.id)
    place = ground.subjects.places[at]
    own = np.flatnonzero((found.place == place) & (found.row == option.archive_row))
    if not names:
        return np.ones(len(chosen.rows), dtype=bool)
    values = points(chosen.trusted, names)
    mask: Mask = np.all(values[chosen.rows] <= values[own], axis=1)
    return mask


def _highest_rates(subjects: Subjects) -> Floats:
    """Return the largest rate at which each option keeps its limits [1/s], (n,)."""
    rate = sized_rate(subjects.slo)
    room = [o.capacity_tokens_per_s / o.output_tokens_per_s for o in subjects.options]
    most = np.clip(np.array(room), 1.0, MOST_RATE)
    return rate * _largest(subjects, rate, np.ones(len(most)), most)


def _fewer_rate(subjects: Subjects, at: int) -> float | None:
    """Return the largest rate at which one instance less keeps the limits [1/s]; None = none."""
    option = subjects.options[at]
    replicas = held(option, option.instances - 1)
    if replicas < 1:
        return None
    one = replace(subjects, options=(option,)).resized(np.array([float(replicas)]))
    rate = sized_rate(subjects.slo)
    least, most = np.full(1, 1.0 / MOST_RATE), np.ones(1)
    if _breaks(one, rate * least)[0]:
        return None
    return number(rate * float(_largest(one, rate, least, most)[0]))


def held(option: Option, instances: int) -> int:
    """Return the most replicas that carry load on so many instances of an option; the rest spare.

    Args:
        option: Its replicas and instances are of one size, its spare replicas stay spare.
        instances: Whole instances; 0 or less replicas = they hold none beside the spare ones.
    """
    size, per_instance = option.gpus_per_replica, option.gpus // option.instances
    shared = instances * (per_instance // size)
    return (shared or instances // -(-size // per_instance)) - option.spare_replicas


def _largest(subjects: Subjects, rate: float, low: Floats, high: Floats) -> Floats:
    """Return the largest factor on a rate that keeps the limits, by bisection in logarithms.

    More traffic never makes a latency shorter, so there is one place where a limit breaks.
    """
    whole = ~_breaks(subjects, rate * high)
    first, last = low, high
    for _ in range(BISECTIONS):
        middle = np.sqrt(first * last)
        broken = _breaks(subjects, rate * middle)
        first, last = np.where(broken, first, middle), np.where(broken, middle, last)
    return np.where(whole, high, first)


def _breaks(subjects: Subjects, rate: Floats) -> Mask:
    broken: Mask = limit_use(subjects, Scenario(""), rate) > 1.0 + ROUNDING
    return broken


def _rate_flips(subjects: Subjects, highest: Floats) -> Iterator[RateFlip]:
    """Yield, rate by rate, which option of the front is the cheapest that keeps its limits."""
    cost = np.array([option.money.usd_per_hour for option in subjects.options])
    order = np.lexsort((-highest, cost))
    reached = float(highest[order[0]])
    for at in order[1:]:
        if highest[at] > reached * (1.0 + ROUNDING):
            yield RateFlip(number(reached), subjects.options[at].id)
            reached = float(highest[at])


def _regrets(
    ground: Ground,
    ends: Mapping[str, Sequence[Effect]],
    at: int,
    change: float,
    rivals: Sequence[Option],
) -> Iterator[Regret]:
    """Yield what a pick costs beyond the best of the front, scenario by scenario.

    At another price of its own, the rivals, what would be bought in a pick's place, may be the
    best: today's front does not hold what something else beats by little.
    """
    known = ground.record.options
    dearer = Scenario(f"its own price +{change * 100:g} %")
    raised = [
        replace(
            effect,
            usd_per_hour=number(effect.usd_per_hour * (1.0 + change * _same_row(known[at], other))),
        )
        for effect, other in zip(effects(ground.subjects, dearer), known, strict=True)
    ]
    moved = {dearer.name: raised} | {
        name: found for name, found in ends.items() if not name.startswith(SAME_FOR_ALL)
    }
    for name, found in moved.items():
        cost = [effect.usd_per_hour if effect.holds else np.inf for effect in found]
        least, best = min(cost), known[int(np.argmin(cost))].id
        for rival in rivals if name == dearer.name else ():
            if not _same_row(known[at], rival) and _paid(rival) < least:
                least, best = _paid(rival), rival.id
        some = np.isfinite(least)
        extra = number(found[at].usd_per_hour - least) if some else None
        yield Regret(name, found[at].holds, extra, best if some else None)


def _paid(option: Option) -> float:
    """Return what an option costs an hour, offline the whole run [USD]."""
    money = option.money
    return money.usd_per_hour if money.usd_per_job is None else money.usd_per_job


def _same_row(one: Option, other: Option) -> bool:
    return one.money.price.offer == other.money.price.offer


def _terms(quotes: Mapping[str, Quotes], option: Option) -> Iterator[BreakEven]:
    """Yield from which share of the hours on a commitment beats paying by the hour."""
    sold = quotes.get(option.hardware, Quotes((), ()))
    by_term: dict[Term, tuple[Offer, float]] = {}
    for offer, price in zip(sold.offers, sold.prices, strict=True):
        by_term.setdefault(offer.term, (offer, price))
    if "on_demand" not in by_term:
        return
    flexible, by_the_hour = by_term["on_demand"]
    for term in COMMITTED:
        if term in by_term:
            offer, price = by_term[term]
            share = break_even_hours(price, by_the_hour)
            scaled = option.money.autoscaled
            base = None if scaled is None else commitment_base(scaled.replicas_by_hour, share)
            yield BreakEven(offer, flexible, number(share), base)


def break_even_hours(committed: float, by_the_hour: float) -> float:
    """Return the share of all hours from which on a commitment costs less; above 1 = never.

    A commitment is paid for every hour, capacity by the hour only while it runs.

    >>> break_even_hours(2.0, 4.0)
    0.5
    """
    return committed / by_the_hour


def commitment_base(needed: Sequence[int], share: float) -> int:
    """Return how many of a varying number to commit to: those needed for that share of the hours.

    Each further one is worth its commitment if and only if it is needed that long.

    Args:
        needed: Number needed, hour by hour.
        share: Share of all hours from which on a commitment costs less.

    >>> commitment_base([1, 1, 2, 4], 0.5)
    2
    """
    falling = sorted(needed, reverse=True)
    hours = math.ceil(share * len(falling) - 1e-9)
    return falling[hours - 1] if 0 < hours <= len(falling) else 0
