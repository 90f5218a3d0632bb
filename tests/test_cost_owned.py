"""Owned hardware: hand-computed years, the usual double count, and laws."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import load_catalog
from planner.cost_owned import (
    Node,
    average_w_per_gpu,
    capital_usd_per_year,
    carbon_g_per_mtok,
    energy_kwh_per_mtok,
    gpu_of,
    owned_cost,
    usd_per_mtok_owned,
)
from planner.errors import InputError
from planner.spec.purchase import Owned

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


def test_owned_tokens_by_hand():
    # 75,021.6 / (8760 x 8) = 1.07051 USD per GPU-hour; x 8 / (10,000 x 3600 / 1e6) = 0.23789.
    got = usd_per_mtok_owned(owned_cost(SERVER), 8, 10_000.0)
    assert got == pytest.approx(0.23789, abs=1e-5)


def test_slo_yaml_and_the_shipped_power_figures_give_the_draw_of_a_gpu():
    # H100 700 W: dense 0.79 x 700 + 150 = 703 W, MoE 0.68 x 700 + 150 = 626 W, rated 1.8 x 700.
    power = load_catalog().terms.power
    assert power is not None
    assert average_w_per_gpu(700.0, power) == pytest.approx(703.0)
    owned = Owned(capex_usd=40_000.0, lifetime_years=5.0, power_usd_per_kwh=0.1, pue=1.2)
    node = gpu_of(owned, 700.0, power, moe=True)
    assert (node.average_kw, node.provisioned_kw) == pytest.approx((0.626, 1.26))
    # 40,000 / 5 + 0.626 x 1.2 x 876 = 8,658.05 USD a year.
    assert owned_cost(node).usd_per_year == pytest.approx(8_658.05, abs=0.01)


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
