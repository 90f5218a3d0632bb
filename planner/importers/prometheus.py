"""Prometheus text dumps: counters and histograms, summed over label sets.

Source:
    Prometheus text exposition format 0.0.4; quantiles by linear interpolation inside a bucket, as
    PromQL's ``histogram_quantile``. Retrieved 2026-11-29.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.errors import Fault, InputError
from planner.files.disk import read_text
from planner.units import MILLI

DUMP_BYTES = 64_000_000

_SAMPLE = re.compile(
    r"([a-zA-Z_:][\w:]*)\s*(?:\{(.*)\})?\s+([-+]?[\w.+-]+)(?:\s+(-?\d+))?(?:\s+#.*)?"
)
_LABEL = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Histogram:
    """Observations by upper bound.

    Attributes:
        bounds: Upper bounds, ascending; the last is infinite.
        counts: Observations up to each bound.
        total: Sum of the observations.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float

    @property
    def count(self) -> float:
        """Number of observations."""
        return self.counts[-1]

    @property
    def mean(self) -> float:
        """Mean observation, which the buckets do not blur."""
        return self.total / self.count

    def quantile(self, share: float) -> float:
        """Return the value that a share of the observations stay within.

        Linear inside a bucket; beyond the last finite bound that bound.

        >>> Histogram((10.0, 20.0, math.inf), (1.0, 3.0, 4.0), 60.0).quantile(0.5)
        15.0
        """
        rank = share * self.count
        below, low = 0.0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            if count >= rank and count > below:
                if math.isinf(bound):
                    break
                return low + (bound - low) * (rank - below) / (count - below)
            below, low = count, low if math.isinf(bound) else bound
        return low


@dataclass(frozen=True)
class Dump:
    """One text dump.

    Attributes:
        source: File name, for messages.
        samples: Value by name and labels.
        end: When it was taken [s since 1970]: as it says, else when the file was last changed.
    """

    source: str
    samples: Mapping[tuple[str, Labels], float]
    end: float

    def labels(self, label: str, prefix: str) -> tuple[str, ...]:
        """Return the values of a label among samples whose name has a prefix, sorted."""
        found = {
            dict(labels).get(label, "") for name, labels in self.samples if name.startswith(prefix)
        }
        return tuple(sorted(found - {""}))

    def only(self, label: str, value: str) -> Dump:
        """Return the samples that have this value of a label, or do not have the label."""
        kept = {
            key: number
            for key, number in self.samples.items()
            if dict(key[1]).get(label, value) == value
        }
        return Dump(self.source, kept, self.end)

    def total(self, *names: str) -> float | None:
        """Return the sum of the first of these names that is there; None if none is."""
        for name in names:
            found = [number for (held, _), number in self.samples.items() if held == name]
            if found:
                return sum(found)
        return None

    def histogram(self, *names: str) -> Histogram | None:
        """Return the first of these histograms that is there and has observations."""
        for name in names:
            counts: dict[float, float] = {}
            for (held, labels), number in self.samples.items():
                bound = _float(dict(labels).get("le", "")) if held == f"{name}_bucket" else None
                if bound is not None:
                    counts[bound] = counts.get(bound, 0.0) + number
            bounds = tuple(sorted(counts))
            if bounds and counts[bounds[-1]] > 0:
                total = self.total(f"{name}_sum") or 0.0
                return Histogram(bounds, tuple(counts[bound] for bound in bounds), total)
        return None

    def since(self, earlier: Dump) -> Dump:
        """Return what was counted since an earlier dump; gauges become their change.

        Raises:
            InputError: A counter went back: the server was started anew in between.
        """
        before = earlier.samples
        made = {key: number - before.get(key, 0.0) for key, number in self.samples.items()}
        back = [name for (name, _), change in made.items() if change < 0 and _counts(name)]
        if back:
            message = (
                f"{back[0]} is lower than in {earlier.source}: give the earlier dump first, and two"
                " dumps of one run of the server"
            )
            raise InputError(self.source, [message])
        return Dump(self.source, made, self.end)


def read_dump(path: Path) -> Dump:
    """Read a dump of ``/metrics``.

    Raises:
        InputError: The file cannot be read, or a line is no sample.
    """
    source = str(path)
    samples: dict[tuple[str, Labels], float] = {}
    stamps: list[float] = []
    for number, line in enumerate(read_text(path, DUMP_BYTES).splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _SAMPLE.fullmatch(text)
        value = _float(match.group(3)) if match else None
        if match is None or value is None:
            message = "is no line of a Prometheus text dump; give what GET /metrics answers"
            raise InputError(source, [Fault(f"line {number}", "", message)])
        name, labels, _, stamp = match.groups()
        key = (name, tuple(sorted(_LABEL.findall(labels or ""))))
        samples[key] = samples.get(key, 0.0) + value
        if stamp:
            stamps.append(int(stamp) * MILLI)
    return Dump(source, samples, max(stamps) if stamps else path.stat().st_mtime)


def _counts(name: str) -> bool:
    return name.endswith(("_total", "_bucket", "_count", "_sum"))


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
