"""Writing fitted values and measured errors into ``efficiency.yaml``; the rest stays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.errors import InputError
from planner.measured.values import TIES, Place
from planner.spec.efficiency import ErrorEntry

ERRORS = "\nerrors:"
"""Where the measured errors begin; all below it is written anew."""
ENTRY = re.compile(r"^  (?:- )?(\w[\w-]*):")
TABLE = re.compile(r"^(\w+):")


@dataclass(frozen=True)
class Interval:
    """A fitted value with its 5 and 95 %, and the rows behind it."""

    value: float
    low: float
    high: float
    rows: int


def with_fitted(text: str, fitted: Mapping[Place, Interval]) -> str:
    """Return the text of ``efficiency.yaml`` with values replaced.

    Raises:
        InputError: A value has no entry of the form ``key: {value: ...}``.
    """
    wanted = {tied: found for place, found in fitted.items() for tied in (place, *_tied(place))}
    lines = text.split("\n")
    done: set[Place] = set()
    table, entry, number = "", "", -1
    for index, line in enumerate(lines):
        if match := TABLE.match(line):
            table, number = match[1], -1
        elif match := ENTRY.match(line):
            number += table == "accelerators"
            entry = str(number) if table == "accelerators" else match[1]
        for place, found in wanted.items():
            if place[0] != table or (table != "parameters" and place[1] != entry):
                continue
            lines[index], count = _pattern(place[-1]).subn(_literal(found), lines[index])
            done |= {place} if count else set()
    missing = [".".join(place) for place in fitted if place not in done]
    if missing:
        raise InputError("efficiency.yaml", [f"{name}: no entry to write" for name in missing])
    return "\n".join(lines)


def _tied(place: Place) -> tuple[Place, ...]:
    return TIES.get(place, ())


def _pattern(key: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<!\w)({key}: (?:&\w+ )?\{{)value: [^,}}]+(?:, low: [^,}}]+, high: [^,}}]+)?"
        r"(?:, rows: \d+)?"
    )


def _literal(found: Interval) -> str:
    return (
        rf"\g<1>value: {found.value:.6g}, low: {found.low:.4g}, high: {found.high:.4g}, "
        f"rows: {found.rows}"
    )


def with_errors(
    text: str, errors: Iterable[ErrorEntry], default_errors: Iterable[ErrorEntry]
) -> str:
    """Return the text of ``efficiency.yaml`` with all measured errors replaced."""
    head = text.split(ERRORS, maxsplit=1)[0]
    return f"{head}\n{_block('errors', errors)}{_block('default_errors', default_errors)}"


def _block(key: str, entries: Iterable[ErrorEntry]) -> str:
    lines = [
        f"  - {{generation: {e.generation}, accelerator: {e.accelerator}, metric: {e.metric}, "
        f"rows: {e.rows}, q10: {e.q10:g}, q50: {e.q50:g}, q90: {e.q90:g}, "
        f'evidence: {e.evidence}, source: "{e.source}"}}'
        for e in entries
    ]
    return "\n".join([f"{key}:", *lines, ""]) if lines else f"{key}: []\n"
