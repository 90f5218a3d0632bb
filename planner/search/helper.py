"""A process that decides parts of a search for another one, which ``crew.py`` started.

It reads problem and shape table, then parts, and answers each in turn. It ends with its input, and
so with the process that writes it.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from dataclasses import dataclass
from typing import IO

from planner.model.arrays import Indices
from planner.search.archive import Archive, Entries
from planner.search.children import send
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
        try:
            serve(sys.stdin.buffer, answers)
        except (EOFError, BrokenPipeError):
            return


def serve(asked: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there is nothing to read, or nobody to read it (EOFError, OSError)."""
    problem, table = pickle.load(asked)
    send(None, answers)
    while True:
        send(_answer(problem, table, pickle.load(asked)), answers)


def _answer(problem: Problem, table: ShapeTable, question: Question) -> Answer:
    archive = Archive(problem, table)
    archive.entries = question.entries
    end = time.monotonic() + question.seconds
    whole = Part(archive, question.shapes).decide(lambda: time.monotonic() > end, lambda _: None)
    return Answer(archive.entries, archive.scored, whole)
