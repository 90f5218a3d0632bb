"""Runs a simulated study: in this process, or in several that share it and may die."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import PlannerError
from planner.search.children import Child, end_after, send, start
from planner.search.simulated import (
    OBJECTIVES,
    Around,
    Score,
    Simulated,
    Simulation,
    breeder,
    enqueue,
    finished,
    holding,
)
from planner.search.storage import quiet
from planner.search.stored_study import Store, stored_study
from planner.search.study import FIRST_GENERATION

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

WORKER = "worker"
"""User attribute: host and process that runs a trial."""
LIVES = 3
"""Times that a trial is tried whose workers die."""
TRIED = "tried_before"
POLL_S = 0.2
Progress = Callable[[str, float], None]
PHRASE = "simulating around the front"


@dataclass(frozen=True)
class Job:
    """A simulated search.

    Attributes:
        around: Where.
        score: Simulates.
        seed: Of the sampler; every process derives its own.
        trials: Trials of the whole study, seeds included.
        time_limit: Seconds after which no trial begins.
    """

    around: Around
    score: Score
    seed: int
    trials: int
    time_limit: float = np.inf


Task = tuple[Job, Store, int, float]
"""What a worker is told: the search, where its study is, its own number, and when to end [s]."""


def run_here(job: Job, store: Store | None, progress: Progress) -> Simulated:
    """Run a study in this process and return what holds; no store = in memory."""
    with _study(job, store, 0) as study:
        _tidy(study, job)
        interrupted = False
        try:
            _work(study, job, time.monotonic() + job.time_limit, progress)
        except KeyboardInterrupt:
            interrupted = True
        return _held(study, job, interrupted=interrupted)


def run_processes(job: Job, store: Store, jobs: int, progress: Progress) -> Simulated:
    """Run a study in several processes that share it, and return what holds.

    A process that dies is replaced, and its trial is tried again; one that dies elsewhere is
    noticed by its missing heartbeat, where the storage is a database.

    Args:
        job: What to do.
        store: Where the study is; not in memory.
        jobs: Processes.
        progress: Called with a phrase and the share done.

    Raises:
        PlannerError: Processes die again and again.
    """
    end = time.time() + job.time_limit
    with _study(job, store, 0) as study:
        _tidy(study, job)
        running: list[Child] = []
        spares, interrupted = LIVES * jobs, False
        try:
            for number in range(1, jobs + 1):
                _start(running, (job, store, number, end))
            while running:
                time.sleep(POLL_S)
                dead = [p for p in running if p.poll() is not None]
                for process in dead:
                    running.remove(process)
                    _stop(process)
                    if process.returncode:
                        requeue(study, _mark(process.pid))
                    if process.returncode and not spares:
                        raise PlannerError("--jobs: the worker processes die again and again")
                    if process.returncode:
                        number = jobs + LIVES * jobs - spares + 1
                        _start(running, (job, store, number, end))
                        spares -= 1
                progress(PHRASE, min(_done(study) / job.trials, 1.0))
        except KeyboardInterrupt:
            interrupted = True
        finally:
            for process in running:
                _stop(process)
                requeue(study, _mark(process.pid))
        return _held(study, job, interrupted=interrupted)


def _held(study: Study, job: Job, *, interrupted: bool) -> Simulated:
    found = holding(job.around, study.get_trials(deepcopy=False))
    return replace(found, interrupted=interrupted)


def _start(running: list[Child], task: Task) -> None:
    """Start a process; it is among the running ones before it has anything to do."""
    process = start(__name__, stdout=subprocess.DEVNULL)
    running.append(process)
    assert process.stdin is not None
    # One that has died before it could read is noticed by its exit code.
    with suppress(OSError):
        send(task, process.stdin)


def _stop(process: Child) -> None:
    process.terminate()
    with suppress(OSError), process:
        pass


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM unwind what is within, so that it cleans up, unless the caller handles it."""
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def main() -> None:
    """Work on what standard input says, and end with the process that writes it."""
    try:
        task: Task = pickle.load(sys.stdin.buffer)
    except EOFError:
        return
    # A study takes that as it takes a kill.
    end_after(lambda: os.read(sys.stdin.fileno(), 1))
    _worker(*task)


def _worker(job: Job, store: Store, number: int, end: float) -> None:
    """Work on a shared study until it has its trials."""
    try:
        with _study(job, store, number) as study:
            _work(study, job, time.monotonic() + end - time.time(), lambda *_: None)
    except PlannerError as error:
        # The parent meets the same fault of the storage, and tells it.
        sys.exit(error.exit_code)


@contextmanager
def _study(job: Job, store: Store | None, number: int) -> Iterator[Study]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if store is None:
        yield optuna.create_study(directions=["minimize"] * OBJECTIVES, sampler=breeder(job.seed))
        return
    # What a process proposes must differ from what another one, or an earlier run, proposes.
    entropy = [job.seed, number, os.getpid(), time.time_ns()]
    seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
    with stored_study(store, OBJECTIVES, breeder(seed), _retry) as study:
        yield study


def _tidy(study: Study, job: Job) -> None:
    """Queue again what processes of this machine left that are gone, and queue the seeds."""
    for mark in {t.user_attrs.get(WORKER, "") for t in _running(study)}:
        host, _, pid = mark.rpartition(":")
        if host == socket.gethostname() and not _alive(int(pid)):
            requeue(study, mark)
    enqueue(study, job.around)


def _work(study: Study, job: Job, end: float, progress: Progress) -> None:
    simulation = Simulation(job.around, job.score, {WORKER: _mark(os.getpid())})
    with quiet():
        while (done := _done(study)) < job.trials and time.monotonic() < end:
            progress(PHRASE, done / job.trials)
            study.optimize(simulation, n_trials=1)


def _done(study: Study) -> int:
    return len(finished(study.get_trials(deepcopy=False)))


def _mark(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _running(study: Study) -> list[FrozenTrial]:
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))


def requeue(study: Study, mark: str) -> None:
    """Close the open trials of a process that is gone and queue their parameters again.

    Args:
        study: The shared study.
        mark: Host and process id, as trials carry it.
    """
    from optuna.trial import TrialState

    for trial in _running(study):
        if trial.user_attrs.get(WORKER) == mark:
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
            _retry(study, trial)


def _retry(study: Study, trial: FrozenTrial) -> None:
    """Queue the parameters of a trial whose worker is gone, a few times at most."""
    import optuna

    tried = int(trial.user_attrs.get(TRIED, 0)) + 1
    if tried >= LIVES or not trial.params:
        return
    kept = {k: v for k, v in trial.system_attrs.items() if k in FIRST_GENERATION}
    attributes = {k: v for k, v in trial.user_attrs.items() if k != WORKER}
    study.add_trial(
        optuna.create_trial(
            state=optuna.trial.TrialState.WAITING,
            params=trial.params,
            distributions=trial.distributions,
            user_attrs={**attributes, TRIED: tried},
            system_attrs=kept,
        )
    )
