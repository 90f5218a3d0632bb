"""A plan on the wide space, start-up included, the simulation of picks not: wall time on two cores.

Ten seconds are asked for on an idle machine, and held where PLANNER_SPEED is set; figures of such
runs stand in planner/search/README.md#figures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ("rag-8b", "chat-70b", "code-moe-mla", "long-context", "offline-batch")
LIMIT = 10.0
"""Seconds."""
RUNS = 3
COMMAND = "from planner.cli import main; main()"


def seconds(example: str, folder: Path) -> float:
    slo, out = ROOT / "examples" / f"{example}.yaml", folder / "plan.json"
    began = time.monotonic()
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            COMMAND,
            "--slo",
            slo,
            "--space",
            "wide",
            "--no-verify",
            "--out",
            out,
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began


@pytest.mark.skipif(
    "PLANNER_SPEED" not in os.environ, reason="set PLANNER_SPEED on a quiet machine"
)
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_plan_on_the_wide_space_takes_at_most_ten_seconds(example, tmp_path):
    assert min(seconds(example, tmp_path) for _ in range(RUNS)) <= LIMIT
