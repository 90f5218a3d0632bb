"""The processes that make a portfolio's plans, and what later runs find of them."""

from __future__ import annotations

import itertools

import pytest

from planner.commands import portfolio as command
from planner.report.portfolio import FORMATS
from planner.spec.portfolio import Limits
from tests.commands import chores
from tests.commands.portfolios import contents, made, targets, traffic, write_slo


def test_one_process_or_a_pool_give_the_same_bytes(tmp_path):
    files = [
        write_slo(tmp_path, f"p{rate:g}-{ttft:g}", traffic=traffic(rate), slo=targets(ttft, 60.0))
        for rate, ttft in itertools.product((5.0, 20.0), (700.0, 2000.0))
    ]
    one = made(files, folder=tmp_path / "one", fleets=True)
    pool = made(files, folder=tmp_path / "pool", fleets=True, jobs=2)
    assert FORMATS["json"](one) == FORMATS["json"](pool)
    assert contents(tmp_path / "one") == contents(tmp_path / "pool")


def test_a_killed_worker_changes_nothing(tmp_path, monkeypatch):
    files = [write_slo(tmp_path, f"p{rate:g}", traffic=traffic(rate)) for rate in (4.0, 8.0, 16.0)]
    calm = made(files, folder=tmp_path / "calm")
    monkeypatch.setattr(command, "run", chores.counted)
    monkeypatch.setenv("PLANNER_TEST_MARK", str(tmp_path / "mark"))
    killed = made(files, folder=tmp_path / "killed", jobs=2)
    assert (tmp_path / "mark").exists()
    assert killed == calm
    assert contents(tmp_path / "killed") == contents(tmp_path / "calm")


def test_finished_plans_are_found_again_and_only_missing_ones_made(tmp_path, monkeypatch):
    files = [write_slo(tmp_path, f"p{rate:g}", traffic=traffic(rate)) for rate in (4.0, 8.0)]
    out = tmp_path / "out"
    first = made(files, folder=out)
    before = contents(out)
    monkeypatch.setattr(command, "run", chores.refuses)
    assert made(files, folder=out) == first
    monkeypatch.undo()
    lost = out / first.plans[0].file
    lost.unlink()
    assert made(files, folder=out) == first
    assert contents(out) == before


def test_other_amounts_of_the_same_limits_need_no_plan_again(tmp_path, monkeypatch):
    file = write_slo(tmp_path, "one")
    made([file], Limits(max_gpus=64, budget_usd_per_hour=500.0), folder=tmp_path / "out")
    monkeypatch.setattr(command, "run", chores.refuses)
    record = made([file], Limits(max_gpus=1, budget_usd_per_hour=0.5), folder=tmp_path / "out")
    assert record.served == 0
    with pytest.raises(AssertionError, match="one"):
        made([write_slo(tmp_path, "one", slo=targets(900.0, 50.0))], folder=tmp_path / "out")
