"""One way for each plan under shared limits, against enumeration and another solver."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.search.portfolio import UNSERVED, Menu, choose


def menu(*rows: tuple[float, ...]) -> Menu:
    table = np.array(rows, dtype=float).reshape(len(rows), -1)
    return Menu(table[:, 0], table[:, 1:])


def random_menus(seed: int, plans: int, ways: int, limits: int) -> list[Menu]:
    draw = np.random.default_rng(seed)
    made = []
    for _ in range(plans):
        uses = draw.integers(0, 17, (ways, limits)).astype(float)
        # What takes less of the scarce things costs more, as a rule.
        cost = 60.0 - uses.sum(axis=1) / limits + draw.uniform(0, 25, ways)
        made.append(Menu(cost, uses))
    return made


def by_enumeration(menus: list[Menu], most: np.ndarray) -> tuple[int, float]:
    """Most plans served, and the least that costs."""
    best = (0, 0.0)
    for rows in product(*(range(-1, len(one.cost)) for one in menus)):
        picked = [(one, row) for one, row in zip(menus, rows, strict=True) if row >= 0]
        uses = sum((one.uses[row] for one, row in picked), np.zeros(len(most)))
        if (uses <= most).all():
            cost = float(sum(one.cost[row] for one, row in picked))
            best = max(best, (len(picked), -cost))
    return best[0], -best[1]


def test_without_limits_every_plan_takes_its_cheapest():
    chosen = choose([menu((3, 8), (2, 16)), menu((5, 1))], np.array([np.inf]))
    assert chosen.rows == (1, 0)
    assert chosen.cost == 7.0
    assert chosen.exact


def test_the_plan_that_saves_most_gets_the_scarce_gpus():
    # 8 GPUs of a kind for two plans: one saves 6, the other 2 by having them.
    first, second = menu((10, 8), (12, 0)), menu((10, 8), (16, 0))
    chosen = choose([first, second], np.array([8.0]))
    assert chosen.rows == (1, 0)
    assert chosen.cost == 22.0
    assert chosen.exact


def test_as_many_plans_as_possible_are_served_before_money_counts():
    # The dear pair serves two plans; the cheap large one would serve one.
    plans = [menu((1, 8)), menu((50, 4)), menu((60, 4))]
    chosen = choose(plans, np.array([8.0]))
    assert chosen.rows == (UNSERVED, 0, 0)
    assert chosen.cost == 110.0


def test_a_plan_without_a_way_is_left_out_and_no_obstacle():
    chosen = choose([Menu(np.zeros(0), np.zeros((0, 1))), menu((2, 1))], np.array([1.0]))
    assert chosen.rows == (UNSERVED, 0)
    assert chosen.cost == 2.0


def test_no_plans_cost_nothing():
    assert choose([], np.zeros(0)).cost == 0.0


@pytest.mark.parametrize("seed", range(30))
def test_the_choice_is_the_best_of_all(seed):
    draw = np.random.default_rng(1000 + seed)
    menus = random_menus(seed, plans=5, ways=4, limits=3)
    most = draw.integers(8, 60, 3).astype(float)
    served, cost = by_enumeration(menus, most)
    chosen = choose(menus, most)
    assert chosen.exact
    assert sum(row != UNSERVED for row in chosen.rows) == served
    assert chosen.cost == pytest.approx(cost, abs=1e-9)
    uses = sum(
        (one.uses[row] for one, row in zip(menus, chosen.rows, strict=True) if row >= 0),
        np.zeros(3),
    )
    assert (uses <= most).all()


@pytest.mark.parametrize(("seed", "plans", "scarce"), [(0, 60, 0.6), (4, 60, 0.8), (5, 300, 0.8)])
def test_a_large_choice_costs_hardly_more_than_another_solver_finds(seed, plans, scarce):
    optimize = pytest.importorskip("scipy.optimize")
    menus = random_menus(seed, plans, ways=5, limits=4)
    most = scarce * np.array([one.uses[one.cost.argmin()] for one in menus]).sum(axis=0)
    chosen = choose(menus, most)
    rows = len(menus) * 5
    once = np.repeat(np.eye(len(menus)), 5, axis=1)
    found = optimize.milp(
        np.concatenate([one.cost for one in menus]),
        constraints=[
            optimize.LinearConstraint(once, 1, 1),
            optimize.LinearConstraint(np.concatenate([one.uses for one in menus]).T, ub=most),
        ],
        integrality=np.ones(rows),
        bounds=optimize.Bounds(0, 1),
        options={"mip_rel_gap": 0.0, "time_limit": 5.0},
    )
    assert UNSERVED not in chosen.rows
    assert chosen.bound <= chosen.cost
    assert chosen.cost <= found.fun * (1 + 2e-3)
    assert chosen.bound <= found.fun * (1 + 1e-8)
    if chosen.exact:
        assert chosen.cost <= found.fun * (1 + 1e-8)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), factor=st.floats(1.0, 2.0))
def test_wider_limits_never_serve_fewer_nor_cost_more(seed, factor):
    menus = random_menus(seed, plans=6, ways=3, limits=2)
    most = np.array([40.0, 30.0])
    tight, wide = choose(menus, most), choose(menus, most * factor)
    missing = [one.rows.count(UNSERVED) for one in (tight, wide)]
    assert missing[1] <= missing[0]
    if missing[0] == missing[1]:
        assert wide.cost <= tight.cost + 1e-9


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 100.0))
def test_the_unit_of_money_changes_nothing(seed, scale):
    menus = random_menus(seed, plans=5, ways=3, limits=2)
    most = np.array([35.0, 30.0])
    other = [Menu(one.cost * scale, one.uses) for one in menus]
    assert choose(other, most).cost == pytest.approx(choose(menus, most).cost * scale, rel=1e-6)
