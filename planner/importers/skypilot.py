"""SkyPilot's catalog CSVs: every provider's columns and GpuInfo shapes, traps refused or flagged.

Source: https://github.com/skypilot-org/skypilot-catalog, README and catalogs/v8/*/vms.csv.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from planner.errors import Fault, InputError, suggestion
from planner.files import CsvRow, read_csv
from planner.importers.gpu_info import parse_gpu_info
from planner.importers.price_chips import Chip, ChipWords, identify, memory_readings
from planner.importers.price_rows import (
    ROUNDING,
    Draft,
    Imported,
    Known,
    PriceFile,
    Refusal,
    RefusedError,
    described,
    host_flag,
    number_of,
    price_of,
    settle,
    spot_above,
    spot_of,
)
from planner.importers.price_source import PROVIDERS, provider_of, seen_of, stamp
from planner.importers.skypilot_gcp import join_hosts
from planner.importers.skypilot_row import SkyRow

WRITER = "SkyPilot catalog"
NEEDED = ("instancetype", "acceleratorname", "acceleratorcount", "price", "region")
AUCTIONS: Mapping[str, str] = {
    "mithril": "the floor of an auction, where bids start; what is paid lies above it",
}
"""Providers whose listed price is no price."""
TPU_PLACEHOLDER = 700.0
"""What the catalog holds for a TPU without a price; skypilot-catalog v8 gcp, commit 006059e0."""
TPU_SLICES: Mapping[str, tuple[str, int]] = {
    "v2": ("tpu-v2", 2),
    "v3": ("tpu-v3", 2),
    "v4": ("tpu-v4", 2),
    "v5litepod": ("tpu-v5e", 1),
    "v5p": ("tpu-v5p", 2),
    "v6e": ("tpu-v6e", 1),
}
"""Accelerator and units a chip in slice names: v5p-8 counts cores, two a chip.

Source: https://cloud.google.com/tpu/docs, "TPU configurations".
"""
# AWS local zones and Google AI zones carry the name of a region that they do not stand in.
_APART = re.compile(r"[a-z]+\d-[a-z]{3}\d+(-az\d+)?|.*-ai\d+[a-z]")


def read_skypilot(file: PriceFile, known: Known) -> Imported:
    """Read a SkyPilot catalog.

    Args:
        file: ``vms.csv`` of one provider; ``seen`` is required, since the rows have no date.
        known: What the catalog knows.

    Returns:
        On-demand and spot offers per region (the lowest of its zones) in USD.

    Raises:
        InputError: Not such a file, no date, or no provider.
    """
    source = str(file.path)
    cells = read_csv(file.path)
    _check_header(source, cells)
    provider, seen = provider_of(file, known), seen_of(file, WRITER)
    rows = [_row(row) for row in cells]
    joined, refused = _joined(rows)
    common = stamp(file, seen, WRITER) | {"provider": provider}
    drafts: list[Draft] = []
    for row in joined:
        try:
            if provider.casefold() in AUCTIONS:
                raise RefusedError("auction floor", AUCTIONS[provider.casefold()])
            made, faults = _drafts(row, known, common)
            drafts += made
            refused += faults
        except RefusedError as error:
            refused.append(row.refused(error.reason, error.detail))
    return settle(drafts, refused, len(rows))


def _check_header(source: str, cells: Sequence[CsvRow]) -> None:
    if not cells:
        raise InputError(source, ["no rows below the header; download the catalog again"])
    columns = {name.casefold(): name for name in cells[0].values}
    faults = [
        Fault("line 1", name, f"this column is missing{suggestion(name, columns)}")
        for name in NEEDED
        if name not in columns
    ]
    if faults:
        faults.append(Fault("", "", "not a SkyPilot price catalog; name its <provider>/vms.csv"))
        raise InputError(source, faults)


def _row(row: CsvRow) -> SkyRow:
    cells = {name.casefold(): text for name, text in row.values.items()}
    instance, name = cells["instancetype"], cells["acceleratorname"]
    region, zone = cells["region"].strip(" ,"), cells.get("availabilityzone", "")
    what = described(instance or name, zone or region)
    faults: list[Refusal] = []
    prices: dict[str, float | None] = {}
    for term, column in (("on_demand", "price"), ("spot", "spotprice")):
        text = cells.get(column, "")
        try:
            none = term == "spot" and number_of(text) == 0
            prices[term] = None if none else price_of(text)
        except RefusedError as error:
            part: Any = term
            prices[term] = None
            faults.append(Refusal(row.line, what, error.reason, error.detail, part))
    apart = _APART.fullmatch(zone.casefold()) is not None
    hints = ("upstreamcloudid", "spheroninstancetype", "provider")
    return SkyRow(
        line=row.line,
        instance=instance,
        name=name,
        region=zone if apart else region,
        zone=zone,
        hints=tuple(cells[column] for column in hints if cells.get(column)),
        count=number_of(cells["acceleratorcount"]),
        info=parse_gpu_info(cells.get("gpuinfo", "")),
        vcpus=number_of(cells.get("vcpus", "")),
        memory_gib=number_of(cells.get("memorygib", "")),
        on_demand=prices["on_demand"],
        spot=prices["spot"],
        faults=tuple(faults),
        note=f"{zone} stands apart from {region}" if apart else "",
    )


def _joined(rows: Sequence[SkyRow]) -> tuple[list[SkyRow], list[Refusal]]:
    """Return rows that hold host and accelerator; Google lists the two apart."""
    apart = [row for row in rows if row.name and not row.instance and not _slice(row)]
    if not apart:
        return list(rows), []
    return join_hosts(rows, apart)


def _slice(row: SkyRow) -> tuple[str, int] | None:
    """Return the accelerator id and chips of a TPU slice."""
    match = re.fullmatch(r"tpu-(\w+)-(\d+)", row.name.casefold())
    if not match or match.group(1) not in TPU_SLICES:
        return None
    chip, units = TPU_SLICES[match.group(1)]
    return chip, max(int(match.group(2)) // units, 1)


def _drafts(
    row: SkyRow, known: Known, common: Mapping[str, str]
) -> tuple[list[Draft], list[Refusal]]:
    chip = _chip(row, known, common["provider"])
    values: dict[str, Any] = {
        **common,
        "instance_type": row.instance or row.name,
        "accelerator": chip.accelerator.id,
        "gpus": chip.gpus,
        "link": chip.link,
        "vcpus": row.vcpus,
        "memory_gib": row.memory_gib,
        "region": row.region,
        "flag": row.flag or chip.flag or host_flag(row.vcpus, row.memory_gib),
        "note": "; ".join(part for part in (row.note, chip.note) if part),
    }
    faults, spot = list(row.faults), row.spot
    on_demand = row.on_demand and Draft(row.line, "on_demand", row.on_demand, values)
    if row.on_demand is None and not any(fault.part == "on_demand" for fault in faults):
        detail = "no price on demand; look it up" if spot else "no price; look it up"
        faults.append(Refusal(row.line, row.what, "no price", detail, "on_demand"))
    try:
        spot = _checked_spot(row)
    except RefusedError as error:
        faults.append(Refusal(row.line, row.what, error.reason, error.detail, "spot"))
        above = error.reason == "spot not below on-demand"
        if on_demand and above and spot is not None and spot > on_demand.price + ROUNDING:
            on_demand = spot_above(on_demand, spot)
        spot = None
    made = [on_demand] if on_demand else []
    return ([*made, Draft(row.line, "spot", spot, values)] if spot else made), faults


def _checked_spot(row: SkyRow) -> float | None:
    if _slice(row) and TPU_PLACEHOLDER in (row.spot, row.on_demand):
        raise RefusedError("placeholder price", f"{TPU_PLACEHOLDER:g} stands for a missing price")
    return spot_of(row.spot, row.on_demand)


def _chip(row: SkyRow, known: Known, provider: str) -> Chip:
    tpu = _slice(row)
    if tpu is not None:
        if row.on_demand == TPU_PLACEHOLDER:
            detail = f"{TPU_PLACEHOLDER:g} stands for a missing price"
            raise RefusedError("placeholder price", detail)
        words = ChipWords(provider, row.name, tpu[0], count=float(tpu[1]))
        return identify(words, known)
    if not row.name and not row.info.name:
        raise RefusedError("no accelerator", "the row has no accelerator")
    count = row.count if row.count is not None else (row.info.count or None)
    # Aggregators put the seller before its own name of the instance.
    seller = row.instance.partition("_")[0].casefold()
    seller = PROVIDERS.get(seller, seller)
    words = ChipWords(
        provider=provider,
        instance=row.instance,
        name=row.name or row.info.name,
        hints=(*row.hints, row.info.name),
        count=count,
        readings=memory_readings(row.info.size_mib, row.info.total_mib, count or 1.0),
        also=tuple((seller, own) for own in (row.instance, *row.hints)),
    )
    return identify(words, known)
