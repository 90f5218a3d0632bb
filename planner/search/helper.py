"""A process that decides parts of a search for another one, which ``crew.py`` started.

It reads problem and shape table, then parts, and answers each in turn. It ends with its input, and
so with the process that writes it.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import IO

from planner.search.archive import Archive, Entries
from planner.search.parts import Part


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
        shapes, entries = pickle.load(asked)
        archive = Archive(problem, table)
        archive.entries = entries
        Part(archive, shapes).decide(lambda: False, lambda _: None)
        answer: tuple[Entries, int] = archive.entries, archive.scored
        send(answer, answers)


def send(message: object, pipe: IO[bytes]) -> None:
    """Write one message so that the other side has it (raises OSError)."""
    pickle.dump(message, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.flush()
