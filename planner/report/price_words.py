"""What a price binds to, in words; every report uses the same."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from math import isclose

from planner.report.words import PICK_TITLES, TERM_WORDS, money
from planner.spec.money import Price
from planner.spec.option import Option
from planner.spec.record import PlanRecord

SAME = 1e-5
"""Figures of a record have 6 digits."""


def due_at_once(option: Option) -> str:
    """Return what is paid on the first day; empty = nothing is."""
    lease, due = option.money.price.lease, option.money.due_at_once_usd
    if lease is None or not lease.upfront_share:
        return ""
    return f"{lease.upfront_share:.0%} of the lease" if due is None else money(due)


def bound_for(option: Option) -> str:
    """Return the shortest lease and what it costs in all; empty = none."""
    lease, whole = option.money.price.lease, option.money.bound_usd
    if lease is None or whole is None:
        return ""
    return f"{lease.hours:,.6g} h: {money(whole)} in all"


def instances_sold(option: Option) -> str:
    """Return the fewest and the most instances that the seller allows; empty = any number."""
    lease = option.money.price.lease
    if lease is None:
        return ""
    least, most = lease.minimum_instances, lease.quota_instances
    said = [f"at least {least:,}"] if least > 1 else []
    said += [f"at most {most:,} (quota)"] if most is not None else []
    return ", ".join(said)


def lease(option: Option) -> Iterator[tuple[str, str]]:
    """Yield title and words of what the price binds to."""
    titles = (("Due at once", due_at_once), ("Bound for", bound_for), ("Instances", instances_sold))
    for title, text in titles:
        if said := text(option):
            yield title, said


def foreign(price: Price) -> str:
    """Return the price in the currency of its row and the rate taken; empty = it is in USD."""
    if price.exchange is None:
        return ""
    paid = price.quoted_usd_per_hour / price.exchange.usd
    listed = price.list_price_per_hour
    before = "" if isclose(paid, listed, rel_tol=SAME) else f" (list {listed:,.2f})"
    return f"{price.currency} {paid:,.2f}{before} x {price.exchange.usd:.6g} USD"


def exchange(price: Price) -> str:
    """Return the same with the day and the source of the rate; empty = it is in USD."""
    rate = price.exchange
    return "" if rate is None else f"{foreign(price)}, {rate.date}, {rate.source}"


def over(option: Option, hours: float) -> str:
    """Return the price of so many hours; on spot with its allowance, beside the invoice."""
    paid = money(option.money.usd_per_hour * hours)
    if not option.money.price.interruption_share:
        return paid
    bill = money(option.money.invoiced_usd_per_hour * hours)
    return f"{paid}, spot allowance included; {bill} invoiced"


def expired(record: PlanRecord, today: datetime.date) -> Iterator[str]:
    """Yield the prices of picks that a plan judged as of an earlier day, and that ended since."""
    by_id = {option.id: option for option in record.options}
    ended: dict[int, list[str]] = {}
    for pick, identity in record.picks.items():
        number = by_id[identity].money.price.offer
        last = record.offers[number].valid_to
        if last is not None and last < today:
            ended.setdefault(number, []).append(PICK_TITLES.get(pick, pick))
    for number, picked in ended.items():
        offer = record.offers[number]
        yield (
            f"no longer valid today: the price of {offer.provider} {offer.instance_type},"
            f" {offer.region}, {TERM_WORDS[offer.term]} ended on {offer.valid_to}; it is picked as"
            f" {', '.join(picked)}: get a new quote, or plan with --as-of {today}"
        )
