"""A row of a SkyPilot catalog, read."""

from __future__ import annotations

from dataclasses import dataclass

from planner.importers.gpu_info import GpuInfo
from planner.importers.price_rows import Reason, Refusal, described


@dataclass(frozen=True)
class SkyRow:
    """A row of a SkyPilot catalog.

    Attributes:
        line: Line in the file.
        instance, name, region, zone: As written.
        hints: The provider's own name of the instance, the seller behind an aggregator.
        count: AcceleratorCount; None = empty.
        info: The GpuInfo cell.
        vcpus, memory_gib: Of the host.
        on_demand, spot: Prices per instance-hour; None = none.
        faults: Refused prices of this row.
        flag, note: What joining rows found out.
    """

    line: int
    instance: str
    name: str
    region: str
    zone: str
    hints: tuple[str, ...]
    count: float | None
    info: GpuInfo
    vcpus: float | None
    memory_gib: float | None
    on_demand: float | None
    spot: float | None
    faults: tuple[Refusal, ...] = ()
    flag: str = ""
    note: str = ""

    @property
    def what(self) -> str:
        """Name in a refusal."""
        return described(self.instance or self.name, self.zone or self.region)

    def refused(self, reason: Reason, detail: str) -> Refusal:
        """Return the refusal of the whole row."""
        return Refusal(self.line, self.what, reason, detail)
