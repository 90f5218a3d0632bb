"""Money, by hand."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import load_catalog
from planner.cost import (
    Quotes,
    allowed_offers,
    amounts,
    cheapest,
    instances_needed,
    quote,
    usd_per_mtok,
)
from planner.errors import InputError
from planner.spec.offer import Offer
from planner.spec.purchase import Owned, Purchase


def offer(**values):
    base = {
        "provider": "acme",
        "instance_type": "x8",
        "accelerator": "h100-sxm",
        "gpus": 8,
        "region": "here",
        "term": "on_demand",
        "list_price_per_hour": 20.0,
        "seen": "2026",
        "seen_basis": "by hand",
        "source": "this test",
    }
    return Offer(**{**base, **values})


@pytest.mark.parametrize(
    ("replicas", "size", "per_instance", "expected"),
    [
        (5, 2, 8, 2),
        (4, 2, 8, 1),
        (1, 8, 8, 1),
        (3, 16, 8, 6),
        (1, 9, 8, 2),
        (2, 9, 8, 4),
        (3, 3, 8, 2),
        (7, 1, 1, 7),
    ],
    ids=[
        "four replicas of 2 share an instance of 8, the fifth needs another",
        "exactly full",
        "one whole instance",
        "16 GPUs take two instances each",
        "9 GPUs take two instances",
        "and so does each",
        "two replicas of 3 fit into 8, not three",
        "single GPUs",
    ],
)
def test_whole_instances_are_bought(replicas, size, per_instance, expected):
    got = instances_needed(np.array([float(replicas)]), np.array([float(size)]), per_instance)
    assert got.tolist() == [expected]


@given(st.integers(1, 300), st.integers(1, 64), st.integers(1, 16))
def test_the_instances_hold_all_replicas_and_one_fewer_would_not(replicas, size, per_instance):
    got = int(
        instances_needed(np.array([float(replicas)]), np.array([float(size)]), per_instance)[0]
    )
    assert got * per_instance >= replicas * size
    if size <= per_instance:
        assert (got - 1) * (per_instance // size) < replicas
    else:
        assert got % replicas == 0
        assert (got // replicas - 1) * per_instance < size


@pytest.mark.parametrize(
    ("price", "rate", "expected"),
    [(4.0, 1500.0, 0.741), (4.0, 1500.0 * 0.3, 2.47)],
    ids=["$4/h at 1,500 tokens/s", "the same at 30 %"],
)
def test_price_of_a_million_tokens(price, rate, expected):
    assert float(usd_per_mtok(np.array([price]), np.array([rate]))[0]) == pytest.approx(
        expected, rel=1e-3
    )


def test_price_at_the_mean_rate_is_the_full_price_over_utilization():
    # $36/h; 500 of 1,000 output tokens/s used, and 9 prompt tokens for each of them.
    got = amounts(*(np.array([v]) for v in (36.0, 500.0, 5000.0, 1000.0)))
    assert got.usd_per_mtok_full[0] == pytest.approx(10.0)
    assert got.usd_per_mtok_output[0] == pytest.approx(20.0)
    assert got.usd_per_mtok_total[0] == pytest.approx(2.0)
    assert got.mean_utilization[0] == pytest.approx(0.5)


def test_the_cheapest_offer_depends_on_how_many_are_needed():
    small, lease = offer(), offer(provider="bulk", minimum_instances=4)
    quotes = Quotes((lease, small), (15.0, 20.0))
    bill = cheapest(quotes, np.array([1.0, 2.0, 3.0, 5.0]))
    # bulk sells at least 4 at $15 = $60: two of acme are $40, three are $60 (a tie), five $100.
    assert bill.usd_per_hour.tolist() == [20.0, 40.0, 60.0, 75.0]
    assert bill.instances.tolist() == [1.0, 2.0, 4.0, 5.0]
    assert bill.offer.tolist() == [1, 1, 0, 0]


def test_a_quota_that_does_not_suffice_sends_the_rest_elsewhere():
    few, many = offer(quota_instances=2), offer(provider="bulk", quota_instances=4)
    quotes = Quotes((few, many), (15.0, 20.0))
    bill = cheapest(quotes, np.array([2.0, 3.0, 4.0]))
    assert bill.offer.tolist() == [0, 1, 1]
    assert bill.usd_per_hour.tolist() == [30.0, 60.0, 80.0]
    assert bill.quota_use.tolist() == [1.0, 0.75, 1.0]


def test_beyond_every_quota_the_nearest_is_named_and_marked():
    few, many = offer(quota_instances=2), offer(provider="bulk", quota_instances=4)
    bill = cheapest(Quotes((few, many), (15.0, 20.0)), np.array([6.0]))
    # 6 of 4 is nearer than 6 of 2, though dearer.
    assert (bill.offer.tolist(), bill.quota_use.tolist()) == ([1], [1.5])


def test_a_lease_above_the_quota_can_never_be_had():
    lease = offer(minimum_instances=8, quota_instances=4)
    bill = cheapest(Quotes((lease,), (10.0,)), np.array([1.0]))
    assert (bill.instances.tolist(), bill.quota_use.tolist()) == ([8.0], [2.0])


def test_without_a_quota_none_of_it_is_used():
    assert cheapest(Quotes((offer(),), (10.0,)), np.array([99.0])).quota_use.tolist() == [0.0]


def test_what_nobody_sells_costs_without_bound():
    bill = cheapest(Quotes((), ()), np.array([1.0]))
    assert bill.offer.tolist() == [-1]
    assert bill.usd_per_hour.tolist() == [np.inf]


def test_a_flagged_price_is_not_clean():
    quotes = Quotes((offer(flag="suspect"), offer()), (1.0, 2.0))
    assert quotes.clean().prices == (2.0,)


class TestAllowedOffers:
    catalog = load_catalog()

    def allowed(self, as_of="2026-11-29", **purchase):
        return allowed_offers(self.catalog, Purchase(**purchase), as_of)

    def test_terms_and_providers_are_kept(self):
        found = self.allowed(terms=("spot",), providers=("AWS",))
        assert {(o.term, o.provider) for o in found} == {("spot", "aws")}

    def test_accelerators_are_found_by_alias(self):
        name = self.catalog.accelerators["h100-sxm"].aliases[0]
        assert {o.accelerator for o in self.allowed(accelerators=(name,))} == {"h100-sxm"}

    def test_parts_of_a_gpu_are_never_offered(self):
        flags = {o.flag for o in self.catalog.offers}
        assert "fractional" in flags
        assert "fractional" not in {o.flag for o in self.allowed()}

    def test_flags_that_no_plan_can_use_stay_out_whatever_is_allowed(self):
        rows = [
            offer(flag=flag, provider=flag or "clean")
            for flag in ("", "partial", "fractional", "suspect", "stale", "estimate", "small-host")
        ]
        found = allowed_offers(
            replace(self.catalog, offers=tuple(rows)),
            Purchase(allow_flagged_prices=True),
            "2026-11-29",
        )
        # Flagged rows of whole instances stay in the shop; picks rest on them only if allowed.
        assert {o.flag for o in found} == {"", "suspect", "stale", "estimate", "small-host"}

    @pytest.mark.parametrize(
        ("dates", "day", "sold"),
        [
            ({"valid_to": date(2026, 11, 28)}, "2026-11-29", False),
            ({"valid_to": date(2026, 11, 29)}, "2026-11-29", True),
            ({"valid_from": date(2026, 11, 30)}, "2026-11-29", False),
            ({"valid_from": date(2026, 11, 29)}, "2026-11-29", True),
        ],
        ids=["expired the day before", "its last day", "from tomorrow on", "its first day"],
    )
    def test_a_price_is_good_from_its_first_day_to_its_last(self, dates, day, sold):
        rows = (offer(provider="always"), offer(**dates))
        found = allowed_offers(replace(self.catalog, offers=rows), Purchase(), day)
        assert ("acme" in {o.provider for o in found}) == sold

    def test_only_expired_prices_are_refused_with_their_day(self):
        rows = (offer(valid_to=date(2026, 11, 1)), offer(provider="b", flag="partial"))
        with pytest.raises(
            InputError, match=r"2 offers with .* but none can .* expired on 2026-11-01"
        ):
            allowed_offers(replace(self.catalog, offers=rows), Purchase(), "2026-11-29")

    def test_hardware_of_ones_own_has_no_provider_and_no_region(self):
        rows = (offer(), offer(provider="own", region="own", term="owned"))
        purchase = Purchase(
            terms=("on_demand", "owned"),
            providers=("acme",),
            regions=("here",),
            accelerators=("h100-sxm",),
            owned=Owned(capex_usd=4e4, lifetime_years=5.0, colocation_usd_per_kw_month=184.0),
        )
        found = allowed_offers(replace(self.catalog, offers=rows), purchase, "2026-11-29")
        assert [o.provider for o in found] == ["acme", "own"]

    def test_spot_costs_what_an_hour_of_work_costs(self):
        rows = [offer(term="spot"), offer(term="spot", provider="b", interruption_share=0.5)]
        # Shipped allowance: 20 / (1 - 0.1); the row's own: 20 / (1 - 0.5).
        assert quote(self.catalog, rows).prices == pytest.approx((22.2222, 40.0), abs=1e-4)

    def test_an_unknown_provider_is_answered_with_the_nearest(self):
        with pytest.raises(InputError, match="did you mean 'lambda'"):
            self.allowed(providers=("lamda",))

    @pytest.mark.parametrize(
        ("purchase", "said"),
        [
            ({"terms": ("spot",)}, "purchase.terms: no offer is spot; the catalog has on_demand"),
            (
                {"terms": ("spot", "prepaid"), "regions": ("here",), "accelerators": ("t4",)},
                "purchase.terms: no offer is prepaid or spot; the catalog has on_demand\n"
                "  purchase.accelerators: no offer is t4; the catalog has a100-sxm-80, h100-sxm",
            ),
            (
                {"providers": ("beta",), "accelerators": ("h100-sxm",), "regions": ("here",)},
                "purchase: no offer is h100-sxm and beta at once; allow more accelerators or"
                " providers",
            ),
        ],
        ids=["one filter", "two, each of which leaves nothing", "two together"],
    )
    def test_the_filters_that_leave_nothing_to_buy_are_named(self, purchase, said):
        rows = (offer(), offer(provider="beta", accelerator="a100-sxm-80"))
        with pytest.raises(InputError) as caught:
            allowed_offers(replace(self.catalog, offers=rows), Purchase(**purchase), "2026-11-29")
        problems = said.count("\n") + 1
        assert str(caught.value).split("\n", 1)[1] == f"  {said}"
        assert len(caught.value.faults) == problems

    def test_quotes_are_sorted_by_price(self):
        prices = quote(self.catalog, self.allowed(accelerators=("h100-sxm",))).prices
        assert list(prices) == sorted(prices)


def test_on_capacity_that_is_interrupted_work_takes_longer_and_may_miss_the_deadline():
    # By hand: 10 % does no work; 0.88 / 0.9 = 0.978 of the deadline, 0.92 / 0.9 = 1.022.
    spot, steady = offer(term="spot"), offer()
    quotes = Quotes((spot, steady), (5.0, 20.0), (0.1, 0.0))
    bill = cheapest(quotes, np.array([1.0, 1.0]), np.array([0.88, 0.92]))
    assert bill.offer.tolist() == [0, 1]
    assert bill.lost.tolist() == [0.1, 0.0]
