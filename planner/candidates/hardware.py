"""Hardware classes: a chip sold by twenty providers is scored once."""

from __future__ import annotations

from dataclasses import dataclass

from planner.spec.accelerator import Accelerator
from planner.units import GB

RACK_SCALE = 16
"""A link domain of more GPUs than this spans instances (NVL72)."""


@dataclass(frozen=True)
class HardwareClass:
    """What performance depends on: accelerator, GPUs per instance, links.

    Attributes:
        accelerator: The chip.
        gpus: GPUs per instance.
        link_kind: Link between the GPUs of an instance.
        link_gb_per_s: Its one-way rate per GPU (mesh: per pair of GPUs) [1e9 B/s].
        link_domain: GPUs that reach each other over it.
        internode_gb_per_s: Network per GPU between instances [1e9 B/s]; 0 = unknown.
    """

    accelerator: Accelerator
    gpus: int
    link_kind: str
    link_gb_per_s: float
    link_domain: int
    internode_gb_per_s: float

    @property
    def id(self) -> str:
        """Readable key, as ``h100-sxm x8 nvlink 50``."""
        return f"{self.accelerator.id} x{self.gpus} {self.link_kind} {self.internode_gb_per_s:g}"

    @property
    def node_gpus(self) -> int:
        """GPUs that reach each other without the network between servers."""
        return max(self.gpus, self.link_domain) if self.link_domain > RACK_SCALE else self.gpus


PCIE_DEFAULT_GB_PER_S = 32.0
"""PCIe 4 x16, where an accelerator's file states no rate."""


def hardware_class(
    accelerator: Accelerator, gpus: int, link: str = "", internode_gb_per_s: float | None = None
) -> HardwareClass:
    """Return the class of an instance.

    Args:
        accelerator: The chip.
        gpus: GPUs per instance.
        link: Link kind where the instance differs from the accelerator's own; empty = same.
        internode_gb_per_s: Network per GPU [1e9 B/s]; None = the accelerator's own figure.
    """
    links = accelerator.links()
    own = links.get(link) if link else accelerator.link
    network = internode_gb_per_s or accelerator.internode_gb_per_s or 0.0
    if own is not None:
        return HardwareClass(accelerator, gpus, own.kind, own.gb_per_s, own.domain_gpus, network)
    pcie = accelerator.pcie_gb_per_s or PCIE_DEFAULT_GB_PER_S
    return HardwareClass(accelerator, gpus, link or "pcie_p2p", pcie, gpus, network)


@dataclass(frozen=True)
class Wire:
    """The link that tensor parallelism of some width uses: kind and one-way rate [B/s]."""

    kind: str
    rate: float


def wire(hardware: HardwareClass, tp: int) -> Wire:
    """Return the slowest link inside a tensor-parallel group of `tp` GPUs.

    A mesh gives a pair one link, so the rate grows with the width; a bridged pair falls back to
    PCIe beyond two GPUs; beyond the server the network carries the group.
    """
    if tp > hardware.node_gpus:
        return Wire("internode", max(hardware.internode_gb_per_s, 1e-3) * GB)
    if hardware.link_kind == "mesh":
        return Wire("mesh", hardware.link_gb_per_s * max(tp - 1, 1) * GB)
    if hardware.link_kind == "nvlink" and tp > hardware.link_domain:
        pcie = hardware.accelerator.pcie_gb_per_s or PCIE_DEFAULT_GB_PER_S
        return Wire("pcie_p2p", pcie * GB)
    return Wire(hardware.link_kind, hardware.link_gb_per_s * GB)
