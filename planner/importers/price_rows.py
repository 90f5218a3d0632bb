"""What price importers share: a row in our words, refusals, and from rows to offers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import ValidationError

from planner.spec.accelerator import Accelerator
from planner.spec.offer import Offer, Term

Reason = Literal[
    "no accelerator",
    "unknown accelerator",
    "ambiguous accelerator",
    "contradiction",
    "fractional GPU",
    "unknown GPU count",
    "no price",
    "not a price",
    "placeholder price",
    "auction floor",
    "host part missing",
    "spot not below on-demand",
    "host without GPUs",
    "other purchase option",
    "other unit",
    "incomplete row",
    "unusable text",
    "unusable value",
]
Part = Literal["row", "on_demand", "spot"]
Key = tuple[str, str, str]

ROUNDING = 1e-4
"""Files round spot prices to four decimals, so that one may exceed the price by that much."""
SPREAD = 0.5
"""A price below this share of the same instance's dearest region is more likely another SKU."""
SMALLEST_VCPUS = 4
SMALLEST_MEMORY_GIB = 12
"""Assumed: an engine's processes need that much; the smallest GPU servers sold have 4 and 15."""
FORMULA = ("=", "+", "-", "@")


class RefusedError(Exception):
    """A row, or one price of it, cannot be used; never leaves the importers."""

    def __init__(self, reason: Reason, detail: str) -> None:
        """Args: reason: class of the fault; detail: what is wrong and how to repair it."""
        self.reason = reason
        self.detail = detail
        super().__init__(detail)


@dataclass(frozen=True)
class Refusal:
    """A row that was not taken, or one price of a row.

    Attributes:
        line: Line of the file, from 1.
        what: Instance and region, as the file writes them.
        reason: Class of the fault, for counting.
        detail: What is wrong and how to repair it.
        part: ``row``, or the one price that was refused while the rest of the row was taken.
    """

    line: int
    what: str
    reason: Reason
    detail: str
    part: Part = "row"


@dataclass(frozen=True)
class Imported:
    """What a price file gave.

    Attributes:
        offers: Sorted by key, one per (provider, instance, region, term).
        refused: Every row that was not taken and every price refused, by line.
        rows: Rows of the file.
        merged: Rows folded into another row: a second zone, a host part, a repeat.
    """

    offers: tuple[Offer, ...]
    refused: tuple[Refusal, ...]
    rows: int
    merged: int

    @property
    def rows_refused(self) -> int:
        """Rows of which nothing was taken."""
        return sum(refusal.part == "row" for refusal in self.refused)

    @property
    def rows_taken(self) -> int:
        """Rows that an offer rests on: rows = taken + merged + refused."""
        return self.rows - self.merged - self.rows_refused

    def counts(self) -> dict[str, int]:
        """Return how often each reason occurs."""
        return dict(Counter(refusal.reason for refusal in self.refused))


class Chips(Protocol):
    """Accelerators by id or alias, compared without case."""

    def get(self, name: str) -> Accelerator | None:
        """Return the accelerator of that name, or None."""

    def unknown(self, name: str) -> str:
        """Return the message for a name that no accelerator has."""

    def __iter__(self) -> Iterator[Accelerator]: ...


@dataclass(frozen=True, eq=False)
class Known:
    """What the catalog knows already, to read foreign names by; compared by identity.

    Attributes:
        chips: Accelerators by name.
        instances: Accelerator id and GPUs by (provider, instance type), both folded.
        providers: Providers of the catalog's offers, folded.
    """

    chips: Chips
    instances: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    providers: frozenset[str] = frozenset()

    @classmethod
    def of(cls, chips: Chips, offers: Iterable[Offer]) -> Known:
        """Return what a catalog's offers tell; parts of a GPU tell nothing."""
        rows = [offer for offer in offers if offer.flag != "fractional"]
        instances = {
            (o.provider.casefold(), o.instance_type.casefold()): (o.accelerator, o.gpus)
            for o in rows
        }
        return cls(chips, instances, frozenset(o.provider.casefold() for o in rows))


@dataclass(frozen=True)
class PriceFile:
    """A price file of somebody else, and what it does not say itself.

    Attributes:
        path: The file.
        seen: When its prices were seen: YYYY, YYYY-MM or YYYY-MM-DD; empty = not said.
        provider: Who sells; empty = as the file or its name says.
        mapping: Price sheets only: our field -> column of the sheet.
    """

    path: Path
    seen: str = ""
    provider: str = ""
    mapping: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Draft:
    """One price on the way to an offer.

    Attributes:
        line: Row it stands in.
        term: Price term.
        price: List price per instance-hour, in the currency of the file.
        values: Further fields of the offer, ``provider``, ``instance_type``, ``region`` included.
    """

    line: int
    term: Term
    price: float
    values: Mapping[str, Any]

    @property
    def place(self) -> Key:
        """Provider, instance type and region, folded."""
        names = ("provider", "instance_type", "region")
        provider, instance, region = (str(self.values[name]).casefold() for name in names)
        return provider, instance, region

    @property
    def what(self) -> str:
        """Name of the row in a refusal."""
        return described(self.values["instance_type"], self.values["region"])

    def flagged(self, flag: str, note: str) -> Draft:
        """Return the draft with a flag, the first one staying, and a further note."""
        notes = "; ".join(part for part in (self.values.get("note", ""), note) if part)
        kept = self.values.get("flag") or flag
        return replace(self, values={**self.values, "flag": kept, "note": notes})


def described(instance: str, region: str) -> str:
    """Return how a refusal names a row."""
    text = f"{instance or '(no instance type)'} {region or '(no region)'}"
    return text if text.isprintable() else ascii(text)


def price_of(text: str) -> float | None:
    """Return a price cell as a number; None if it is empty.

    Raises:
        RefusedError: Not a finite number above 0.
    """
    if not text:
        return None
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        detail = (
            f"{ascii(text)[:40]} is no price above 0; write the bare number, a point for decimals"
        )
        raise RefusedError("not a price", detail)
    return value


def number_of(text: str) -> float | None:
    """Return a cell as a finite number of 0 or more, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 and "_" not in text else None


def spot_of(spot: float | None, on_demand: float | None) -> float | None:
    """Return a spot price that can be used; None if the row has none.

    Raises:
        RefusedError: It repeats the price on demand (then there is none) or exceeds it.
    """
    if spot is None or on_demand is None or spot < on_demand - ROUNDING:
        return spot
    if spot <= on_demand + ROUNDING:
        detail = f"repeats the price on demand, {on_demand:g}: there is no spot price"
    else:
        detail = f"{spot:g} is above the price on demand, {on_demand:g}; look both up"
    raise RefusedError("spot not below on-demand", detail)


def settle(drafts: Sequence[Draft], refused: Sequence[Refusal], rows: int) -> Imported:
    """Return the offers of a file: one per key, contradictions refused or flagged.

    Args:
        drafts: Prices in any order; of several with one key the lowest counts.
        refused: What was refused already.
        rows: Rows of the file.
    """
    lowest = _lowest(drafts)
    merged = {draft.line for draft in drafts} - {draft.line for draft in lowest}
    chosen, faults = _spot_below_on_demand(lowest)
    offers: list[Offer] = []
    used: set[int] = set()
    for draft in _without_odd_regions(chosen):
        try:
            offers.append(_offer(draft))
            used.add(draft.line)
        except RefusedError as error:
            faults.append(refusal(draft, error))
    listed = _whole_rows([*refused, *faults], used | merged)
    gone = {fault.line for fault in listed if fault.part == "row"}
    offers.sort(key=lambda offer: offer.key)
    return Imported(tuple(offers), listed, rows, rows - len(used) - len(gone))


def refusal(draft: Draft, error: RefusedError) -> Refusal:
    """Return the refusal of one price."""
    part: Part = "spot" if draft.term == "spot" else "on_demand"
    return Refusal(draft.line, draft.what, error.reason, error.detail, part)


def _whole_rows(faults: Iterable[Refusal], alive: set[int]) -> tuple[Refusal, ...]:
    """Call a row refused as a whole if nothing of it is left, by its first fault."""
    ordered = sorted(faults, key=lambda fault: (fault.line, fault.part != "row", fault.part))
    gone: set[int] = set()
    listed = []
    for fault in ordered:
        whole = fault.line not in alive and fault.line not in gone
        gone |= {fault.line} if whole else set()
        listed.append(replace(fault, part="row") if whole else fault)
    return tuple(listed)


def _lowest(drafts: Iterable[Draft]) -> list[Draft]:
    groups: dict[tuple[Key, Term], list[Draft]] = {}
    for draft in drafts:
        groups.setdefault((draft.place, draft.term), []).append(draft)
    chosen = []
    for group in groups.values():
        best = min(group, key=lambda draft: (draft.price, draft.line))
        differ = len({draft.price for draft in group}) > 1
        chosen.append(best.flagged("", f"lowest of {len(group)} rows") if differ else best)
    return chosen


def _spot_below_on_demand(drafts: Sequence[Draft]) -> tuple[list[Draft], list[Refusal]]:
    on_demand = {draft.place: draft.price for draft in drafts if draft.term == "on_demand"}
    refused: dict[int, Refusal] = {}
    above: dict[Key, float] = {}
    for index, draft in enumerate(drafts):
        price = on_demand.get(draft.place)
        try:
            if draft.term == "spot":
                spot_of(draft.price, price)
        except RefusedError as error:
            refused[index] = refusal(draft, error)
            if price is not None and draft.price > price + ROUNDING:
                above[draft.place] = draft.price
    kept = [
        spot_above(draft, above[draft.place]) if draft.place in above else draft
        for index, draft in enumerate(drafts)
        if index not in refused
    ]
    return kept, list(refused.values())


def spot_above(draft: Draft, spot: float) -> Draft:
    """Flag a price on demand that its own spot price exceeds: it may be another SKU's."""
    return draft.flagged("suspect", f"the source has spot at {spot:g}, above this price")


def _without_odd_regions(drafts: Sequence[Draft]) -> list[Draft]:
    dearest: dict[tuple[str, str], float] = {}
    for draft in drafts:
        if draft.term == "on_demand":
            name = draft.place[:2]
            dearest[name] = max(draft.price, dearest.get(name, 0.0))
    return [
        odd_region(draft, dearest[draft.place[:2]]) if draft.term == "on_demand" else draft
        for draft in drafts
    ]


def odd_region(draft: Draft, dearest: float) -> Draft:
    """Flag a price far below the dearest region's: most likely the price of another SKU."""
    if draft.price >= SPREAD * dearest:
        return draft
    note = f"under half the price of the dearest region, {dearest:g}; look it up"
    return draft.flagged("suspect", note)


def _offer(draft: Draft) -> Offer:
    values = {name: value for name, value in draft.values.items() if value is not None}
    for name in ("provider", "instance_type", "region"):
        text = str(values.get(name, ""))
        if not text:
            raise RefusedError("incomplete row", f"no {name}; fill it in")
        if not text.isprintable() or text.startswith(FORMULA):
            shown = ascii(text)[:40]
            detail = f"{name} {shown} holds control characters or begins like a formula; rename it"
            raise RefusedError("unusable text", detail)
    try:
        return Offer(list_price_per_hour=draft.price, term=draft.term, **values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RefusedError("unusable value", f"{place}: {first['msg']}; mend it") from None


def host_flag(vcpus: float | None, memory_gib: float | None) -> str:
    """Return the flag of a host that is too small to serve a model, or an empty string."""
    few = vcpus is not None and vcpus < SMALLEST_VCPUS
    little = memory_gib is not None and memory_gib < SMALLEST_MEMORY_GIB
    return "small-host" if few or little else ""
