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
    """Run ``plan``; exits with 0 done, 2 wrong input, 3 no option, 4 a pick moved, 1 our fault."""
    # A stream that the shell has closed (``>&-``) is None.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    gc.set_threshold(CYCLES_EVERY)
    from planner.cli.app import app
    from planner.cli.output import hush

    try:
        app(args=arguments, prog_name="plan")
    except PlannerError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader has gone (``plan ... | head``): nothing is left to say, nor to flush.
        hush()
    finally:
        # What is left goes with the process; to search it for cycles takes longer than a reprice.
        gc.freeze()
