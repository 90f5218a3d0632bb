"""Price lists in JSON: AWS offer files, Azure retail prices, plain lists; figures are made up."""

from __future__ import annotations

import json

import pytest

from planner.errors import InputError
from planner.importers.price_rows import PriceFile
from planner.importers.prices import read_prices
from tests.importers.price_shapes import known

P5 = {
    "instanceType": "p5.48xlarge",
    "regionCode": "us-east-1",
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "gpu": "8",
    "vcpu": "192",
    "memory": "2,048 GiB",
}


def term(hourly="0", upfront=None, length="", option="No Upfront", kind="standard"):
    dimensions = {"a": {"unit": "Hrs", "pricePerUnit": {"USD": hourly}}}
    if upfront:
        dimensions["b"] = {"unit": "Quantity", "pricePerUnit": {"USD": upfront}}
    lease = {"LeaseContractLength": length, "PurchaseOption": option, "OfferingClass": kind}
    return {"priceDimensions": dimensions, "termAttributes": lease if length else {}}


AWS = {
    "offerCode": "AmazonEC2",
    "publicationDate": "2026-11-03T00:00:00Z",
    "products": {
        "P5": {"attributes": P5},
        "WIN": {"attributes": {**P5, "operatingSystem": "Windows"}},
        "CPU": {"attributes": {**P5, "instanceType": "c9.large", "gpu": ""}},
    },
    "terms": {
        "OnDemand": {
            "P5": {"P5.J": term("55.0400000000")},
            "WIN": {"WIN.J": term("63")},
            "CPU": {"CPU.J": term("0.1")},
        },
        "Reserved": {
            "P5": {
                "P5.1": term("40", length="1yr"),
                "P5.3": term("20", "131400", length="3yr", option="Partial Upfront"),
                "P5.C": term("45", length="1yr", kind="convertible"),
            }
        },
    },
}
AZURE = {
    "BillingCurrency": "USD",
    "Items": [
        {
            "currencyCode": "USD",
            "retailPrice": price,
            "armRegionName": "eastus",
            "armSkuName": sku,
            "productName": product,
            "skuName": name,
            "meterName": name,
            "unitOfMeasure": unit,
            "type": kind,
            **lease,
        }
        for price, sku, product, name, unit, kind, lease in [
            (98.5, "Standard_ND96isr_H100_v5", "NDsr", "ND96isr", "1 Hour", "Consumption", {}),
            (20.25, "Standard_ND96isr_H100_v5", "NDsr", "ND96 Spot", "1 Hour", "Consumption", {}),
            (438000, "Standard_ND96isr_H100_v5", "NDsr", "ND96isr", "1 Hour", "Reservation",
             {"reservationTerm": "1 Year"}),
            (99.9, "Standard_ND96isr_H100_v5", "ND Windows", "ND96", "1 Hour", "Consumption", {}),
            (0.4, "Standard_NV6ads_A10_v5", "NV", "NV6", "1 Hour", "Consumption", {}),
            (7.5, "Standard_NC99ads_H100_v5", "NC", "NC99", "1 Hour", "Consumption", {}),
        ]
    ],
}  # fmt: skip


def take(tmp_path, data, seen="2026-11-05", **more):
    path = tmp_path / "list.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1), encoding="utf-8")
    return read_prices("price-list", PriceFile(path, seen, **more), known())


def offers(imported):
    return {
        (o.provider, o.region, o.term): (o.accelerator, o.gpus, o.list_price_per_hour)
        for o in imported.offers
    }


def test_aws_terms_are_read_and_upfront_fees_spread_over_the_term(tmp_path):
    # 131,400 / (3 x 8760 h) = 5 USD/h beside 20 USD/h.
    got = take(tmp_path, AWS, seen="")
    assert offers(got) == {
        ("aws", "us-east-1", "on_demand"): ("h100-sxm", 8, 55.04),
        ("aws", "us-east-1", "reserved_1y"): ("h100-sxm", 8, 40.0),
        ("aws", "us-east-1", "reserved_3y"): ("h100-sxm", 8, 25.0),
    }
    assert {o.term: o.upfront_share for o in got.offers}["reserved_3y"] == 0.2
    assert {(o.seen, o.seen_basis, o.memory_gib) for o in got.offers} == {
        ("2026-11-03", "stated in the file", 2048.0)
    }
    assert [(refusal.reason, refusal.part) for refusal in got.refused] == [
        ("other purchase option", "row"),
        ("no accelerator", "row"),
        ("other purchase option", "row"),
    ]
    assert got.rows == got.rows_taken + got.rows_refused == 6


def test_azure_reservations_are_priced_for_the_whole_term(tmp_path):
    # 438,000 USD for a year of 8760 h = 50 USD/h.
    got = take(tmp_path, AZURE)
    assert offers(got) == {
        ("azure", "eastus", "on_demand"): ("h100-sxm", 8, 98.5),
        ("azure", "eastus", "spot"): ("h100-sxm", 8, 20.25),
        ("azure", "eastus", "reserved_1y"): ("h100-sxm", 8, 50.0),
    }
    assert got.counts() == {
        "other purchase option": 1,
        "fractional GPU": 1,
        "unknown GPU count": 1,
    }


def test_a_plain_list_of_objects_is_read_like_a_sheet(tmp_path):
    row = {
        "provider": "acme",
        "instance_type": "ac-8",
        "accelerator": "MI300X",
        "gpus": 8,
        "region": "fra-1",
        "term": "on_demand",
        "list_price_per_hour": 16.5,
        "nested": {"ignored": 1},
    }
    for data in ([row], {"prices": [row]}):
        got = take(tmp_path, data)
        assert offers(got) == {("acme", "fra-1", "on_demand"): ("mi300x", 8, 16.5)}


@pytest.mark.parametrize("data", ["{}", "[1, 2]", '{"prices": 3}', '{"products": {}}', "not json"])
def test_json_of_another_shape_is_refused_whole(tmp_path, data):
    with pytest.raises(InputError):
        take(tmp_path, data)


def test_lists_without_a_date_ask_for_one(tmp_path):
    with pytest.raises(InputError, match="add --seen DATE"):
        take(tmp_path, AZURE, seen="")
    with pytest.raises(InputError, match="is no date"):
        take(tmp_path, {**AWS, "publicationDate": ""}, seen="")
