"""A reprice of a default plan, with start-up: CPU time of the whole process.

Half a second is asked for on an idle machine, and held (0.49 s) where PLANNER_SPEED is set; other
runs share their machine, so that they only guard against a slow import or a slow loop.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from planner.commands.plan import plan
from planner.report.json_text import render

ROOT = Path(__file__).parents[2]
LIMIT = 0.55 if "PLANNER_SPEED" in os.environ else 1.2
"""CPU seconds."""
RUNS = 5
COMMAND = "from planner.cli import main; main()"


def cpu_seconds(file: Path, cache: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "reprice", str(file)],
        env=kept | {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(cache)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_reprice_takes_half_a_second_with_start_up(tmp_path: Path):
    file = tmp_path / "plan.json"
    record = plan(ROOT / "examples" / "chat-70b.yaml", verify=False)
    file.write_text(render(record), encoding="utf-8")
    # The first run compiles, and writes what the others read.
    assert min(cpu_seconds(file, tmp_path / "cache") for _ in range(RUNS)) < LIMIT
