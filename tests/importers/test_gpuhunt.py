"""gpuhunt catalogs, current and legacy layout."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner.importers.price_rows import PriceFile
from planner.importers.prices import read_prices
from tests.importers.price_shapes import (
    GPUHUNT_AWS,
    GPUHUNT_GCP,
    GPUHUNT_HEAD,
    GPUHUNT_LEGACY,
    known,
    read,
)


def offers(imported):
    return {
        (o.instance_type, o.region, o.term): (o.accelerator, o.gpus, o.list_price_per_hour, o.flag)
        for o in imported.offers
    }


def test_on_demand_and_spot_are_rows_of_their_own(tmp_path):
    got = read(tmp_path, "gpuhunt", GPUHUNT_AWS, provider="aws")
    assert offers(got) == {
        ("p5.48xlarge", "us-east-2", "on_demand"): ("h100-sxm", 8, 55.04, ""),
        ("p5.48xlarge", "us-east-2", "spot"): ("h100-sxm", 8, 11.2543, ""),
        ("p4de.24xlarge", "us-east-2", "on_demand"): ("a100-sxm-80", 8, 27.5, "suspect"),
        ("p6-b300.48xlarge", "us-west-2", "on_demand"): ("b300-sxm", 8, 142.4, ""),
    }
    assert (got.rows, got.rows_taken, got.merged, got.rows_refused) == (7, 4, 0, 3)
    assert [(r.line, r.reason, r.part) for r in got.refused] == [
        (2, "no accelerator", "row"),
        (6, "spot not below on-demand", "row"),
        (8, "ambiguous accelerator", "row"),
    ]


def test_tpu_rows_count_chips(tmp_path):
    got = read(tmp_path, "gpuhunt", GPUHUNT_GCP, provider="gcp")
    assert offers(got) == {
        ("v5p-8", "us-east5", "on_demand"): ("tpu-v5p", 8, 33.6, ""),
        ("v5litepod-4", "us-west4", "spot"): ("tpu-v5e", 4, 2.04, ""),
    }


def test_the_legacy_layout_has_no_vendor_and_prefixes_tpus(tmp_path):
    got = read(tmp_path, "gpuhunt", GPUHUNT_LEGACY, provider="aws")
    assert offers(got) == {
        ("p5.48xlarge", "us-east-1", "on_demand"): ("h100-sxm", 8, 55.04, ""),
        ("v5litepod-4", "us-central1", "on_demand"): ("tpu-v5e", 4, 4.8, ""),
    }
    assert [(r.line, r.reason) for r in got.refused] == [(4, "no price")]


def test_prices_that_the_source_estimates_are_flagged(tmp_path):
    row = "b200.8x,us-east1-a,58,64,800.0,8,B200,180.0,False,,nvidia,,x86,{}"
    got = read(tmp_path, "gpuhunt", f"{GPUHUNT_HEAD}\n{row}\n", provider="crusoe")
    assert [(o.flag, o.note) for o in got.offers] == [
        ("estimate", "gpuhunt's authors estimated this price")
    ]


def test_the_provider_is_the_name_of_the_file(tmp_path):
    path = tmp_path / "somecloud.csv"
    path.write_text(GPUHUNT_GCP, encoding="utf-8")
    got = read_prices("gpuhunt", PriceFile(path, "2026"), known())
    assert {offer.provider for offer in got.offers} == {"somecloud"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (",True,", ",maybe,", "unusable value"),
        (",11.2543,", ",,", "no price"),
        (",11.2543,", ",eleven,", "not a price"),
        (",192,2048.0,8,", ",,2048.0,8,", "incomplete row"),
        (",2048.0,8,H100", ",2048.0,8,H900", "unknown accelerator"),
        (",2048.0,8,H100", ",2048.0,0.5,H100", "fractional GPU"),
        (",H100,80.0", ",H100,24.0", "contradiction"),
        (",us-east-2,11", ",,11", "incomplete row"),
    ],
)
def test_a_corrupted_row_is_listed(tmp_path, old, new, reason):
    row = GPUHUNT_AWS.splitlines()[2]
    assert old in row
    text = f"{GPUHUNT_HEAD}\n{row.replace(old, new)}\n"
    got = read(tmp_path, "gpuhunt", text, provider="aws")
    assert not got.offers
    assert [(refusal.line, refusal.reason) for refusal in got.refused] == [(2, reason)]


def test_a_file_of_another_shape_or_without_a_date_is_refused_whole(tmp_path):
    with pytest.raises(InputError, match="not a gpuhunt catalog"):
        read(tmp_path, "gpuhunt", "a,b\n1,2\n", provider="aws")
    with pytest.raises(InputError, match="add --seen DATE"):
        read(tmp_path, "gpuhunt", GPUHUNT_AWS, provider="aws", seen="")
