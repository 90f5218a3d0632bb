"""Processes that simulate: they end with their parent, and a script needs no guard for them."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from planner.errors import PlannerError
from planner.files.temporary import temporary_folder
from planner.search.search import search
from planner.search.simulated import Sight, around
from planner.search.simulated_workers import ending_in_order, run_processes
from tests.search.problems import random_problem
from tests.search.test_simulated import EXAMPLES, Formula, job, nothing, store


@pytest.fixture(scope="module")
def where():
    problem = random_problem(3)
    result = search(problem)
    guide = np.arange(1.0, 1.0 + len(problem.tables.hardware))
    return around(problem, result.table, guide, result.entries.rows.take(np.arange(40)))


@dataclass(frozen=True)
class Endless(Formula):
    """Writes down the process that simulates, and never ends."""

    folder: str = ""

    def __call__(self, problem, table, rows) -> Sight:
        Path(self.folder, str(os.getpid())).touch()
        time.sleep(600)
        raise AssertionError


def alone(where, folder: Path) -> None:
    """A process of its own for a study of two workers that never end."""
    tempfile.tempdir = str(folder)
    # A shell lets its background jobs ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ending_in_order(), temporary_folder("plan-study-") as temporary:
        study = store(temporary / "s.log")
        run_processes(job(where, Endless(folder=str(folder / "pids"))), study, 2, nothing)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent(number, where, tmp_path):
    """Expected: no worker is left, and no folder either where the parent could remove it.

    Ctrl-C ends a study with what it has; the command line tells the shell (test_interrupts.py).
    """
    pids = tmp_path / "pids"
    pids.mkdir()
    parent = get_context("spawn").Process(target=alone, args=(where, tmp_path))
    parent.start()
    assert parent.pid is not None
    until(lambda: len(list(pids.iterdir())) == 2)
    os.kill(parent.pid, number)
    parent.join()
    expected = {signal.SIGINT: 0, signal.SIGTERM: 143, signal.SIGKILL: -number}
    assert parent.exitcode == expected[number]
    until(lambda: not any(running(int(path.name)) for path in pids.iterdir()))
    assert bool(list(tmp_path.glob("plan-study-*"))) == (number == signal.SIGKILL)


def running(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def until(holds) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_script_without_a_guard_simulates_in_several_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from planner import plan\n"
        f"slo = {str(EXAMPLES / 'chat-70b.yaml')!r}\n"
        "record = plan(slo, space='quick', score='simulate', trials=4, jobs=2, verify=False)\n"
        "print(record.search.mode)\n"
    )
    path = os.pathsep.join(map(str, [EXAMPLES.parent, *sys.path]))
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.stdout, done.stderr, done.returncode) == ("search\n", "", 0)


@dataclass(frozen=True)
class Mortal(Formula):
    """Kills every process that simulates."""

    def __call__(self, problem, table, rows) -> Sight:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def test_workers_that_always_die_end_the_run(where, tmp_path):
    with pytest.raises(PlannerError, match="die again and again"):
        run_processes(job(where, Mortal()), store(tmp_path / "s.log"), 1, nothing)
