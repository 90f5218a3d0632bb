"""One run inside a benchmark's result file: reads its numbers and gathers what is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.spec.result import Load, Statistics


@dataclass
class Entry:
    """A run as the tool wrote it.

    Attributes:
        data: Its mapping; lists are tuples.
        place: Where in the file; empty = the file is one run.
        faults: What makes it unusable, in plain words.
    """

    data: Mapping[str, Any]
    place: str = ""
    faults: list[str] = field(default_factory=list)

    def get(self, *path: str) -> Any:
        """Return what stands at a key path; None if any part of it is missing."""
        found: Any = self.data
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def number(self, *path: str) -> float | None:
        """Return a number at or above 0, or None if it is missing, null or not finite.

        Anything else is a fault.
        """
        value = self.get(*path)
        if value is None or value in ("inf", "nan"):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.faults.append(f"{'.'.join(path)}: {str(value)[:40]!r} is not a number")
            return None
        if not math.isfinite(value):
            return None
        if value < 0:
            self.faults.append(f"{'.'.join(path)}: {value:g} is below 0")
            return None
        return float(value)

    def positive(self, *path: str) -> float | None:
        """Return a number above 0; 0 counts as missing."""
        return self.number(*path) or None

    def required(self, *path: str) -> float:
        """Return a number above 0; a fault, and 1, if there is none."""
        before = len(self.faults)
        value = self.number(*path)
        if value:
            return value
        if len(self.faults) == before:
            told = "is 0" if value == 0 else "is missing"
            self.faults.append(f"{'.'.join(path)} {told}")
        return 1.0

    def count(self, *path: str, required: bool = False) -> int:
        """Return a whole number; 0, or if required a fault and 1, where there is none."""
        return round(self.required(*path) if required else self.number(*path) or 0.0)

    def text(self, *path: str) -> str:
        """Return a text; empty where there is none."""
        value = self.get(*path)
        return value[:200] if isinstance(value, str) else ""


def statistics(
    mean: float | None, percentiles: Mapping[float, float | None], factor: float = 1.0
) -> Statistics | None:
    """Return the statistics of what is present, in ms; None if nothing is.

    Args:
        mean: In the tool's unit.
        percentiles: By percent, in the tool's unit.
        factor: Tool's unit in ms.
    """
    kept = {
        share: value * factor
        for share, value in percentiles.items()
        if value is not None and 0 < share < 100
    }
    if mean is None and not kept:
        return None
    return Statistics(mean=None if mean is None else mean * factor, percentiles=kept)


def load_of(concurrency: float | None, rate: float | None) -> Load:
    """Return what kind of load a limit in flight and a rate of arrivals make.

    With both, arrivals wait in the client once the limit is reached: such a run counts as
    closed-loop, since its rate is that of the server.
    """
    if concurrency is not None:
        return "closed_loop"
    return "offline_batch" if rate is None else "open_loop"


def check_latencies(entry: Entry, ttft: Statistics | None, tpot: Statistics | None) -> None:
    """Add a fault if a run tells neither TTFT nor TPOT."""
    if ttft is None and tpot is None and not entry.faults:
        entry.faults.append("neither TTFT nor TPOT; run the tool with streaming on")
