"""An accelerator: what the driver reports, dense peaks, links, power, and who says so."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.spec.base import Count, Name, Positive, Source, Spec

Vendor = Literal["nvidia", "amd", "intel", "google", "aws"]
LinkKind = Literal["nvlink", "pcie_p2p", "pcie_host", "mesh"]


class Link(Spec):
    """The scale-up link between the GPUs of a domain.

    Attributes:
        kind: Link class, a key of ``efficiency.yaml`` ``links``.
        gb_per_s: One direction, per GPU; ``mesh``: per pair of GPUs [1e9 B/s].
        domain_gpus: GPUs that reach each other over it; 1 = none.
    """

    kind: LinkKind
    gb_per_s: Positive
    domain_gpus: Count


RATE = "peak_tflops."
"""Key of a compute rate, before its format."""
ALWAYS = "bf16"
"""Attention, and what a checkpoint does not quantize, compute in it."""


def rests_on(figure: str, weights: str) -> bool:
    """Whether a deployment of a weight format rests on a figure of its accelerator, by its key."""
    return not figure.startswith(RATE) or figure.removeprefix(RATE) in (ALWAYS, weights)


class Accelerator(Spec):
    """One accelerator (a file of ``hardware_catalog/accelerators``).

    Attributes:
        id: Catalog id.
        name: Vendor's name.
        vendor: Maker; decides which engine formats apply.
        generation: Architecture family (hopper, cdna3 ...); evidence is shared inside one.
        aliases: Other names, compared without case.
        memory_gib: Memory as the driver reports it [GiB].
        memory_bandwidth_gb_per_s: Peak memory bandwidth [1e9 B/s].
        peak_tflops: DENSE peak by weight-format id [1e12 FLOP/s; int8: 1e12 OP/s]. A format
            is native exactly if it has an entry.
        exponential_tera_per_s: Rate of the special-function units, which bounds softmax [1e12/s].
        link: Scale-up link inside a server; None = PCIe only.
        bridge: Link that some servers add (an NVLink bridge); used where the offer names it.
        pcie_gb_per_s: PCIe, one direction [1e9 B/s].
        internode_gb_per_s: Network per GPU between servers [1e9 B/s].
        tdp_w: Board power limit [W].
        borrow: Accelerator whose fitted efficiencies it borrows, with its interval doubled.
        sources: Dated source of every number.
    """

    id: Name
    name: Name
    vendor: Vendor
    generation: Name
    aliases: tuple[Name, ...] = ()
    memory_gib: Positive
    memory_bandwidth_gb_per_s: Positive
    peak_tflops: Annotated[dict[Name, Positive], Field(min_length=1)]
    exponential_tera_per_s: Positive | None = None
    link: Link | None = None
    bridge: Link | None = None
    pcie_gb_per_s: Positive | None = None
    internode_gb_per_s: Positive | None = None
    tdp_w: Positive | None = None
    borrow: Name | None = None
    notes: str = ""
    sources: Annotated[tuple[Source, ...], Field(min_length=1)]

    def links(self) -> dict[str, Link]:
        """Return the links an offer may name, by kind."""
        return {link.kind: link for link in (self.bridge, self.link) if link is not None}

    @model_validator(mode="after")
    def _every_number_has_a_source(self) -> Self:
        named = {key for source in self.sources for key in source.keys}
        numbers = [
            key
            for key in (
                "memory_gib",
                "memory_bandwidth_gb_per_s",
                "exponential_tera_per_s",
                "link",
                "bridge",
                "pcie_gb_per_s",
                "internode_gb_per_s",
                "tdp_w",
            )
            if getattr(self, key) is not None
        ]
        numbers += [f"peak_tflops.{key}" for key in self.peak_tflops]
        missing = [key for key in numbers if key not in named and key.split(".")[0] not in named]
        if missing:
            raise ValueError(
                f"no source names {', '.join(missing)}; add it to `for` of an entry under `sources`"
            )
        return self
