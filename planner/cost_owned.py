"""Money of hardware that one owns: capital, power or colocation, people; energy and carbon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

from planner.candidates.hardware import RACK_SCALE
from planner.catalog import Catalog
from planner.errors import Fault, InputError
from planner.model.arrays import Floats
from planner.pareto import rounded_number
from planner.spec.accelerator import Accelerator
from planner.spec.architecture import Architecture, MoeFfn
from planner.spec.money import Draw, OwnedParts
from planner.spec.offer import Offer, OwnedPower
from planner.spec.purchase import FOR_ALL, Owned, Purchase
from planner.spec.slo import Slo
from planner.units import HOURS_PER_YEAR, MILLION

W_PER_KW = 1000.0
MONTHS_PER_YEAR = 12.0
J_PER_KWH = 3.6e6
OWN_PLACE = "own"
"""Provider and region of owned hardware."""
OWN_BASIS = "slo.yaml states no date; the day that prices are judged by"
"""How the date of owned hardware's price is known: that of the newest price, or ``--as-of``."""
SAME_PRICE = 2e-5
"""Prices of a record have 6 digits."""


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


@dataclass(frozen=True)
class Use:
    """What a plan makes of hardware.

    Attributes:
        moe: Whether the model is a mixture of experts, which draws less.
        load: Mean rate / rate that the fleet is sized for, at most 1; offline work 1.
    """

    moe: bool = False
    load: float = 1.0


def use_of(slo: Slo, architecture: Architecture) -> Use:
    """Return what a plan makes of hardware."""
    moe = any(isinstance(group.ffn, MoeFfn) for group in architecture.layers)
    return Use(moe, mean_load(slo))


def mean_load(slo: Slo) -> float:
    """Return mean rate / rate that the fleet is sized for, at most 1; offline work 1."""
    rate, mean = slo.traffic.rate_per_s, slo.traffic.average_rate_per_s
    return min(mean / rate, 1.0) if rate and mean else 1.0


def draw_of(accelerator: Accelerator, power: OwnedPower | None, *, moe: bool) -> Draw | None:
    """Return what one GPU draws with its share of the server; None = nobody states it.

    Args:
        accelerator: States the limit of the GPU.
        power: How much of it serving draws, and what the server adds.
        moe: Whether the model is a mixture of experts.

    >>> from planner.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> draw = draw_of(catalog.accelerator("h100-sxm"), catalog.terms.power, moe=False)
    >>> round(draw.busy_w), round(draw.light_w), round(draw.rated_w)
    (703, 581, 1260)
    """
    if accelerator.tdp_w is None or power is None:
        return None
    busy = accelerator.tdp_w * (power.gpu_share_moe if moe else power.gpu_share_dense)
    return Draw(
        light_w=rounded_number(busy * power.light_load_share + power.host_w_per_gpu),
        busy_w=rounded_number(busy + power.host_w_per_gpu),
        rated_w=rounded_number(accelerator.tdp_w * power.rated_share),
    )


def mean_w(draw: Draw, load: float) -> float:
    """Return the mean draw at a mean load [W]: between few requests at a time and the busy hour.

    >>> mean_w(Draw(light_w=500.0, busy_w=700.0, rated_w=1260.0), 0.5)
    600.0
    """
    return draw.light_w + (draw.busy_w - draw.light_w) * load


def gpu_of(owned: Owned, capex_usd: float, draw: Draw, load: float = 1.0) -> Node:
    """Return one owned GPU with its share of the server.

    Args:
        owned: What slo.yaml says; per GPU.
        capex_usd: Purchase price [USD].
        draw: Its power.
        load: Mean rate / rate sized for.
    """
    return Node(
        gpus=1,
        capex_usd=capex_usd,
        lifetime_years=owned.lifetime_years,
        residual_share=owned.residual_share,
        capital_rate=owned.capital_rate,
        maintenance_share=owned.maintenance_share,
        staff_usd_per_year=owned.staff_usd_per_year,
        average_kw=mean_w(draw, load) / W_PER_KW,
        provisioned_kw=draw.rated_w / W_PER_KW,
        usd_per_kwh=owned.power_usd_per_kwh,
        pue=owned.pue,
        usd_per_kw_month=owned.colocation_usd_per_kw_month,
    )


def owned_gpu(catalog: Catalog, accelerator: Accelerator, owned: Owned, use: Use) -> OwnedCost:
    """Return what a GPU of one's own costs in a plan.

    Raises:
        InputError: Nobody states what it draws.
    """
    draw = draw_of(accelerator, catalog.terms.power, moe=use.moe)
    if draw is None:
        message = f"the catalog does not know what {accelerator.id} draws (tdp_w, terms.yaml power)"
        raise InputError("slo.yaml", [Fault("", "purchase.accelerators", message)])
    prices = {catalog.accelerator(k).id: v for k, v in owned.capex_usd.items() if k != FOR_ALL}
    price = prices.get(accelerator.id, owned.capex_usd.get(FOR_ALL))
    if price is None:
        message = f"no price for {accelerator.id}; add it, or take it out of accelerators"
        raise InputError("slo.yaml", [Fault("", "purchase.owned.capex_usd", message)])
    return owned_cost(gpu_of(owned, price, draw, use.load))


def owned_offers(catalog: Catalog, purchase: Purchase, use: Use, as_of: str) -> tuple[Offer, ...]:
    """Return what slo.yaml says of owned hardware as price rows, one an accelerator.

    Args:
        catalog: Accelerators, and what they draw.
        purchase: Accelerators and their costs; empty unless term ``owned`` is among the terms.
        use: What the plan makes of them.
        as_of: Day of the plan, YYYY-MM-DD; what slo.yaml says is as old.

    Raises:
        InputError: A price or a power figure is missing, or a price is of something else.
    """
    owned = purchase.owned
    if owned is None:
        return ()
    chips = {chip.id: chip for chip in map(catalog.accelerator, purchase.accelerators)}
    strange = [
        k for k in owned.capex_usd if k != FOR_ALL and catalog.accelerator(k).id not in chips
    ]
    if strange:
        message = f"{strange[0]} is not among purchase.accelerators; add it there, or remove it"
        raise InputError("slo.yaml", [Fault("", "purchase.owned.capex_usd", message)])
    return tuple(
        _offer(chip, usual_gpus(catalog, chip), owned_gpu(catalog, chip, owned, use), owned, as_of)
        for chip in chips.values()
    )


def _offer(chip: Accelerator, usual: int, cost: OwnedCost, owned: Owned, as_of: str) -> Offer:
    gpus = owned.gpus_per_server or usual
    return Offer(
        provider=OWN_PLACE,
        instance_type=f"{gpus} x {chip.id}",
        accelerator=chip.id,
        gpus=gpus,
        region=OWN_PLACE,
        term="owned",
        list_price_per_hour=rounded_number(cost.usd_per_gpu_hour() * gpus),
        seen=as_of,
        seen_basis=OWN_BASIS,
        source="slo.yaml, purchase.owned",
    )


def usual_gpus(catalog: Catalog, chip: Accelerator) -> int:
    """Return the GPUs of a usual server: those that its link joins, else the largest for sale.

    A link that joins racks says nothing of a server.
    """
    domain = chip.link.domain_gpus if chip.link else 1
    if 1 < domain <= RACK_SCALE:
        return domain
    return max((o.gpus for o in catalog.offers if o.accelerator == chip.id), default=1)


def owned_parts(cost: OwnedCost, gpus: int, usd_per_hour: float) -> OwnedParts | None:
    """Return the price of owned GPUs by part; None = the price is not the cost.

    Args:
        cost: Of one GPU.
        gpus: GPUs bought.
        usd_per_hour: Their price, which a price file may have replaced [USD/h].
    """
    share = gpus / HOURS_PER_YEAR
    if not math.isclose(cost.usd_per_year * share, usd_per_hour, rel_tol=SAME_PRICE):
        return None
    return OwnedParts(
        capital=rounded_number(cost.capital * share),
        maintenance=rounded_number(cost.maintenance * share),
        energy=rounded_number(cost.energy * share),
        space=rounded_number(cost.colocation * share),
        staff=rounded_number(cost.staff * share),
    )


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


Number = TypeVar("Number", float, Floats)


def energy_kwh_per_mtok(power_w: Number, tokens_per_s: Number, pue: float = 1.0) -> Number:
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
