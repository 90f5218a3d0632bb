"""What ``plan simulate`` writes, by the name of the file."""

from __future__ import annotations

import csv

import pytest

from planner.catalog import load_catalog
from planner.report import FORMATS
from tests.cli.runner import run
from tests.commands.small_plans import small_plan


def test_a_csv_holds_the_percentiles_and_any_other_file_the_text_of_the_terminal(tmp_path, capsys):
    stored = tmp_path / "plan.json"
    stored.write_text(FORMATS["json"](small_plan(load_catalog())))
    arguments = ("simulate", str(stored), "--requests", "200", "--seeds", "1")
    table, text = tmp_path / "run.CSV", tmp_path / "run.txt"
    assert run(capsys, *arguments, "--out", str(table)).code == 0
    assert run(capsys, *arguments, "--out", str(text)).code == 0
    assert run(capsys, *arguments).out == text.read_text()
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["metric"], row["percentile"]) for row in rows][:2] == [
        ("ttft", "50"),
        ("ttft", "90"),
    ]


@pytest.mark.parametrize("name", ["--trace", "--timeline"])
def test_what_goes_with_a_plan_alone_is_refused_by_its_name(tmp_path, capsys, name):
    found = run(capsys, "simulate", str(tmp_path / "points.csv"), name, str(tmp_path / "x.csv"))
    assert found.code == 2
    assert found.err == f"{name}: 1 problem\n  goes with a plan.json, not with points\n"
