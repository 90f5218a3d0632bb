"""Writing to stdout, stderr and files; progress on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from planner.errors import InputError
from planner.units import MILLI

if TYPE_CHECKING:
    from planner.commands.score import ScoreTable

WRONG_INPUT = 2
"""Exit code."""

PIPE_WIDTH = 120
"""Columns where stdout is no terminal."""

CLEAR = "\r\033[K"
"""Takes back the line that the cursor is in."""

BAR = 20
"""Signs of a progress bar."""
FIRST_ESTIMATE_S = 1.0
"""A stage runs so long before the time left is told."""

PLAIN_LINES = {
    **dict.fromkeys(map(ord, "━─"), "-"),
    **dict.fromkeys(map(ord, "┃│"), "|"),
    **dict.fromkeys(map(ord, "┏┳┓┡╇┩└┴┘"), "+"),
}
"""Code of a character that frames tables -> ASCII."""

Progress = Callable[[str, float], None]
"""(what is being done, share done 0-1)."""


def terminal_width() -> int:
    """Return the columns to lay tables out for."""
    if not sys.stdout.isatty():
        return PIPE_WIDTH
    return max(shutil.get_terminal_size((PIPE_WIDTH, 40)).columns, 60)


def use_color() -> bool:
    """Return whether stdout is a terminal that wants colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def put(text: str) -> None:
    """Write a result to stdout; characters that its encoding lacks become ones that it has.

    Raises:
        InputError: It cannot be written, as on a full disk.
    """
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate(PLAIN_LINES)
        text = plain.encode(encoding, errors="replace").decode(encoding)
    try:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        hush()
        message = f"cannot be written ({error.strerror}); write to a file by --out"
        raise InputError("stdout", [message]) from None


def hush() -> None:
    """Send what is left in stdout's buffer to nowhere: it cannot be written any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Write a remark to stderr."""
    print(text, file=sys.stderr)


def save(path: Path, text: str) -> None:
    """Write a result file at once, or to stdout where the path is ``-``."""
    from planner.files import write_text

    if str(path) == "-":
        put(text)
    else:
        write_text(path, text)


def save_points(path: Path, table: ScoreTable) -> None:
    """Write a table of deployments and say its remarks; nothing is written if no row is one."""
    from planner.report.csv_text import table_text

    if table.usable:
        save(path, table_text(table.columns, table.rows))
    for remark in table.remarks:
        say(remark)
    if not table.usable:
        raise typer.Exit(WRONG_INPUT)


class Stages:
    """Times the stages of a run and tells each on stderr when it ends."""

    def __init__(self, first: str, *, verbose: bool) -> None:
        """Args: first: the stage that has begun; verbose: False = say nothing."""
        self.verbose = verbose
        self._stage = first
        self._begun = self._since = time.perf_counter()

    def enter(self, stage: str) -> None:
        """End the stage before, unless it is the same."""
        if stage != self._stage:
            self._tell(self._stage, self._since)
            self._stage, self._since = stage, time.perf_counter()

    def end(self) -> None:
        """End the last stage, and tell the whole."""
        self._tell(self._stage, self._since)
        self._tell("in all", self._begun)

    def _tell(self, stage: str, since: float) -> None:
        if self.verbose:
            clear = CLEAR if sys.stderr.isatty() else ""
            say(f"{clear}{(time.perf_counter() - since) / MILLI:8.0f} ms  {stage}")


class Remaining:
    """Says how long the rest of a stage takes, from how long its share done took."""

    def __init__(self) -> None:
        self._stage = ""
        self._begun = self._share = 0.0

    def left(self, stage: str, share: float, now: float) -> str:
        """Return the time left as text; empty where it is too early to say.

        Args:
            stage: What is being done; another one begins anew.
            share: Share of it that is done, 0 to 1.
            now: Clock [s].
        """
        if stage != self._stage or share < self._share:
            self._stage, self._begun, self._share = stage, now, share
        done, spent = share - self._share, now - self._begun
        if spent < FIRST_ESTIMATE_S or done <= 0:
            return ""
        return f", {_duration(spent / done * (1.0 - share))} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def progress(*, quiet: bool = False, stages: Stages | None = None) -> Iterator[Progress | None]:
    """Show progress on stderr where that is a terminal, and time its stages; None for neither."""
    shown = sys.stderr.isatty() and not quiet and os.environ.get("TERM") != "dumb"
    timed = stages if stages is not None and stages.verbose else None
    if not shown and timed is None:
        yield None
        return

    clock = Remaining()

    def show(what: str, share: float) -> None:
        if timed is not None:
            timed.enter(what)
        if shown:
            left = clock.left(what, share, time.perf_counter())
            bar = "#" * round(share * BAR) + "." * (BAR - round(share * BAR))
            sys.stderr.write(f"{CLEAR}{what} [{bar}] {share * 100:3.0f} %{left}")
            sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
