"""Money of hardware that one owns: capital, power or colocation, people; energy and carbon."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.errors import Fault, InputError
from planner.spec.offer import OwnedPower
from planner.spec.purchase import Owned
from planner.units import HOURS_PER_YEAR, MILLION, SECONDS_PER_HOUR

W_PER_KW = 1000.0
MONTHS_PER_YEAR = 12.0
J_PER_KWH = 3.6e6


@dataclass(frozen=True)
class Node:
    """A server of one's own, or any group of GPUs that is bought together.

    Power is paid for by the metered kWh, or as part of colocation rent: one of them.

    Attributes:
        gpus: GPUs in it.
        capex_usd: Purchase price with its share of network and spares [USD].
        lifetime_years: Years over which it is written off.
        residual_share: Share of the price that is left at the end.
        capital_rate: Cost of capital per year, 0.08 = 8 %.
        maintenance_share: Maintenance per year as a share of the price.
        staff_usd_per_year: Its share of people [USD/year].
        average_kw: Mean draw of the machines [kW].
        provisioned_kw: Power that the rack reserves [kW].
        usd_per_kwh, pue: Metered energy price [USD/kWh]; hall energy / machine energy.
        usd_per_kw_month: Colocation rent by provisioned power, power and cooling included.
    """

    gpus: int
    capex_usd: float
    lifetime_years: float
    residual_share: float = 0.0
    capital_rate: float = 0.0
    maintenance_share: float = 0.0
    staff_usd_per_year: float = 0.0
    average_kw: float = 0.0
    provisioned_kw: float = 0.0
    usd_per_kwh: float | None = None
    pue: float | None = None
    usd_per_kw_month: float | None = None


@dataclass(frozen=True)
class OwnedCost:
    """What owning costs, by part [USD/year]."""

    gpus: int
    capital: float
    maintenance: float
    energy: float
    colocation: float
    staff: float

    @property
    def usd_per_year(self) -> float:
        """All parts together."""
        return self.capital + self.maintenance + self.energy + self.colocation + self.staff

    def usd_per_gpu_hour(self, utilization: float = 1.0) -> float:
        """Return the price of a GPU-hour [USD].

        Args:
            utilization: Share of all hours in which the GPU does work, above 0.
        """
        return self.usd_per_year / (HOURS_PER_YEAR * self.gpus * utilization)


def owned_cost(node: Node) -> OwnedCost:
    """Return what a node costs per year.

    Raises:
        InputError: Power is paid for twice, or not at all.

    Source:
        Annuity with a residual: any text on capital budgeting, for example Brealey, Myers,
        Allen, "Principles of Corporate Finance", on equivalent annual cost.
    """
    metered, rented = node.usd_per_kwh is not None, node.usd_per_kw_month is not None
    if metered == rented:
        message = (
            "power is paid for twice: colocation rent by the kW includes it; give one of the two"
            if metered
            else "nothing pays for power; give power_usd_per_kwh with pue, or colocation"
        )
        raise InputError("owned hardware", [Fault("", "colocation_usd_per_kw_month", message)])
    energy = energy_usd_per_year(node.average_kw, node.pue or 1.0, node.usd_per_kwh or 0.0)
    return OwnedCost(
        gpus=node.gpus,
        capital=capital_usd_per_year(
            node.capex_usd, node.residual_share, node.lifetime_years, node.capital_rate
        ),
        maintenance=node.capex_usd * node.maintenance_share,
        energy=energy,
        colocation=colocation_usd_per_year(node.provisioned_kw, node.usd_per_kw_month or 0.0),
        staff=node.staff_usd_per_year,
    )


def gpu_of(owned: Owned, tdp_w: float, power: OwnedPower, *, moe: bool = False) -> Node:
    """Return one owned GPU with its share of the server, from slo.yaml and the chip's limit.

    Args:
        owned: What slo.yaml says; per GPU.
        tdp_w: Power limit of the GPU [W].
        power: How much of it serving draws, and what the server adds.
        moe: Whether the model is a mixture of experts, which draws less.
    """
    return Node(
        gpus=1,
        capex_usd=owned.capex_usd,
        lifetime_years=owned.lifetime_years,
        residual_share=owned.residual_share,
        average_kw=average_w_per_gpu(tdp_w, power, moe=moe) / W_PER_KW,
        provisioned_kw=tdp_w * power.rated_share / W_PER_KW,
        usd_per_kwh=owned.power_usd_per_kwh,
        pue=owned.pue,
        usd_per_kw_month=owned.colocation_usd_per_kw_month,
    )


def average_w_per_gpu(tdp_w: float, power: OwnedPower, *, moe: bool = False) -> float:
    """Return the mean draw of a serving GPU with its share of the server [W].

    >>> power = OwnedPower(
    ...     gpu_share_dense=0.79, gpu_share_moe=0.68, host_w_per_gpu=150.0, rated_share=1.8
    ... )
    >>> round(average_w_per_gpu(700.0, power))
    703
    """
    share = power.gpu_share_moe if moe else power.gpu_share_dense
    return tdp_w * share + power.host_w_per_gpu


def capital_usd_per_year(
    capex_usd: float, residual_share: float, lifetime_years: float, capital_rate: float = 0.0
) -> float:
    """Return the yearly charge that pays for the hardware and leaves its residual [USD/year].

    Args:
        capex_usd: Purchase price [USD].
        residual_share: Share of it that is left at the end.
        lifetime_years: Years, above 0.
        capital_rate: Cost of capital per year; 0 = straight line.

    >>> capital_usd_per_year(350_000, 0.25, 5)
    52500.0
    """
    if capital_rate == 0.0:
        return capex_usd * (1.0 - residual_share) / lifetime_years
    growth = math.pow(1.0 + capital_rate, lifetime_years)
    return capex_usd * (1.0 - residual_share / growth) * capital_rate / (1.0 - 1.0 / growth)


def energy_usd_per_year(average_kw: float, pue: float, usd_per_kwh: float) -> float:
    """Return the energy bill [USD/year] of machines that draw `average_kw` on average."""
    return average_kw * pue * HOURS_PER_YEAR * usd_per_kwh


def colocation_usd_per_year(provisioned_kw: float, usd_per_kw_month: float) -> float:
    """Return the rent [USD/year]; it goes by what the rack reserves, used or not."""
    return provisioned_kw * MONTHS_PER_YEAR * usd_per_kw_month


def energy_kwh_per_mtok(power_w: float, tokens_per_s: float, pue: float = 1.0) -> float:
    """Return the energy of a million tokens [kWh].

    Args:
        power_w: Mean draw of all machines that make them [W].
        tokens_per_s: Tokens per second that they make together, above 0.
        pue: Hall energy / machine energy.

    >>> energy_kwh_per_mtok(3600.0, 1000.0)
    1.0
    """
    return power_w * pue * MILLION / tokens_per_s / J_PER_KWH


def carbon_g_per_mtok(kwh_per_mtok: float, g_per_kwh: float) -> float:
    """Return the carbon of a million tokens [g CO2e], at a grid intensity [g CO2e/kWh]."""
    return kwh_per_mtok * g_per_kwh


def usd_per_mtok_owned(cost: OwnedCost, gpus: float, tokens_per_s: float) -> float:
    """Return the price of a million tokens on owned GPUs, all hours paid for [USD].

    Args:
        cost: Of the hardware.
        gpus: GPUs that serve.
        tokens_per_s: Tokens per second that they make at the mean load, above 0.
    """
    return cost.usd_per_gpu_hour() * gpus * MILLION / (tokens_per_s * SECONDS_PER_HOUR)
