from __future__ import annotations

from pathlib import Path

import pytest

from planner.commands.report import write_report
from planner.errors import InputError
from planner.report.json_text import render as as_json
from tests.report.records import record


@pytest.mark.parametrize(("name", "start"), [("pack.xlsx", b"PK"), ("options.CSV", b"picks,id,")])
def test_the_suffix_says_which_report_is_written(tmp_path: Path, name: str, start: bytes):
    write_report(record(), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_stored_plan_gives_the_same_report_as_the_plan_itself(tmp_path: Path):
    stored = tmp_path / "plan.json"
    stored.write_text(as_json(record()))
    write_report(stored, tmp_path / "a.csv")
    write_report(record(), tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_an_unknown_suffix_names_the_nearest_known_one(tmp_path: Path):
    with pytest.raises(InputError, match=r"'\.xlxs' is no kind of report; did you mean '\.xlsx'"):
        write_report(record(), tmp_path / "pack.xlxs")
    assert not list(tmp_path.iterdir())
