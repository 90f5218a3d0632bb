from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import Catalog, load_catalog
from planner.commands.firmness import plan_firmness
from planner.commands.reprice import reprice
from planner.commands.stored import Stored, open_plan
from planner.select.firmness import Firmness, PickFirmness
from planner.select.scenarios import Scenario, Subjects, limit_use, scaled, with_lengths
from planner.select.sensitivity import break_even_hours, commitment_base, held
from planner.spec.lengths import MomentLengths, QuantileLengths
from tests.commands.small_plans import slo, small_plan, write_prices
from tests.report.records import option


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def stored(catalog: Catalog) -> Stored:
    return open_plan(small_plan(catalog), catalog)


@pytest.fixture(scope="module")
def firm(stored: Stored) -> Firmness:
    return plan_firmness(stored)


def of(stored: Stored, firm: Firmness, pick: str = "cheapest") -> PickFirmness:
    return next(one for one in firm.picks if one.option == stored.record.picks[pick])


def bar(pick: PickFirmness, driver: str) -> Any:
    return next(one for one in pick.bars if one.driver == driver)


def row_of(option: Any) -> tuple[str, ...]:
    price = option.money.price
    return (price.provider, price.instance_type, price.region, price.term)


def test_every_distinct_pick_is_looked_at_once(stored: Stored, firm: Firmness):
    assert [one.option for one in firm.picks] == list(dict.fromkeys(stored.record.picks.values()))


def test_a_fifth_dearer_costs_a_fifth_more_and_moves_no_limit(stored: Stored, firm: Firmness):
    pick = of(stored, firm)
    price = bar(pick, "price")
    assert price.high.usd_per_mtok_output == pytest.approx(
        1.2 * pick.now.usd_per_mtok_output, rel=1e-5
    )
    assert price.low.usd_per_hour == pytest.approx(0.8 * pick.now.usd_per_hour, rel=1e-5)
    assert price.low.use == price.high.use == pick.now.use


def test_the_same_fleet_with_a_fifth_more_traffic_is_a_sixth_cheaper_a_token(
    stored: Stored, firm: Firmness
):
    pick = of(stored, firm)
    traffic = bar(pick, "traffic")
    assert traffic.high.usd_per_mtok_output == pytest.approx(
        pick.now.usd_per_mtok_output / 1.2, rel=1e-5
    )
    assert traffic.high.usd_per_hour == pick.now.usd_per_hour
    assert traffic.high.use is None or traffic.high.use > pick.now.use
    assert traffic.low.use < pick.now.use


def test_as_planned_the_limits_are_used_as_the_record_says(stored: Stored, firm: Firmness):
    for pick in firm.picks:
        option = next(o for o in stored.record.options if o.id == pick.option)
        shares = [t.upper / t.limit for t in option.targets if t.upper is not None]
        used = max(*shares, option.utilization / stored.slo.headroom)
        assert pick.now.use == pytest.approx(used, rel=1e-4)
        assert pick.now.holds


def test_the_pick_flips_just_where_it_is_said_to(
    catalog: Catalog, stored: Stored, firm: Firmness, tmp_path: Path
):
    pick = of(stored, firm)
    option = next(o for o in stored.record.options if o.id == pick.option)
    flip, price = pick.flip, option.money.price
    assert flip is not None
    assert flip.change == pytest.approx(
        flip.usd_per_instance_hour / price.usd_per_instance_hour - 1, rel=1e-4
    )
    for factor, same in ((0.999, True), (1.001, False)):
        row = {
            "provider": price.provider,
            "instance_type": price.instance_type,
            "region": price.region,
            "term": price.term,
            "list_price_per_hour": flip.usd_per_instance_hour * factor,
            "flag": price.flag,
        }
        prices = write_prices(tmp_path / "p.csv", [row])
        new = reprice(stored.record, [prices], catalog=catalog).record
        chosen = next(o for o in new.options if o.id == new.picks["cheapest"])
        wanted = option if same else flip.replacement
        assert (chosen.id, row_of(chosen)) == (wanted.id, row_of(wanted))


def test_one_limit_is_just_used_up_at_the_highest_rate(stored: Stored, firm: Firmness):
    subjects = Subjects(stored.scene, stored.slo, stored.record.options)
    at = [o.id for o in stored.record.options]
    for pick in firm.picks:
        assert pick.highest_rate is not None
        use = limit_use(subjects, Scenario(""), pick.highest_rate)[at.index(pick.option)]
        over = limit_use(subjects, Scenario(""), pick.highest_rate * 1.01)[at.index(pick.option)]
        assert use <= 1.0 + 1e-4
        assert over > 1.0


@pytest.mark.parametrize(
    ("bought", "size", "spare", "one_less"),
    [
        ((1, 8), 1, 0, 0),
        ((2, 8), 1, 0, 8),
        ((2, 8), 1, 1, 7),
        ((3, 8), 3, 0, 4),
        ((2, 8), 4, 2, 0),
        ((6, 8), 16, 0, 2),
        ((4, 8), 9, 1, 0),
    ],
    ids=[
        "the only server saves nothing",
        "16 or 9 on two servers: 8 on one",
        "the spare one takes a place",
        "TP3: two in a server",
        "two spare ones fill a server",
        "a replica on two servers",
        "one on two servers is spare, one would stay",
    ],
)
def test_one_instance_less_holds_what_fits_whole_beside_the_spare_ones(
    bought: tuple[int, int], size: int, spare: int, one_less: int
):
    instances, gpus = bought
    one = option(
        instances=instances, gpus=instances * gpus, gpus_per_replica=size, spare_replicas=spare
    )
    assert held(one, instances - 1) == one_less


def test_one_instance_less_would_do_just_up_to_its_rate_and_never_for_a_single_one(
    catalog: Catalog,
):
    servers = slo(
        traffic={
            "rate_per_s": 600.0,
            "prompt_tokens": {"p50": 500.0, "p95": 2000.0},
            "output_tokens": {"p50": 150.0, "p95": 400.0},
        },
        purchase={"providers": ("oci",), "allow_flagged_prices": True},
    )
    stored = open_plan(small_plan(catalog, servers), catalog)
    sizes = set()
    for pick in plan_firmness(stored).picks:
        one = next(o for o in stored.record.options if o.id == pick.option)
        sizes.add(one.instances)
        if one.instances == 1:
            assert pick.fewer_rate is None
            continue
        # The servers hold eight GPUs, and every replica fits in one.
        assert one.gpus == 8 * one.instances
        fewer = Subjects(stored.scene, stored.slo, (one,)).resized(
            np.array([(one.instances - 1) * (8 // one.gpus_per_replica) * 1.0])
        )
        assert limit_use(fewer, Scenario(""), pick.fewer_rate)[0] <= 1.0 + 1e-4
        if pick.fewer_rate < stored.slo.traffic.rate_per_s:
            assert limit_use(fewer, Scenario(""), pick.fewer_rate * 1.01)[0] > 1.0
    assert max(sizes) > 1


def test_rates_at_which_the_cheapest_changes_rise_with_the_price(stored: Stored, firm: Firmness):
    cost = {o.id: o.money.usd_per_hour for o in stored.record.options}
    rates = [flip.rate_per_s for flip in firm.rate_flips]
    amounts = [cost[flip.option] for flip in firm.rate_flips]
    assert rates == sorted(rates)
    assert amounts == sorted(amounts)
    assert rates[0] == pytest.approx(of(stored, firm).highest_rate)


def test_regret_is_the_distance_to_the_cheapest_that_holds(stored: Stored, firm: Firmness):
    cheapest = of(stored, firm)
    for pick in firm.picks:
        for own, best in zip(pick.regrets, cheapest.regrets, strict=True):
            if own.scenario.startswith("its own") or not best.holds:
                continue
            by_hand = pick.now.usd_per_hour - cheapest.now.usd_per_hour
            assert own.usd_per_hour == pytest.approx(by_hand, abs=1e-4)


def two_sellers(catalog: Catalog, term: str = "on_demand") -> Catalog:
    """Return a catalog in which two sell the same: at $1 and at $1.05 an hour."""
    like = next(o for o in catalog.offers if (o.accelerator, o.gpus) == ("l40s", 1))
    rows = [
        {"provider": name, "list_price_per_hour": price, "term": term}
        for name, price in (("acme", 1.0), ("bolt", 1.05))
    ]
    clean = {"flag": "", "discount_share": 0.0, "contracted_price_per_hour": None}
    return replace(catalog, offers=tuple(like.model_copy(update=clean | row) for row in rows))


def test_at_a_dearer_price_the_regret_is_against_what_takes_its_place(catalog: Catalog):
    market = two_sellers(catalog)
    asked = slo(purchase={"accelerators": ("l40s",)})
    plan = open_plan(small_plan(market, asked), market)
    pick = plan_firmness(plan).picks[0]
    bought = next(o for o in plan.record.options if o.id == pick.option).instances
    (own,) = [one for one in pick.regrets if one.scenario == "its own price +20 %"]
    # By hand: $1.20 an instance where the other seller asks $1.05.
    assert own.usd_per_hour == pytest.approx(0.15 * bought, rel=1e-5)
    assert own.best == pick.option


def test_the_price_at_which_spot_is_beaten_is_one_of_the_seller(catalog: Catalog):
    market = two_sellers(catalog, "spot")
    asked = slo(purchase={"accelerators": ("l40s",), "terms": ("spot",)})
    (pick, *_) = plan_firmness(open_plan(small_plan(market, asked), market)).picks
    assert pick.flip is not None
    assert pick.flip.usd_per_instance_hour == pytest.approx(1.05, rel=1e-5)


def test_offline_a_fifth_more_requests_take_and_cost_a_fifth_more(catalog: Catalog):
    traffic = {
        "offline": {"requests": 1_000_000, "deadline_hours": 24.0},
        "prompt_tokens": 700.0,
        "output_tokens": 100.0,
    }
    asked = slo(traffic=traffic, slo={}, objectives=("usd_per_mtok_output", "quality_loss_percent"))
    plan = open_plan(small_plan(catalog, asked), catalog)
    pick = plan_firmness(plan).picks[0]
    option = next(o for o in plan.record.options if o.id == pick.option)
    more = bar(pick, "requests").high
    assert pick.now.usd_per_hour == pytest.approx(option.money.usd_per_job, rel=1e-5)
    assert more.usd_per_hour == pytest.approx(1.2 * pick.now.usd_per_hour, rel=1e-3)
    assert more.usd_per_mtok_output == pytest.approx(pick.now.usd_per_mtok_output, rel=1e-3)
    assert pick.highest_rate is None


def test_a_plan_without_a_pick_has_nothing_to_say(stored: Stored):
    none = stored.record.model_copy(update={"options": (), "picks": {}})
    assert plan_firmness(replace(stored, record=none)).picks == ()


def test_lengths_scale_as_a_whole_but_keep_their_spread():
    assert scaled(QuantileLengths(p50=100, p95=400), 1.5) == QuantileLengths(p50=150, p95=600)
    assert scaled(MomentLengths(mean=100, cv=0.5), 0.8) == MomentLengths(mean=80, cv=0.5)
    longer = with_lengths(slo(), 2.0, 1.0).traffic
    assert longer.prompt_tokens.mean == pytest.approx(2 * slo().traffic.prompt_tokens.mean)
    assert longer.output_tokens == slo().traffic.output_tokens


@pytest.mark.parametrize(
    ("committed", "by_the_hour", "share"),
    [(2.0, 4.0, 0.5), (3.0, 4.0, 0.75), (5.0, 4.0, 1.25)],
    ids=["half the price: half the hours", "by hand: 547.5 of 730 h", "dearer: never"],
)
def test_a_commitment_pays_from_its_share_of_the_price(committed, by_the_hour, share):
    assert break_even_hours(committed, by_the_hour) == share


@given(
    needed=st.lists(st.integers(0, 20), min_size=1, max_size=24),
    committed=st.floats(0.1, 10),
    by_the_hour=st.floats(0.1, 10),
)
def test_no_other_base_costs_less_than_the_one_committed_to(needed, committed, by_the_hour):
    def cost(base: int) -> float:
        peaks = sum(max(hour - base, 0) for hour in needed)
        return base * committed * len(needed) + peaks * by_the_hour

    chosen = commitment_base(needed, break_even_hours(committed, by_the_hour))
    assert cost(chosen) <= min(cost(base) for base in range(21)) * (1 + 1e-9)
