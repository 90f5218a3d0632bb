"""Errors that a user can mend: where, what is wrong, how to repair it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from planner.counting import counted

MOST_SHOWN = 100
"""Faults of one input that a message lists; more only tell that it is the wrong file."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong in an input.

    Attributes:
        where: Place inside the source, as ``line 4`` or ``row 7``; may be empty.
        key: The key, column or option that is at fault; may be empty.
        message: What is wrong and, after a semicolon, how to repair it.
    """

    where: str
    key: str
    message: str

    def __str__(self) -> str:
        head = "  ".join(part for part in (self.where, self.key) if part)
        return _printable(f"{head}: {self.message}" if head else self.message)


class PlannerError(Exception):
    """Base of all errors that end the program without a traceback."""

    exit_code = 1


class InputError(PlannerError):
    """An input that cannot be used; carries every fault of that input at once."""

    exit_code = 2

    def __init__(self, source: str, faults: Iterable[Fault | str]) -> None:
        """Args: source: file or option at fault; faults: at least one."""
        self.source = source
        self.faults = tuple(Fault("", "", f) if isinstance(f, str) else f for f in faults)
        super().__init__(str(self))

    def __str__(self) -> str:
        count = len(self.faults)
        title = f"{_printable(self.source)}: {counted(count, 'problem')}"
        lines = [f"  {fault}" for fault in self.faults[:MOST_SHOWN]]
        if count > MOST_SHOWN:
            lines.append(f"  ... and {count - MOST_SHOWN:,} more")
        return "\n".join([title, *lines])


def _printable(text: str) -> str:
    """Return text with its control characters spelt out: names in it may come from anywhere."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the nearest known word, or an empty string."""
    by_fold = {name.casefold(): name for name in known}
    near = get_close_matches(word.casefold(), by_fold, n=1, cutoff=0.6)
    return f"; did you mean '{by_fold[near[0]]}'?" if near else ""


def install(extra: str) -> str:
    """Return the command that adds an extra, as README has it.

    It works beside an installation from a checkout, too: pip fetches only what that lacks.
    """
    return f"pip install 'slo-planner[{extra}]'"
