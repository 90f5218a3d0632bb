"""Owned hardware: hand-computed years, the usual double count, and laws."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import load_catalog
from planner.cost_owned import (
    Node,
    Use,
    capital_usd_per_year,
    carbon_g_per_mtok,
    draw_of,
    energy_kwh_per_mtok,
    mean_w,
    owned_cost,
    owned_gpu,
    owned_offers,
    owned_parts,
)
from planner.errors import InputError
from planner.spec.money import Draw
from planner.spec.purchase import Owned, Purchase

# An 8-GPU server of 350,000 USD, five years, 25 % residual, 10.2 kW of colocation at 184 USD.
SERVER = Node(
    gpus=8,
    capex_usd=350_000.0,
    lifetime_years=5.0,
    residual_share=0.25,
    provisioned_kw=10.2,
    usd_per_kw_month=184.0,
)


def test_a_server_in_colocation_costs_75_000_usd_a_year_by_hand():
    # 350,000 x 0.75 / 5 = 52,500; 10.2 x 12 x 184 = 22,521.6.
    cost = owned_cost(SERVER)
    assert cost.capital == pytest.approx(52_500.0)
    assert cost.colocation == pytest.approx(22_521.6)
    assert cost.usd_per_year == pytest.approx(75_021.6)
    assert round(cost.usd_per_gpu_hour(), 2) == 1.07
    assert round(cost.usd_per_gpu_hour(utilization=0.5), 2) == 2.14


def test_a_metered_server_pays_for_what_it_draws_times_pue():
    # 8 kW x 1.2 x 8760 h x 0.10 USD = 8,409.6 USD; rent is not paid.
    node = replace(SERVER, usd_per_kw_month=None, usd_per_kwh=0.10, pue=1.2, average_kw=8.0)
    cost = owned_cost(node)
    assert cost.energy == pytest.approx(8_409.6)
    assert cost.colocation == 0.0


def test_maintenance_and_staff_are_added():
    node = replace(SERVER, maintenance_share=0.05, staff_usd_per_year=12_000.0)
    assert owned_cost(node).usd_per_year == pytest.approx(75_021.6 + 17_500.0 + 12_000.0)


def test_power_paid_twice_or_not_at_all_is_refused():
    both = replace(SERVER, usd_per_kwh=0.1, pue=1.2, average_kw=8.0)
    with pytest.raises(InputError, match="paid for twice"):
        owned_cost(both)
    with pytest.raises(InputError, match="nothing pays for power"):
        owned_cost(replace(SERVER, usd_per_kw_month=None))


@pytest.mark.parametrize(
    ("rate", "years", "residual", "expected"),
    [
        (0.10, 1.0, 0.0, 110.0),
        (0.10, 1.0, 1.0, 10.0),
        (0.10, 2.0, 0.0, 57.619),
        (0.10, 2.0, 0.21, 47.619),
    ],
    ids=[
        "one year: price and interest",
        "nothing lost: the interest alone",
        "annuity 100 x 0.1 / (1 - 1.1^-2)",
        "less 21 left after two years: 21 x 0.1 / (1.1^2 - 1) = 10",
    ],
)
def test_cost_of_capital_by_hand(rate, years, residual, expected):
    got = capital_usd_per_year(100.0, residual, years, rate)
    assert got == pytest.approx(expected, abs=1e-3)


def test_energy_and_carbon_of_a_million_tokens_by_hand():
    # 5,600 W at 2,000 tokens/s: 500 s, 2.8 MJ, 0.7778 kWh; PUE 1.2: 0.9333; at 400 g: 373.3 g.
    kwh = energy_kwh_per_mtok(5600.0, 2000.0, pue=1.2)
    assert kwh == pytest.approx(0.93333, abs=1e-5)
    assert carbon_g_per_mtok(kwh, 400.0) == pytest.approx(373.33, abs=0.01)


CATALOG = load_catalog()
H100 = CATALOG.accelerators["h100-sxm"]


def test_the_shipped_power_figures_give_the_draw_of_a_gpu():
    # H100 700 W: dense 0.79 x 700 + 150 = 703 W, with few requests 0.78 x 553 + 150 = 581.34 W;
    # MoE 0.68 x 700 + 150 = 626 W; rated 1.8 x 700 = 1,260 W.
    dense, moe = (draw_of(H100, CATALOG.terms.power, moe=moe) for moe in (False, True))
    assert dense is not None
    assert moe is not None
    assert (dense.busy_w, dense.light_w, dense.rated_w) == pytest.approx((703.0, 581.34, 1260.0))
    assert moe.busy_w == pytest.approx(626.0)


def test_what_nobody_states_is_not_known():
    assert draw_of(H100, None, moe=False) is None
    assert draw_of(CATALOG.accelerators["tpu-v6e"], CATALOG.terms.power, moe=False) is None


def test_the_draw_follows_the_mean_load():
    draw = Draw(light_w=500.0, busy_w=700.0, rated_w=1260.0)
    assert [mean_w(draw, load) for load in (0.0, 0.25, 1.0)] == [500.0, 550.0, 700.0]


def owned(**changes):
    values = {"capex_usd": 40_000.0, "lifetime_years": 5.0, "power_usd_per_kwh": 0.1, "pue": 1.2}
    return Owned.model_validate(values | changes)


def test_a_gpu_of_slo_yaml_by_hand():
    # 8,000 capital + 5 % of 40,000 + 500 staff + 642.17 W x 1.2 x 876 = 675.05 USD a year.
    asked = owned(maintenance_share=0.05, staff_usd_per_year=500.0)
    cost = owned_gpu(CATALOG, H100, asked, Use(load=0.5))
    assert cost.energy == pytest.approx(675.05, abs=0.01)
    assert cost.usd_per_year == pytest.approx(11_175.05, abs=0.01)


def test_rent_goes_by_rated_power_and_leaves_nothing_for_energy():
    asked = owned(power_usd_per_kwh=None, pue=None, colocation_usd_per_kw_month=184.0)
    cost = owned_gpu(CATALOG, H100, asked, Use())
    # 1.26 kW x 12 x 184 = 2,782.08 USD.
    assert cost.colocation == pytest.approx(2_782.08)
    assert cost.energy == 0.0


class TestOwnedOffers:
    def offers(self, accelerators=("h100-sxm",), catalog=CATALOG, **changes):
        asked = Purchase(terms=("owned",), accelerators=accelerators, owned=owned(**changes))
        return owned_offers(catalog, asked, Use(), "2026-11-29")

    def test_a_server_of_eight_by_hand(self):
        (offer,) = self.offers()
        # 8,000 + 703 W x 1.2 x 876 = 8,738.99 USD a year and GPU; / 8760 x 8 = 7.98082 USD/h.
        assert (offer.provider, offer.region, offer.term, offer.gpus) == ("own", "own", "owned", 8)
        assert offer.list_price_per_hour == pytest.approx(7.98082, abs=1e-5)
        assert (offer.seen, offer.source) == ("2026-11-29", "slo.yaml, purchase.owned")

    def test_each_accelerator_has_its_own_price(self):
        h100, l40s = self.offers(
            accelerators=("H100", "l40s"), capex_usd={"h100-sxm": 40_000.0, "l40s": 10_000.0}
        )
        assert (h100.accelerator, l40s.accelerator) == ("h100-sxm", "l40s")
        # L40S 350 W: 2,000 + (0.79 x 350 + 150) W x 1.2 x 876 = 2,448.34 a year; x 8 / 8760.
        assert l40s.list_price_per_hour == pytest.approx(2.235927, abs=1e-5)

    @pytest.mark.parametrize(
        ("accelerator", "gpus"),
        [("h100-sxm", 8), ("gb200", 4), ("gh200", 1), ("l4", 8)],
        ids=[
            "its link joins eight",
            "trays of four",
            "one GPU a host",
            "PCIe of eight",
        ],
    )
    def test_servers_have_their_usual_size(self, accelerator, gpus):
        (offer,) = self.offers(accelerators=(accelerator,))
        assert offer.gpus == gpus

    def test_another_size_may_be_stated(self):
        (offer,) = self.offers(gpus_per_server=4)
        assert offer.gpus == 4
        assert offer.list_price_per_hour == pytest.approx(7.98082 / 2, abs=1e-5)

    def test_a_price_that_is_missing_or_of_something_else_is_refused(self):
        with pytest.raises(InputError, match="no price for l40s"):
            self.offers(accelerators=("h100-sxm", "l40s"), capex_usd={"h100-sxm": 4e4})
        with pytest.raises(InputError, match="a100-sxm-80 is not among"):
            self.offers(capex_usd={"all": 4e4, "a100-sxm-80": 1e4})

    def test_what_nobody_knows_the_draw_of_is_refused(self):
        with pytest.raises(InputError, match="what tpu-v6e draws"):
            self.offers(accelerators=("tpu-v6e",))

    def test_no_term_no_offer(self):
        assert owned_offers(CATALOG, Purchase(), Use(), "2026-11-29") == ()


def test_the_parts_add_up_to_the_price_and_are_not_told_of_another():
    cost = owned_gpu(CATALOG, H100, owned(maintenance_share=0.05), Use())
    price = cost.usd_per_gpu_hour() * 16
    parts = owned_parts(cost, 16, price)
    assert parts is not None
    assert sum(parts.model_dump().values()) == pytest.approx(price, rel=1e-5)
    assert owned_parts(cost, 16, price * 1.01) is None


money = st.floats(1.0, 1e7)


@given(capex=money, scale=st.floats(0.01, 100.0), rent=money, staff=money)
def test_all_prices_times_c_cost_c_times_as_much(capex, scale, rent, staff):
    node = replace(SERVER, capex_usd=capex, usd_per_kw_month=rent, staff_usd_per_year=staff)
    dearer = replace(
        node,
        capex_usd=capex * scale,
        usd_per_kw_month=rent * scale,
        staff_usd_per_year=staff * scale,
    )
    assert owned_cost(dearer).usd_per_year == pytest.approx(owned_cost(node).usd_per_year * scale)


@given(
    residual=st.floats(0.0, 0.9),
    years=st.floats(1.0, 10.0),
    rate=st.floats(0.001, 0.3),
)
def test_dearer_capital_and_less_residual_never_cost_less(residual, years, rate):
    straight = capital_usd_per_year(1e5, residual, years)
    assert capital_usd_per_year(1e5, residual, years, rate) >= straight
    assert capital_usd_per_year(1e5, residual / 2, years, rate) >= (
        capital_usd_per_year(1e5, residual, years, rate)
    )


@given(years=st.floats(1.0, 10.0), residual=st.floats(0.0, 0.9))
def test_a_vanishing_cost_of_capital_is_the_straight_line(years, residual):
    near = capital_usd_per_year(1e5, residual, years, 1e-7)
    assert near == pytest.approx(capital_usd_per_year(1e5, residual, years), rel=1e-4)
