"""List, contracted and effective price; discounts, quotas and the spot allowance."""

from __future__ import annotations

import pytest

from planner.catalog import load_catalog
from planner.errors import InputError

KEY = {
    "provider": "aws",
    "instance_type": "p5.48xlarge",
    "region": "us-east-1",
    "term": "on_demand",
}
SPOT = KEY | {"term": "spot"}


def priced(key, **where):
    loaded = load_catalog(**where)
    wanted = tuple(key[name] for name in ("provider", "instance_type", "region", "term"))
    return loaded, next(offer for offer in loaded.offers if offer.key == wanted)


def test_a_discount_alone_lowers_the_list_price_of_the_catalog(price_file):
    loaded, offer = priced(KEY, prices=[price_file({**KEY, "discount_share": "0.25"})])
    # 55.04 x 0.75 = 41.28
    assert (offer.list_price_per_hour, offer.price_per_hour) == (55.04, pytest.approx(41.28))
    assert loaded.effective_usd_per_hour(offer) == pytest.approx(41.28)


def test_a_new_price_drops_the_discount_of_the_old_one(price_file, tmp_path):
    first = price_file({**KEY, "discount_share": "0.25"}).rename(tmp_path / "first.csv")
    second = price_file({**KEY, "list_price_per_hour": "50"})
    _, offer = priced(KEY, prices=[first, second])
    assert offer.price_per_hour == 50


def test_spot_carries_the_default_allowance_and_a_row_its_own(price_file):
    loaded, offer = priced(SPOT)
    # 17.6289 / (1 - 0.1) = 19.58767
    assert loaded.usd_per_hour(offer) == 17.6289
    assert loaded.effective_usd_per_hour(offer) == pytest.approx(19.58767, abs=1e-5)
    row = {**SPOT, "list_price_per_hour": "20", "interruption_share": "0.2"}
    loaded, offer = priced(SPOT, prices=[price_file(row)])
    assert loaded.effective_usd_per_hour(offer) == pytest.approx(25.0)


def test_the_shipped_allowance_says_that_it_is_assumed(catalog):
    [source] = [s for s in catalog.terms.sources if "interruption_share" in s.keys]
    assert catalog.terms.interruption_share == 0.1
    assert source.assumed


def test_quotas_are_read_as_whole_numbers(price_file):
    row = {**KEY, "list_price_per_hour": "50", "quota_instances": "4.0"}
    assert priced(KEY, prices=[price_file(row)])[1].quota_instances == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"discount_share": "1"}, "discount_share: 1 must be below 1"),
        ({"discount_share": "15 %"}, "is not a number"),
        (
            {"discount_share": "0.1", "contracted_price_per_hour": "40"},
            "say the same; give one of them",
        ),
        ({"interruption_share": "0.1"}, "interruption_share is for term spot"),
        ({"quota_instances": "0"}, "quota_instances: 0 must be at least 1"),
    ],
)
def test_terms_that_cannot_be_are_refused(price_file, change, words):
    row = {**KEY, "list_price_per_hour": "50"} | change
    with pytest.raises(InputError) as error:
        load_catalog(prices=[price_file(row)])
    assert words in str(error.value)


def test_terms_without_a_source_do_not_load(copied, edit):
    edit("terms.yaml", "for: [interruption_share]", "for: [power]")
    with pytest.raises(InputError, match="no source names interruption_share"):
        load_catalog(copied)
