"""A stored plan that somebody has edited: what no longer fits is named, nothing is guessed."""

from __future__ import annotations

import json

import pytest

from planner.catalog import load_catalog
from planner.errors import InputError
from planner.report import FORMATS
from planner.spec.record_file import read_record
from tests.commands.small_plans import small_plan


@pytest.fixture(scope="module")
def stored():
    return FORMATS["json"](small_plan(load_catalog()))


def refused(tmp_path, data) -> str:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        read_record(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


def test_a_plan_as_it_was_written_is_read(tmp_path, stored):
    path = tmp_path / "plan.json"
    path.write_text(stored)
    assert read_record(path).picks == json.loads(stored)["picks"]


EDITS = {
    "a pick of no option": (lambda d: d["picks"].update(cheapest="o-none"), "o-none: is picked"),
    "a shown id of no option": (lambda d: d["shown"].append("o-none"), "o-none: is picked or"),
    "no options": (lambda d: d.update(options=[]), "is picked or shown, but is no option"),
    "a row beyond the archive": (
        lambda d: d["options"][0].update(archive_row=10**6),
        "has no row in the archive",
    ),
    "a class beyond the archive": (
        lambda d: d["options"][0].update(hardware="none"),
        "has no row in the archive",
    ),
    "no archive": (lambda d: d.update(archive=[]), "has no row in the archive"),
    "a column cut short": (
        lambda d: d["archive"][0]["rows"]["engine"].pop(),
        "columns of two lengths",
    ),
    "no prices": (lambda d: d.update(offers=[]), "has no price row"),
    "an empty slo": (lambda d: d["inputs"].update(slo={}), "inputs.slo.model: missing"),
    "no date": (lambda d: d["inputs"].update(as_of="soon"), "inputs.as_of: 'soon' is no date"),
}


@pytest.mark.parametrize(("edit", "message"), EDITS.values(), ids=EDITS)
def test_a_plan_that_does_not_fit_together_is_refused(edit, message, tmp_path, stored):
    data = json.loads(stored)
    edit(data)
    assert message in refused(tmp_path, data)
