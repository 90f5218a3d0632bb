"""Stored studies: killed at any moment they resume, and nothing is lost, repeated or spoilt."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from planner import plan
from planner.errors import InputError
from planner.search.archive import Archive
from planner.search.archive_trials import add_archive
from planner.search.search import Settings, search
from planner.search.stored_study import recovered, search_study
from planner.search.study import (
    FIRST_GENERATION,
    FOUND_BY,
    POPULATION,
    explore,
    labels_of,
    plant,
)
from tests.search.postgres import database, needs_postgres
from tests.search.problems import random_problem, vectors
from tests.search.stores import judge_of, rows_of, settings, store, stored, told

KILLS = int(os.environ.get("PLANNER_KILLS", "3"))
"""Kills of each storage; 20 at acceptance."""
TRIALS = 120
SLO = Path(__file__).parents[2] / "examples" / "chat-70b.yaml"
RUN = """
import sys, time
from optuna import Study
from planner import plan
add = Study.add_trial
Study.add_trial = lambda *given: (time.sleep(0.005), add(*given))
plan(sys.argv[1], space="quick", verify=False, trials=int(sys.argv[2]), storage=sys.argv[3])
"""
"""A run whose trials are not all added between two looks at them."""


def states(trials) -> dict[str, int]:
    names = [trial.state.name for trial in trials]
    return {name: names.count(name) for name in set(names)}


def test_a_stored_search_gives_what_one_in_memory_gives(tmp_path):
    problem = random_problem(3)
    plain = search(problem, settings=Settings(trials=80))
    kept = search(problem, settings=settings(tmp_path / "s.log"))
    assert vectors(kept.entries) == vectors(plain.entries)
    assert (kept.trials, kept.scored) == (plain.trials, plain.scored)


def test_a_finished_study_asks_for_nothing_more(tmp_path):
    problem = random_problem(3)
    first = search(problem, settings=settings(tmp_path / "s.log"))
    before = len(stored(str(tmp_path / "s.log")))
    again = search(problem, settings=settings(tmp_path / "s.log"))
    assert len(stored(str(tmp_path / "s.log"))) == before
    assert again.trials == first.trials == 80
    assert again.scored == first.scored
    assert vectors(again.entries) == vectors(first.entries)


def test_more_trials_continue_the_study_and_propose_something_new(tmp_path):
    problem = random_problem(3)
    search(problem, settings=settings(tmp_path / "s.log", 60))
    first = stored(str(tmp_path / "s.log"))
    assert search(problem, settings=settings(tmp_path / "s.log", 120)).trials == 120
    every = stored(str(tmp_path / "s.log"))
    assert [t.values for t in every[: len(first)]] == [t.values for t in first]
    sampled = [tuple(t.params.items()) for t in every if FOUND_BY not in t.user_attrs]
    assert len(sampled) == 120
    assert sampled[:60] != sampled[60:]


def test_a_dashboard_sees_parameters_objectives_and_constraints(tmp_path):
    problem = random_problem(3)
    search(problem, settings=settings(tmp_path / "s.log"))
    labels = labels_of(problem)
    trials = stored(str(tmp_path / "s.log"))
    assert len(trials) > 80
    for trial in trials:
        assert {key: trial.params[key] in known for key, known in labels.items()} == dict.fromkeys(
            labels, True
        )
        assert trial.constraints.keys() == {"targets"}
        assert len(trial.values) == 4


@pytest.mark.parametrize("planted", [0, 20])
def test_what_was_asked_and_never_told_is_told_and_seeds_come_once(tmp_path, planted):
    """Expected: 3 whole trials told, 2 half ones closed, every seed once."""
    problem = random_problem(3)
    judge = judge_of(problem)
    seeds = np.arange(POPULATION, dtype=np.intp)
    from planner.search.study import _distributions

    with search_study(problem, 0, store(tmp_path / "s.log")) as study:
        plant(study, judge, seeds[:planted])
        spaces = _distributions(problem)
        asked = [study.ask(spaces).params for _ in range(3)]
        for _ in range(2):
            study.ask(dict(list(spaces.items())[:2]))
    fresh = judge_of(problem)
    with search_study(problem, 0, store(tmp_path / "s.log")) as study:
        known = recovered(study, fresh)
        assert known.sampled == 3
        assert sorted(known.planted) == list(range(planted))
        plant(study, fresh, seeds, known.planted)
        assert states(study.trials) == {"COMPLETE": POPULATION + 3, "FAIL": 5}
        told = [t.params for t in study.trials if t.state.name == "COMPLETE"]
        assert all(params in told for params in asked)
        heuristic = [tuple(t.params.items()) for t in study.trials if FOUND_BY in t.user_attrs]
        assert len(set(heuristic)) == len(heuristic) == POPULATION


def test_two_runs_on_one_storage_do_not_trip_over_each_other(tmp_path):
    """The second run takes over the first one's open trials; the first goes on."""
    problem = random_problem(3)
    one, other = judge_of(problem), judge_of(problem)
    with search_study(problem, 0, store(tmp_path / "s.log")) as study:
        plant(study, one, np.arange(POPULATION, dtype=np.intp))

        def interfere() -> bool:
            with search_study(problem, 0, store(tmp_path / "s.log")) as second:
                recovered(second, other)
            return False

        tell = study.tell

        def told(*args, **kwargs):
            interfere()
            return tell(*args, **kwargs)

        study.tell = told
        assert explore(study, one, 4, lambda: False) == 4
    with search_study(problem, 0, store(tmp_path / "s.log")) as study:
        assert "RUNNING" not in states(study.trials)


@pytest.fixture(scope="module")
def undisturbed():
    return plan(SLO, space="quick", verify=False, trials=TRIALS)


def progress(text: str) -> int:
    """Something that grows while a study does."""
    if "://" not in text:
        return Path(text).stat().st_size if Path(text).exists() else 0
    try:
        return len(stored(text))
    except (ValueError, KeyError, InputError):
        return 0


def run_and_kill(text: str, step: int) -> bool:
    """Kill -9 a run once its study has grown by a step; False = it was done before."""
    begun = progress(text)
    run = subprocess.Popen([sys.executable, "-W", "ignore", "-c", RUN, SLO, str(TRIALS), text])
    deadline = time.monotonic() + 120
    while run.poll() is None and progress(text) < begun + step:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(random.Random(step).random() * 0.02)
    run.send_signal(signal.SIGKILL)
    return run.wait() == -signal.SIGKILL


def survives(text: str, steps: list[int], undisturbed) -> None:
    known: dict[int, list[float]] = {}
    killed = 0
    for step in steps:
        killed += run_and_kill(text, step)
        now = {t.number: t.values for t in told(text)}
        assert known.items() <= now.items()
        known = now
    assert killed
    with archives() as final:
        record = plan(SLO, space="quick", verify=False, trials=TRIALS, storage=text)
    assert record.search.proven
    assert record.options == undisturbed.options
    assert record.archive == undisturbed.archive
    assert record.search.trials == TRIALS
    done = told(text)
    assert [t.values for t in done if t.number in known] == list(known.values())
    assert "RUNNING" not in states(stored(text))
    found = [tuple(t.params.items()) for t in done if FOUND_BY in t.user_attrs]
    assert len(set(found)) == len(found)
    assert len(done) == len(found) + TRIALS
    (archive,) = final
    assert set(archive.shapes()) <= set(rows_of(archive.problem, archive.table, done))


@contextmanager
def archives() -> Iterator[list[Archive]]:
    """The archives of the searches within, as they ended."""
    final = []

    def look(where, archive, *rest):
        final.append(archive)
        add_archive(where, archive, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("planner.search.search.add_archive", look)
        yield final


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_journal_file_survives_kill_9_at_random_moments(tmp_path, undisturbed):
    draw = random.Random(0)
    text = str(tmp_path / "study.log")
    # The whole journal has about 1,030 kB: 610 for the study, the rest for the final archive.
    survives(text, [draw.randint(100, 1_400_000 // KILLS) for _ in range(KILLS)], undisturbed)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_run_killed_while_it_adds_the_final_archive_leaves_the_rest_to_the_next(
    tmp_path, undisturbed
):
    """Expected: each kill leaves some of them; in the end each is there once."""
    draw = random.Random(2)
    text = str(tmp_path / "study.log")
    assert run_and_kill(text, 640_000 + draw.randint(0, 50_000))
    before = len(added(text))
    assert before
    survives(text, [draw.randint(100, 200_000 // KILLS) for _ in range(KILLS)], undisturbed)
    assert len(added(text)) > before


def added(text: str) -> list[int]:
    """Numbers of the trials that NSGA-II neither proposed nor sees."""
    (mark,) = FIRST_GENERATION
    return [trial.number for trial in told(text) if mark not in trial.system_attrs]


@needs_postgres
def test_a_postgresql_study_survives_kill_9_at_random_moments(undisturbed):
    draw = random.Random(1)
    with database() as text:
        survives(text, [draw.randint(1, 500 // KILLS) for _ in range(KILLS)], undisturbed)
