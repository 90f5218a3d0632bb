"""Why a named deployment is not on the front, and what beats it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from planner.candidates.quality import QualityCase
from planner.select.answers import Priced, answers, priced
from planner.select.deploy import Scene
from planner.select.front import Front, cost, reasons
from planner.select.misses import miss
from planner.select.named import Named, placed
from planner.select.objectives import chosen as objectives
from planner.select.objectives import points
from planner.select.options import Shop, options
from planner.spec.archive import Hardware
from planner.spec.option import Option
from planner.spec.slo import Slo

Verdict = Literal[
    "cannot run",
    "not for sale",
    "does not fit",
    "breaks a limit",
    "not trusted",
    "beaten",
    "on the front",
    "not in the search",
]


@dataclass(frozen=True)
class WhyNot:
    """Why a deployment is not on the front.

    Attributes:
        name: Which deployment of the file.
        verdict: The first thing that keeps it off; ``not in the search``: nothing does, but the
            search space or its sizes left it out.
        because: In words, with numbers.
        would_do: Changes each of which would make it keep every limit.
        option: As it would be bought; None if it cannot run, fit or be bought.
        beaten_by: Options of the front that are at least as good in every objective, cheapest
            first.
        notes: What a reader must know, in sentences.
    """

    name: str
    verdict: Verdict
    because: tuple[str, ...]
    would_do: tuple[str, ...] = ()
    option: Option | None = None
    beaten_by: tuple[Option, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Market:
    """A plan that a deployment is held against.

    Attributes:
        scene: Catalog, model, archive.
        slo: What was asked.
        case: What the quality loss depends on.
        shop: Prices, flagged ones among them.
        front: Front of the archive at those prices.
        options: Its options, in the same order.
    """

    scene: Scene
    slo: Slo
    case: QualityCase
    shop: Shop
    front: Front
    options: tuple[Option, ...]

    @property
    def trusted(self) -> Shop:
        """Prices that picks may rest on."""
        if self.slo.purchase.allow_flagged_prices:
            return self.shop
        clean = {key: quotes.clean() for key, quotes in self.shop.quotes.items()}
        return Shop(clean, self.shop.offers)


def why_not(market: Market, named: Named, classes: Sequence[Hardware]) -> WhyNot:
    """Return why a deployment is not on the front of a plan.

    Args:
        market: The plan.
        named: The deployment.
        classes: Hardware classes for sale with its accelerator; it is judged on one where the plan
            lists it, else where it does best.
    """
    if not classes:
        because = "no price row of the plan sells it on the terms that slo.yaml allows"
        return WhyNot(named.name, "not for sale", (because,))
    made = placed(market.scene, market.slo, market.case, named, classes)
    if not made.archives:
        return WhyNot(named.name, "does not fit", (made.shortage,))
    scene = replace(market.scene, archives=made.archives)
    found = answers(made.archives)
    every = priced(found, made.archives, market.shop.quotes, market.slo)
    clean = priced(found, made.archives, market.trusted.quotes, market.slo)
    # What has a clean price is judged by it, however cheap a doubtful one is.
    known = np.isfinite(clean.bill.usd_per_hour).any()
    answer, shop = (clean, market.trusted) if known else (every, market.shop)
    rows = np.lexsort((cost(answer), np.maximum(answer.worst(), 1.0))).astype(np.intp)
    rows = rows[: max(int(np.isfinite(cost(answer)).sum()), 1)]
    bought = options(scene, shop, market.slo, market.case, (answer, rows))
    listed = {one.id for one in market.options}
    at = next((i for i, option in enumerate(bought) if option.id in listed), 0)
    return _judged(market, named.name, scene, (answer, int(rows[at]), bought[at]))


def _judged(market: Market, name: str, scene: Scene, found: tuple[Priced, int, Option]) -> WhyNot:
    every, row, option = found
    if option.id in {one.id for one in market.options}:
        return WhyNot(name, "on the front", ("the plan lists it",), (), option)
    missed = miss(scene, market.slo, every, row, option)
    if every.worst()[row] > 1.0:
        broken = tuple(word for word in missed.misses if word not in option.flags)
        return WhyNot(name, "breaks a limit", broken, missed.would_do, option)
    beaten = _beaten_by(market, every, row)
    if beaten:
        return WhyNot(name, "beaten", tuple(_comparison(option, beaten[0])), (), option, beaten)
    why = reasons(every, market.slo, row)
    if why:
        return WhyNot(name, "not trusted", why, missed.would_do, option)
    because = "it keeps every limit and nothing beats it; the search space does not hold it"
    return WhyNot(name, "not in the search", (because,), (), option)


def _beaten_by(market: Market, every: Priced, row: int) -> tuple[Option, ...]:
    own = points(every, objectives(market.slo))[row]
    better = np.flatnonzero(np.all(market.front.points <= own, axis=1))
    return tuple(market.options[i] for i in better)


def _comparison(own: Option, other: Option) -> Iterator[str]:
    """Yield what two options come to, in words."""
    pairs = [
        ("USD per Mtok output", own.money.usd_per_mtok_output, other.money.usd_per_mtok_output),
        ("quality loss [%]", own.quality.median, other.quality.median),
    ]
    for name, mine, its in (("TTFT", own.ttft, other.ttft), ("TPOT", own.tpot, other.tpot)):
        if mine is not None and its is not None:
            pairs.append((f"{name} p95 [ms]", mine.p95_ms, its.p95_ms))
    for name, mine_value, its_value in pairs:
        yield f"{name} {mine_value:.4g}; {other.id} has {its_value:.4g}"
