"""Tasks on this process, a pool of processes, or a Dask cluster; what a dead worker had is redone.

Every task's result is handed over exactly once, as soon as it is there, in any order.
"""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from planner.errors import InputError, PlannerError, install
from planner.files.temporary import temporary_folder
from planner.search.children import end_after
from planner.search.simulated_workers import ending_in_order

Task = TypeVar("Task")
Result = TypeVar("Result")

ROUNDS = 3
"""Pools in a row that may die without finishing anything."""
RETRIES = 3
"""Times that Dask runs a task again."""
UNREAD = "deserialization of the task graph"
"""What Dask says of tasks that its scheduler cannot read."""
PATIENCE = "10s"
"""How long a scheduler may take to answer."""


def results(
    work: Callable[[Task], Result], tasks: Sequence[Task], *, jobs: int = 1, cluster: str = ""
) -> Iterator[tuple[int, Result]]:
    """Yield the number and result of every task as it is finished.

    Args:
        work: What is done with a task; importable, so that other processes find it.
        tasks: What there is to do.
        jobs: Processes on this machine; 1 = this one.
        cluster: Address of a Dask scheduler instead, as ``tcp://host:8786``.

    Raises:
        InputError: The cluster cannot be used.
        PlannerError: Workers keep dying.
    """
    if cluster:
        yield from _on_cluster(work, tasks, cluster)
    elif jobs == 1 or len(tasks) <= 1:
        yield from ((number, work(task)) for number, task in enumerate(tasks))
    else:
        yield from _in_pool(work, tasks, jobs)


def _in_pool(
    work: Callable[[Task], Result], tasks: Sequence[Task], jobs: int
) -> Iterator[tuple[int, Result]]:
    left = dict(enumerate(tasks))
    fruitless = 0
    while left:
        before = len(left)
        for number, result in _one_pool(work, left, jobs):
            del left[number]
            yield number, result
        fruitless = fruitless + 1 if len(left) == before else 0
        if fruitless == ROUNDS:
            message = "worker processes keep dying, perhaps for want of memory; lower --jobs"
            raise PlannerError(message)


def _one_pool(
    work: Callable[[Task], Result], left: Mapping[int, Task], jobs: int
) -> Iterator[tuple[int, Result]]:
    """Yield what one pool finishes; one dead worker ends the whole pool."""
    # A fresh interpreter each: forking a process that has threads may deadlock.
    fresh = get_context("spawn")
    theirs, mine = fresh.Pipe(duplex=False)
    with ending_in_order(), temporary_folder("plan-tasks-") as folder:
        # Not through the pipe to the workers: where a task fills that as one of them dies, pools of
        # older Pythons, as 3.11.2, wait for ever.
        given = folder / "tasks"
        given.write_bytes(pickle.dumps((work, dict(left))))
        pool = ProcessPoolExecutor(
            min(jobs, len(left)), mp_context=fresh, initializer=_begin, initargs=(theirs, given)
        )
        try:
            futures: dict[Future[Any], int] = {pool.submit(_do, number): number for number in left}
            for future in as_completed(futures):
                try:
                    result = future.result()
                except BrokenProcessPool:
                    continue
                yield futures.pop(future), result
        except BrokenProcessPool:
            return
        except BaseException:
            # After Ctrl-C, or any fault, nobody waits for what the workers are at.
            mine.close()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            mine.close()
            theirs.close()


_given: dict[int, Callable[[], Any]] = {}
"""What a worker may be asked to do, by number."""


def _begin(parent: Connection, given: Path) -> None:
    """Read the tasks, leave Ctrl-C to the process at the other end of the pipe, end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_after(lambda: parent.poll(None))
    work, tasks = pickle.loads(given.read_bytes())
    _given.update({number: partial(work, task) for number, task in tasks.items()})


def _do(number: int) -> Any:
    return _given[number]()


def _on_cluster(
    work: Callable[[Task], Result], tasks: Sequence[Task], address: str
) -> Iterator[tuple[int, Result]]:
    with _client(address) as client, _told_where_the_program_is_missing():
        futures = {
            client.submit(work, task, pure=False, retries=RETRIES): number
            for number, task in enumerate(tasks)
        }
        finished = import_module("distributed").as_completed(list(futures), loop=client.loop)
        for future in finished:
            result: Result = future.result()
            yield futures.pop(future), result


@contextmanager
def _told_where_the_program_is_missing() -> Iterator[None]:
    """Refuse a scheduler that cannot read what it is sent."""
    try:
        yield
    except RuntimeError as error:
        if UNREAD not in str(error):
            raise
        message = "lacks this program; install the same slo-planner for its scheduler and workers"
        raise InputError("--cluster", [message]) from error


def _client(address: str) -> Any:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise InputError("--cluster", [f"needs Dask; {install('cluster')}"]) from None
    try:
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        message = f"no scheduler answers at '{address}'; start one with `dask scheduler`"
        raise InputError("--cluster", [message]) from error
