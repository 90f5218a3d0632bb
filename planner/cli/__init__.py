"""Arguments -> a function in ``commands`` -> a report. The only place that prints and exits."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from planner.errors import PlannerError

CYCLES_EVERY = 200_000
"""Objects made between two searches for unreachable cycles: a short command makes fewer, and
Python's own 700 costs its start-up a tenth."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``plan``; exits with 0 done, 2 wrong input, 3 no option, 4 a pick moved, 1 our fault.

    After Ctrl-C with 130, also where what was found until then is shown.
    """
    # A stream that the shell has closed (``>&-``) is None.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    gc.set_threshold(CYCLES_EVERY)
    # NumPy starts a thread of linear algebra for every core as it is imported, in 0.05 s. Arrays
    # here are too small for more than one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from planner.cli.interrupts import INTERRUPTED, noting_interrupts

    try:
        with noting_interrupts() as interrupts:
            code = _exit_code(arguments)
    finally:
        # What is left goes with the process; to search it for cycles takes longer than a reprice.
        gc.freeze()
    sys.exit(INTERRUPTED if interrupts else code)


def _exit_code(arguments: Sequence[str] | None) -> str | int | None:
    """Run ``plan`` and return what it exits with."""
    try:
        from planner.cli.app import app
        from planner.cli.output import hush

        app(args=arguments, prog_name="plan")
    except PlannerError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader has gone (``plan ... | head``): nothing is left to say, nor to flush.
        hush()
    except KeyboardInterrupt:
        # Before typer, which would catch it, is there.
        pass
    except SystemExit as done:
        return done.code
    return 0
