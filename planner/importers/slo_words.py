"""What readers of foreign SLO files share: names of engines, the choice of an entry, rounding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from planner.errors import InputError, suggestion
from planner.importers.draft import Foreign, Given

Values = dict[str, Given]
Chosen = TypeVar("Chosen")

NO_PERCENTILE = "the file names no percentile: p95"
ENGINES: Mapping[str, str] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "trtllm": "tensorrt-llm",
    "tensorrt-llm": "tensorrt-llm",
}
"""How others call engines -> our id; other words (auto, tgi, mock) choose none."""


def engine(foreign: Foreign, *path: str) -> Values:
    """Return the choice of an engine; empty where it is none of ours."""
    found = ENGINES.get(str(foreign.peek(*path)).casefold())
    if found is None:
        return {}
    foreign.skip(*path)
    return {"engines": Given((found,))}


def limit(metric: str, value: float, comment: str) -> Values:
    """Return a target [ms] of a file that names no percentile."""
    return {f"slo.{metric}_p95_ms": Given(rounded(value), f"{comment}; {NO_PERCENTILE}")}


def limits(foreign: Foreign, names: Mapping[str, str], *block: str) -> Values:
    """Return the targets of a block that states them in ms.

    Args:
        foreign: The file.
        names: Key in the block -> our metric.
        block: Key path of the block.
    """
    values: Values = {}
    for name, metric in names.items():
        found = foreign.positive(*block, name)
        if found is not None:
            values |= limit(metric, found, name)
    return values


def rounded(value: float) -> float:
    """Return six significant digits, whole numbers as int."""
    number = float(f"{value:.6g}")
    return int(number) if number.is_integer() else number


def chosen(source: str, what: str, entries: Mapping[str, Chosen], entry: str) -> Chosen:
    """Return the entry that was named, or the only one.

    Raises:
        InputError: None was named and there are several, or there is none of that name.
    """
    if not entries:
        raise InputError(source, [f"holds no {what}; add one"])
    if not entry and len(entries) == 1:
        return next(iter(entries.values()))
    names = ", ".join(entries)
    if not entry:
        raise InputError(source, [f"holds more than one {what}; name one with --entry: {names}"])
    by_fold = {name.casefold(): value for name, value in entries.items()}
    if entry.casefold() not in by_fold:
        hint = suggestion(entry, entries) or f"; known are {names}"
        raise InputError("--entry", [f"'{entry}' is no {what} of {source}{hint}"])
    return by_fold[entry.casefold()]
