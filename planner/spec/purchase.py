"""What may be bought, on which terms, and what owned hardware costs."""

from __future__ import annotations

from typing import Annotated, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from planner.spec.base import Count, NonNegative, Positive, Spec
from planner.spec.load import KeyFaultsError
from planner.spec.names import Names, as_list
from planner.spec.offer import Term
from planner.spec.short_forms import ShortForm


class Owned(Spec):
    """Cost of hardware that one owns, per GPU.

    Attributes:
        capex_usd: Purchase price of one GPU with its share of host and network [USD].
        lifetime_years: Years over which it is written off.
        residual_share: Share of the price that is left at the end.
        power_usd_per_kwh: Metered energy price [USD/kWh]; needs `pue`.
        pue: Power usage effectiveness of the hall: total energy / energy of the machines.
        colocation_usd_per_kw_month: Rent by provisioned power [USD/(kW month)].
    """

    capex_usd: Positive
    lifetime_years: Annotated[float, Field(gt=0, le=20)]
    residual_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    power_usd_per_kwh: NonNegative | None = None
    pue: Annotated[float, Field(ge=1, le=4)] | None = None
    colocation_usd_per_kw_month: NonNegative | None = None

    @model_validator(mode="after")
    def _power_is_paid_for(self) -> Self:
        if self.power_usd_per_kwh is None and self.colocation_usd_per_kw_month is None:
            raise ValueError(
                "nothing pays for power; add power_usd_per_kwh with pue, "
                "or colocation_usd_per_kw_month"
            )
        if (self.power_usd_per_kwh is None) != (self.pue is None):
            raise ValueError("power_usd_per_kwh and pue go together; give both or neither")
        return self


class Purchase(Spec):
    """Limits on what the plan may buy.

    Attributes:
        terms: Price terms to choose from.
        providers, regions, accelerators: Only these; empty = all.
        max_gpus: Most GPUs in total; None = no limit.
        budget_usd_per_hour: Most money per hour [USD/h]; None = no limit.
        spare_replicas: Replicas bought beyond what the load needs.
        allow_unvalidated: Picks may rest on predictions without measured evidence.
        allow_flagged_prices: Picks may rest on prices that carry a flag.
        owned: Cost of owned hardware; used with term ``owned``.
    """

    terms: Annotated[
        tuple[Term, ...],
        Field(min_length=1),
        BeforeValidator(as_list),
        ShortForm({"enum": list(get_args(Term))}),
    ] = ("on_demand",)
    providers: Names = ()
    regions: Names = ()
    accelerators: Names = ()
    max_gpus: Count | None = None
    budget_usd_per_hour: Positive | None = None
    spare_replicas: Annotated[int, Field(ge=0, le=1000)] = 0
    allow_unvalidated: bool = False
    allow_flagged_prices: bool = False
    owned: Owned | None = None

    @model_validator(mode="after")
    def _owned_has_its_costs(self) -> Self:
        if "owned" in self.terms and self.owned is None:
            raise KeyFaultsError(
                ("terms", "owned hardware has no costs; add `owned: {capex_usd: ...}`")
            )
        if self.owned is not None and "owned" not in self.terms:
            raise KeyFaultsError(("owned", "not among the terms; add owned to `terms`"))
        return self
