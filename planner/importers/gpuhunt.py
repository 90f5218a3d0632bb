"""gpuhunt's catalog CSVs, current and legacy layout: a file per provider, spot on its own rows.

Source: https://github.com/dstackai/gpuhunt, src/gpuhunt/_internal/models.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import Fault, InputError, suggestion
from planner.files import CsvRow, read_csv
from planner.importers.gpu_info import MIB_PER_GB
from planner.importers.price_chips import ChipWords, identify
from planner.importers.price_rows import (
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
)
from planner.importers.price_source import provider_of, seen_of, stamp

WRITER = "gpuhunt catalog"
NEEDED = ("instance_name", "location", "price", "cpu", "memory", "gpu_count", "spot")
SPOT: Mapping[str, bool] = {"true": True, "1": True, "false": False, "0": False, "": False}
ESTIMATES: Mapping[tuple[str, str], str] = {
    ("crusoe", "b200-sxm"): "gpuhunt's authors estimated this price",
}
"""Prices that the source itself calls estimates: gpuhunt, providers/crusoe.py, 2026-08-19."""


def read_gpuhunt(file: PriceFile, known: Known) -> Imported:
    """Read a gpuhunt catalog.

    Args:
        file: ``<provider>.csv``; ``seen`` is required, since the rows have no date.
        known: What the catalog knows.

    Returns:
        On-demand and spot offers in USD.

    Raises:
        InputError: Not such a file, no date, or no provider.
    """
    rows = read_csv(file.path)
    header = rows[0].values if rows else {}
    faults = [
        Fault("line 1", name, f"this column is missing{suggestion(name, header)}")
        for name in NEEDED
        if name not in header
    ]
    if faults:
        faults.append(Fault("", "", "not a gpuhunt catalog; name its <provider>.csv"))
        raise InputError(str(file.path), faults)
    provider, seen = provider_of(file, known), seen_of(file, WRITER)
    common = stamp(file, seen, WRITER) | {"provider": provider}
    drafts: list[Draft] = []
    refused: list[Refusal] = []
    for row in rows:
        try:
            drafts.append(_draft(row, known, common))
        except RefusedError as error:
            what = described(row.values["instance_name"], row.values["location"])
            refused.append(Refusal(row.line, what, error.reason, error.detail))
    return settle(drafts, refused, len(rows))


def _draft(row: CsvRow, known: Known, common: Mapping[str, str]) -> Draft:
    cells = row.values
    price = price_of(cells["price"])
    if price is None:
        raise RefusedError("no price", "no price; look it up")
    missing = [name for name in NEEDED if not cells[name] and name not in ("spot", "price")]
    if missing:
        raise RefusedError("incomplete row", f"no {', '.join(missing)}; fill it in")
    spot = SPOT.get(cells["spot"].casefold())
    if spot is None:
        detail = f"spot is {ascii(cells['spot'])[:20]}; write True or False"
        raise RefusedError("unusable value", detail)
    count, name = number_of(cells["gpu_count"]), cells.get("gpu_name", "")
    if not count or not name:
        raise RefusedError("no accelerator", "the row has no accelerator")
    size = number_of(cells.get("gpu_memory", ""))
    readings = (frozenset({size * MIB_PER_GB}),) if size else ()
    provider = common["provider"]
    chip = identify(
        ChipWords(provider, cells["instance_name"], name, count=count, readings=readings), known
    )
    vcpus, memory = number_of(cells["cpu"]), number_of(cells["memory"])
    estimate = ESTIMATES.get((provider.casefold(), chip.accelerator.id), "")
    values: dict[str, Any] = {
        **common,
        "instance_type": cells["instance_name"],
        "accelerator": chip.accelerator.id,
        "gpus": chip.gpus,
        "link": chip.link,
        "vcpus": vcpus,
        "memory_gib": memory,
        "region": cells["location"],
        "flag": "estimate" if estimate else chip.flag or host_flag(vcpus, memory),
        "note": "; ".join(part for part in (estimate, chip.note) if part),
    }
    return Draft(row.line, "spot" if spot else "on_demand", price, values)
