"""Google in SkyPilot's catalog: hosts and accelerators are rows of their own and must be added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.importers.price_rows import ROUNDING, SPREAD, Refusal, RefusedError, spot_of
from planner.importers.skypilot_row import SkyRow

HOSTS: Mapping[tuple[str, int], tuple[str, ...]] = {
    ("A100", 1): ("a2-highgpu-1g",),
    ("A100", 2): ("a2-highgpu-2g",),
    ("A100", 4): ("a2-highgpu-4g",),
    ("A100", 8): ("a2-highgpu-8g",),
    ("A100", 16): ("a2-megagpu-16g",),
    ("A100-80GB", 1): ("a2-ultragpu-1g",),
    ("A100-80GB", 2): ("a2-ultragpu-2g",),
    ("A100-80GB", 4): ("a2-ultragpu-4g",),
    ("A100-80GB", 8): ("a2-ultragpu-8g",),
    ("L4", 1): (
        "g2-standard-4",
        "g2-standard-8",
        "g2-standard-12",
        "g2-standard-16",
        "g2-standard-32",
    ),
    ("L4", 2): ("g2-standard-24",),
    ("L4", 4): ("g2-standard-48",),
    ("L4", 8): ("g2-standard-96",),
    ("H100", 1): ("a3-highgpu-1g",),
    ("H100", 2): ("a3-highgpu-2g",),
    ("H100", 4): ("a3-highgpu-4g",),
    ("H100", 8): ("a3-highgpu-8g",),
    ("H100-MEGA", 8): ("a3-megagpu-8g",),
    ("H200", 8): ("a3-ultragpu-8g",),
    ("B200", 8): ("a4-highgpu-8g",),
}
"""Hosts that an accelerator in that number can have.

Source: https://cloud.google.com/compute/docs/gpus, as in skypilot-org/skypilot
sky/catalog/gcp_catalog.py.
"""
CENT_FRACTION = 6
"""Decimals kept of a sum; the parts have five."""


def join_hosts(
    rows: Sequence[SkyRow], apart: Sequence[SkyRow]
) -> tuple[list[SkyRow], list[Refusal]]:
    """Add each accelerator row to the hosts it can have.

    Args:
        rows: All rows.
        apart: Those of accelerators without an instance type.

    Returns:
        Rows of whole instances, with the others unchanged; what has no partner is refused.
    """
    hosts = {
        (row.instance, row.zone or row.region): row for row in rows if row.instance and not row.name
    }
    dearest = _dearest(apart)
    joined: list[SkyRow] = []
    refused: list[Refusal] = []
    used: set[int] = set()
    for row in apart:
        names = HOSTS.get((row.name, int(row.count or 0)), ())
        found = [
            hosts[name, place] for name in names if (name, place := row.zone or row.region) in hosts
        ]
        if not found:
            refused.append(_without_host(row, names))
            continue
        part, faults = _checked_part(row, dearest[row.name, row.count])
        refused += faults
        joined += [_sum(part, host) for host in found]
        used |= {host.line for host in found}
    separate = {row.line for row in apart}
    for row in rows:
        if row.line in separate or row.line in used:
            continue
        if row.instance and not row.name:
            refused.append(row.refused("host without GPUs", "no GPU row of its zone fits it"))
        else:
            joined.append(row)
    return joined, refused


def _dearest(rows: Sequence[SkyRow]) -> dict[tuple[str, float | None], float]:
    highest: dict[tuple[str, float | None], float] = {}
    for row in rows:
        key = (row.name, row.count)
        highest[key] = max(highest.get(key, 0.0), row.on_demand or 0.0)
    return highest


def _without_host(row: SkyRow, names: Sequence[str]) -> Refusal:
    which = f"no row of {' or '.join(names)} in its zone" if names else "its host type is not known"
    return row.refused(
        "host part missing", f"the price is of the GPUs alone, and {which}; the two must be added"
    )


def _checked_part(row: SkyRow, dearest: float) -> tuple[SkyRow, list[Refusal]]:
    """Flag GPU prices that are most likely those of another SKU; drop such spot prices."""
    price = row.on_demand
    if price is not None and price < SPREAD * dearest:
        note = f"GPU part under half the price of the dearest region, {dearest:g}; look it up"
        row = replace(row, flag="suspect", note=note)
    try:
        spot_of(row.spot, price)
        return row, []
    except RefusedError as error:
        fault = Refusal(row.line, row.what, error.reason, error.detail, "spot")
        if price is not None and row.spot is not None and row.spot > price + ROUNDING:
            parts = (row.note, f"the source has the GPUs' spot at {row.spot:g}, above their price")
            row = replace(row, flag="suspect", note="; ".join(part for part in parts if part))
        return replace(row, spot=None), [fault]


def _sum(part: SkyRow, host: SkyRow) -> SkyRow:
    def both(first: float | None, second: float | None) -> float | None:
        return None if first is None or second is None else round(first + second, CENT_FRACTION)

    note = "; ".join(text for text in ("host and GPU rows added", part.note) if text)
    return replace(
        part,
        instance=host.instance,
        vcpus=host.vcpus,
        memory_gib=host.memory_gib,
        on_demand=both(part.on_demand, host.on_demand),
        spot=both(part.spot, host.spot),
        faults=(*part.faults, *(replace(fault, line=part.line) for fault in host.faults)),
        note=note,
    )
