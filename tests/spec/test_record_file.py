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
    "a pick of no option": (
        lambda d: d["picks"].update(cheapest="o-none"),
        "picks.cheapest: o-none is picked",
    ),
    "a shown id of no option": (lambda d: d["shown"].append("o-none"), "o-none is picked or shown"),
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
    "no margin": (
        lambda d: d["archive"][0].update(margins=[]),
        "archive[0].margins: none for vllm-v1, which runs here",
    ),
    "an option of another engine generation": (
        lambda d: d["options"][0].update(generation="vllm-v0"),
        "options[0].generation: vllm-v0, but its row in the archive says vllm-v1",
    ),
    "a price of another provider": (
        lambda d: d["options"][0]["money"]["price"].update(provider="nobody"),
        "options[0].money.price.provider: nobody, but its price row says ",
    ),
    "a price that its instances do not add up to": (
        lambda d: d["options"][0]["money"].update(usd_per_hour=0.01),
        "options[0].money.usd_per_hour: 0.01, but ",
    ),
    "a simulated row that is none": (
        lambda d: d["archive"][0].update(simulated=[{"row": 10**6, "upper_ms": {}}]),
        "archive[0].simulated[0].row: no such row",
    ),
    "output below zero": (
        lambda d: d["archive"][0]["rows"]["output_tokens_per_s"].__setitem__(0, -1.0),
        "archive[0].rows.output_tokens_per_s[0]: -1 must be above 0",
    ),
    "no date": (lambda d: d["inputs"].update(as_of="soon"), "inputs.as_of: 'soon' is no date"),
}


@pytest.mark.parametrize(("edit", "message"), EDITS.values(), ids=EDITS)
def test_a_plan_that_does_not_fit_together_is_refused(edit, message, tmp_path, stored):
    data = json.loads(stored)
    edit(data)
    assert message in refused(tmp_path, data)


def test_all_faults_of_a_plan_are_told_at_once_with_their_lines(tmp_path, stored):
    text = stored
    for right, wrong in (
        ('"burstiness": 1.0', '"burstiness": -1'),
        ('"seed": 0', '"seed": NaN'),
        ('"proven": true', '"proven": 1,\n  "proven": "no"'),
        ('"stopped": "fixed point"', '"stopped": "never"'),
    ):
        assert text.count(right) >= 1, right
        text = text.replace(right, wrong, 1)
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_record(path)
    lines = text.splitlines()
    told = [(fault.where, fault.key) for fault in caught.value.faults]
    assert [key for _, key in told] == [
        "inputs.slo.traffic.burstiness",
        "inputs.seed",
        "search.proven",
        "search.stopped",
    ]
    for where, key in told:
        assert f'"{key.rsplit(".", 1)[-1]}"' in lines[int(where.split()[-1]) - 1]


def test_a_key_written_twice_is_refused_though_its_last_value_is_sound(tmp_path, stored):
    path = tmp_path / "plan.json"
    path.write_text(stored.replace('"seed": 0', '"seed": 1,\n  "seed": 0', 1))
    with pytest.raises(InputError, match=r"line \d+  inputs\.seed: written twice; keep one"):
        read_record(path)
