"""Limits of what a search may be asked, for the command line and for Python alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import get_args

from planner.errors import Fault, InputError, suggestion


@dataclass(frozen=True)
class Span:
    """Numbers that an argument may have.

    Attributes:
        least: The smallest one.
        most: The largest one; None = no limit.
        whole: Whether it counts something.
    """

    least: float
    most: float | None = None
    whole: bool = True

    def fault(self, value: object) -> str:
        """Return what is wrong with a value; empty = nothing."""
        kind, name = (Integral, "a whole number") if self.whole else (Real, "a number")
        if isinstance(value, bool) or not isinstance(value, kind) or math.isnan(value):
            return f"{value!r} is not {name}"
        if float(value) < self.least:
            return f"{value!r} must be at least {self.least:g}"
        if self.most is not None and float(value) > self.most:
            return f"{value!r} must be at most {self.most:.0f}"
        return ""


SEED = Span(0, 2**32 - 1)
TRIALS = Span(1, 10**6)
TIME_LIMIT = Span(0.1, whole=False)
JOBS = Span(1)
SPANS: Mapping[str, Span] = {
    "seed": SEED,
    "trials": TRIALS,
    "time_limit": TIME_LIMIT,
    "jobs": JOBS,
}
"""Argument -> numbers that it may have."""
OPTIONAL = ("trials", "time_limit")
"""Arguments that may be None."""


def check_arguments(
    source: str, words: Mapping[str, tuple[object, object]], **given: object
) -> None:
    """Refuse arguments that no search can be run with.

    Args:
        source: The function that was called.
        words: Argument -> its value and the ``Literal`` that it must be one of.
        given: Numbers, by the names of ``SPANS``.

    Raises:
        InputError: Every argument at fault.
    """
    faults = [Fault("", *fault) for fault in (*_numbers(given), *_words(words))]
    if faults:
        raise InputError(source, faults)


def _numbers(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if value is None and name in OPTIONAL:
            continue
        if message := SPANS[name].fault(value):
            yield name, message


def _words(words: Mapping[str, tuple[object, object]]) -> Iterator[tuple[str, str]]:
    for name, (value, form) in words.items():
        known = get_args(form)
        if value not in known:
            hint = suggestion(str(value), known) or f"; known are {', '.join(known)}"
            yield name, f"{value!r} is unknown{hint}"
