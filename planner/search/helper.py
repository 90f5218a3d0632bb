"""A process that decides parts of a search for another one, which ``crew.py`` started.

It reads problem and shape table, then parts, and answers each in turn. It ends with its input, and
so with the process that writes it, whatever it is at.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import IO, Any

from planner.model.arrays import Indices
from planner.search.archive import Archive, Entries
from planner.search.children import end_after, send
from planner.search.parts import Part
from planner.search.problem import Problem
from planner.search.shapes import ShapeTable


@dataclass(frozen=True)
class Question:
    """A part: its shapes, what is known of their hardware classes, and the time for it [s]."""

    shapes: Indices
    entries: Entries
    seconds: float


@dataclass(frozen=True)
class Answer:
    """What is known then, how many deployments were scored, and whether all are decided."""

    entries: Entries
    scored: int
    whole: bool


def main() -> None:
    """Serve standard input and output; whatever else is printed goes nowhere."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        inbox: SimpleQueue[Any] = SimpleQueue()
        # Not sys.stdin: the interpreter cannot close that while a thread reads it.
        asked = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        end_after(lambda: _read(asked, inbox))
        with suppress(BrokenPipeError):
            serve(inbox.get, answers)


def _read(asked: IO[bytes], inbox: SimpleQueue[Any]) -> None:
    """Take in messages until there are no more (EOFError)."""
    while True:
        inbox.put(pickle.load(asked))


def serve(asked: Callable[[], Any], answers: IO[bytes]) -> None:
    """Answer one message after the other until nobody reads the answers (OSError)."""
    problem, table = asked()
    send(None, answers)
    while True:
        send(_answer(problem, table, asked()), answers)


def _answer(problem: Problem, table: ShapeTable, question: Question) -> Answer:
    archive = Archive(problem, table)
    archive.entries = question.entries
    end = time.monotonic() + question.seconds
    whole = Part(archive, question.shapes).decide(lambda: time.monotonic() > end, lambda _: None)
    return Answer(archive.entries, archive.scored, whole)
