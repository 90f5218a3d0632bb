"""What an option costs and draws, and what those figures rest on."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.pareto import rounded_number
from planner.spec.base import Count, Name, NonNegative, Positive, Share, Spec
from planner.spec.offer import ExchangeRate, Flag, Term

Watts = Annotated[float, Field(gt=0, le=1e6)]


class Draw(Spec):
    """Power of one GPU with its share of the server, for one model [W].

    Attributes:
        light_w, busy_w: Mean draw with few requests at a time, and at the rate sized for.
        rated_w: What breakers and racks are sized by.
    """

    light_w: Watts
    busy_w: Watts
    rated_w: Watts


class Lease(Spec):
    """What a price row binds a buyer to; only rows that state such terms have one.

    Attributes:
        hours: Shortest lease [h]: what the row states, else the length of a reserved term; 0 =
            none.
        upfront_share: Share of that lease that is paid at its start.
        minimum_instances: Fewest instances that are sold.
        quota_instances: Most instances that the buyer may have; None = not stated.
    """

    hours: NonNegative
    upfront_share: Share
    minimum_instances: Count
    quota_instances: Count | None


class Price(Spec):
    """The price row that an amount rests on.

    Attributes:
        offer: Row number in ``offers``.
        provider, instance_type, region, term: Key of the row.
        usd_per_instance_hour: Price used [USD per instance-hour]; of spot capacity per hour that
            does its work.
        row_usd_per_hour: Price of the row [USD per instance-hour], spot or not; None in plans of
            older versions.
        interruption_share: Spot: share paid for that is taken to do no work.
        list_price_per_hour, contracted_price_per_hour, currency: As the row states them.
        exchange: What a unit of that currency was taken to be worth; None = USD.
        seen, seen_basis, source: When and where the price was seen.
        flag: Why it needs asking; empty = clean.
        lease: What it binds the buyer to; None = to nothing.
    """

    offer: Annotated[int, Field(ge=0)]
    provider: Name
    instance_type: Name
    region: Name
    term: Term
    usd_per_instance_hour: Positive
    row_usd_per_hour: Positive | None = None
    interruption_share: Share = 0.0
    list_price_per_hour: Positive
    contracted_price_per_hour: Positive | None
    currency: Name
    exchange: ExchangeRate | None = None
    seen: Name
    seen_basis: Name
    source: Name
    flag: Flag
    lease: Lease | None = None

    @property
    def quoted_usd_per_hour(self) -> float:
        """Price of the row, whether the hour does its work or not [USD per instance-hour]."""
        if self.row_usd_per_hour is not None:
            return self.row_usd_per_hour
        return rounded_number(self.usd_per_instance_hour * (1.0 - self.interruption_share))


class Autoscaled(Spec):
    """A fleet that follows the load profile hour by hour.

    Attributes:
        replicas_by_hour: Replicas that hold the targets in each hour of the day, spares aside.
        usd_per_hour: Mean price over the day, boot times paid for [USD/h].
        usd_per_mtok_output: Per million output tokens at the mean rate.
    """

    replicas_by_hour: Annotated[tuple[Count, ...], Field(min_length=24, max_length=24)]
    usd_per_hour: Positive
    usd_per_mtok_output: Positive


class OwnedParts(Spec):
    """What owned hardware costs, by part [USD/h]; the parts add up to the price.

    Attributes:
        capital: Purchase price less residual over the lifetime, and cost of capital.
        maintenance: Share of the purchase price.
        energy: Metered power at the mean load, PUE included.
        space: Colocation rent by rated power, power included.
        staff: People who run it.
    """

    capital: NonNegative
    maintenance: NonNegative
    energy: NonNegative
    space: NonNegative
    staff: NonNegative


class Money(Spec):
    """What an option costs, and the price row it rests on.

    Attributes:
        usd_per_hour: Whole instances x price [USD/h]; of spot capacity per hour that does its
            work.
        usd_per_mtok_output: Per million output tokens at the mean rate.
        usd_per_mtok_total: Per million tokens, prompt and output, at the mean rate.
        usd_per_mtok_full: Per million output tokens if every replica ran at its capacity.
        mean_utilization: Mean output / capacity; usd_per_mtok_output = usd_per_mtok_full / this.
        usd_per_job: Offline: the whole run [USD]; None otherwise.
        price: The row.
        autoscaled: The same fleet if it follows the load profile; None = not asked, or the price
            does not stop with the instance.
        owned: The price by part; None = not owned, or a price file states another price.
    """

    usd_per_hour: Positive
    usd_per_mtok_output: Positive
    usd_per_mtok_total: Positive
    usd_per_mtok_full: Positive
    mean_utilization: Positive
    usd_per_job: Positive | None
    price: Price
    autoscaled: Autoscaled | None = None
    owned: OwnedParts | None = None

    @property
    def invoiced_usd_per_hour(self) -> float:
        """What an hour costs on the invoice, whether it does its work or not [USD/h]."""
        return rounded_number(self.usd_per_hour * (1.0 - self.price.interruption_share))

    @property
    def bound_usd(self) -> float | None:
        """What the shortest lease costs in all [USD]; None = none is stated."""
        lease = self.price.lease
        return self.invoiced_usd_per_hour * lease.hours if lease and lease.hours else None

    @property
    def due_at_once_usd(self) -> float | None:
        """What is paid on the first day [USD]; None = nothing, or a share of no stated lease."""
        whole, lease = self.bound_usd, self.price.lease
        return whole * lease.upfront_share if whole and lease and lease.upfront_share else None


class Energy(Spec):
    """Power and energy of an option.

    Attributes:
        mean_kw: Mean draw of the servers at the mean rate [kW].
        rated_kw: Rated power of the servers [kW].
        pue: Energy of the hall / energy of the machines, where slo.yaml states it; else 1.
        kwh_per_mtok_output: Energy per million output tokens at the mean rate, PUE included.
        g_co2e_per_mtok_output: Its carbon [g CO2e]; None = slo.yaml states no intensity.
    """

    mean_kw: Positive
    rated_kw: Positive
    pue: Positive
    kwh_per_mtok_output: Positive
    g_co2e_per_mtok_output: NonNegative | None = None
