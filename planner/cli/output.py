"""Writing to stdout, stderr and files; progress on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PIPE_WIDTH = 120
"""Columns where stdout is no terminal."""

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
    """Write a result to stdout."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


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


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Progress | None]:
    """Show progress on stderr; None where that is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return

    def show(what: str, share: float) -> None:
        line = f"{what} {share * 100:3.0f} %"
        sys.stderr.write(f"\r\033[K{line}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
