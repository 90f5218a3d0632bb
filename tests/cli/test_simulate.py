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


@pytest.mark.parametrize("name", ["--option", "--trace", "--timeline"])
def test_what_goes_with_a_plan_alone_is_refused_by_its_name(tmp_path, capsys, name):
    found = run(capsys, "simulate", str(tmp_path / "points.csv"), name, str(tmp_path / "x.csv"))
    assert found.code == 2
    assert found.err == f"{name}: 1 problem\n  goes with a plan.json, not with points\n"


POINTS = """name,model,accelerator,prompt_tokens,output_tokens,rate_per_s
good,meta-llama/Llama-3.1-8B-Instruct,h100-sxm,500,20,5
bad,meta-llama/Llama-3.1-8B-Instruct,h100-sxm,500,x,5
"""


@pytest.mark.parametrize("command", [("simulate", "--requests", "50"), ("score",)])
def test_a_file_without_a_deployment_is_wrong_input_and_writes_nothing(tmp_path, capsys, command):
    file, out = tmp_path / "points.csv", tmp_path / "out.csv"
    file.write_text(POINTS)
    assert run(capsys, *command, str(file), "--out", str(out)).code == 0
    out.unlink()
    file.write_text("\n".join(line for line in POINTS.splitlines() if "good" not in line))
    found = run(capsys, *command, str(file), "--out", str(out))
    assert found.code == 2
    assert "line 2  output_tokens" in found.err
    assert not out.exists()


def test_two_results_are_not_written_to_one_file(tmp_path, capsys):
    file = str(tmp_path / "x.csv")
    found = run(capsys, "simulate", "plan.json", "--out", file, "--timeline", file)
    assert found.code == 2
    assert "is --out, too; name another file" in found.err


def test_no_input_is_written_over(tmp_path, capsys):
    names = ("points.csv", "trace.csv", "slo.yaml", "slo.json")
    points, trace, slo, stored = (tmp_path / name for name in names)
    for file in (points, trace, slo, stored):
        file.write_text(POINTS)
    link = tmp_path / "link.csv"
    link.symlink_to(points)
    for arguments in (
        ("simulate", str(points), "--out", str(points)),
        ("simulate", str(points), "--out", str(link)),
        ("simulate", "plan.json", "--trace", str(trace), "--timeline", str(trace)),
        ("score", str(points), "--out", str(points)),
        ("--slo", str(slo), "--out", str(slo)),
        ("--slo", str(slo), "--space", str(points), "--out", str(points)),
        ("reprice", "plan.json", "--prices", str(points), "--out", str(points)),
        ("calibrate", str(points), "--date", "2026-11-29", "--out", str(points)),
        ("portfolio", str(stored), "--out", str(stored)),
    ):
        found = run(capsys, *arguments)
        assert found.code == 2, arguments
        assert "is read here and would be lost; name another file" in found.err
    assert [file.read_text() for file in (points, trace, slo, stored)] == [POINTS] * 4
