"""What a careless or hostile hand may give: names, numbers, paths; nothing may break on it."""

from __future__ import annotations

import csv
import io

import pytest

from planner.catalog import load_catalog
from planner.commands.score import score
from planner.report import FORMATS
from tests.bad_input.cases import GOOD, changed
from tests.cli.runner import run
from tests.commands.small_plans import slo as asked
from tests.commands.small_plans import small_plan

POINT = "model,accelerator,concurrency,prompt_tokens,output_tokens\n"
GOOD_POINT = "meta-llama/Llama-3.1-8B-Instruct,h100-sxm,8,500,200\n"
NOTHING = asked(slo={"ttft_p95_ms": 0.001})


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    path.write_text(FORMATS["json"](small_plan(load_catalog())))
    return str(path)


@pytest.fixture
def slo_file(tmp_path):
    path = tmp_path / "slo.yaml"
    path.write_text(GOOD)
    return str(path)


def points(tmp_path, text):
    path = tmp_path / "points.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("option", ["--out", "--report"])
@pytest.mark.parametrize("name", ["folder.csv", "missing/plan.csv"])
def test_a_file_that_cannot_be_written_is_refused_before_the_search(
    option, name, slo_file, tmp_path, capsys, monkeypatch
):
    (tmp_path / "folder.csv").mkdir()
    monkeypatch.setattr("planner.commands.plan.plan", lambda *_, **__: pytest.fail("searched"))
    outcome = run(capsys, "--slo", slo_file, option, str(tmp_path / name))
    assert (outcome.code, outcome.out) == (2, "")
    assert "cannot be written" in outcome.err


@pytest.mark.parametrize(
    ("option", "value"), [("--seed", str(2**32)), ("--trials", str(10**21))], ids=["seed", "trials"]
)
def test_numbers_beyond_what_the_search_takes_are_refused(option, value, slo_file, capsys):
    outcome = run(capsys, "--slo", slo_file, option, value)
    assert outcome.code == 2
    assert option in outcome.err


@pytest.mark.parametrize("folder", ["FILE", "/proc/nowhere"])
def test_export_names_a_folder_that_cannot_be_made(folder, plan_file, capsys):
    folder = plan_file if folder == "FILE" else folder
    outcome = run(capsys, "export", plan_file, "--to", "vllm", "--folder", folder)
    assert outcome.code == 2
    assert outcome.err.startswith(f"{folder}: 1 problem")


def test_a_timeline_that_cannot_be_written_leaves_stdout_empty(plan_file, tmp_path, capsys):
    arguments = ("simulate", plan_file, "--requests", "50", "--timeline", str(tmp_path))
    outcome = run(capsys, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "cannot be written" in outcome.err


def test_a_run_of_one_request_has_no_rate_and_is_refused(plan_file, capsys):
    outcome = run(capsys, "simulate", plan_file, "--requests", "1")
    assert outcome.code == 2
    assert "--requests" in outcome.err


@pytest.mark.parametrize(
    ("option", "name", "near"), [("--provider", "awz", "aws"), ("--region", "us-eats-1", "us-east")]
)
def test_listing_the_prices_of_nobody_is_a_mistake_and_not_an_empty_list(
    option, name, near, capsys
):
    outcome = run(capsys, "prices", "list", option, name)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"no price has '{name}'; did you mean '{near}" in outcome.err


def test_an_option_of_a_plan_that_found_nothing_is_answered_with_the_nearest(tmp_path, capsys):
    record = small_plan(load_catalog(), NOTHING)
    path = tmp_path / "plan.json"
    path.write_text(FORMATS["json"](record))
    outcome = run(capsys, "explain", str(path))
    assert outcome.code == 2
    assert "nothing meets every target of this plan" in outcome.err
    assert record.misses[0].option.id in outcome.err


@pytest.mark.parametrize("rate", ["1e-300", "0.0000001"])
def test_a_rate_below_one_request_in_eleven_days_is_refused(rate, tmp_path, capsys):
    path = tmp_path / "slo.yaml"
    path.write_text(changed("rate_per_s: 12", f"rate_per_s: {rate}"))
    outcome = run(capsys, "--slo", str(path))
    assert (outcome.code, outcome.out) == (2, "")
    assert "traffic.rate_per_s" in outcome.err


def test_a_file_of_another_kind_is_not_answered_with_a_line_for_each_of_its_lines(tmp_path, capsys):
    path = tmp_path / "prices.csv"
    path.write_text("a,b\n" + "1\n" * 5000)
    outcome = run(capsys, "prices", "list", "--prices", str(path))
    assert outcome.code == 2
    assert outcome.err.startswith(f"{path}: 5000 problems\n")
    assert outcome.err.endswith("  ... and 4,900 more\n")
    assert len(outcome.err.splitlines()) == 102


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "\u202eabc"])
def test_control_characters_in_a_name_are_spelt_out(name, capsys):
    outcome = run(capsys, "init", "--model", name)
    assert outcome.code == 2
    assert all(line.isprintable() for line in outcome.err.splitlines())
    assert len(outcome.err.splitlines()) == 2


@pytest.mark.parametrize("name", ["x" * 3000, "~nobody-of-that-name/x", "=1+1", "/dev/zero"])
def test_a_strange_model_spoils_its_own_row_alone(name, tmp_path):
    found = score(points(tmp_path, POINT + f"{name},h100-sxm,8,500,200\n" + GOOD_POINT))
    status = found.columns.index("status")
    strange, good = (row[status] for row in found.rows)
    assert (strange != "ok", good) == (True, "ok")


def test_no_number_whatever_gives_a_score_that_is_no_number(tmp_path):
    values = ("1e308", "1e-308", "1e9", "99999999999999999999", "0.5")
    rows = [
        ",".join([*cells[:place], value, *cells[place + 1 :]])
        for cells in [GOOD_POINT.strip().split(",")]
        for place in (2, 3, 4)
        for value in values
    ]
    found = score(points(tmp_path, POINT + "\n".join(rows) + "\n"))
    assert not {"inf", "nan", "-inf"} & {cell for row in found.rows for cell in row}


def test_a_rate_beyond_the_capacity_is_overloaded_and_has_no_latency(tmp_path):
    header, row = "model,accelerator,rate_per_s\n", "meta-llama/Llama-3.1-8B-Instruct,h100-sxm,"
    found = score(points(tmp_path, f"{header}{row}1\n{row}1000\n"))
    low, high = (dict(zip(found.columns, values, strict=True)) for values in found.rows)
    assert (low["status"], high["status"]) == ("ok", "overloaded")
    assert "1000 requests/s" in high["reason"]
    assert float(low["ttft_ms"]) > 0
    assert (high["ttft_ms"], high["ttft_p95_ms"], high["e2e_s"]) == ("", "", "")


def test_a_column_named_nearly_like_one_that_is_read_is_remarked_upon(tmp_path, capsys):
    path = points(tmp_path, POINT.replace("prompt_tokens", "promt_tokens") + GOOD_POINT)
    outcome = run(capsys, "score", str(path))
    assert outcome.code == 0
    assert outcome.err == (
        "column 'promt_tokens' is carried through, not read; did you mean 'prompt_tokens'?\n"
    )
    assert next(csv.DictReader(io.StringIO(outcome.out)))["promt_tokens"] == "500"


@pytest.mark.parametrize("text", ["x", "1,5".replace(",", "."), "0x10"])
def test_a_row_with_a_bad_number_is_answered_in_plain_words(text, tmp_path):
    found = score(points(tmp_path, POINT.replace("\n", ",tp\n") + GOOD_POINT[:-1] + f",{text}\n"))
    reason = dict(zip(found.columns, found.rows[0], strict=True))["reason"]
    assert reason == f"tp: '{text}' is not a whole number"


@pytest.mark.parametrize("option", ["--checkpoint", "--head"])
def test_a_line_break_in_a_name_never_reaches_a_script(option, plan_file, capsys):
    outcome = run(capsys, "export", plan_file, "--to", "vllm", option, "x\nrm -rf /")
    assert (outcome.code, outcome.out) == (2, "")
    assert r"'x\nrm -rf /' holds a control character" in outcome.err
