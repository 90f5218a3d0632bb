"""Prices: import other people's files, list what the catalog holds, check what it rests on."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planner.catalog import Catalog, load_catalog
from planner.catalog.lookup import Names
from planner.commands.day import checked_day
from planner.counting import counted
from planner.errors import InputError, suggestion
from planner.importers.price_rows import Imported, Known, PriceFile
from planner.importers.prices import read_prices
from planner.spec.base import first_day
from planner.spec.offer import Offer, Term

PricingCategory = Literal["Standard", "Dynamic", "Committed", "Other"]

PRICING_CATEGORY: Mapping[Term, PricingCategory] = {
    "on_demand": "Standard",
    "spot": "Dynamic",
    "reserved_1y": "Committed",
    "reserved_3y": "Committed",
    "prepaid": "Committed",
    "owned": "Other",
}
"""FOCUS 1.2 PricingCategory of our terms."""
TERM_DAYS: Mapping[Term, int] = {"reserved_1y": 365, "reserved_3y": 3 * 365}
BUYABLE: tuple[Term, ...] = ("on_demand", "spot", "reserved_1y", "reserved_3y")
"""Terms that a buyer will ask for; their absence is a gap."""
MAX_AGE_DAYS = 180
SOON_DAYS = 30
MAX_SPREAD = 6.0
"""Dearest / cheapest price per GPU of one chip and term; first-hand prices stay within it."""


@dataclass(frozen=True)
class PriceLine:
    """One price as a buyer reads it; names are FOCUS's where the meaning is the same.

    Attributes:
        list_unit_price, contracted_unit_price, effective_unit_price: Per instance-hour in
            ``pricing_currency``: before discount, as agreed, and per hour that does its work.
        effective_usd_per_gpu_hour: The last, per GPU [USD].
        age_days: From the first day of ``seen`` to the day asked about.
    """

    provider: str
    instance_type: str
    accelerator: str
    gpus: int
    region_id: str
    term: Term
    pricing_category: PricingCategory
    pricing_currency: str
    list_unit_price: float
    contracted_unit_price: float
    effective_unit_price: float
    effective_usd_per_gpu_hour: float
    upfront_share: float
    seen: str
    age_days: int
    valid_to: str
    source: str
    flag: str
    note: str


Check = Literal[
    "no price", "missing term", "old", "expired", "expires before the term ends", "not yet valid",
    "spot not below on-demand", "spread", "flagged", "quota below the minimum",
]  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One thing to look at before prices are relied on.

    Attributes:
        check: Which test found it.
        what: Offer, or accelerator and term.
        detail: The figures, and what to do.
        value: Age or days left [days], or a ratio; 0 where there is none.
    """

    check: Check
    what: str
    detail: str
    value: float = 0.0


@dataclass(frozen=True)
class PriceReport:
    """What the prices of a catalog rest on.

    Attributes:
        as_of: Day that ages count to.
        offers: Offers looked at.
        newest_days, median_days, oldest_days: Ages of the prices [days].
        findings: In the order of the checks.
    """

    as_of: str
    offers: int
    newest_days: int
    median_days: int
    oldest_days: int
    findings: tuple[Finding, ...]

    def of(self, check: Check) -> tuple[Finding, ...]:
        """Return the findings of one check."""
        return tuple(finding for finding in self.findings if finding.check == check)


@dataclass(frozen=True)
class PriceFilter:
    """Which prices to list; empty = all."""

    providers: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()


def import_prices(
    kind: str,
    file: Path,
    *,
    seen: str = "",
    provider: str = "",
    mapping: Mapping[str, str] | None = None,
    catalog: Path | None = None,
) -> Imported:
    """Read a price file of another program or a price sheet.

    Args:
        kind: skypilot, gpuhunt, sheet or price-list.
        file: The file.
        seen: When its prices were seen, if it does not say so: YYYY-MM-DD, YYYY-MM or YYYY.
        provider: Who sells, if neither file nor name tells.
        mapping: Sheets: our field -> column, or ``=value``.
        catalog: Catalog folder; its accelerators and instance types explain the names.

    Returns:
        Offers, and every row that was not taken with the reason. ``to_csv`` of the offers is a
        price file.

    Raises:
        InputError: The file cannot be used as a whole.
    """
    loaded = load_catalog(catalog)
    known = Known.of(Names("accelerator", loaded.accelerators.values()), loaded.offers)
    return read_prices(kind, PriceFile(file, seen, provider, mapping or {}), known)


def to_csv(offers: Iterable[Offer]) -> str:
    """Return offers in the layout of ``offers.csv``, sorted by key: a file for ``--prices``."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    columns = tuple(Offer.model_fields)
    writer.writerow(columns)
    for offer in sorted(offers, key=lambda offer: offer.key):
        writer.writerow([_cell(getattr(offer, column)) for column in columns])
    return text.getvalue()


def list_prices(
    *,
    catalog: Path | None = None,
    prices: Sequence[Path] = (),
    only: PriceFilter = PriceFilter(),
    as_of: str = "",
) -> tuple[PriceLine, ...]:
    """Return prices, cheapest per useful GPU-hour first within an accelerator.

    Args:
        catalog, prices: Catalog folder and price files.
        only: Which to list.
        as_of: Day that ages count to, YYYY-MM-DD; default the newest ``seen``.

    Raises:
        InputError: The catalog cannot be loaded, an accelerator is unknown, or no such day.
    """
    loaded = load_catalog(catalog, prices=prices)
    day = _day(as_of or loaded.newest_seen)
    chips = {loaded.accelerator(name).id for name in only.accelerators}
    providers = _sold("--provider", only.providers, {o.provider for o in loaded.offers})
    regions = _sold("--region", only.regions, {o.region for o in loaded.offers})
    lines = [
        _line(loaded, offer, day)
        for offer in loaded.offers
        if (not chips or offer.accelerator in chips)
        and (not providers or offer.provider.casefold() in providers)
        and (not regions or offer.region.casefold() in regions)
        and (not only.terms or offer.term in only.terms)
    ]
    return tuple(
        sorted(lines, key=lambda line: (line.accelerator, line.effective_usd_per_gpu_hour))
    )


def check_prices(
    *, catalog: Path | None = None, prices: Sequence[Path] = (), as_of: str = ""
) -> PriceReport:
    """Return ages, gaps, outliers, and prices that lapse.

    Args:
        catalog, prices: Catalog folder and price files.
        as_of: Day to check for, YYYY-MM-DD; default the newest ``seen`` of all prices.

    Raises:
        InputError: The catalog cannot be loaded, or there is no such day.
    """
    loaded = load_catalog(catalog, prices=prices)
    day = _day(as_of or loaded.newest_seen)
    ages = sorted(_age(offer, day) for offer in loaded.offers)
    findings = (
        *_gaps(loaded),
        *_old(loaded.offers, day),
        *_lapsing(loaded.offers, day),
        *_spot_outliers(loaded),
        *_spreads(loaded),
        *_small_quotas(loaded.offers),
        *(Finding("flagged", _name(o), f"{o.flag}: {o.note or o.seen_basis}") for o in loaded.offers
          if o.flag),
    )  # fmt: skip
    if not ages:
        return PriceReport(day.isoformat(), 0, 0, 0, 0, tuple(findings))
    middle = ages[len(ages) // 2]
    return PriceReport(day.isoformat(), len(ages), ages[0], middle, ages[-1], tuple(findings))


def _sold(option: str, names: Sequence[str], known: Collection[str]) -> frozenset[str]:
    """Return the names without case; raises InputError for those that no price has."""
    folded = {name.casefold() for name in known}
    unknown = [name for name in names if name.casefold() not in folded]
    if unknown:
        raise InputError(
            option, [f"no price has '{name}'{suggestion(name, known)}" for name in unknown]
        )
    return frozenset(name.casefold() for name in names)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(checked_day(text))


def _age(offer: Offer, day: datetime.date) -> int:
    return (day - first_day(offer.seen)).days


def _name(offer: Offer) -> str:
    return f"{offer.provider} {offer.instance_type} {offer.region} {offer.term}"


def _line(catalog: Catalog, offer: Offer, day: datetime.date) -> PriceLine:
    return PriceLine(
        provider=offer.provider,
        instance_type=offer.instance_type,
        accelerator=offer.accelerator,
        gpus=offer.gpus,
        region_id=offer.region,
        term=offer.term,
        pricing_category=PRICING_CATEGORY[offer.term],
        pricing_currency=offer.currency,
        list_unit_price=offer.list_price_per_hour,
        contracted_unit_price=offer.price_per_hour,
        effective_unit_price=offer.effective_price_per_hour(catalog.terms.interruption_share),
        effective_usd_per_gpu_hour=catalog.effective_usd_per_hour(offer) / offer.gpus,
        upfront_share=offer.upfront_share,
        seen=offer.seen,
        age_days=_age(offer, day),
        valid_to=_cell(offer.valid_to),
        source=offer.source,
        flag=offer.flag,
        note=offer.note,
    )


def _gaps(catalog: Catalog) -> Iterator[Finding]:
    for chip in catalog.accelerators:
        offers = [offer for offer in catalog.offers if offer.accelerator == chip]
        clean = {offer.term for offer in offers if not offer.flag}
        if not offers:
            yield Finding("no price", chip, "no offer has it; add one to price it")
            continue
        if not clean:
            yield Finding("no price", chip, "every offer is flagged; add one that can be trusted")
        missing = [term for term in BUYABLE if term not in {offer.term for offer in offers}]
        if missing:
            detail = f"no price for {', '.join(missing)}; ask for one, or leave the term out"
            yield Finding("missing term", chip, detail)


def _old(offers: Sequence[Offer], day: datetime.date) -> Iterator[Finding]:
    for offer in offers:
        age = _age(offer, day)
        if age > MAX_AGE_DAYS:
            yield Finding("old", _name(offer), f"seen {offer.seen} ({offer.seen_basis})", age)


def _lapsing(offers: Sequence[Offer], day: datetime.date) -> Iterator[Finding]:
    for offer in offers:
        if offer.valid_from is not None and offer.valid_from > day:
            left = (offer.valid_from - day).days
            detail = f"valid from {offer.valid_from}; not used before"
            yield Finding("not yet valid", _name(offer), detail, left)
        if offer.valid_to is None:
            continue
        left = (offer.valid_to - day).days
        lasts = max(TERM_DAYS.get(offer.term, 0), round(offer.minimum_hours / 24), SOON_DAYS)
        if left < 0:
            detail = f"valid to {offer.valid_to}; ask for a new price"
            yield Finding("expired", _name(offer), detail, left)
        elif left < lasts:
            rest = counted(left, "day")
            detail = f"valid to {offer.valid_to}, {rest}; a purchase now runs {lasts} days"
            yield Finding("expires before the term ends", _name(offer), detail, left)


def _spot_outliers(catalog: Catalog) -> Iterator[Finding]:
    on_demand = {
        o.key[:3]: catalog.usd_per_hour(o) for o in catalog.offers if o.term == "on_demand"
    }
    for offer in catalog.offers:
        price = on_demand.get(offer.key[:3])
        if offer.term == "spot" and price is not None:
            ratio = catalog.usd_per_hour(offer) / price
            if ratio >= 1:
                detail = f"{ratio:.3g} of the price on demand; look both up"
                yield Finding("spot not below on-demand", _name(offer), detail, ratio)


def _spreads(catalog: Catalog) -> Iterator[Finding]:
    groups: dict[tuple[str, Term], list[tuple[float, str]]] = {}
    for offer in catalog.offers:
        if offer.flag != "fractional":
            price = catalog.usd_per_hour(offer) / offer.gpus
            groups.setdefault((offer.accelerator, offer.term), []).append((price, _name(offer)))
    for (chip, term), prices in sorted(groups.items()):
        (low, cheapest), (high, dearest) = min(prices), max(prices)
        if high > MAX_SPREAD * low:
            detail = (
                f"{high / low:.1f} x between {cheapest} at {low:.4g} and {dearest} at {high:.4g} "
                "USD per GPU-hour; look both up"
            )
            yield Finding("spread", f"{chip} {term}", detail, high / low)


def _small_quotas(offers: Sequence[Offer]) -> Iterator[Finding]:
    for offer in offers:
        if offer.quota_instances is not None and offer.quota_instances < offer.minimum_instances:
            detail = (
                f"quota of {counted(offer.quota_instances, 'instance')}, smallest purchase "
                f"{offer.minimum_instances}; ask for a higher quota"
            )
            yield Finding("quota below the minimum", _name(offer), detail)
