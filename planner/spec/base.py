"""The base of every spec: frozen, strict, no unknown keys."""

from __future__ import annotations

import datetime
import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict

T = TypeVar("T")
Many = Annotated[tuple[T, ...], Strict(False)]
"""Values in their order, where people write them: a list of Python does as well."""


class Spec(BaseModel):
    """A frozen value read from or written to a file.

    Sequences are tuples: ``files`` hands YAML and JSON lists over as tuples.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=()
    )


Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]


def _day(value: object) -> object:
    """Read the text YYYY-MM-DD, as of a quoted date; what is no date is left for its fault."""
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except ValueError:
        return value


Day = Annotated[datetime.date, BeforeValidator(_day)]
"""A date; a file may quote it, and JSON has to."""


def first_day(date: str) -> datetime.date:
    """Return the first day of YYYY, YYYY-MM or YYYY-MM-DD (raises ValueError: there is none).

    >>> str(first_day("2026-09"))
    '2026-09-01'
    """
    return datetime.date.fromisoformat(date + "-01-01"[len(date) - 4 :])


def _on_the_calendar(date: str) -> str:
    try:
        first_day(date)
    except ValueError:
        raise ValueError(f"there is no {date}; write YYYY-MM-DD, YYYY-MM or YYYY") from None
    return date


Seen = Annotated[str, Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$"), AfterValidator(_on_the_calendar)]
"""A date, as precise as it is known: YYYY, YYYY-MM or YYYY-MM-DD."""


class Source(Spec):
    """Where catalog figures come from.

    Attributes:
        keys: Keys of the entry that this source supports (``for`` in YAML); dots reach inside.
        title: What was read; begins with ``assumed`` if the figure is a guess.
        url: Address, where one exists.
        retrieved: The day it was read.
        note: Conversions and doubts.
    """

    keys: Annotated[tuple[str, ...], Field(alias="for", min_length=1)]
    title: Name
    url: str = ""
    retrieved: Day
    note: str = ""

    @property
    def assumed(self) -> bool:
        """Whether the figure is a guess."""
        return self.title.casefold().startswith("assumed")
