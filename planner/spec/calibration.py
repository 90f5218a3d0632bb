"""``calibration.yaml``: factors on predictions, from someone's own benchmark runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from planner.files import digest
from planner.spec.base import Count, Name, NonNegative, Positive, Spec
from planner.spec.load import KeyFaultsError, load_yaml


class CalibrationKey(NamedTuple):
    """What a factor holds for: catalog ids, and the weight format's id."""

    model: str
    accelerator: str
    generation: str
    weights: str


class Factors(NamedTuple):
    """What predicted TTFT and TPOT are multiplied by; 1 = as the model says."""

    ttft: float
    tpot: float


class Factor(Spec):
    """One factor, and how far to trust it.

    Attributes:
        value: What the prediction is multiplied by: the median of measured / predicted, drawn
            towards 1 by what few points can tell.
        low, high: Smallest and largest measured / predicted.
        points: Runs behind it.
        error_before, error_after: Mean |predicted / measured - 1| of each run: with no factor,
            and with the factor that the other runs give.
    """

    value: Positive
    low: Positive
    high: Positive
    points: Annotated[int, Field(ge=2)]
    error_before: NonNegative
    error_after: NonNegative


class CalibrationEntry(Spec):
    """Factors of one key; None where no two runs measured the metric.

    Attributes:
        model, accelerator, generation, weights: The key.
        sources: Runs behind it.
    """

    model: Name
    accelerator: Name
    generation: Name
    weights: Name
    ttft: Factor | None = None
    tpot: Factor | None = None
    sources: Annotated[tuple[Name, ...], Field(min_length=2)]

    @property
    def key(self) -> CalibrationKey:
        """What the factors hold for."""
        return CalibrationKey(self.model, self.accelerator, self.generation, self.weights)


class Rejection(Spec):
    """A run that was not used, and why."""

    source: Name
    reason: Annotated[str, Field(min_length=1)]


class Calibration(Spec):
    """The whole file.

    Attributes:
        schema_version: Version of this layout.
        date: When the runs were made, as their owner states it (YYYY-MM-DD).
        catalog_digest: SHA-256 of the catalog whose predictions the factors correct.
        entries: By key.
        rejected: Runs that were not used.
    """

    schema_version: Literal[1] = 1
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    catalog_digest: Name
    entries: tuple[CalibrationEntry, ...]
    rejected: tuple[Rejection, ...] = ()

    @model_validator(mode="after")
    def _one_entry_a_key(self) -> Self:
        seen: set[CalibrationKey] = set()
        faults = []
        for number, entry in enumerate(self.entries):
            if entry.key in seen:
                faults.append((f"entries[{number}]", "a second entry of this key; keep one"))
            seen.add(entry.key)
        if faults:
            raise KeyFaultsError(*faults)
        return self

    @property
    def points(self) -> Count:
        """Runs behind all entries."""
        return sum(len(entry.sources) for entry in self.entries)

    @property
    def digest(self) -> str:
        """SHA-256 of what the file says, whatever its layout."""
        return digest(json.dumps(self.model_dump(mode="json"), sort_keys=True))

    def factors(self, key: CalibrationKey) -> Factors:
        """Return the factors of a key; 1 where there is none.

        The product with a prediction may fall below the speed-of-light bound: take the larger.
        """
        entry = next((entry for entry in self.entries if entry.key == key), None)
        if entry is None:
            return Factors(1.0, 1.0)
        return Factors(*(f.value if f is not None else 1.0 for f in (entry.ttft, entry.tpot)))


def apply(calibration: Calibration | None, key: CalibrationKey) -> Factors:
    """Return what predicted TTFT and TPOT of a key are multiplied by; 1 without a calibration."""
    return Factors(1.0, 1.0) if calibration is None else calibration.factors(key)


def read_calibration(path: Path) -> Calibration:
    """Read a calibration file.

    Raises:
        InputError: With every fault of it.
    """
    return load_yaml(path, Calibration)
