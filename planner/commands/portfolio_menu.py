"""The ways to serve one plan that a portfolio may choose from: single deployments, and fleets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.candidates.quality import QualityCase
from planner.commands.portfolio_parts import WHOLE, Part
from planner.cost import Quotes, cheapest
from planner.deploy.needs import option_needs
from planner.model.arrays import Floats, Indices
from planner.pareto import nondominated, rounded
from planner.search.fleet import Pool, compose
from planner.select.answers import Answers, Priced, answers, priced, time_use
from planner.select.deploy import Scene
from planner.select.front import holds
from planner.select.objectives import chosen, points
from planner.select.options import Shop, options
from planner.spec.offer import Offer
from planner.spec.option import Option
from planner.spec.portfolio import Choice, Quota
from planner.spec.portfolio import Part as PartRecord
from planner.spec.slo import Slo

FLEETS = 6
"""Fleets kept at most to be shown: the cheapest."""
OBJECTIVES = ("ttft_p95_ms", "tpot_p95_ms")


@dataclass(frozen=True)
class Limited:
    """What a shared limit counts; how much it allows does not matter to what may be chosen.

    Attributes:
        quotas: GPUs of one kind.
        budget, gpus: Whether money per hour, and GPUs in all, are limited.
    """

    quotas: tuple[Quota, ...] = ()
    budget: bool = False
    gpus: bool = False


@dataclass(frozen=True)
class Stand:
    """A plan or a part of it, its archive, and what it may buy.

    Attributes:
        scene: Catalog, model, archive.
        slo: What is asked of the part.
        case: What the quality loss depends on.
        quotes: Prices that it may rest on, by hardware class.
        sold: Price rows of the plan's record.
        part: Which part of the traffic it is.
    """

    scene: Scene
    slo: Slo
    case: QualityCase
    quotes: dict[str, Quotes]
    sold: tuple[Offer, ...]
    part: Part = WHOLE

    @cached_property
    def answers(self) -> Answers:
        """The rows of the archive as columns."""
        return answers(self.scene.archives)

    def priced(self, quotes: dict[str, Quotes]) -> Priced:
        """Return the rows at some of the prices."""
        return priced(self.answers, self.scene.archives, quotes, self.slo)


@dataclass(frozen=True)
class Stock:
    """Every deployment that keeps the targets, at every offer of its class, (n,).

    The cheapest come first; of equal prices those that do best in the objectives, in their order.

    Attributes:
        stand: What they are for.
        row: Row of the answers.
        quote: Hardware class, offer and price of each.
        offer: Number of that offer among the plan's price rows.
        cost: Mean price [USD/h]: offline, a run that takes half of its deadline costs half.
        uses: Price [USD/h], GPUs, and GPUs that each quota counts, (n, 2 + q).
        latency: p95 of TTFT and TPOT [ms], (n, 2).
        loss: Quality loss as compared, and its pessimistic end [%], (n, 2).
    """

    stand: Stand
    row: Indices
    quote: tuple[tuple[str, Offer, float], ...]
    offer: Indices
    cost: Floats
    uses: Floats
    latency: Floats
    loss: Floats

    def pool(self, active: Indices, *, latency: bool) -> Pool:
        """Return what a fleet is composed from: with some uses, with or without latencies."""
        width = 2 if latency else 0
        loss = self.loss if latency else self.loss[:, 1:]
        return Pool(self.cost, self.uses[:, active], self.latency[:, :width], loss, self.offer)

    def parts(self, rows: Sequence[int]) -> list[PartRecord]:
        """Return the named deployments, each at its own offer, as parts of a choice."""
        part, scene = self.stand.part, self.stand.scene
        catalog, archives = scene.catalog, scene.archives
        simulated = {(a.hardware.id, entry.row) for a in archives for entry in a.simulated}
        return [
            PartRecord(
                share=part.share,
                kinds=part.kinds,
                option=option,
                simulated=(option.hardware, option.archive_row) in simulated,
                needs=option_needs(catalog, scene.architecture.native_format, option),
            )
            for option in built(self, rows)
        ]


def stock(stand: Stand, limited: Limited) -> Stock:
    """Return the deployments of a plan or a part of it, at every offer.

    Limits of slo.yaml on money and GPUs are left to the caller: they hold for the whole.
    """
    purchase = stand.slo.purchase.model_copy(update={"max_gpus": None, "budget_usd_per_hour": None})
    free = stand.slo.model_copy(update={"purchase": purchase})
    found = stand.answers
    trusted = priced(found, stand.scene.archives, stand.quotes, free)
    good = holds(trusted) & ~found.gated
    if not purchase.allow_unvalidated:
        good &= ~found.unvalidated
    ranks = np.zeros(len(found))
    ranks[np.lexsort(points(trusted, chosen(free)).T[::-1])] = np.arange(len(found))
    parts = list(_at_offers(stand, limited, np.flatnonzero(good)))
    row = np.concatenate([np.zeros(0, np.intp), *(rows for _, rows, _ in parts)]).astype(np.intp)
    uses = np.concatenate([np.zeros((0, 2 + len(limited.quotas))), *(used for *_, used in parts)])
    quoted = [quote for quote, rows, _ in parts for _ in rows]
    number = {offer.key: at for at, offer in enumerate(stand.sold)}
    cost = rounded(uses[:, 0] * _running(found, row))
    order = np.lexsort((ranks[row], cost))
    row = row[order]
    return Stock(
        stand=stand,
        row=row,
        quote=tuple(quoted[i] for i in order),
        offer=np.array([number[quoted[i][1].key] for i in order], dtype=np.intp),
        cost=cost[order],
        uses=rounded(uses[order]),
        latency=np.column_stack([found.latency[key][row] for key in OBJECTIVES]),
        loss=np.column_stack([found.columns[k][row] for k in ("loss_objective", "loss_p90")]),
    )


def _running(found: Answers, row: Indices) -> Floats:
    """Return the share of the time asked for that each row runs: all of it, unless offline."""
    offline = ~np.isnan(found.columns["run_hours"][row])
    return np.where(offline, found.columns["utilization"][row], 1.0)


def _at_offers(
    stand: Stand, limited: Limited, rows: Indices
) -> Iterator[tuple[tuple[str, Offer, float], Indices, Floats]]:
    """Yield the class, offer and price; the rows of the class; and what they use."""
    found = stand.answers
    for place, archive in enumerate(stand.scene.archives):
        mine = rows[found.place[rows] == place]
        quotes = stand.quotes.get(archive.hardware.id, Quotes((), ()))
        for offer, price, lost in zip(quotes.offers, quotes.prices, quotes.lost, strict=True):
            kept = mine[time_use(found, stand.slo)[mine] <= 1.0 - lost]
            bill = cheapest(Quotes((offer,), (price,)), found.columns["instances"][kept])
            gpus = bill.instances * archive.hardware.gpus_per_instance
            names = (
                offer.accelerator,
                offer.provider,
                offer.region,
                offer.instance_type,
                offer.term,
            )
            counted = [gpus * quota.counts(*names) for quota in limited.quotas]
            uses = np.column_stack([bill.usd_per_hour, gpus, *counted])
            yield (archive.hardware.id, offer, price), kept, uses


def built(have: Stock, rows: Sequence[int]) -> list[Option]:
    """Return the named deployments as options, each at its own offer."""
    made: dict[int, Option] = {}
    left = list(dict.fromkeys(rows))
    while left:
        # One pass prices each class at one offer.
        quotes: dict[str, Quotes] = {}
        now = []
        for row in left:
            hardware, offer, _ = have.quote[row]
            if hardware not in quotes:
                quotes[hardware] = have.stand.quotes[hardware].where(offer.__eq__)
            if quotes[hardware].offers == (offer,):
                now.append(row)
        stand = have.stand
        answer = stand.priced(quotes)
        found = options(
            stand.scene, Shop(quotes, stand.sold), stand.slo, stand.case, (answer, have.row[now])
        )
        made.update(zip(now, found, strict=True))
        left = [row for row in left if row not in made]
    return [made[row] for row in rows]


@dataclass(frozen=True)
class Menu:
    """Ways to serve a plan; fields as in ``spec.portfolio.Outline``."""

    choices: tuple[Choice, ...]
    fleets: tuple[Choice, ...] = ()


def menu(whole: Stand, sides: Sequence[tuple[Stand, Stand]], limited: Limited) -> Menu:
    """Return the ways to serve a plan that may be worth choosing.

    Args:
        whole: The plan.
        sides: Ways to divide its traffic between two deployments.
        limited: What shared limits count.
    """
    most, most_loss = _own(whole.slo, limited)
    shared = [limited.budget, limited.gpus, *(True for _ in limited.quotas)]
    active = np.flatnonzero(np.isfinite(most) | np.array(shared))
    single = stock(whole, limited)
    fits = np.flatnonzero((single.uses <= most).all(axis=1))
    best = fits[nondominated(np.column_stack([single.cost, single.uses[:, active]])[fits])]
    found = [_Pairs(single, single, best, best, single.cost[best], single.uses[best][:, active])]
    front = []
    for one, other in sides:
        pair = (stock(one, limited), stock(other, limited))
        found.append(_fleets(pair, active, most, most_loss[1:], latency=False))
        front.append(_fleets(pair, active, most, most_loss, latency=True))
    cost = np.concatenate([part.cost for part in found])
    kept = nondominated(np.column_stack([cost, np.concatenate([part.uses for part in found])]))
    least = single.cost[best].min(initial=np.inf)
    return Menu(_chosen(found, kept), _shown(front, float(least)))


def _own(slo: Slo, limited: Limited) -> tuple[Floats, Floats]:
    """Return the plan's own limits: on uses, and on the two losses."""
    purchase, loss = slo.purchase, slo.quality.max_loss_percent
    none = [np.inf for _ in limited.quotas]
    uses = [purchase.budget_usd_per_hour or np.inf, purchase.max_gpus or np.inf, *none]
    return np.array(uses), np.array([np.inf, np.inf if loss is None else loss])


@dataclass(frozen=True)
class _Pairs:
    """Ways with one deployment from each of two stocks; the same stock = one deployment."""

    first: Stock
    second: Stock
    left: Indices
    right: Indices
    cost: Floats
    uses: Floats
    values: Floats | None = None

    def choices(self, some: Indices) -> list[Choice]:
        left = self.first.parts(self.left[some].tolist())
        if self.first is self.second:
            return [choice((one,)) for one in left]
        right = self.second.parts(self.right[some].tolist())
        return [choice(pair) for pair in zip(left, right, strict=True)]


def _fleets(
    pair: tuple[Stock, Stock], active: Indices, most: Floats, most_loss: Floats, *, latency: bool
) -> _Pairs:
    one, other = pair
    first, second = (side.pool(active, latency=latency) for side in pair)
    if one.stand.part.kinds:
        # Other requests may be served otherwise on the same hardware.
        first = replace(first, offer=np.zeros_like(first.offer))
        second = replace(second, offer=np.ones_like(second.offer))
    found = compose(
        first,
        second,
        one.stand.part.share,
        most[active],
        most_loss,
    )
    whole = found.whole
    values = np.column_stack([whole.cost, whole.latency, whole.loss[:, 0]])
    return _Pairs(one, other, found.first, found.second, whole.cost, whole.uses, values)


def _chosen(
    found: Sequence[_Pairs], kept: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[Choice, ...]:
    made: list[Choice] = []
    start = 0
    for part in found:
        end = start + len(part.cost)
        made += part.choices(np.flatnonzero(kept[start:end]))
        start = end
    return tuple(sorted(made, key=lambda one: one.mean_usd_per_hour))


def _shown(front: Sequence[_Pairs], least: float) -> tuple[Choice, ...]:
    """Return the fleets that cost less than every single deployment, the cheapest of the best."""
    place = np.repeat(np.arange(len(front)), [len(part.cost) for part in front])
    at = np.concatenate([np.zeros(0, np.intp), *(np.arange(len(part.cost)) for part in front)])
    values = np.concatenate([np.zeros((0, 4)), *(p.values for p in front if p.values is not None)])
    rows = np.flatnonzero(values[:, 0] < least)
    rows = rows[nondominated(values[rows])]
    rows = rows[np.lexsort(values[rows].T[::-1])][:FLEETS]
    made = [front[place[row]].choices(at[[row]].astype(np.intp))[0] for row in rows]
    return tuple(made)


def choice(parts: Sequence[PartRecord]) -> Choice:
    """Return deployments that share the traffic as one way to serve it."""
    every = [part.option for part in parts]
    hours = sum(option.money.usd_per_hour for option in every)
    million = sum(o.money.usd_per_hour / o.money.usd_per_mtok_output for o in every)
    mean = sum(
        o.money.usd_per_hour * (1.0 if o.run_hours is None else o.utilization) for o in every
    )
    ttft = [option.ttft.p95_ms for option in every if option.ttft is not None]
    tpot = [option.tpot.p95_ms for option in every if option.tpot is not None]
    return Choice(
        parts=tuple(parts),
        gpus=sum(option.gpus for option in every),
        usd_per_hour=_short(hours),
        mean_usd_per_hour=_short(mean),
        usd_per_mtok_output=_short(hours / million),
        ttft_p95_ms=max(ttft) if ttft else None,
        tpot_p95_ms=max(tpot) if tpot else None,
        quality_loss_percent=_short(sum(p.share * p.option.quality.median for p in parts)),
        quality_loss_p90_percent=_short(sum(p.share * p.option.quality.p90 for p in parts)),
    )


def _short(value: float) -> float:
    return float(rounded(value))
