"""What sweeps and the proof found is in the stored study: complete, once, and in nobody's way."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from planner import plan
from planner.search import archive_trials
from planner.search.search import Settings, search
from planner.search.seeds import seed_shapes
from planner.search.study import (
    FIRST_GENERATION,
    FOUND_BY,
    HEURISTIC,
    POPULATION,
    PROOF,
    SWEEP,
    TARGETS,
)
from tests.search.problems import random_problem, vectors
from tests.search.stores import judge_of, rows_of, settings, store, stored, told

(MARK,) = FIRST_GENERATION
NUMBERS = (3, 8, 10)
SLO = Path(__file__).parents[2] / "examples" / "chat-70b.yaml"
RUN = """
import sys
from planner import plan
plan(sys.argv[1], space="quick", verify=False, trials=10, storage=sys.argv[2])
"""


def archive_of(found) -> set[int]:
    return set(found.entries.rows.shape.tolist())


def stages_of(trials) -> set[str]:
    return {trial.user_attrs[FOUND_BY] for trial in trials if FOUND_BY in trial.user_attrs}


def holds_all(problem, found, file: Path) -> bool:
    return archive_of(found) <= set(rows_of(problem, found.table, told(str(file))))


def assert_each_once(problem, table, file: Path) -> None:
    """Shapes that the sampler did not propose are there once, and not among those it did."""
    found = [trial for trial in told(str(file)) if FOUND_BY in trial.user_attrs]
    rows = rows_of(problem, table, found)
    assert len(set(rows)) == len(rows)
    added = [row for row, t in zip(rows, found, strict=True) if MARK not in t.system_attrs]
    asked = [trial for trial in told(str(file)) if FOUND_BY not in trial.user_attrs]
    assert not set(added) & set(rows_of(problem, table, asked))


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "s.log"


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("prove", [None, True, False])
def test_every_shape_of_the_final_archive_is_a_completed_trial(file, number, prove):
    problem = random_problem(number)
    kept = search(problem, settings=Settings(trials=20, prove=prove, store=store(file)))
    plain = search(problem, settings=Settings(trials=20, prove=prove))
    assert holds_all(problem, kept, file)
    assert_each_once(problem, kept.table, file)
    assert vectors(kept.entries) == vectors(plain.entries)
    assert (kept.scored, kept.missed, kept.proven) == (plain.scored, plain.missed, plain.proven)


def test_a_trial_says_which_stage_found_its_shape(file):
    """Expected: without sweeps all else is the proof's; without a proof, the sweeps'."""
    problem = random_problem(8)
    for prove, stage in ((None, PROOF), (False, SWEEP)):
        where = file.with_suffix(f".{stage}")
        found = search(problem, settings=Settings(trials=20, prove=prove, store=store(where)))
        trials = [t for t in told(str(where)) if FOUND_BY in t.user_attrs]
        assert stages_of(trials) == {HEURISTIC, stage}
        seeds = set(seed_shapes(problem, found.table).tolist())
        by_rule = [t for t in trials if t.user_attrs[FOUND_BY] == HEURISTIC]
        assert set(rows_of(problem, found.table, by_rule)) <= seeds


@pytest.mark.parametrize("number", NUMBERS)
def test_values_and_constraint_are_those_that_the_judge_gives(file, number):
    problem = random_problem(number)
    guide = np.random.default_rng(number).uniform(1, 9, len(problem.tables.hardware))
    found = search(problem, guide, settings(file))
    trials = told(str(file))
    rows = rows_of(problem, found.table, trials)
    verdicts = judge_of(problem, guide).judge(np.array(rows))
    for trial, row, verdict in zip(trials, rows, verdicts, strict=True):
        np.testing.assert_allclose(trial.values, verdict.values, rtol=1e-12)
        assert trial.constraints == {TARGETS: pytest.approx(verdict.violation, rel=1e-12)}
        mine = found.entries.take(found.entries.rows.shape == row)
        if len(mine):
            priced = mine.points[:, 0] * guide[mine.hardware]
            assert trial.values[0] <= priced.min() * (1 + 1e-5)
            assert trial.constraints[TARGETS] <= 0


def test_nsga_sees_none_of_them_and_proposes_what_it_would_have_proposed(file, monkeypatch):
    problem = random_problem(3)
    for trials in (60, 120):
        search(problem, settings=settings(file, trials))
    added = [t for t in told(str(file)) if t.user_attrs.get(FOUND_BY) in (SWEEP, PROOF)]
    assert added
    assert not any(MARK in trial.system_attrs for trial in added)
    other = file.with_suffix(".other")
    monkeypatch.setattr("planner.search.search.add_archive", lambda *_: "")
    for trials in (60, 120):
        search(problem, settings=settings(other, trials))
    asked = [
        [(t.params, t.values) for t in told(str(path)) if FOUND_BY not in t.user_attrs]
        for path in (file, other)
    ]
    assert asked[0] == asked[1]


def test_a_plain_rerun_adds_nothing_and_gives_the_same_bytes(tmp_path):
    text = str(tmp_path / "s.log")
    plain = plan(SLO, space="quick", verify=False)
    first = plan(SLO, space="quick", verify=False, storage=text)
    before = [(t.number, t.params, t.values, t.user_attrs) for t in stored(text)]
    again = plan(SLO, space="quick", verify=False, storage=text)
    assert [(t.number, t.params, t.values, t.user_attrs) for t in stored(text)] == before
    assert first.model_dump_json() == plain.model_dump_json()
    assert again.model_dump_json() == plain.model_dump_json()


def test_without_trials_the_seeds_still_breed_in_the_next_run(file):
    """Expected: what one run gives in memory. It may ask for what was added: NSGA-II is blind."""
    problem = random_problem(3)
    none = search(problem, settings=settings(file, 0))
    assert none.trials == 0
    assert holds_all(problem, none, file)
    more = search(problem, settings=settings(file))
    plain = search(problem, settings=Settings(trials=80))
    assert (more.trials, more.scored) == (plain.trials, plain.scored)
    assert first_generation(file) == min(POPULATION, len(seed_shapes(problem, plain.table)))


def first_generation(file: Path) -> int:
    return sum(MARK in t.system_attrs and FOUND_BY in t.user_attrs for t in told(str(file)))


class Interrupt:
    """Ctrl-C at the first, or a later, step of a stage."""

    def __init__(self, stage: str, after: int = 0) -> None:
        self.stage, self.left = stage, after

    def __call__(self, what: str, share: float) -> None:
        if self.stage in what:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt


@pytest.mark.parametrize("stage", ["sweeping", "proving"])
def test_an_interrupted_search_keeps_what_it_has(file, stage):
    problem = random_problem(8)
    how = Settings(trials=20, prove=True, store=store(file))
    found = search(problem, None, how, Interrupt(stage))
    assert found.stopped == "interrupted"
    assert holds_all(problem, found, file)
    whole = search(problem, settings=how)
    assert whole.proven
    assert holds_all(problem, whole, file)
    assert_each_once(problem, whole.table, file)


def test_a_search_out_of_time_keeps_what_it_has(file):
    problem = random_problem(8)
    found = search(problem, settings=Settings(time_limit=1e-9, store=store(file)))
    assert found.stopped == "time limit"
    assert archive_of(found)
    assert holds_all(problem, found, file)


@pytest.mark.parametrize("after", [0, 1, 7])
def test_ctrl_c_while_they_are_added_keeps_the_plan_and_the_next_run_adds_the_rest(file, after):
    problem = random_problem(8)
    plain = search(problem, settings=Settings(trials=20))
    found = search(problem, None, settings(file, 20), Interrupt("adding", after))
    assert (found.stopped, found.scored) == (plain.stopped, plain.scored)
    assert vectors(found.entries) == vectors(plain.entries)
    assert not holds_all(problem, found, file)
    added = [t for t in told(str(file)) if FOUND_BY in t.user_attrs and MARK not in t.system_attrs]
    assert len(added) == after
    again = search(problem, settings=settings(file, 20))
    assert again.scored == plain.scored
    assert holds_all(problem, again, file)
    assert_each_once(problem, again.table, file)


class Fault:
    """Spoils a storage while what was found is added to it."""

    def __init__(self, spoil) -> None:
        self.spoil, self.done = spoil, False

    def __call__(self, what: str, share: float) -> None:
        if "adding" in what and not self.done:
            self.done = True
            self.spoil()


def no_file_any_more(folder: Path) -> None:
    (folder / "s.log").unlink()
    (folder / "s.log").mkdir()


def no_table_any_more(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "s.db")) as base:
        base.execute("DROP TABLE trial_params")


@pytest.mark.parametrize(
    ("address", "spoil", "reason"),
    [
        ("{}/s.log", no_file_any_more, "s.log: "),
        ("sqlite:///{}/s.db", no_table_any_more, "no such table"),
    ],
)
def test_a_storage_that_fails_at_the_end_keeps_the_plan_and_says_what_the_study_lacks(
    tmp_path, address, spoil, reason
):
    plain = plan(SLO, space="quick", verify=False)
    failing = Fault(lambda: spoil(tmp_path))
    record = plan(
        SLO, space="quick", verify=False, storage=address.format(tmp_path), progress=failing
    )
    assert failing.done
    note, *rest = record.assumptions
    assert note.startswith("The stored study lacks a part of what was found")
    assert reason in note
    assert (record.options, tuple(rest)) == (plain.options, plain.assumptions)


def test_seeds_that_were_not_planted_yet_are_planted_before_anything_is_added(file, monkeypatch):
    """Expected: a whole first generation, or the next run would breed from a part of it."""
    problem = random_problem(8)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("planner.search.search.plant", interrupted)
        found = search(problem, settings=settings(file))
    assert found.stopped == "interrupted"
    assert first_generation(file) == min(POPULATION, len(seed_shapes(problem, found.table)))
    assert holds_all(problem, found, file)


def test_what_was_asked_and_not_told_is_left_to_the_next_run(file, monkeypatch):
    problem = random_problem(8)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("planner.search.study._tell", interrupted)
        found = search(problem, settings=settings(file))
    open_trials = [t for t in stored(str(file)) if t.state.name == "RUNNING"]
    assert len(open_trials) == POPULATION
    rows = rows_of(problem, found.table, [*open_trials, *told(str(file))])
    assert archive_of(found) <= set(rows)
    assert not set(rows[:POPULATION]) & set(rows[2 * POPULATION :])
    whole = search(problem, settings=settings(file))
    assert whole.trials == 80
    assert holds_all(problem, whole, file)


def test_of_a_large_archive_the_nearest_to_the_front_are_added(file, monkeypatch):
    """Expected: the shapes of the front of these prices, which no other deployment dominates."""
    problem = random_problem(8)
    guide = np.random.default_rng(0).uniform(1, 9, len(problem.tables.hardware))
    whole = search(problem, guide, Settings(trials=0))
    points = whole.entries.points * 1.0
    points[:, 0] *= guide[whole.entries.hardware]
    front = [
        not any((other <= row).all() and (other < row).any() for other in points) for row in points
    ]
    nearest = set(whole.entries.rows.shape[front].tolist())
    assert len(nearest) < len(archive_of(whole))
    monkeypatch.setattr(archive_trials, "MOST", len(nearest))
    search(problem, guide, settings(file, 0))
    before = told(str(file))
    added = [t for t in before if MARK not in t.system_attrs]
    assert set(rows_of(problem, whole.table, added)) <= nearest
    assert nearest <= set(rows_of(problem, whole.table, before))
    search(problem, guide, settings(file, 0))
    assert len(told(str(file))) == len(before)


@pytest.mark.parametrize("kind", ["{}/s.log", "sqlite:///{}/s.db"])
def test_two_runs_that_end_at_once_both_end_well(tmp_path, monkeypatch, kind):
    text = kind.format(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("planner.search.search.add_archive", lambda *_: "")
        plan(SLO, space="quick", verify=False, trials=10, storage=text)
    before = len(told(text))
    runs = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", RUN, SLO, text]) for _ in range(2)
    ]
    assert [run.wait(timeout=300) for run in runs] == [0, 0]
    assert len(told(text)) > before
    plan(SLO, space="quick", verify=False, trials=10, storage=text)
