"""Processes of this program that a search starts: plain ones, so that none needs a main guard.

``multiprocessing`` would run a user's script again, which plans. A child is told where to import
from, leaves Ctrl-C to the process that started it, and reads what to do from its input.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from threading import Thread
from typing import IO

Child = subprocess.Popen[bytes]

BEGIN = """
import importlib, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
module, sys.path[:] = sys.argv[1], sys.argv[2:]
main = importlib.import_module(module).main
main()
"""
"""A child imports what this process would import."""


def start(module: str, *, stdout: int, stderr: int | None = None) -> Child:
    """Start a process that runs ``main`` of a module.

    Args:
        module: Full name of the module.
        stdout, stderr: As of ``subprocess.Popen``.

    Raises:
        OSError: It cannot be started.
    """
    command = [sys.executable, "-c", BEGIN, module, *map(str, sys.path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr)


def send(message: object, pipe: IO[bytes]) -> None:
    """Write one message so that the other side has it (raises OSError)."""
    pickle.dump(message, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.flush()


def end_after(wait: Callable[[], object]) -> None:
    """End this process, whatever it is at, once a call returns or fails.

    Args:
        wait: Waits for the end of a pipe whose other end the parent has. The system closes that
            when the parent dies, however it does.
    """

    def end() -> None:
        try:
            wait()
        finally:
            os._exit(1)

    Thread(target=end, daemon=True).start()
