"""Something that can be bought: one row of ``offers.csv`` or of a price overlay."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.spec.accelerator import LinkKind
from planner.spec.base import Count, Name, NonNegative, Positive, Share, Spec

Term = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "prepaid", "owned"]
Flag = Literal["", "suspect", "stale", "estimate", "partial", "small-host", "fractional"]


class Offer(Spec):
    """One price: (provider, instance type, region, term) is its key.

    Term ``prepaid`` is a block of hours or weeks paid at the start (AWS Capacity Blocks).

    Attributes:
        accelerator, gpus: What an instance holds.
        link: Link class where the instance differs from the accelerator's own; empty = same.
        internode_gb_per_s: Network per GPU between instances [1e9 B/s].
        list_price_per_hour, contracted_price_per_hour: Per instance-hour, in ``currency``.
        upfront_share: Share paid at the start of a reserved term.
        minimum_hours, minimum_instances: Smallest lease.
        valid_from, valid_to: Validity of the price, where stated.
        seen: When the price was seen: YYYY, YYYY-MM or YYYY-MM-DD.
        seen_basis: How that date is known.
        flag: Why a row must not be used without asking; empty = clean. A ``fractional`` row
            sells part of a GPU, so that its ``gpus`` of 1 is not a whole one.
        note: What the flag and a reader need to know.
    """

    provider: Name
    instance_type: Name
    accelerator: Name
    gpus: Count
    link: LinkKind | Literal[""] = ""
    internode_gb_per_s: Positive | None = None
    vcpus: NonNegative | None = None
    memory_gib: NonNegative | None = None
    region: Name
    term: Term
    list_price_per_hour: Positive
    contracted_price_per_hour: Positive | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    upfront_share: Share = 0.0
    minimum_hours: NonNegative = 0.0
    minimum_instances: Count = 1
    valid_from: datetime.date | None = None
    valid_to: datetime.date | None = None
    seen: Annotated[str, Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")]
    seen_basis: Name
    source: Name
    flag: Flag = ""
    note: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identity of the row, also in overlays."""
        return (self.provider, self.instance_type, self.region, self.term)

    @property
    def price_per_hour(self) -> float:
        """Contracted price if there is one, else list [currency per instance-hour]."""
        return self.contracted_price_per_hour or self.list_price_per_hour

    @model_validator(mode="after")
    def _dates_in_order(self) -> Self:
        if self.valid_from and self.valid_to and self.valid_to < self.valid_from:
            raise ValueError("valid_to is before valid_from; swap or mend them")
        return self


class ExchangeRate(Spec):
    """What one unit of a currency is worth [USD], when, and who says so."""

    usd: Positive
    date: datetime.date
    source: Name


class Currencies(Spec):
    """``currencies.yaml``: rates by ISO 4217 code; USD is always known."""

    rates: dict[Annotated[str, Field(pattern=r"^[A-Z]{3}$")], ExchangeRate] = Field(
        default_factory=dict
    )
