from __future__ import annotations

import pytest

from planner.candidates.choices import exponentials
from planner.candidates.hardware import hardware_class, wire
from planner.catalog import load_catalog

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("name", "gpus", "link", "tp", "kind", "gb_per_s"),
    [
        ("h100-sxm", 8, "", 8, "nvlink", 450),
        ("h100-sxm", 8, "", 16, "internode", 50),
        ("l40s", 4, "", 4, "pcie_p2p", 32),
        ("mi300x", 8, "", 8, "mesh", 7 * 64),
        ("mi300x", 8, "", 2, "mesh", 64),
        ("a100-pcie-80", 4, "nvlink", 2, "nvlink", 300),
        ("a100-pcie-80", 4, "nvlink", 4, "pcie_p2p", 32),
    ],
    ids=[
        "switched",
        "beyond the server",
        "PCIe",
        "mesh of 8",
        "mesh of 2",
        "bridge",
        "two bridges",
    ],
)
def test_a_group_uses_its_slowest_link(name, gpus, link, tp, kind, gb_per_s):
    found = wire(hardware_class(CATALOG.accelerator(name), gpus, link), tp)
    assert (found.kind, found.rate) == (kind, pytest.approx(gb_per_s * 1e9, rel=0.01))


def test_a_rack_scale_domain_needs_no_network():
    found = hardware_class(CATALOG.accelerator("gb200"), 4)
    assert wire(found, 16).kind == "nvlink"


def test_an_unknown_exponential_rate_is_that_of_an_h100_of_the_same_peak():
    chip = CATALOG.accelerator("h100-sxm").model_copy(update={"exponential_tera_per_s": None})
    assert exponentials(chip) == pytest.approx(989e12 / 256)
    assert exponentials(CATALOG.accelerator("h100-sxm")) == 3.9e12
