"""New prices for a stored plan, without a search: its archive does not depend on prices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planner.catalog import Catalog, laid_over
from planner.catalog.offers import newest_seen
from planner.commands.day import checked_day
from planner.commands.stored import OTHER_CATALOG, Stored, by_class, open_plan
from planner.cost import allowed_offers, quote
from planner.deploy.needs import TO_DEPLOY, picks_need
from planner.errors import InputError
from planner.files import digest, parse_yaml
from planner.select.answers import answers
from planner.select.changes import Changes, changes
from planner.select.formula_misses import FORMULA_MISSES
from planner.select.front import front
from planner.select.options import Shop
from planner.select.selection import (
    DRAFTS,
    ENDS_TOGETHER,
    FORMULA_ONLY,
    LEASES_LEFT_OUT,
    NOT_SOLD,
    PICKS_BUT,
    PICKS_CHECKED,
    UNCHECKED,
    UNKEPT,
    UNVERIFIED,
    Selection,
    assumed,
    checked,
    not_sold,
    selection,
)
from planner.spec.load import load
from planner.spec.offer import Offer
from planner.spec.record import PlanRecord
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace

UNPROVEN = (
    "The archive behind these prices is not proven exact, and repricing does not search: a new"
    " search (plan --slo, with --prove) may find better options."
)
SEARCHED = "The archive of the plan was not proven exact, so it was searched again at these prices."
RENEWED = (
    UNPROVEN,
    UNKEPT,
    FORMULA_ONLY,
    PICKS_CHECKED,
    PICKS_BUT,
    UNCHECKED,
    FORMULA_MISSES,
    NOT_SOLD,
    OTHER_CATALOG,
    TO_DEPLOY,
    DRAFTS,
    ENDS_TOGETHER,
    LEASES_LEFT_OUT,
    "Formula at the steady peak rate: ",  # in plans of older versions
    "No simulation has checked these picks",  # in plans of older versions
    "No size of any pick has held in a simulation",  # in plans of older versions
)
"""Sentences that new prices may make untrue."""


@dataclass(frozen=True)
class Unsearched:
    """Hardware for sale that the plan's search has not looked at.

    Attributes:
        hardware: Its class.
        offers: What is for sale.
        cheapest_usd_per_hour: Lowest price of an instance.
    """

    hardware: str
    offers: tuple[Offer, ...]
    cheapest_usd_per_hour: float


@dataclass(frozen=True)
class Repriced:
    """A plan at new prices.

    Attributes:
        record: The plan; everything that does not depend on prices is as it was.
        changes: Against the plan before.
        unsearched: What a new search (``plan --slo``) with these prices would look at besides.
        notes: What a reader of the changes must know beyond the record's own assumptions.
    """

    record: PlanRecord
    changes: Changes
    unsearched: tuple[Unsearched, ...]
    notes: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether the archive behind the prices is proven exact."""
        return self.record.search.proven


def reprice(
    plan: PlanRecord | Path,
    prices: Sequence[Path] = (),
    *,
    catalog: Path | Catalog | None = None,
    as_of: str | None = None,
    search: bool = True,
) -> Repriced:
    """Return a stored plan at new prices: the exact front if its archive is proven.

    Args:
        plan: The plan, or its ``plan.json``.
        prices: Price files, laid over the plan's own offers.
        catalog: Catalog that the plan was made with; None = the shipped one. Its prices are
            not used.
        as_of: YYYY-MM-DD that prices are judged by; None = the newest price's date, or the
            plan's own if that is later.

        search: Search again where the archive is not proven exact (a plan of a trace never
            is); else the record says that better options may exist.

    Raises:
        InputError: A file cannot be used, nothing is left to buy, or the catalog lacks what the
            plan names.
    """
    stored = open_plan(plan, catalog)
    old, slo = stored.record, stored.slo
    known, kept = _market(stored.catalog, old.offers, prices)
    newest = max(old.inputs.as_of, newest_seen(offer.seen for offer in kept))
    day = newest if as_of is None else checked_day(as_of)
    contents = [path.read_bytes() for path in prices]
    key = digest(old.inputs.catalog_digest, *contents) if prices else old.inputs.catalog_digest
    allowed = _allowed(known, slo, day, _place(plan, prices))
    if search and not old.search.proven and old.inputs.trace is None:
        new = _searched(old, slo, replace(known, digest=key), day)
        return Repriced(new, changes(old, new), (), stored.notes)
    sold = by_class(known, (offer for offer in kept if offer in allowed))
    searched = set(by_class(known, old.offers))
    quotes = {key: quote(known, rows) for key, rows in sorted(sold.items())}
    shop = Shop(
        {key: one for key, one in quotes.items() if key in searched},
        tuple(offer for key in sorted(searched & set(sold)) for offer in sold[key]),
    )
    chosen = selection(
        stored.scene,
        slo,
        stored.case,
        shop,
        front(answers(old.archive), old.archive, shop.quotes, slo),
    )
    new = _record(stored, known, _Prices(day, shop.offers, key), chosen)
    unsearched = tuple(
        Unsearched(name, one.offers, one.prices[0])
        for name, one in quotes.items()
        if name not in searched
    )
    return Repriced(new, changes(old, new), unsearched)


def _place(plan: PlanRecord | Path, prices: Sequence[Path]) -> str:
    """Return what says which prices there are: the price files, else the plan."""
    files = prices or ((plan,) if isinstance(plan, Path) else ())
    return ", ".join(str(path) for path in files) or "the plan"


def _allowed(known: Catalog, slo: Slo, day: str, place: str) -> set[Offer]:
    """Return what may be bought; the plan's slo.yaml was sound, so that a fault is the prices'."""
    try:
        return set(allowed_offers(known, slo.purchase, day))
    except InputError as error:
        raise InputError(place, error.faults) from None


def _searched(old: PlanRecord, slo: Slo, known: Catalog, day: str) -> PlanRecord:
    """Return the plan made anew: an archive that is not proven may lack what prices favour."""
    from planner.commands.plan import plan

    space = load(parse_yaml(json.dumps(old.inputs.space), "search space"), SearchSpace)
    new = plan(
        slo,
        catalog=known,
        space=space,
        seed=old.inputs.seed,
        verify=bool(old.verification),
        as_of=day,
    )
    return new.model_copy(update={"assumptions": (*new.assumptions, SEARCHED)})


@dataclass(frozen=True)
class _Prices:
    """Prices of a plan: the day they are judged by, the rows, and the digest of their files."""

    day: str
    offers: tuple[Offer, ...]
    digest: str


def _record(stored: Stored, catalog: Catalog, prices: _Prices, chosen: Selection) -> PlanRecord:
    old, native = stored.record, stored.scene.architecture.native_format
    inputs = old.inputs.model_copy(update={"as_of": prices.day, "catalog_digest": prices.digest})
    search = old.search.model_copy(update={"hypervolume": chosen.hypervolume})
    guessed = tuple(assumed(catalog, stored.slo, (*chosen.options, *chosen.untrusted)))
    kept = [
        note
        for note in old.assumptions
        if not note.startswith(RENEWED) and (f": {UNVERIFIED}: " not in note or note in guessed)
    ]
    notes = (
        *kept,
        *not_sold(stored.slo, prices.offers),
        *guessed,
        *(() if old.search.proven else (UNPROVEN,)),
        *stored.notes,
        *picks_need(catalog, native, chosen.options, chosen.picks),
        *checked(stored.slo, old.verification, chosen.picks),
    )
    return old.model_copy(
        update={
            "inputs": inputs,
            "offers": prices.offers,
            "options": chosen.options,
            "picks": chosen.picks,
            "shown": chosen.shown,
            "untrusted": chosen.untrusted,
            "misses": chosen.misses,
            "relaxations": chosen.relaxations,
            "assumptions": tuple(dict.fromkeys(notes)),
            "search": search,
        }
    )


def _market(
    base: Catalog, offers: Sequence[Offer], prices: Sequence[Path]
) -> tuple[Catalog, tuple[Offer, ...]]:
    """Return the catalog with all prices, and the offers that the plan may look at.

    Price files may name any offer of the catalog, so they are laid over those too. Of these, only
    the ones that they change count: the plan has left the others out.
    """
    under = {offer.key: offer for offer in (*base.offers, *offers)}
    own = {offer.key for offer in offers}
    laid = laid_over(base, tuple(under.values()), prices)
    kept = tuple(o for o in laid.offers if o.key in own or o != under.get(o.key))
    return laid, kept
