"""Running the program in this process, as a person would from a shell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from planner.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a run left behind: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    """Run ``plan`` with these arguments."""
    capsys.readouterr()
    return Outcome(exit_code(arguments), *capsys.readouterr())


def exit_code(arguments: Sequence[str]) -> int:
    """Run ``plan`` and return its exit code; 0 where it returns."""
    try:
        main(list(arguments))
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
