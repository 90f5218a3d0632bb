"""Portfolios of many plans, and fleets out of many combinations.

The full size (1,000 plans) runs where PLANNER_SPEED is set; figures of such runs stand in
planner/search/README.md#portfolios.
"""

from __future__ import annotations

import os
import signal
import time
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from planner.catalog import load_catalog
from planner.commands import portfolio as command
from planner.commands import portfolio_task
from planner.commands.portfolio import portfolio
from planner.commands.portfolio_task import Finished, Task, run
from planner.search.problem import Problem
from planner.search.search import Found
from planner.spec.portfolio import Limits
from tests.commands.portfolios import MODELS, contents, targets, traffic, write_slo

FULL = "PLANNER_SPEED" in os.environ
SIZE = (10, 10, 10) if FULL else (2, 2, 2)
"""Models, workloads, target sets."""
JOBS = 2
SECONDS = 180.0
SPACE = "default" if FULL else "quick"
CHIPS = ("l40s", "h100-sxm", "h200-sxm", "a100-sxm-80", "b200-sxm", "mi300x")


def slos(folder: Path) -> list[Path]:
    """Write the slo.yaml of every model, workload and target set."""
    models, loads, limits = (range(count) for count in SIZE)
    return [
        write_slo(
            folder,
            f"m{model}-w{load}-t{limit}",
            model=MODELS[model],
            traffic=traffic(
                4.0 + 3.0 * load,
                prompt_tokens={"p50": 300.0 + 150.0 * load, "p95": 1200.0 + 500.0 * load},
            ),
            slo=targets(700.0 + 300.0 * limit, 30.0 + 8.0 * limit),
            purchase={"accelerators": CHIPS},
        )
        for model, load, limit in product(models, loads, limits)
    ]


def marked(task: Task) -> tuple[Finished, ...]:
    """Plan, and tell which process does."""
    (Path(os.environ["PLANNER_TEST_MARK"]) / str(os.getpid())).touch()
    return run(task)


def test_many_plans_are_made_in_time_and_under_shared_limits(tmp_path):
    files = slos(tmp_path)
    began = time.monotonic()
    record = portfolio(files, space=SPACE, folder=tmp_path / "out", jobs=JOBS)
    took = time.monotonic() - began
    names = [one.name for one in record.plans]
    assert names == [file.stem for file in files]
    assert len(contents(tmp_path / "out")) == 2 * len(files)
    served = [one for one in record.plans if one.chosen is not None]
    assert len(served) >= 0.9 * len(files)
    began = time.monotonic()
    scarce = Limits(max_gpus=int(0.8 * record.gpus), budget_usd_per_hour=0.9 * record.usd_per_hour)
    less = portfolio(files, scarce, space=SPACE, jobs=JOBS) if not FULL else record
    assert less.gpus <= record.gpus
    print(f"{len(files)} plans: {took:.1f} s, {len(served)} served")  # noqa: T201
    assert took < SECONDS


def test_a_cluster_that_loses_a_worker_half_way_has_every_plan_once(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    files = slos(tmp_path)
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setenv("PLANNER_TEST_MARK", str(marks))
    monkeypatch.setattr(command, "run", marked)
    killed: list[int] = []

    def kill(_: str, share: float) -> None:
        if share >= 0.5 and not killed:
            newest = max(marks.iterdir(), key=lambda mark: mark.stat().st_mtime)
            killed.append(int(newest.name))
            os.kill(killed[0], signal.SIGKILL)

    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    )
    began = time.monotonic()
    with cluster:
        record = portfolio(
            files,
            space=SPACE,
            folder=tmp_path / "out",
            cluster=cluster.scheduler_address,
            progress=kill,
        )
    print(f"{len(files)} plans on Dask: {time.monotonic() - began:.1f} s")  # noqa: T201
    assert killed
    assert [one.name for one in record.plans] == [file.stem for file in files]
    assert len({one.file for one in record.plans}) == len(files)
    assert len(contents(tmp_path / "out")) == 2 * len(files)


@pytest.mark.skipif(not FULL, reason="set PLANNER_SPEED on a quiet machine")
def test_the_best_fleets_of_1e14_combinations_take_5_seconds(monkeypatch):
    file = Path(__file__).parents[2] / "examples" / "chat-70b.yaml"
    catalog = load_catalog()
    pools: list[float] = []
    search = portfolio_task.search

    def counted(problem: Problem, *rest: object) -> Found:
        found = search(problem, *rest)
        inner = problem.inner
        each = len(inner.batch_limits) * len(inner.token_budgets) * len(inner.spread)
        # Every combination of the space's choices, those that fit nowhere among them.
        pools.append(float(np.prod(found.table.sizes)) * each)
        return found

    monkeypatch.setattr(portfolio_task, "search", counted)
    began = time.process_time()
    portfolio([file], catalog=catalog)
    single = time.process_time() - began
    pools.clear()
    record = portfolio([file], catalog=catalog, fleets=True)
    took = time.process_time() - began - 2 * single
    _, quarter, rest, half = pools
    combinations = quarter * rest + half * half
    print(f"{combinations:.1e} combinations: {took:.1f} s beside {single:.1f} s")  # noqa: T201
    assert record.served == 1
    assert combinations >= 1e14
    assert took <= 5.0
