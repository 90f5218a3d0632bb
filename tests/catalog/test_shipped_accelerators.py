"""The shipped accelerators against figures typed by hand from public sheets."""

from __future__ import annotations

import pytest

# id, reported GiB, GB/s, dense bf16, fp8 (None: no fp8 tensor cores), board W
PUBLISHED = [
    ("t4", 15.0, 320, 65, None, 70),
    ("a10g", 22.5, 600, 70, None, 300),
    ("l4", 22.5, 300, 121, 242, 72),
    ("l40s", 45.0, 864, 362, 733, 350),
    ("rtx4090", 24.0, 1008, 165.2, 330.3, 450),
    ("rtx5090", 31.8, 1792, 209.5, 419, 575),
    ("rtxpro6000-bse", 95.6, 1792, 467.8, 935.6, 600),
    ("a100-sxm-40", 40.0, 1555, 312, None, 400),
    ("a100-sxm-80", 80.0, 2039, 312, None, 400),
    ("a100-pcie-80", 80.0, 1935, 312, None, 300),
    ("h100-pcie", 79.6, 2000, 756, 1513, 350),
    ("h100-nvl", 93.6, 3900, 835, 1671, 400),
    ("h100-sxm", 79.6, 3350, 989, 1979, 700),
    ("h200-sxm", 140.4, 4800, 989, 1979, 700),
    ("b200-sxm", 179.1, 7700, 2250, 4500, 1000),
    ("b300-sxm", 268.6, 7750, 2250, 4500, 1100),
    ("gb200", 185.0, 8000, 2500, 5000, 1200),
    ("gb300", 277.5, 8000, 2500, 5000, 1400),
    ("mi300x", 192.0, 5300, 1307.4, 2614.9, 750),
    ("mi325x", 256.0, 6000, 1307.4, 2614.9, 1000),
    ("mi355x", 288.0, 8000, 2516, 5033, 1400),
    ("gaudi3", 128.0, 3670, 1835, 1835, 900),
    ("tpu-v6e", 32.0, 1638, 918, None, None),
    ("trainium2", 96.0, 2900, 667, 1299, None),
]


def test_thirty_five_accelerators_are_shipped(catalog):
    assert len(catalog.accelerators) == 35


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda row: row[0])
def test_figures_are_those_of_the_public_sheets(catalog, published):
    name, gib, bandwidth, bf16, fp8, watts = published
    got = catalog.accelerators[name]
    assert got.memory_gib == pytest.approx(gib, abs=0.06)
    assert got.memory_bandwidth_gb_per_s == bandwidth
    assert got.peak_tflops["bf16"] == bf16
    assert got.peak_tflops.get("fp8") == fp8
    assert got.tdp_w == watts


@pytest.mark.parametrize(
    ("name", "tops"),
    [("b300-sxm", 150), ("gb300", 165), ("b200-sxm", 4500), ("a100-sxm-80", 624), ("t4", 130)],
)
def test_int8_is_as_published_and_collapsed_on_blackwell_ultra(catalog, name, tops):
    assert catalog.accelerators[name].peak_tflops["int8"] == tops


@pytest.mark.parametrize(
    ("name", "nvfp4", "mxfp4"),
    [
        ("b200-sxm", 9000, 4500),
        ("b300-sxm", 14000, 4500),
        ("gb200", 10000, 5000),
        ("gb300", 15000, 5000),
        ("rtxpro6000-bse", 1871.2, 935.6),
        ("mi355x", None, 10066),
        ("h100-sxm", None, None),
        ("mi300x", None, None),
        ("a100-sxm-80", None, None),
    ],
)
def test_four_bit_peaks_exist_only_where_the_tensor_cores_do(catalog, name, nvfp4, mxfp4):
    peaks = catalog.accelerators[name].peak_tflops
    assert (peaks.get("nvfp4"), peaks.get("mxfp4")) == (nvfp4, mxfp4)


def test_no_peak_is_a_sparse_figure(catalog):
    # A sparse fp8 figure would stand at 4 x dense bf16, a sparse fp4 one at 8 x.
    for accelerator in catalog.accelerators.values():
        peaks = accelerator.peak_tflops
        assert peaks.get("fp8", 0) <= 2.1 * peaks["bf16"], accelerator.id
        four_bit = max(peaks.get("nvfp4", 0), peaks.get("mxfp4", 0))
        # 8 x: RTX 5090, whose bf16 and fp8 rates with FP32 accumulation are halved.
        assert four_bit <= 8.01 * peaks["bf16"], accelerator.id
        if accelerator.id != "rtx5090":
            assert four_bit <= 6.3 * peaks["bf16"], accelerator.id


@pytest.mark.parametrize(
    ("name", "kind", "rate", "domain"),
    [
        ("h100-sxm", "nvlink", 450, 8),
        ("a100-sxm-40", "nvlink", 300, 8),
        ("b200-sxm", "nvlink", 900, 8),
        ("gb200", "nvlink", 900, 72),
        ("gb300", "nvlink", 900, 72),
        ("gh200", "nvlink", 450, 1),
        ("mi300x", "mesh", 64, 8),
        ("l40s", "pcie_p2p", 32, 8),
        ("h100-pcie", "pcie_p2p", 64, 8),
        ("rtxpro6000-bse", "pcie_p2p", 64, 8),
        ("a10g", "pcie_host", 32, 8),
        ("rtx4090", "pcie_host", 32, 8),
    ],
)
def test_links_are_one_way_rates(catalog, name, kind, rate, domain):
    link = catalog.accelerators[name].link
    assert (link.kind, link.gb_per_s, link.domain_gpus) == (kind, rate, domain)


def test_cards_with_an_nvlink_bridge_use_it_only_where_an_offer_names_it(catalog):
    bridged = {
        name: (entry.bridge.gb_per_s, entry.bridge.domain_gpus)
        for name, entry in catalog.accelerators.items()
        if entry.bridge
    }
    assert bridged == {
        "a100-pcie-40": (300, 2),
        "a100-pcie-80": (300, 2),
        "h100-pcie": (300, 2),
        "h100-nvl": (300, 2),
        "h200-nvl": (450, 4),
    }
    assert all(catalog.accelerators[name].link.kind == "pcie_p2p" for name in bridged)


def test_efficiencies_are_borrowed_only_where_the_evidence_allows(catalog):
    borrowed = {name: a.borrow for name, a in catalog.accelerators.items() if a.borrow}
    assert borrowed == {
        "a100-pcie-40": "a100-sxm-40",
        "a100-pcie-80": "a100-sxm-80",
        "h100-nvl": "h100-sxm",
        "mi355x": "mi300x",
    }


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("tpu-v5e", {"memory_gib", "link"}),
        ("h20-96", {"memory_gib", "memory_bandwidth_gb_per_s", "peak_tflops"}),
        ("mi300x", {"memory_gib", "peak_tflops.int8", "link"}),
        ("h100-sxm", set()),
    ],
)
def test_figures_that_nobody_checked_again_are_marked_assumed(catalog, name, keys):
    sources = catalog.accelerators[name].sources
    assumed = {key for source in sources if source.assumed for key in source.keys}
    assert keys <= assumed
    assert keys or not assumed


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("H100", "h100-sxm"),
        ("h100_sxm", "h100-sxm"),
        ("H100 SXM", "h100-sxm"),
        ("H100-SXM5-80GB", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("H100_NVL", "h100-nvl"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80"),
        ("A100-80GB", "a100-sxm-80"),
        ("A100-80G-PCIe-NVLink", "a100-pcie-80"),
        ("H100-80G-SXM5", "h100-sxm"),
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("RTX-PRO-6000", "rtxpro6000-bse"),
        ("RTXPRO6000S", "rtxpro6000-bse"),
        ("b200_sxm", "b200-sxm"),
        ("h200_sxm", "h200-sxm"),
        ("AMD Instinct MI300X", "mi300x"),
        ("v5litepod", "tpu-v5e"),
    ],
)
def test_names_that_drivers_and_price_files_print_are_known(catalog, name, id_):
    assert catalog.accelerator(name).id == id_
