"""The shipped prices: counts, well-known rows, and the traps that must carry a flag."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from planner.catalog import data_root
from planner.spec.offer import Offer

FILE = data_root() / "hardware_catalog" / "offers.csv"


@pytest.fixture(scope="module")
def rows():
    with FILE.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def find(catalog, provider, instance_type, region, term="on_demand"):
    key = (provider, instance_type, region, term)
    return next(offer for offer in catalog.offers if offer.key == key)


def test_at_least_180_prices_of_15_providers_are_shipped(catalog):
    assert len(catalog.offers) >= 180
    assert len({offer.provider for offer in catalog.offers}) >= 15


def test_the_file_has_the_columns_of_an_offer_and_its_rows_are_sorted_by_key(rows):
    assert list(rows[0]) == list(Offer.model_fields)
    keys = [(row["provider"], row["instance_type"], row["region"], row["term"]) for row in rows]
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    ("key", "gpus", "accelerator", "price"),
    [
        (("aws", "p5.48xlarge", "us-east-1", "on_demand"), 8, "h100-sxm", 55.04),
        (("aws", "p5.48xlarge", "us-east-1", "spot"), 8, "h100-sxm", 17.6289),
        (("aws", "p6-b300.48xlarge", "us-west-2", "on_demand"), 8, "b300-sxm", 142.416),
        (("azure", "Standard_ND96isr_H100_v5", "eastus", "on_demand"), 8, "h100-sxm", 98.32),
        (("gcp", "a3-highgpu-8g", "us-east1", "on_demand"), 8, "h100-sxm", 84.4),
        (("oci", "BM.GPU.MI355X.8", "af-casablanca-1", "on_demand"), 8, "mi355x", 68.8),
        (("oci", "BM.GPU.GB200.4", "af-casablanca-1", "on_demand"), 4, "gb200", 64),
        (("lambda", "gpu_8x_h100_sxm5", "all", "on_demand"), 8, "h100-sxm", 31.92),
        (
            ("nebius", "gpu-b200-sxm_8gpu-160vcpu-1792gb", "us-central1", "on_demand"),
            8,
            "b200-sxm",
            44,
        ),
        (("verda", "8B200.240V", "FIN-03", "spot"), 8, "b200-sxm", 13.69),
        (("vast", "1x-RTX_4090-32-65536", "Germany", "on_demand"), 1, "rtx4090", 0.4),
        (("runpod", "1x B200-SXM", "unstated", "on_demand"), 1, "b200-sxm", 5.98),
    ],
)
def test_well_known_rows_are_as_published(catalog, key, gpus, accelerator, price):
    offer = find(catalog, *key)
    assert (offer.gpus, offer.accelerator) == (gpus, accelerator)
    assert catalog.usd_per_hour(offer) == price
    assert offer.flag == ""


@pytest.mark.parametrize(
    ("key", "flag"),
    [
        (("gcp", "a3-highgpu-1g", "us-central1", "on_demand"), "suspect"),
        (("gcp", "a2-ultragpu-8g", "us-central1", "on_demand"), "suspect"),
        (("oci", "BM.GPU.A100-v2.8", "us-ashburn-1", "on_demand"), "suspect"),
        (("mithril", "h100-80gb.sxm.8x", "us-central2-a", "spot"), "suspect"),
        (("crusoe", "b200-180gb-sxm.8x", "us-east1-a", "on_demand"), "estimate"),
        (("gcp", "a4-highgpu-8g GPU part", "us-central1", "on_demand"), "partial"),
        (("gcp", "g2 L4 GPU part", "us-central1", "spot"), "partial"),
        (
            ("cudo", "epyc-genoa-l40s-graphics_1x2v4gb", "no-kristiansand-1", "on_demand"),
            "small-host",
        ),
        (("aws", "g6f.2xlarge", "eu-north-1", "on_demand"), "fractional"),
        (("digitalocean", "gpu-h100x8-640gb", "tor1", "on_demand"), "stale"),
        (("azure", "Standard_ND96isr_H100_v5", "westus", "on_demand"), "stale"),
    ],
)
def test_traps_of_the_sources_carry_a_flag_and_say_why(catalog, key, flag):
    offer = find(catalog, *key)
    assert offer.flag == flag
    assert offer.note or offer.seen == "2024"


def test_prices_last_seen_before_2025_are_flagged(catalog):
    assert all(offer.flag for offer in catalog.offers if offer.seen < "2025")


def test_capacity_blocks_are_prepaid_and_never_on_demand(catalog):
    blocks = [offer for offer in catalog.offers if "capacityblocks" in offer.source]
    assert len(blocks) == 3
    for offer in blocks:
        assert (offer.term, offer.flag, offer.upfront_share) == ("prepaid", "stale", 1)


def test_spot_is_cheaper_than_on_demand_everywhere(catalog):
    prices = {offer.key: offer.price_per_hour for offer in catalog.offers}
    pairs = [
        (price, prices[(*key[:3], "on_demand")])
        for key, price in prices.items()
        if key[3] == "spot" and (*key[:3], "on_demand") in prices
    ]
    assert len(pairs) > 40
    assert all(spot < on_demand for spot, on_demand in pairs)


def test_no_unflagged_price_is_far_from_what_others_ask_for_the_chip(catalog):
    # One chip costs up to 6 x more elsewhere, and a large host adds to it; 8 x is a slip of units.
    per_gpu: dict[str, list[float]] = {}
    for offer in catalog.offers:
        if offer.term == "on_demand" and not offer.flag:
            per_gpu.setdefault(offer.accelerator, []).append(offer.price_per_hour / offer.gpus)
    for accelerator, prices in per_gpu.items():
        assert max(prices) < 8 * min(prices), accelerator


def test_bridged_servers_are_told_apart_from_plain_ones(catalog):
    bridged = sorted(offer.instance_type for offer in catalog.offers if offer.link == "nvlink")
    assert bridged == ["n3-A100x8-NVLink", "n3-H100x8-NVLink"]


def test_every_row_is_dated_sourced_and_in_us_dollars(catalog):
    assert Counter(offer.currency for offer in catalog.offers) == {"USD": len(catalog.offers)}
    assert all(offer.seen_basis and offer.source for offer in catalog.offers)
    assert catalog.newest_seen == "2026-09-06"
