"""The second search: deployments around the front, scored by simulation, by workers that die."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from planner import plan
from planner.errors import InputError
from planner.search.inner import Rows, deployments, service
from planner.search.search import search
from planner.search.simulated import (
    BUDGET,
    LIMIT,
    SEEDS,
    UPPER,
    USE,
    Sight,
    around,
    breeder,
    enqueue,
    holding,
    with_rows,
)
from planner.search.simulated_workers import (
    Job,
    requeue,
    run_here,
    run_processes,
)
from planner.search.storage import Address
from planner.search.stored_study import Identity, Store, stored_study
from planner.search.study import FIRST_GENERATION, FOUND_BY, TARGETS, UNSUPPORTED
from tests.search.postgres import database, needs_postgres
from tests.search.problems import random_problem
from tests.search.test_resume import stored

EXAMPLES = Path(__file__).parents[2] / "examples"


PAUSE_S = 0.15
"""Long enough that every process of two gets to work."""


def nothing(*_) -> None:
    pass


@dataclass(frozen=True)
class Formula:
    """Stands for a simulation: what the closed formula says, times a factor."""

    factor: float = 1.0

    def __call__(self, problem, table, rows) -> Sight:
        ttft, tpot = (self.factor * service(problem, table, rows)[0]).tolist()
        reach = problem.reach
        worst = max(ttft / reach.ttft, tpot / reach.tpot)
        return Sight(ttft, tpot, {"ttft_p95_ms": ttft * 1e3}, worst - 1.0)


@dataclass(frozen=True)
class Suicide(Formula):
    """Kills the first process that simulates, as a machine that fails would."""

    flag: str = ""

    def __call__(self, problem, table, rows) -> Sight:
        try:
            Path(self.flag).touch(exist_ok=False)
        except FileExistsError:
            time.sleep(PAUSE_S)
            return super().__call__(problem, table, rows)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


@pytest.fixture(scope="module")
def found():
    problem = random_problem(3)
    return problem, search(problem)


@pytest.fixture(scope="module")
def where(found):
    problem, result = found
    guide = np.arange(1.0, 1.0 + len(problem.tables.hardware))
    return around(problem, result.table, guide, result.entries.rows.take(np.arange(40)))


def store(path) -> Store:
    return Store(Address(str(path)), Identity({"m": 1}, {}))


def job(where, score=Formula(), trials=60) -> Job:
    return Job(where, score, seed=0, trials=trials)


def keys(rows: Rows) -> list[tuple[float, ...]]:
    return list(zip(rows.shape, rows.limit, rows.budget, rows.replicas, strict=True))


def test_a_deployment_is_found_again_by_its_parameters(where):
    for number in range(len(where.seeds)):
        rows = where.seeds.take(np.array([number]))
        assert keys(where.rows(where.parameters(rows))) == keys(rows)


def test_replicas_are_the_fewest_that_stay_within_the_utilization(where):
    rows = where.seeds.take(np.array([0]))
    parameters = where.parameters(rows)
    each, rate = where.carries(rows)[0], where.problem.demand.rate
    for use in (0.9, 0.5, 0.2, 0.07):
        got = where.rows({**parameters, USE: use}).replicas[0]
        assert rate / (each * got) <= use * (1 + 1e-6)
        assert got == 1 or rate / (each * (got - 1)) > use * (1 - 1e-6)


def test_there_is_no_deployment_beyond_quota_or_memory_or_support(where):
    parameters = where.parameters(where.seeds.take(np.array([0])))
    problem = replace(where.problem, reach=replace(where.problem.reach, gpus=0.5))
    assert replace(where, problem=problem).rows(parameters) is None
    problem = replace(where.problem, reach=replace(where.problem.reach, loss=-1.0))
    assert replace(where, problem=problem).rows(parameters) is None
    known = [where.rows({**parameters, "layout": x}) for x in where.labels["layout"]]
    assert any(rows is None or rows.shape[0] >= 0 for rows in known)


def test_the_price_is_that_of_the_cheapest_hardware_class(where):
    """By hand: every home of the shape, instances times its price."""
    from planner.search.inner import bought, homes

    rows = where.seeds.take(np.array([1]))
    _, hardware = homes(where.table, rows)
    prices = [
        bought(where.problem, where.table, rows, np.array([h]))[0] * where.guide[h]
        for h in hardware
    ]
    assert where.usd_per_hour(rows) == min(prices)


def test_seeds_are_queued_once_and_are_the_first_generation(where, tmp_path):
    with stored_study(store(tmp_path / "s.log"), 4, breeder(0)) as study:
        enqueue(study, where)
        enqueue(study, where)
        assert [t.state.name for t in study.trials] == ["WAITING"] * SEEDS
        (mark,) = FIRST_GENERATION
        assert {t.system_attrs[mark] for t in study.trials} == {0}


def test_the_front_s_deployments_breed(where, tmp_path):
    """The trial after the seeds is of the second generation, and its parents are seeds."""
    run_here(job(where, trials=SEEDS + 6), store(tmp_path / "s.log"), nothing)
    trials = stored(str(tmp_path / "s.log"))
    (mark,) = FIRST_GENERATION
    assert [t.system_attrs[mark] for t in trials] == [0] * SEEDS + [1] * 6


def test_what_holds_is_what_a_simulation_says_holds(where):
    """Referee: the score asked directly for every deployment that was returned."""
    best = run_here(job(where), None, nothing)
    assert len(best.rows)
    assert len(set(keys(best.rows))) == len(best.rows)
    for number, upper in enumerate(best.upper_ms):
        rows = best.rows.take(np.array([number]))
        sight = Formula()(where.problem, where.table, rows)
        assert sight.violation <= 0
        assert upper == sight.upper_ms


def test_nothing_holds_where_every_simulation_misses_its_target(where):
    best = run_here(job(where, Formula(1e4)), None, nothing)
    assert len(best.rows) == len(best.upper_ms) == 0


def test_trials_show_their_deployment_objectives_and_constraint(where, tmp_path):
    run_here(job(where), store(tmp_path / "s.log"), nothing)
    trials = [t for t in stored(str(tmp_path / "s.log")) if t.state.name == "COMPLETE"]
    assert len(trials) == 60
    for trial in trials:
        assert {LIMIT, BUDGET, USE} < trial.params.keys()
        assert len(trial.values) == 4
        assert (trial.constraints[TARGETS] == UNSUPPORTED) == (UPPER not in trial.user_attrs)


def test_a_run_that_was_cut_short_is_continued(where, tmp_path):
    run_here(job(where, trials=30), store(tmp_path / "s.log"), nothing)
    first = [t.values for t in stored(str(tmp_path / "s.log"))]
    run_here(job(where, trials=50), store(tmp_path / "s.log"), nothing)
    after = stored(str(tmp_path / "s.log"))
    assert [t.values for t in after[:30]] == first[:30]
    assert len(after) == 50
    assert sum(FOUND_BY in t.user_attrs for t in after) == SEEDS


def test_the_time_limit_ends_a_run(where, tmp_path):
    limited = replace(job(where), time_limit=0.0)
    run_here(limited, store(tmp_path / "s.log"), nothing)
    assert {t.state.name for t in stored(str(tmp_path / "s.log"))} == {"WAITING"}


def shared(text: str, where, tmp_path) -> None:
    """Two processes, one of which dies: its trial is tried again and nothing is missing."""
    score = Suicide(flag=str(tmp_path / "died"))
    run_processes(job(where, score, trials=40), store(text), 2, nothing)
    assert (tmp_path / "died").exists()
    trials = stored(text)
    states = [t.state.name for t in trials]
    assert 40 <= states.count("COMPLETE") <= 42
    assert states.count("FAIL") == 1
    (failed,) = (t for t in trials if t.state.name == "FAIL")
    again = [t for t in trials if t.params == failed.params and t.state.name == "COMPLETE"]
    assert again
    assert len({t.user_attrs["worker"] for t in trials if t.state.name == "COMPLETE"}) >= 2


def test_processes_share_a_journal_file_and_a_dead_one_is_replaced(where, tmp_path):
    shared(str(tmp_path / "s.log"), where, tmp_path)


@needs_postgres
def test_processes_share_a_postgresql_study_and_a_dead_one_is_replaced(where, tmp_path):
    with database() as text:
        shared(text, where, tmp_path)


def test_what_a_gone_process_left_is_queued_again_three_times_at_most(where, tmp_path):
    """A trial whose workers always die must not keep the others from ending."""
    with stored_study(store(tmp_path / "s.log"), 4, breeder(0)) as study:
        study.enqueue_trial({"x": 1.0})
        for _ in range(3):
            trial = study.ask()
            trial.set_user_attr("worker", "host:1")
            assert trial.suggest_float("x", 0, 2) == 1.0
            requeue(study, "host:2")
            requeue(study, "host:1")
        assert [t.state.name for t in study.trials] == ["FAIL"] * 3


def test_a_silent_worker_elsewhere_is_noticed_by_its_heartbeat(where, tmp_path, monkeypatch):
    """Optuna gives a stale trial to the callback when another worker begins a trial."""
    monkeypatch.setattr("planner.search.storage.HEARTBEAT_S", 1)
    monkeypatch.setattr("planner.search.storage.GRACE_S", 2)
    text = f"sqlite:///{tmp_path}/s.db"
    code = (
        "import sys, time, warnings; warnings.simplefilter('ignore')\n"
        "import planner.search.storage as s; s.HEARTBEAT_S, s.GRACE_S = 1, 2\n"
        "from planner.search.stored_study import *; from planner.search.simulated import breeder\n"
        "store = Store(Address(sys.argv[1]), Identity({'m': 1}, {}))\n"
        "def slow(trial):\n"
        "    trial.suggest_float('x', 0, 1); print('running', flush=True); time.sleep(60)\n"
        "with stored_study(store, 4, breeder(0), lambda *_: None) as study:\n"
        "    study.optimize(slow, n_trials=1)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code, text], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "running\n"
    other.kill()
    other.wait()
    other.stdout.close()
    time.sleep(3.5)
    run_here(job(where, trials=SEEDS), store(text), nothing)
    trials = stored(text)
    assert trials[0].state.name == "FAIL"
    assert [t.params for t in trials if t.user_attrs.get("tried_before") == 1] == [trials[0].params]


def test_an_archive_grows_by_what_holds_and_says_where(found):
    problem, result = found
    table, inner = result.table, problem.inner
    fresh = deployments(problem, table, np.arange(len(table), dtype=np.intp))
    two = Rows.join([fresh.take(np.arange(3)), result.entries.rows.take(np.array([5]))])
    grown = with_rows(problem, result.entries, table, two)
    assert (np.diff(grown.entries.hardware) >= 0).all()
    known = set(zip(result.entries.hardware.tolist(), keys(result.entries.rows), strict=True))
    for place, row in zip(grown.places, grown.row, strict=True):
        assert keys(grown.entries.rows)[place] == keys(two)[row]
        known.add((int(grown.entries.hardware[place]), keys(two)[row]))
    assert len(grown.entries) == len(known)
    assert len(inner.spread)


def test_no_trial_means_nothing_holds(where):
    assert len(holding(where, []).rows) == 0


@pytest.fixture(scope="module")
def simulated():
    return plan(EXAMPLES / "chat-70b.yaml", space="quick", score="simulate", trials=40)


def test_a_simulated_plan_is_no_dearer_and_all_its_picks_are_verified(simulated):
    plain = plan(EXAMPLES / "chat-70b.yaml", space="quick")

    def price(record) -> float:
        options = {option.id: option for option in record.options}
        return options[record.picks["cheapest"]].money.usd_per_hour

    assert price(simulated) <= price(plain) * (1 + 1e-9)
    assert simulated.search.simulated > 0
    held = {check.option for check in simulated.verification if check.holds}
    assert set(simulated.picks.values()) <= held


def test_rows_that_simulations_let_in_meet_their_targets_by_them(simulated):
    """By hand: margin times the upper end of the interval is within the target."""
    limits = simulated.inputs.slo["slo"]
    count = 0
    for archive in simulated.archive:
        margins = {m.generation: m for m in archive.margins}
        for entry in archive.simulated:
            margin = margins[archive.rows.generation[entry.row]]
            assert entry.upper_ms["ttft_p95_ms"] * margin.ttft <= limits["ttft_p95_ms"] + 1e-3
            assert entry.upper_ms["tpot_p95_ms"] * margin.tpot <= limits["tpot_p95_ms"] + 1e-3
            count += 1
    assert count >= 10


def test_offline_work_is_not_simulated():
    with pytest.raises(InputError, match=r"--score: 1 problem\n.*offline"):
        plan(EXAMPLES / "offline-batch.yaml", space="quick", score="simulate")
