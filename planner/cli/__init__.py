"""Arguments -> a function in ``commands`` -> a report. The only place that prints and exits."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from planner.errors import PlannerError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``plan``; exits with 0 done, 2 wrong input, 3 no option, 4 a pick moved, 1 our fault."""
    from planner.cli.app import app

    try:
        app(args=arguments, prog_name="plan")
    except PlannerError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader has gone (``plan ... | head``): nothing is left to say, nor to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
