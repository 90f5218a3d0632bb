"""What tests give to workers: importable, so that other processes find it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from planner.commands.portfolio_task import Finished, Task, run


def squared(task: tuple[int, str]) -> int:
    return task[0] ** 2


def dies_once(task: tuple[int, str]) -> int:
    """Kill the worker that gets number 5, the first time."""
    number, folder = task
    mark = Path(folder) / "died"
    if number == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def dies_late(task: tuple[int, str, bytes]) -> int:
    """Kill the worker that gets number 0, the first time, while all workers are busy."""
    number, folder, _ = task
    mark = Path(folder) / "died"
    time.sleep(0.5)
    if number == 0 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def dies_always(task: tuple[int, str]) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return task[0]


def leaves_its_number(task: tuple[int, str]) -> int:
    """Tell which process works, slowly enough to be killed."""
    number, folder = task
    (Path(folder) / f"worker-{os.getpid()}").touch()
    time.sleep(0.05)
    return number**2


def never_ends(task: tuple[int, str]) -> int:
    """Tell which process works, and work for ever."""
    number, folder = task
    (Path(folder) / f"worker-{os.getpid()}").touch()
    time.sleep(600)
    return number


def refuses(task: Task) -> tuple[Finished, ...]:
    raise AssertionError(f"{[plan.name for plan in task.plans]} should not be planned again")


def counted(task: Task) -> tuple[Finished, ...]:
    """Plan in a process that dies the first time, if the task's folder says so."""
    mark = Path(os.environ["PLANNER_TEST_MARK"])
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run(task)
