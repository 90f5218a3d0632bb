"""Something that can be bought: one row of ``offers.csv`` or of a price overlay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.spec.accelerator import LinkKind
from planner.spec.base import Count, Day, Name, NonNegative, Positive, Seen, Share, Source, Spec
from planner.units import HOURS_PER_YEAR

Term = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "prepaid", "owned"]
Flag = Literal["", "suspect", "stale", "estimate", "partial", "small-host", "fractional"]

TERM_HOURS: Mapping[Term, float] = {
    "reserved_1y": HOURS_PER_YEAR,
    "reserved_3y": 3 * HOURS_PER_YEAR,
}
"""How long a reserved term binds [h]."""


class Offer(Spec):
    """One price: (provider, instance type, region, term) is its key.

    Term ``prepaid`` is a block of hours or weeks paid at the start (AWS Capacity Blocks).

    Attributes:
        accelerator, gpus: What an instance holds.
        link: Link class where the instance differs from the accelerator's own; empty = same.
        internode_gb_per_s: Network per GPU between instances [1e9 B/s].
        list_price_per_hour: Before any discount, per instance-hour, in ``currency``.
        discount_share: Negotiated share off the list price; not beside a contracted price.
        contracted_price_per_hour: As agreed, per instance-hour.
        upfront_share: Share paid at the start of a reserved term.
        interruption_share: Spot: share of what is paid for that interruptions make useless;
            None = the default of ``terms.yaml``.
        minimum_hours, minimum_instances: Smallest lease.
        quota_instances: Most instances that the buyer may have; None = not stated.
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
    discount_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    contracted_price_per_hour: Positive | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    upfront_share: Share = 0.0
    interruption_share: Annotated[float, Field(ge=0, lt=1)] | None = None
    minimum_hours: NonNegative = 0.0
    minimum_instances: Count = 1
    quota_instances: Count | None = None
    valid_from: Day | None = None
    valid_to: Day | None = None
    seen: Seen
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
        """Contracted price, else list less discount [currency per instance-hour]."""
        discounted = self.list_price_per_hour * (1.0 - self.discount_share)
        return self.contracted_price_per_hour or discounted

    @property
    def lease_hours(self) -> float:
        """Hours that are paid for whatever happens: as stated, else those of a reserved term."""
        return self.minimum_hours or TERM_HOURS.get(self.term, 0.0)

    def effective_price_per_hour(self, interruption_share: float) -> float:
        """Return the price of an instance-hour that does its work [currency].

        Args:
            interruption_share: Of spot capacity, where the row states none of its own.
        """
        return self.price_per_hour / (1.0 - self.lost_share(interruption_share))

    def lost_share(self, interruption_share: float) -> float:
        """Return the share paid for that does no work: 0 unless capacity is spot."""
        if self.term != "spot":
            return 0.0
        own = self.interruption_share
        return interruption_share if own is None else own

    @model_validator(mode="after")
    def _dates_in_order(self) -> Self:
        if self.valid_from and self.valid_to and self.valid_to < self.valid_from:
            raise ValueError("valid_to is before valid_from; swap or mend them")
        return self

    @model_validator(mode="after")
    def _one_way_to_say_the_discount(self) -> Self:
        if self.discount_share and self.contracted_price_per_hour is not None:
            raise ValueError(
                "discount_share and contracted_price_per_hour say the same; give one of them"
            )
        return self

    @model_validator(mode="after")
    def _only_spot_is_interrupted(self) -> Self:
        if self.interruption_share is not None and self.term != "spot":
            raise ValueError("interruption_share is for term spot; leave it empty")
        return self


class ExchangeRate(Spec):
    """What one unit of a currency is worth [USD], when, and who says so."""

    usd: Positive
    date: Day
    source: Name


class Currencies(Spec):
    """``currencies.yaml``: rates by ISO 4217 code; USD is always known."""

    rates: dict[Annotated[str, Field(pattern=r"^[A-Z]{3}$")], ExchangeRate] = Field(
        default_factory=dict
    )


class OwnedPower(Spec):
    """What hardware of one's own draws, where the buyer has no measurement.

    Attributes:
        gpu_share_dense, gpu_share_moe: Mean power of a GPU that serves / its limit.
        light_load_share: Power of a GPU that serves few requests at a time / that serves many.
        host_w_per_gpu: Rest of the server, per GPU [W].
        rated_share: Rated power of a server / the limits of its GPUs; what racks are sized by.
    """

    gpu_share_dense: Annotated[float, Field(gt=0, le=1)]
    gpu_share_moe: Annotated[float, Field(gt=0, le=1)]
    light_load_share: Annotated[float, Field(gt=0, le=1)]
    host_w_per_gpu: NonNegative
    rated_share: Annotated[float, Field(ge=1)]


class Terms(Spec):
    """``terms.yaml``: what price terms mean beyond the price.

    Attributes:
        interruption_share: Of spot capacity, the share that is paid for and does no work.
        power: Of owned hardware; None = a buyer must state it.
        sources: Dated source of every number.
    """

    interruption_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    power: OwnedPower | None = None
    sources: tuple[Source, ...] = ()

    @model_validator(mode="after")
    def _every_number_has_a_source(self) -> Self:
        named = {key for source in self.sources for key in source.keys}
        numbers = ["interruption_share"] if self.interruption_share else []
        if self.power is not None:
            numbers += [f"power.{name}" for name in OwnedPower.model_fields]
        missing = [name for name in numbers if name not in named]
        if missing:
            raise ValueError(
                f"no source names {', '.join(missing)}; add it to `for` of an entry under `sources`"
            )
        return self
