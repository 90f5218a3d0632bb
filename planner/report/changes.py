"""What changed between two plans, as text."""

from __future__ import annotations

from collections.abc import Iterator

from planner.report import words
from planner.select.changes import Changes, InputChange, PickChange, PriceChange
from planner.spec.offer import Offer
from planner.spec.option import Option

LISTED = 20
"""Lines of one kind at most; the rest is counted."""


def render(changes: Changes) -> str:
    """Return what changed as text, a change a line; one line where nothing did."""
    return "\n".join(_lines(changes)) + "\n"


def _lines(changes: Changes) -> Iterator[str]:
    if not changes:
        yield "Nothing changed."
        return
    for change in changes.picks:
        yield from _pick(change)
    if not changes.picks:
        yield "No pick changed."
    yield from _some("Inputs", [_input(change) for change in changes.inputs])
    yield from _some("Prices", [_price(change) for change in changes.prices])
    yield from _some("New on the front", [_option(option) for option in changes.entered])
    yield from _some("No longer on the front", [_option(option) for option in changes.left])


def _some(title: str, lines: list[str]) -> Iterator[str]:
    if not lines:
        return
    yield ""
    yield f"{title} ({len(lines)})"
    yield from (f"  {line}" for line in lines[:LISTED])
    if len(lines) > LISTED:
        yield f"  and {len(lines) - LISTED} more"


def _input(change: InputChange) -> str:
    return f"{change.key}: {_value(change.before)} -> {_value(change.after)}"


def _value(value: object) -> str:
    """Return an input as slo.yaml would state it; - = it is not there."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(_value(part) for part in value)
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _pick(change: PickChange) -> Iterator[str]:
    title = words.PICK_TITLES.get(change.pick, change.pick)
    yield f"{title}: {change.why}"
    yield f"  was  {_bought(change.before)}"
    yield f"  now  {_bought(change.after)}"
    if change.staying_usd is not None:
        extra, per = change.staying_usd, " per job" if change.per_job else "/h"
        sign = "more" if extra >= 0 else "less"
        yield f"  staying with the old one costs {words.money(abs(extra))}{per} {sign}"


def _bought(option: Option | None) -> str:
    if option is None:
        return "nothing"
    money = option.money
    job = "" if money.usd_per_job is None else f", {words.money(money.usd_per_job)} per job"
    per_hour = words.money(money.usd_per_hour)
    return f"{_option(option)}, {words.instance(option)}, {per_hour}/h{job}"


def _option(option: Option) -> str:
    return (
        f"{option.id}  {words.hardware(option)}, {words.engine(option)},"
        f" {option.weights}/{option.kv}, {words.parallelism(option)}:"
        f" {words.money(option.money.usd_per_mtok_output)} per Mtok"
    )


def _price(change: PriceChange) -> str:
    provider, instance_type, region, term = change.key
    row = f"{provider} {instance_type}, {region}, {words.TERM_WORDS.get(term, term)}"
    if change.before is None:
        return f"{row}: new, {_amount(change.after)}"
    if change.after is None:
        return f"{row}: gone, was {_amount(change.before)}"
    share = f" ({change.change:+.1%})" if change.change else ""
    return f"{row}: {_amount(change.before)} -> {_amount(change.after)}{share}"


def _amount(offer: Offer | None) -> str:
    if offer is None:
        return "-"
    flag = f", {offer.flag}" if offer.flag else ""
    return f"{offer.price_per_hour:,.4g} {offer.currency}/h{flag}"
