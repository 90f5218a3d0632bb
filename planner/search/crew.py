"""Processes that decide the parts of a large search: this one, and helpers that it starts.

Threads would not help: NumPy spends too little time on so few rows between its turns of the
interpreter. The part that a helper was at when it died is decided by another process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import parent_process
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Self

import numpy as np

from planner.search.children import Child, send, start
from planner.search.helper import Answer, Question
from planner.search.parts import Part
from planner.search.problem import Problem
from planner.search.shapes import ShapeTable

POLL_S = 0.05
"""How often a process that waits for others looks whether to stop, or to take over a part."""
PATIENCE_S = 1.0
"""How long helpers whose time is up may take to say what they have found."""
HELPER = "planner.search.helper"
GONE = (OSError, EOFError, pickle.UnpicklingError)
"""How a helper that has died shows."""


def usable_cores() -> int:
    """Return how many processes a search may have: the cores that are free for it."""
    no_interpreter = not sys.executable or getattr(sys, "frozen", False)
    if no_interpreter or parent_process() is not None:
        # A process of a pool leaves the cores to the others of the pool.
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Crew:
    """This process and its helpers; a context that ends them."""

    def __init__(
        self, problem: Problem, table: ShapeTable, processes: int, end: float = np.inf
    ) -> None:
        """Start the helpers, which get ready while this process goes on.

        Args:
            problem, table: What is searched.
            processes: How many, this one included. What cannot be started is done without.
            end: When to stop, on the clock of ``time.monotonic`` [s].
        """
        self.end = end
        self._whole = True
        self._open: SimpleQueue[Part | None] = SimpleQueue()
        self._decided: SimpleQueue[tuple[Part, Answer]] = SimpleQueue()
        self.helpers: list[tuple[Child, Thread]] = []
        with suppress(OSError):
            for _ in range(processes - 1):
                self._start((problem, table))

    def _start(self, known: tuple[Problem, ShapeTable]) -> None:
        process = start(HELPER, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        thread = Thread(target=self._talk, args=(process, known), daemon=True)
        self.helpers.append((process, thread))
        thread.start()

    def _talk(self, process: Child, known: tuple[Problem, ShapeTable]) -> None:
        """Give a helper one open part after the other."""
        asked, answers, part = process.stdin, process.stdout, None
        assert asked is not None
        assert answers is not None
        try:
            send(known, asked)
            pickle.load(answers)
            while (part := self._open.get()) is not None:
                left = self.end - time.monotonic()
                send(Question(part.shapes, part.archive.entries, left), asked)
                self._decided.put((part, pickle.load(answers)))
        except GONE:
            pass
        finally:
            if part is not None:
                self._open.put(part)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process, _thread in self.helpers:
            process.kill()
            self._open.put(None)
        for process, thread in self.helpers:
            thread.join()
            with suppress(OSError), process:
                pass

    def decide(
        self, parts: Sequence[Part], stop: Callable[[], bool], done: Callable[[float], None]
    ) -> bool:
        """Decide parts; their archives take what is found.

        Args:
            parts: The largest first.
            stop: Polled; helpers stop by the clock.
            done: Told the share that is decided.

        Returns:
            Whether all of them are decided.
        """
        for part in parts:
            self._open.put(part)
        total, decided, left = max(sum(len(part.shapes) for part in parts), 1), 0, len(parts)
        while left:
            mine = self._next()

            def share(of_mine: float, before: int = decided, of: Part | None = mine) -> None:
                done((before + of_mine * (len(of.shapes) if of else 0)) / total)

            if stop() or (mine is not None and not mine.decide(stop, share)):
                for _ in range(left - self._open.qsize() - (mine is not None)):
                    self._answered(PATIENCE_S)
                return False
            ended = mine or self._answered(POLL_S)
            if ended is not None:
                decided, left = decided + len(ended.shapes), left - 1
        return self._whole

    def _next(self) -> Part | None:
        """Return an open part; None = helpers have the rest."""
        try:
            return self._open.get_nowait()
        except Empty:
            return None

    def _answered(self, seconds: float) -> Part | None:
        """Take an answer and return its part; None = there is none in this time."""
        try:
            part, answer = self._decided.get(timeout=seconds)
        except Empty:
            return None
        part.archive.entries, part.archive.scored = answer.entries, answer.scored
        self._whole = self._whole and answer.whole
        return part
