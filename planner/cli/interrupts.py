"""Ctrl-C: what runs may keep what it has found, and the shell is told all the same."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells have it."""


@contextmanager
def noting_interrupts() -> Iterator[list[int]]:
    """Give a list that takes every Ctrl-C, which is raised as ever.

    A run in the background, which shells start with Ctrl-C ignored, goes on ignoring it.
    """
    seen: list[int] = []
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield seen
        return

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
