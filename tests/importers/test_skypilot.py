"""SkyPilot catalogs: what is taken, what is refused and why, to the cent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.importers.gpu_info import GpuInfo, parse_gpu_info
from planner.importers.price_chips import INSTANCE_RULES, ChipWords, identify, memory_readings
from planner.importers.price_rows import PriceFile, RefusedError
from planner.importers.prices import read_prices
from tests.importers.price_shapes import AWS, SKYPILOT, known, read


def offers(imported):
    return {
        (o.instance_type, o.region, o.term): (o.accelerator, o.gpus, o.list_price_per_hour, o.flag)
        for o in imported.offers
    }


# rows, taken, merged, refused, offers, why: counted by hand in price_shapes.py
COUNTS = {
    "aws": (9, 5, 1, 3, 6, {"no accelerator": 1, "spot not below on-demand": 2, "no price": 2,
                            "fractional GPU": 1}),
    "gcp": (11, 5, 2, 4, 8, {"host part missing": 2, "host without GPUs": 1,
                             "spot not below on-demand": 1, "placeholder price": 2}),
    "azure": (6, 3, 0, 3, 4, {"spot not below on-demand": 2, "fractional GPU": 1,
                              "unknown accelerator": 1, "no accelerator": 1}),
    "do": (1, 1, 0, 0, 1, {}),
    "cudo": (2, 2, 0, 0, 2, {}),
    "hyperstack": (2, 2, 0, 0, 2, {}),
    "lambda": (3, 2, 0, 1, 2, {"ambiguous accelerator": 1}),
    "mithril": (1, 0, 0, 1, 0, {"auction floor": 1}),
    "primeintellect": (4, 2, 0, 2, 2, {"ambiguous accelerator": 1, "contradiction": 1,
                                       "no price": 1}),
    "runpod": (2, 1, 1, 0, 1, {"spot not below on-demand": 2}),
    "shadeform": (2, 2, 0, 0, 2, {}),
    "vast": (4, 3, 0, 1, 3, {"contradiction": 1}),
    "verda": (2, 2, 0, 0, 3, {"no price": 1}),
}  # fmt: skip


@pytest.mark.parametrize("provider", list(SKYPILOT))
def test_every_shape_gives_the_counts_of_the_table(tmp_path, provider):
    got = read(tmp_path, "skypilot", SKYPILOT[provider], provider=provider)
    rows, taken, merged, refused, made, why = COUNTS[provider]
    assert (got.rows, got.rows_taken, got.merged, got.rows_refused) == (
        rows, taken, merged, refused,
    )  # fmt: skip
    assert (len(got.offers), got.counts()) == (made, why)


def test_aws_takes_each_region_once_at_the_lowest_spot_price_of_its_own_zones(tmp_path):
    got = offers(read(tmp_path, "skypilot", AWS, provider="aws"))
    assert got == {
        ("p5.48xlarge", "us-east-1", "on_demand"): ("h100-sxm", 8, 50.25, ""),
        ("p5.48xlarge", "us-east-1", "spot"): ("h100-sxm", 8, 18.5, ""),
        ("p5.48xlarge", "use1-atl2-az1", "on_demand"): ("h100-sxm", 8, 50.25, ""),
        ("p5.48xlarge", "use1-atl2-az1", "spot"): ("h100-sxm", 8, 9.0, ""),
        ("p5.48xlarge", "eu-west-2", "on_demand"): ("h100-sxm", 8, 60.5, ""),
        ("p5.48xlarge", "us-west-2", "spot"): ("h100-sxm", 8, 21.0, ""),
    }


def test_google_hosts_and_gpus_are_added_and_prices_of_another_sku_are_flagged(tmp_path):
    got = offers(read(tmp_path, "skypilot", SKYPILOT["gcp"], provider="gcp"))
    assert got == {
        ("a2-ultragpu-8g", "us-east5", "on_demand"): ("a100-sxm-80", 8, 44.2, ""),
        ("a2-ultragpu-8g", "us-east5", "spot"): ("a100-sxm-80", 8, 13.2, ""),
        ("a2-ultragpu-8g", "us-central1", "on_demand"): ("a100-sxm-80", 8, 23.6, "suspect"),
        ("tpu-v6e-8", "europe-west4", "on_demand"): ("tpu-v6e", 8, 23.8, ""),
        ("tpu-v6e-8", "europe-west4", "spot"): ("tpu-v6e", 8, 8.3, ""),
        ("tpu-v5p-16", "us-east5", "on_demand"): ("tpu-v5p", 8, 33.6, ""),
        ("tpu-v5p-16", "us-east5", "spot"): ("tpu-v5p", 8, 16.8, ""),
        ("tpu-v6e-4", "us-south1-ai1b", "on_demand"): ("tpu-v6e", 4, 10.8, ""),
    }


@pytest.mark.parametrize(
    ("provider", "instance", "expected"),
    [
        ("azure", "Standard_NC24ads_A100_v4", ("a100-pcie-80", 1, 3.7, "")),
        ("azure", "Standard_NC40ads_H100_v5", ("h100-nvl", 1, 7.0, "")),
        ("azure", "Standard_ND96isr_H100_v5", ("h100-sxm", 8, 98.5, "suspect")),
        ("do", "gpu-h100x8-640gb", ("h100-sxm", 8, 24.5, "")),
        ("cudo", "ice-lake-h100_1x2v4gb", ("h100-sxm", 1, 2.5, "small-host")),
        ("cudo", "ice-lake-h100_8x64v128gb", ("h100-sxm", 8, 21.1, "")),
        ("hyperstack", "x9-H100x1", ("h100-pcie", 1, 1.9, "")),
        ("lambda", "gpu_2x_h100_sxm5", ("h100-sxm", 2, 8.4, "")),
        ("lambda", "gpu_1x_h100_pcie", ("h100-pcie", 1, 3.3, "")),
        ("primeintellect", "acme__8xA100_80GB", ("a100-sxm-80", 8, 14.3, "")),
        ("runpod", "1x_A100-80GB_NEW", ("a100-pcie-80", 1, 1.4, "")),
        ("shadeform", "acme_A100-sxm4x8", ("a100-sxm-40", 8, 11.2, "")),
        ("shadeform", "acme_L40Sx10", ("l40s", 10, 15.0, "")),
        ("vast", "2x-H100_NVL-9", ("h100-nvl", 2, 4.5, "")),
        ("vast", "8x-H200-9", ("h200-sxm", 8, 17.9, "")),
    ],
)
def test_names_memory_and_instance_decide_the_card(tmp_path, provider, instance, expected):
    got = offers(read(tmp_path, "skypilot", SKYPILOT[provider], provider=provider))
    [found] = [value for key, value in got.items() if key[0] == instance and key[2] == "on_demand"]
    assert found == expected


def test_bridges_regions_and_provenance_are_kept(tmp_path):
    got = read(tmp_path, "skypilot", SKYPILOT["hyperstack"], provider="hyperstack").offers
    assert {(o.instance_type, o.link) for o in got} == {
        ("x9-A100x8-NVLink", "nvlink"),
        ("x9-H100x1", ""),
    }
    assert {(o.seen, o.seen_basis, o.source, o.currency) for o in got} == {
        ("2026-08-19", "stated on import", "SkyPilot catalog, file.csv", "USD")
    }
    regions = {
        o.region for o in read(tmp_path, "skypilot", SKYPILOT["vast"], provider="vast").offers
    }
    assert regions == {"Australia, AU, OC", "US, NA", "Hafnarfjarðarkaupstaður, IS, EU"}


def test_a_modded_card_with_twice_the_memory_is_refused(tmp_path):
    got = read(tmp_path, "skypilot", SKYPILOT["vast"], provider="vast")
    [refusal] = got.refused
    assert refusal.line == 5
    assert "47.99 GiB per GPU is not that of rtx4090" in refusal.detail


def test_rows_without_a_date_ask_for_one(tmp_path):
    with pytest.raises(InputError, match="carries no date; add --seen DATE"):
        read(tmp_path, "skypilot", AWS, provider="aws", seen="")


@pytest.mark.parametrize("seen", ["yesterday", "2026-13", "2026-02-30", "26-01-01", "2026-1-1"])
def test_a_date_that_is_none_is_refused(tmp_path, seen):
    with pytest.raises(InputError, match="is no date"):
        read(tmp_path, "skypilot", AWS, provider="aws", seen=seen)


@pytest.mark.parametrize(
    ("path", "provider"),
    [
        ("v8/lambda/vms.csv", "lambda"),
        ("lambda.csv", "lambda"),
        ("skypilot_v8_lambda_excerpt.csv", "lambda"),
    ],
)
def test_the_provider_is_read_from_the_name_of_the_file_or_its_folder(tmp_path, path, provider):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SKYPILOT["lambda"], encoding="utf-8")
    got = read_prices("skypilot", PriceFile(file, "2026-08"), known())
    assert {offer.provider for offer in got.offers} == {provider}


def test_a_name_that_tells_no_provider_asks_for_one(tmp_path):
    path = tmp_path / "my prices v2.csv"
    path.write_text(AWS, encoding="utf-8")
    with pytest.raises(InputError, match="add --provider NAME"):
        read_prices("skypilot", PriceFile(path, "2026-08"), known())


def test_the_catalogs_list_of_gpu_names_is_no_price_list(tmp_path):
    with pytest.raises(InputError) as error:
        read(tmp_path, "skypilot", "GPU,MemoryGB,Manufacturer\nH100,80,nvidia\n", provider="aws")
    assert "price: this column is missing" in str(error.value)
    assert "not a SkyPilot price catalog" in str(error.value)


def test_an_unknown_kind_names_the_known_ones():
    with pytest.raises(InputError, match="did you mean 'skypilot'"):
        read_prices("skypilt", PriceFile(Path("x.csv")), known())


GOOD = AWS.splitlines()[2]
CORRUPT = {
    "price in words": (",50.25,20", ",fifty,20", "not a price"),
    "price with a currency": (",50.25,20", ",$50.25,20", "not a price"),
    "price with a decimal comma": (",50.25,20", ',"50,25",20', "not a price"),
    "price of zero": (",50.25,20", ",0,20", "not a price"),
    "negative price": (",50.25,20", ",-50.25,20", "not a price"),
    "price is NaN": (",50.25,20", ",nan,20", "not a price"),
    "price is infinite": (",50.25,20", ",inf,20", "not a price"),
    "price overflows": (",50.25,20", ",1e999,20", "not a price"),
    "price with underscores": (",50.25,20", ",5_0.25,20", "not a price"),
    "spot in words": (",20.125000,", ",cheap,", "not a price"),
    "negative spot": (",20.125000,", ",-1,", "not a price"),
    "spot above the price": (",20.125000,", ",99,", "spot not below on-demand"),
    "no price at all": (",50.25,20.125000,", ",,,", "no price"),
    "no region": (",us-east-1,", ",,", "incomplete row"),
    "no instance type": ("p5.48xlarge,", ",", "host part missing"),
    "formula as region": (",us-east-1,", ",=1+1,", "unusable text"),
    "formula as instance": ("p5.48xlarge", "@p5", "ambiguous accelerator"),
    "control character in the region": (",us-east-1,", ",us\x07east,", "unusable text"),
    "region longer than a name": (",us-east-1,", f",{'r' * 300},", "unusable value"),
    "unknown accelerator": (",H100,8.0", ",H900,8.0", "unknown accelerator"),
    "part of a GPU": (",H100,8.0", ",H100,0.125", "fractional GPU"),
    "no GPU": (",H100,8.0", ",H100,0", "fractional GPU"),
    "another chip in the instance name": ("p5.48xlarge,H100", "x-l40s-8,L40", "contradiction"),
    "memory of another chip": ("81920}", "24576}", "contradiction"),
    "mig slice": (",H100,8.0", ",H100-MIG-1g,8.0", "fractional GPU"),
}


@pytest.mark.parametrize("case", list(CORRUPT))
def test_a_corrupted_row_is_listed_with_its_line_and_reason(tmp_path, case):
    old, new, reason = CORRUPT[case]
    assert old in GOOD
    text = "\n".join([AWS.splitlines()[0], GOOD.replace(old, new).replace("655360", "0")])
    got = read(tmp_path, "skypilot", text, provider="aws")
    assert reason in {refusal.reason for refusal in got.refused}
    assert {refusal.line for refusal in got.refused} == {2}
    assert all(refusal.detail for refusal in got.refused)
    assert not any(o.list_price_per_hour in (0, -50.25) for o in got.offers)


BROKEN = {
    "empty file": "",
    "header only": AWS.splitlines()[0],
    "no header": GOOD,
    "a column lost": AWS.replace(",x86_64", "", 1),
    "a renamed column": AWS.replace("Price,SpotPrice", "Cost,SpotPrice", 1),
    "two columns of one name": AWS.replace("SpotPrice", "Price", 1),
    "an open quote": AWS + '\np5,"H100',
    "semicolons": AWS.replace(",", ";"),
    "a binary file": "PK\x03\x04\x00\x00",
}


@pytest.mark.parametrize("case", list(BROKEN))
def test_a_broken_file_ends_in_an_error_that_names_it(tmp_path, case):
    with pytest.raises(InputError) as error:
        read(tmp_path, "skypilot", BROKEN[case], provider="aws")
    assert "file.csv" in error.value.source
    assert error.value.faults


def test_every_instance_rule_agrees_with_the_shipped_offers():
    knowledge = known()
    checked = 0
    for (provider, instance), (accelerator, gpus) in knowledge.instances.items():
        words = ChipWords(provider, instance, "", count=float(gpus))
        try:
            chip = identify(words, known_without_offers(knowledge))
        except RefusedError:
            continue
        assert chip.accelerator.id == accelerator, (provider, instance)
        checked += 1
    assert checked >= len(INSTANCE_RULES) - 4


def known_without_offers(knowledge):
    return type(knowledge)(knowledge.chips)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("", GpuInfo()),
        ("A100-80GB", GpuInfo(name="A100-80GB")),
        ("{'Gpus': [{'Name': 'L4', 'Count': '2.0', 'MemoryInfo': {'SizeInMiB': 24}}]}",
         GpuInfo("L4", 2.0, 24576.0, 0.0)),
        ('{"Gpus":[{"Name":"L4","Count":2,"MemoryInfo":{"SizeInMiB":24576}}],'
         '"TotalGpuMemoryInMiB":49152}', GpuInfo("L4", 2.0, 24576.0, 49152.0)),
        ("{'gpus': [{'name': 'l4', 'manufacturer': null, 'count': 0}]}", GpuInfo("l4", 0.0)),
        ("{'Gpus': [{'Name': 'L4', 'TotalGpuMemoryInMiB': 24576}]}", GpuInfo("L4", 0, 0, 24576.0)),
        ("{'Gpus': []}", GpuInfo()),
        ("{broken", GpuInfo()),
        ("{" * 3000, GpuInfo()),
        ("{'Gpus': [" + "[" * 2000, GpuInfo()),
    ],
)  # fmt: skip
def test_gpu_info_is_read_in_every_shape_and_never_fails(cell, expected):
    assert parse_gpu_info(cell) == expected


@given(st.text(max_size=300))
def test_gpu_info_survives_any_text(cell):
    assert isinstance(parse_gpu_info("{" + cell), GpuInfo)


@pytest.mark.parametrize(
    ("instance", "gpus", "flag"),
    [
        ("acme_L40Sx8", 8, ""),
        ("acme_L40Sx8", 1, "suspect"),
        ("gpu_4x_l40s", 4, ""),
        ("gpu_4x_l40s", 2, "suspect"),
        ("box.48xlarge", 8, ""),
        ("l40s_1x2v4gb", 1, ""),
        ("l40s_8x64v128gb", 8, ""),
    ],
)
def test_a_count_that_the_name_contradicts_is_flagged(instance, gpus, flag):
    words = ChipWords("acme", instance, "L40S", count=float(gpus))
    chip = identify(words, known())
    assert (chip.gpus, chip.flag) == (gpus, flag)


@pytest.mark.parametrize(
    ("size", "total", "count", "expected"),
    [
        (81920, 655360, 8, [{81920}, {10240}]),
        (655360, 5242880, 8, [{655360}, {81920}]),
        (655360, 655360, 8, [{655360, 81920}]),
        (81920, 81920, 1, [{81920}]),
        (0, 0, 8, []),
    ],
    ids=["per GPU", "total, multiplied again", "total, or total = per GPU", "one GPU", "none"],
)
def test_memory_figures_have_the_readings_of_the_known_traps(size, total, count, expected):
    assert [set(sizes) for sizes in memory_readings(size, total, count)] == expected


@settings(max_examples=30, deadline=None)
@given(order=st.permutations(range(9)))
def test_the_order_of_rows_does_not_matter(tmp_path_factory, order):
    folder = tmp_path_factory.mktemp("order")
    head, *rows = AWS.splitlines()
    shuffled = "\n".join([head, *(rows[index] for index in order)])
    got = offers(read(folder, "skypilot", shuffled, provider="aws"))
    assert got == offers(read(folder, "skypilot", AWS, provider="aws"))


@settings(max_examples=40, deadline=None)
@given(
    cells=st.lists(
        st.tuples(
            st.sampled_from(["", "50.25", "0", "x", "60"]),
            st.sampled_from(["", "20", "50.25", "0.00", "y", "99"]),
            st.sampled_from(["us-east-1", "eu-west-2", ""]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_every_row_is_taken_merged_or_refused_exactly_once(tmp_path_factory, cells):
    head = AWS.splitlines()[0]
    row = GOOD.partition(",50.25,")[0]
    rows = [f"{row},{price},{spot},{region},zone,x86_64" for price, spot, region in cells]
    text = "\n".join([head, *rows])
    got = read(tmp_path_factory.mktemp("law"), "skypilot", text, provider="aws")
    assert got.rows == len(cells)
    assert got.rows_taken >= 0
    assert got.merged >= 0
    assert got.rows_taken <= len(got.offers)
    whole = [refusal.line for refusal in got.refused if refusal.part == "row"]
    assert len(whole) == len(set(whole))
    prices = {
        float(text) for cell in cells for text in cell[:2] if text in ("50.25", "60", "20", "99")
    }
    assert {offer.list_price_per_hour for offer in got.offers} <= prices
