"""What differs between two records: inputs, prices, front, picks, and why a pick moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.pareto import rounded
from planner.spec.offer import Offer
from planner.spec.option import Option
from planner.spec.record import PlanRecord

Key = tuple[str, str, str, str]
DIGITS = 12
"""Hex digits of a digest that are told."""


@dataclass(frozen=True)
class InputChange:
    """An input that differs: its key with dots, and both values (None = not there)."""

    key: str
    before: Any
    after: Any


@dataclass(frozen=True)
class PriceChange:
    """A price row that differs.

    Attributes:
        key: Provider, instance type, region, term.
        before, after: The row; None = new, or no longer there.
    """

    key: Key
    before: Offer | None
    after: Offer | None

    @property
    def change(self) -> float | None:
        """Share by which the price per instance-hour rose; None = new, gone, or other currency."""
        if self.before is None or self.after is None:
            return None
        if self.before.currency != self.after.currency:
            return None
        return self.after.price_per_hour / self.before.price_per_hour - 1.0


@dataclass(frozen=True)
class PickChange:
    """A pick that moved.

    Attributes:
        pick: Its name.
        before, after: Options; None = there was none, or is none any more.
        why: In words.
        staying_usd: What the old choice would cost now beyond the new one, an hour [USD/h], of
            offline work the job [USD]; None = it cannot be bought as it was, or there is no new.
        per_job: Whether that is per job.
    """

    pick: str
    before: Option | None
    after: Option | None
    why: str
    staying_usd: float | None
    per_job: bool


@dataclass(frozen=True)
class Changes:
    """What differs.

    Attributes:
        inputs: Anything asked that differs, prices and dates aside; the catalog, its prices
            aside, by the first digits of its digest.
        prices: Price rows, by key.
        entered, left: Options of the new front that the old did not have, and the reverse.
        picks: Picks that rest on another deployment or another price row.
    """

    inputs: tuple[InputChange, ...]
    prices: tuple[PriceChange, ...]
    entered: tuple[Option, ...]
    left: tuple[Option, ...]
    picks: tuple[PickChange, ...]

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return any((self.inputs, self.prices, self.entered, self.left, self.picks))


def changes(old: PlanRecord, new: PlanRecord) -> Changes:
    """Return what differs between two records."""
    before = {option.id: option for option in old.options}
    after = {option.id: option for option in new.options}
    asked = tuple(_inputs(old, new))
    prices = tuple(_prices(old.offers, new.offers))
    return Changes(
        inputs=asked,
        prices=prices,
        entered=tuple(option for option in new.options if option.id not in before),
        left=tuple(option for option in old.options if option.id not in after),
        picks=tuple(_picks(old, new, prices, asked)),
    )


def _inputs(old: PlanRecord, new: PlanRecord) -> Iterator[InputChange]:
    parts = ("slo", "space", "seed", "calibration")
    one, two = (
        dict(_flat({part: getattr(record.inputs, part) for part in parts})) for record in (old, new)
    )
    for key in dict.fromkeys((*one, *two)):
        if one.get(key) != two.get(key):
            yield InputChange(key, one.get(key), two.get(key))
    before, after = (record.inputs.basis_digest for record in (old, new))
    if before and after and before != after:
        yield InputChange("catalog", before[:DIGITS], after[:DIGITS])


NAMES = ("name", "id", "method")
"""Keys that an entry of a list goes by, the first that it has; else its place."""


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value with its dotted key; what is empty counts as not there."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _flat(part, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple) and any(isinstance(part, Mapping) for part in value):
        yield from _flat(_by_name(value), key)
    elif isinstance(value, list | tuple):
        yield key, list(value) or None
    else:
        yield key, value


def _by_name(entries: Sequence[Any]) -> dict[str, Any]:
    """Return entries by the name that each goes by; by place where not all have their own."""
    keys = [
        next((key for key in NAMES if isinstance(entry, Mapping) and entry.get(key)), "")
        for entry in entries
    ]
    own = [str(entry[key]) if key else "" for key, entry in zip(keys, entries, strict=True)]
    if not all(own) or len(set(own)) < len(own):
        return {str(number): entry for number, entry in enumerate(entries, start=1)}
    return {name: _without(entry, key) for name, key, entry in zip(own, keys, entries, strict=True)}


def _without(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return an entry without its name, unless it says nothing else."""
    rest = {name: part for name, part in entry.items() if name != key}
    return rest if any(value is not None for _, value in _flat(rest)) else entry


def _prices(old: tuple[Offer, ...], new: tuple[Offer, ...]) -> Iterator[PriceChange]:
    before = {offer.key: offer for offer in old}
    after = {offer.key: offer for offer in new}
    for key in sorted({*before, *after}):
        one, two = before.get(key), after.get(key)
        if one is None or two is None or _paid(one) != _paid(two):
            yield PriceChange(key, one, two)


def _paid(offer: Offer) -> tuple[object, ...]:
    """Return what makes a price row another one to a buyer; when it was seen does not."""
    lease = (offer.upfront_share, offer.minimum_hours, offer.minimum_instances)
    days = (offer.valid_from, offer.valid_to)
    return (offer.price_per_hour, offer.currency, offer.interruption_share, offer.flag, lease, days)


def _picks(
    old: PlanRecord,
    new: PlanRecord,
    prices: tuple[PriceChange, ...],
    asked: tuple[InputChange, ...],
) -> Iterator[PickChange]:
    before = {option.id: option for option in old.options}
    after = {option.id: option for option in new.options}
    for pick in dict.fromkeys((*old.picks, *new.picks)):
        one, two = before.get(old.picks.get(pick, "")), after.get(new.picks.get(pick, ""))
        if _bought(one) == _bought(two):
            continue
        why, extra = _why(one, two, prices, asked, new), _extra(old, new, one, two)
        per_job = two is not None and two.money.usd_per_job is not None
        yield PickChange(pick, one, two, why, extra, per_job)


def _bought(option: Option | None) -> tuple[object, ...]:
    """Return what a purchase order would say."""
    if option is None:
        return ()
    price = option.money.price
    key = (price.provider, price.instance_type, price.region, price.term)
    return (option.id, option.instances, key)


def _key(option: Option) -> Key:
    price = option.money.price
    return (price.provider, price.instance_type, price.region, price.term)


def _extra(
    old: PlanRecord, new: PlanRecord, one: Option | None, two: Option | None
) -> float | None:
    """Return what the old choice would cost beyond the new one, per job if that is what is paid."""
    staying = _staying(old, new, one)
    if one is None or two is None or staying is None:
        return None
    if two.money.usd_per_job is None:
        return float(rounded(staying - two.money.usd_per_hour))
    if one.money.usd_per_job is None:
        return None
    # The hours of a run stay as they were; what an hour costs does not.
    job = one.money.usd_per_job * staying / one.money.usd_per_hour
    return float(rounded(job - two.money.usd_per_job))


def _staying(old: PlanRecord, new: PlanRecord, option: Option | None) -> float | None:
    """Return what an option costs at the new price of its own row [USD/h]."""
    if option is None:
        return None
    before = next(offer for offer in old.offers if offer.key == _key(option))
    after = {offer.key: offer for offer in new.offers}.get(_key(option))
    if after is None or after.currency != before.currency:
        return None
    bought = max(option.instances, after.minimum_instances)
    price = option.money.price.usd_per_instance_hour
    return bought * price * after.price_per_hour / before.price_per_hour


def _why(
    one: Option | None,
    two: Option | None,
    prices: tuple[PriceChange, ...],
    asked: tuple[InputChange, ...],
    new: PlanRecord,
) -> str:
    by_key = {change.key: change for change in prices}
    said = []
    if one is None:
        said.append("before, nothing met every target")
    elif _key(one) in by_key:
        said.append(f"its {_moved(by_key[_key(one)])}")
    if two is None:
        said.append("now nothing meets every target")
    elif _key(two) in by_key and (one is None or _key(two) != _key(one)):
        said.append(f"the new one's {_moved(by_key[_key(two)])}")
    if not said and asked:
        said.append(f"{asked[0].key} changed" + (f", and {len(asked) - 1} more" * (len(asked) > 1)))
    if not said and one is not None and one.id not in {option.id for option in new.options}:
        said.append("it is no longer on the front")
    return "; ".join(said) or "another option is now better by the rule of this pick"


def _moved(change: PriceChange) -> str:
    """Return what became of a price row."""
    if change.after is None:
        return "price row is gone"
    if change.before is None:
        return "price row is new"
    if change.after.flag != change.before.flag:
        return f"price row is now flagged {change.after.flag or 'clean'}"
    if change.change:
        verb = "rose" if change.change > 0 else "fell"
        return f"price {verb} by {abs(change.change):.1%}"
    return "price row has other terms"
