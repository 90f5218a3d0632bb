"""Money: the only code that knows a price. Amounts are USD."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from planner.catalog import Catalog
from planner.counting import counted
from planner.errors import Fault, InputError, suggestion
from planner.model.arrays import Columns, Floats, Indices
from planner.spec.offer import Offer
from planner.spec.purchase import Purchase
from planner.units import MILLION, SECONDS_PER_HOUR

NEVER_BOUGHT = ("fractional", "partial")
"""Flags of rows that price part of a GPU, or part of an instance: no plan can use them, whatever
slo.yaml allows."""

MOST_LISTED = 8
"""Names that an error lists."""
OWN = "owned"
"""Term of hardware of one's own."""


def instances_needed(
    replicas: Floats, gpus_per_replica: Floats, gpus_per_instance: Floats | Indices | int
) -> Floats:
    """Whole instances that hold the replicas, (n,).

    Args:
        replicas: Copies of the model, (n,).
        gpus_per_replica: tp * pp * dp, (n,).
        gpus_per_instance: GPUs of one instance.

    Returns:
        Instances: small replicas share one if they fit whole; a replica larger than an instance
        takes several of its own.

    >>> instances_needed(np.array([5.0, 3.0]), np.array([2.0, 16.0]), 8)
    array([2., 6.])
    """
    inside = np.floor(gpus_per_instance / gpus_per_replica)
    shared = np.ceil(replicas / np.maximum(inside, 1.0))
    own = replicas * np.ceil(gpus_per_replica / gpus_per_instance)
    return np.where(inside >= 1.0, shared, own)


def replicas_that_fill(
    needed: Floats, gpus_per_replica: Floats, gpus_per_instance: Floats | Indices | int, spare: int
) -> Floats:
    """Replicas that carry load if the instances that the needed ones take are filled, (n,).

    Args:
        needed: Replicas that the load needs, (n,).
        gpus_per_replica: tp * pp * dp, (n,).
        gpus_per_instance: GPUs of one instance.
        spare: Replicas bought beyond those that carry load.

    >>> replicas_that_fill(np.array([5.0, 3.0]), np.array([2.0, 16.0]), 8, 1)
    array([7., 3.])
    """
    inside = np.maximum(np.floor(gpus_per_instance / gpus_per_replica), 1.0)
    return np.ceil((needed + spare) / inside) * inside - spare


def usd_per_mtok(usd_per_hour: Floats, tokens_per_s: Floats) -> Floats:
    """Price of a million tokens [USD], (n,).

    >>> usd_per_mtok(np.array([4.0]), np.array([1500.0])).round(3)
    array([0.741])
    """
    return usd_per_hour / (tokens_per_s * SECONDS_PER_HOUR / MILLION)


@dataclass(frozen=True)
class Quotes:
    """The prices of one hardware class.

    Attributes:
        offers: Rows of ``offers.csv``, cheapest first.
        prices: USD per instance-hour of each; of spot capacity per hour that does its work.
        lost: Share of what is paid for that does no work, of each; empty = none anywhere.
    """

    offers: tuple[Offer, ...]
    prices: tuple[float, ...]
    lost: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.lost:
            object.__setattr__(self, "lost", (0.0,) * len(self.offers))

    def clean(self) -> Quotes:
        """Return the rows without a flag."""
        return self.where(lambda offer: not offer.flag)

    def where(self, keep: Callable[[Offer], bool]) -> Quotes:
        """Return the rows that are to be kept."""
        rows = zip(self.offers, self.prices, self.lost, strict=True)
        kept = [row for row in rows if keep(row[0])]
        return Quotes(*(tuple(column) for column in zip(*kept, strict=True))) if kept else NOTHING


NOTHING = Quotes((), ())
"""Nothing for sale."""


@dataclass(frozen=True)
class Bill(Columns):
    """The cheapest way to buy each deployment, (n,).

    Attributes:
        offer: Row of the quotes; -1 = nothing for sale.
        instances: Instances bought.
        usd_per_hour: Price; infinity = nothing for sale.
        quota_use: Instances bought / the offer's quota; 0 = it states none. Above 1: no offer
            sells as many.
        lost: Share of what is paid for that does no work.
    """

    offer: Indices
    instances: Floats
    usd_per_hour: Floats
    quota_use: Floats
    lost: Floats


def cheapest(quotes: Quotes, instances: Floats, time_use: Floats | float = 0.0) -> Bill:
    """Return the cheapest offer for each number of instances; leases, quotas, deadlines are kept.

    Args:
        quotes: Prices of the class that the deployments run on.
        instances: Instances needed, (n,).
        time_use: Offline: time that the work takes / deadline, (n,); work on capacity that
            is interrupted takes longer.

    Returns:
        Of the offers whose quota suffices and that meet the deadline the cheapest; where none
        does, that which misses by the smallest share.
    """
    if not quotes.offers:
        nothing = np.full(len(instances), np.inf)
        none = np.full(len(instances), -1, dtype=np.intp)
        return Bill(none, instances, nothing, *np.zeros((2, len(instances))))
    least = np.array([offer.minimum_instances for offer in quotes.offers], dtype=float)
    most = np.array([offer.quota_instances or np.inf for offer in quotes.offers], dtype=float)
    bought = np.maximum(instances[:, None], least)
    use = bought / most
    lost = np.array(quotes.lost)
    late = np.reshape(time_use, (-1, 1)) / (1.0 - lost)
    excess = np.maximum(np.maximum(use, late), 1.0)
    costs = bought * np.array(quotes.prices)
    nearest = excess <= excess.min(axis=1, keepdims=True)
    best = np.where(nearest, costs, np.inf).argmin(axis=1)
    rows = np.arange(len(instances))
    return Bill(best, bought[rows, best], costs[rows, best], use[rows, best], lost[best])


def quote(catalog: Catalog, offers: Sequence[Offer]) -> Quotes:
    """Return offers with their prices in USD, cheapest first; equal ones by their key.

    A spot price is that of an instance-hour that does its work.
    """
    priced = sorted((catalog.effective_usd_per_hour(offer), offer.key, offer) for offer in offers)
    share = catalog.terms.interruption_share
    return Quotes(
        tuple(offer for *_, offer in priced),
        tuple(price for price, *_ in priced),
        tuple(offer.lost_share(share) for *_, offer in priced),
    )


def allowed_offers(catalog: Catalog, purchase: Purchase, as_of: str) -> tuple[Offer, ...]:
    """Return the offers that slo.yaml allows to buy.

    Args:
        catalog: Holds the offers.
        purchase: Terms, providers, regions and accelerators to choose from; hardware of one's
            own has no provider and no region.
        as_of: YYYY-MM-DD; offers not valid on that day are left out.

    Raises:
        InputError: A provider or region that no offer has, or nothing is left.
    """
    accelerators = {catalog.accelerator(name).id for name in purchase.accelerators}
    faults = [
        *_unknown("providers", purchase.providers, {o.provider for o in catalog.offers}),
        *_unknown("regions", purchase.regions, {o.region for o in catalog.offers}),
    ]
    if faults:
        raise InputError("slo.yaml", faults)
    filters = _filters(purchase, accelerators)
    wanted = tuple(o for o in catalog.offers if all(f.passes(o) for f in filters))
    if not wanted:
        raise InputError("slo.yaml", _without_offer(filters, catalog.offers))
    chosen = tuple(offer for offer in wanted if not _refusal(offer, as_of))
    if not chosen:
        raise InputError("slo.yaml", [Fault("", "purchase", _none_valid(wanted, as_of))])
    return chosen


@dataclass(frozen=True)
class _Filter:
    """What one key of ``purchase`` lets pass.

    Attributes:
        key: The key.
        names: What is asked for, as offers name it, in lower case.
        owned_too: It says something of hardware of one's own.
    """

    key: str
    names: frozenset[str]
    owned_too: bool

    def value(self, offer: Offer) -> str:
        """Return what an offer has under the key."""
        return str(getattr(offer, self.key.removesuffix("s")))

    def passes(self, offer: Offer) -> bool:
        """Return whether an offer has what is asked for."""
        if offer.term == OWN and not self.owned_too:
            return True
        return self.value(offer).casefold() in self.names


def _filters(purchase: Purchase, accelerators: Iterable[str]) -> list[_Filter]:
    asked: tuple[tuple[str, Iterable[str], bool], ...] = (
        ("terms", purchase.terms, True),
        ("accelerators", accelerators, True),
        ("providers", purchase.providers, False),
        ("regions", purchase.regions, False),
    )
    made = [
        _Filter(key, frozenset(name.casefold() for name in names), owned)
        for key, names, owned in asked
    ]
    return [one for one in made if one.names]


def _without_offer(filters: Sequence[_Filter], offers: Sequence[Offer]) -> list[Fault]:
    """Return the fewest filters that no offer passes together."""
    for count in range(1, len(filters) + 1):
        faults = [
            _empty(some, offers)
            for some in combinations(filters, count)
            if not any(all(one.passes(offer) for one in some) for offer in offers)
        ]
        if faults:
            return faults
    return [Fault("", "purchase", "nothing is for sale; add offers to the catalog")]


def _empty(filters: Sequence[_Filter], offers: Sequence[Offer]) -> Fault:
    names = [" or ".join(sorted(one.names)) for one in filters]
    if len(filters) > 1:
        keys = " or ".join(one.key for one in filters)
        message = f"no offer is {' and '.join(names)} at once; allow more {keys}"
        return Fault("", "purchase", message)
    (only,) = filters
    known = sorted({only.value(offer) for offer in offers})
    has = f"the catalog has {', '.join(known)}" if len(known) <= MOST_LISTED else "allow more"
    return Fault("", f"purchase.{only.key}", f"no offer is {names[0]}; {has}")


def _refusal(offer: Offer, as_of: str) -> str:
    """Return why an offer cannot be bought at all; empty = it can."""
    if offer.flag in NEVER_BOUGHT:
        return f"{offer.flag} price"
    if offer.valid_from is not None and offer.valid_from.isoformat() > as_of:
        return f"not valid before {offer.valid_from}"
    if offer.valid_to is not None and offer.valid_to.isoformat() < as_of:
        return f"expired on {offer.valid_to}"
    return ""


def _none_valid(wanted: Sequence[Offer], as_of: str) -> str:
    first = wanted[0]
    named = f"{' '.join(first.key)}: {_refusal(first, as_of)}"
    return (
        f"{counted(len(wanted), 'offer')} with these terms, providers, regions and accelerators,"
        f" but none can be bought on {as_of} ({named}); give newer prices, or allow more"
    )


def _unknown(key: str, names: Sequence[str], known: set[str]) -> list[Fault]:
    folded = {name.casefold() for name in known}
    return [
        Fault(
            "",
            f"purchase.{key}",
            f"no offer has '{name}'{suggestion(name, known) or '; see offers.csv'}",
        )
        for name in names
        if name.casefold() not in folded
    ]


@dataclass(frozen=True)
class Amounts(Columns):
    """What deployments cost, (n,) [USD].

    Attributes:
        usd_per_hour: As billed.
        usd_per_mtok_output, usd_per_mtok_total: At the mean rate.
        usd_per_mtok_full: Per million output tokens at full utilization.
        mean_utilization: Mean output / capacity.
    """

    usd_per_hour: Floats
    usd_per_mtok_output: Floats
    usd_per_mtok_total: Floats
    usd_per_mtok_full: Floats
    mean_utilization: Floats


def amounts(
    usd_per_hour: Floats, output_rate: Floats, total_rate: Floats, capacity_rate: Floats
) -> Amounts:
    """Return prices per token.

    Args:
        usd_per_hour: As billed, (n,).
        output_rate: Output tokens per second at the mean rate, (n,).
        total_rate: Prompt and output tokens per second at the mean rate, (n,).
        capacity_rate: Output tokens per second at full utilization, (n,).
    """
    full = usd_per_mtok(usd_per_hour, capacity_rate)
    use = output_rate / capacity_rate
    return Amounts(usd_per_hour, full / use, usd_per_mtok(usd_per_hour, total_rate), full, use)
