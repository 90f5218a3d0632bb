"""Workers: every result once, whatever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import pytest

from planner.commands import workers
from planner.commands.workers import results
from planner.errors import InputError, PlannerError
from tests.commands.chores import (
    dies_always,
    dies_late,
    dies_once,
    leaves_its_number,
    never_ends,
    squared,
)
from tests.search.test_simulated_workers import running, until

NUMBERS = range(12)


def chores(folder: Path, count: int = len(NUMBERS)) -> list[tuple[int, str]]:
    return [(number, str(folder)) for number in range(count)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_is_done_once(jobs, tmp_path):
    found = list(results(squared, chores(tmp_path), jobs=jobs))
    assert sorted(found) == [(number, number**2) for number in NUMBERS]


def test_what_a_killed_worker_had_is_done_again_and_nothing_twice(tmp_path):
    found = list(results(dies_once, chores(tmp_path), jobs=2))
    assert (tmp_path / "died").exists()
    assert sorted(found) == [(number, number**2) for number in NUMBERS]


def large(folder: Path) -> None:
    """A process of its own, one of whose workers dies."""
    tasks = [(number, str(folder), bytes(1_000_000)) for number in range(6)]
    assert sorted(results(dies_late, tasks, jobs=2)) == [(number, number) for number in range(6)]


def test_tasks_larger_than_a_pipe_do_not_wait_for_a_worker_that_died(tmp_path):
    process = get_context("spawn").Process(target=large, args=(tmp_path,))
    process.start()
    process.join(60)
    over = process.exitcode
    process.kill()
    assert (tmp_path / "died").exists()
    assert over == 0


def test_workers_that_always_die_end_in_one_line(tmp_path):
    with pytest.raises(PlannerError, match="keep dying"):
        list(results(dies_always, chores(tmp_path, 3), jobs=2))


def pool(folder: Path) -> None:
    """A process of its own whose workers never end."""
    list(results(never_ends, chores(folder, 3), jobs=2))


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent_whatever_they_are_at(number, tmp_path):
    parent = get_context("spawn").Process(target=pool, args=(tmp_path,))
    parent.start()
    assert parent.pid is not None
    until(lambda: len(list(tmp_path.iterdir())) == 2)
    os.kill(parent.pid, number)
    parent.join(60)
    assert parent.exitcode
    pids = [int(path.name.removeprefix("worker-")) for path in tmp_path.iterdir()]
    until(lambda: not any(map(running, pids)))


def test_no_tasks_give_no_results():
    assert list(results(squared, [], jobs=2)) == []


def test_a_missing_extra_is_named_in_one_line(monkeypatch):
    def without(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(workers, "import_module", without)
    with pytest.raises(InputError, match=r"slo-planner\[cluster\]"):
        list(results(squared, [(1, "")], cluster="tcp://127.0.0.1:1"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    made = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    )
    yield made
    made.close()


def test_a_cluster_finishes_every_task_once_though_a_worker_is_killed_half_way(cluster, tmp_path):
    count, found, killed = 60, [], 0
    work = results(leaves_its_number, chores(tmp_path, count), cluster=cluster.scheduler_address)
    for number, result in work:
        found.append((number, result))
        if len(found) == count // 2:
            killed = int(next(tmp_path.glob("worker-*")).name.removeprefix("worker-"))
            os.kill(killed, signal.SIGKILL)
    assert killed
    assert sorted(found) == [(number, number**2) for number in range(count)]


def test_a_scheduler_that_lacks_the_program_is_a_mistake_of_the_user(tmp_path, monkeypatch):
    """A module that the scheduler cannot import stands for the program."""
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    (tmp_path / "only_here.py").write_text("def work(task): return task")
    monkeypatch.syspath_prepend(tmp_path)
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    command += ["--no-dashboard", "--scheduler-file", str(tmp_path / "s.json")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as scheduler:
        until((tmp_path / "s.json").exists)
        address = json.loads((tmp_path / "s.json").read_text())["address"]
        with pytest.raises(InputError, match="lacks this program"):
            list(results(import_module("only_here").work, [1], cluster=address))
        scheduler.terminate()


def test_an_address_where_nobody_answers_is_a_mistake_of_the_user(monkeypatch):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    monkeypatch.setattr(workers, "PATIENCE", "500ms")
    began = time.monotonic()
    with pytest.raises(InputError, match="dask scheduler"):
        list(results(squared, [(1, "")], cluster="tcp://127.0.0.1:9"))
    assert time.monotonic() - began < 30
