"""What may be bought, on which terms, and what owned hardware costs."""

from __future__ import annotations

from typing import Annotated, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from planner.spec.base import Count, Many, NonNegative, Positive, Spec
from planner.spec.load import KeyFaultsError
from planner.spec.names import Names, Text, as_list
from planner.spec.offer import Term
from planner.spec.short_forms import ShortForm

FOR_ALL = "all"
"""Key of a price that holds for every accelerator: a bare number in the file."""


def _one_for_all(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {FOR_ALL: value}
    return value


class Owned(Spec):
    """Cost of hardware that one owns, per GPU; everything in USD.

    Power is paid for by the metered kWh, or as part of colocation rent: one of them.

    Attributes:
        capex_usd: Purchase price of one GPU with its share of host and network [USD]; a number,
            or one for each accelerator.
        lifetime_years: Years over which it is written off.
        residual_share: Share of the price that is left at the end.
        capital_rate: Cost of capital per year; 0.08 = 8 %.
        maintenance_share: Maintenance per year as a share of the price.
        staff_usd_per_year: Share of a GPU in the people who run it [USD/year].
        power_usd_per_kwh: Metered energy price [USD/kWh]; needs `pue`.
        pue: Power usage effectiveness of the hall: total energy / energy of the machines.
        colocation_usd_per_kw_month: Rent by rated power [USD/(kW month)], power and cooling
            included.
        gpus_per_server: GPUs of a server; None = as the accelerator is usually built.
    """

    capex_usd: Annotated[
        dict[Text, Positive],
        Field(min_length=1),
        BeforeValidator(_one_for_all),
        ShortForm({"type": "number", "exclusiveMinimum": 0}),
    ]
    lifetime_years: Annotated[float, Field(gt=0, le=20)]
    residual_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    capital_rate: Annotated[float, Field(ge=0, lt=1)] = 0.0
    maintenance_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    staff_usd_per_year: NonNegative = 0.0
    power_usd_per_kwh: NonNegative | None = None
    pue: Annotated[float, Field(ge=1, le=4)] | None = None
    colocation_usd_per_kw_month: NonNegative | None = None
    gpus_per_server: Annotated[int, Field(ge=1, le=1024)] | None = None

    @model_validator(mode="after")
    def _power_is_paid_for_once(self) -> Self:
        metered = self.power_usd_per_kwh is not None
        rented = self.colocation_usd_per_kw_month is not None
        if not metered and not rented:
            raise ValueError(
                "nothing pays for power; add power_usd_per_kwh with pue, "
                "or colocation_usd_per_kw_month"
            )
        if metered and rented:
            raise KeyFaultsError(
                (
                    "colocation_usd_per_kw_month",
                    "rent by the kW includes power, which power_usd_per_kwh pays for as well; "
                    "keep one of the two",
                )
            )
        if metered and self.pue is None:
            raise ValueError("power_usd_per_kwh and pue go together; add pue")
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
        max_power_kw: Most rated power of the servers bought, hall aside [kW]; None = no limit.
        owned: Cost of owned hardware; used with term ``owned``, for the ``accelerators`` named.
        carbon_g_per_kwh: Carbon intensity of the power [g CO2e/kWh]; None = not asked for.
    """

    terms: Annotated[
        Many[Term],
        Field(min_length=1),
        BeforeValidator(as_list),
        ShortForm({"enum": list(get_args(Term))}),
    ] = ("on_demand",)
    providers: Names = ()
    regions: Names = ()
    accelerators: Names = ()
    max_gpus: Count | None = None
    budget_usd_per_hour: Positive | None = None
    max_power_kw: Positive | None = None
    spare_replicas: Annotated[int, Field(ge=0, le=1000)] = 0
    allow_unvalidated: bool = False
    allow_flagged_prices: bool = False
    owned: Owned | None = None
    carbon_g_per_kwh: NonNegative | None = None

    @model_validator(mode="after")
    def _owned_has_its_costs(self) -> Self:
        if "owned" in self.terms and self.owned is None:
            raise KeyFaultsError(
                ("terms", "owned hardware has no costs; add `owned: {capex_usd: ...}`")
            )
        if self.owned is not None and "owned" not in self.terms:
            raise KeyFaultsError(("owned", "not among the terms; add owned to `terms`"))
        if self.owned is not None and not self.accelerators:
            raise KeyFaultsError(
                (
                    "accelerators",
                    "owned hardware needs to be named; add `accelerators: [...]` with what "
                    "owned.capex_usd is the price of",
                )
            )
        return self
