import datetime
from typing import Annotated, Literal

import pytest
from pydantic import Field, model_validator

from planner.errors import InputError
from planner.files import parse_yaml
from planner.spec.base import Name, Positive, Spec
from planner.spec.load import KeyFaultsError, load, load_yaml


class Disk(Spec):
    kind: Literal["disk"]
    size_gb: Positive


class Tape(Spec):
    kind: Literal["tape"]
    reels: Annotated[int, Field(ge=1, le=9)]


class Box(Spec):
    name: Annotated[str, Field(max_length=5, pattern="^[a-z]+$")]
    bought: datetime.date | None = None
    level: Literal["low", "high"] | Literal[""] = ""
    rates: dict[Name, Positive] = Field(default_factory=dict)
    parts: tuple[Annotated[Disk | Tape, Field(discriminator="kind")], ...] = ()
    keys: Annotated[tuple[str, ...], Field(alias="for", min_length=1)] = ("x",)

    @model_validator(mode="after")
    def _checks(self):
        if self.name == "never":
            raise ValueError("never is no name; choose another")
        if self.name == "both":
            raise KeyFaultsError(("level", "must be high"), ("rates.x", "too low; raise it"))
        return self


def faults(text):
    with pytest.raises(InputError) as caught:
        load(parse_yaml(text, "box.yaml"), Box)
    return [str(fault) for fault in caught.value.faults]


def test_a_good_document_becomes_a_frozen_spec():
    box = load(parse_yaml("name: a\nbought: 2026-11-29\nfor: [y]\n", "box.yaml"), Box)
    assert (box.bought, box.keys) == (datetime.date(2026, 11, 29), ("y",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for: [a]", "line 1  name: missing; add it"),
        ("name: toolong", "line 1  name: holds 7; give at most 5 characters"),
        ("name: A1", "line 1  name: 'A1' does not have the form ^[a-z]+$"),
        ("name: a\nbought: soon", "line 2  bought: 'soon' is not a date; write YYYY-MM-DD"),
        (
            "name: a\nlevel: hihg",
            "line 2  level: 'hihg' is not one of low, high, (empty); did you mean 'high'?",
        ),
        ("name: a\nrates:\n  x: 1\n  y: 0", "line 4  rates.y: 0 must be above 0"),
        ("name: a\nrates: {'': 1}", "line 2  rates.'': must not be empty; give a value"),
        ("name: a\nfor: []", "line 2  for: must not be empty; give a value"),
        ("name: a\nfors: [x]", "line 2  fors: unknown key; did you mean 'for'?"),
        (
            "name: a\nparts:\n- {kind: disk, size_gb: -1}",
            "line 3  parts[0].size_gb: -1 must be above 0",
        ),
        (
            "name: a\nparts:\n- {kind: disk, reels: 1, size_gb: 1}",
            "line 3  parts[0].reels: unknown key; remove it, or use one of kind, size_gb",
        ),
        (
            "name: a\nparts:\n- {kind: dsk}",
            "line 3  parts[0].kind: 'dsk' is not one of disk, tape; did you mean 'disk'?",
        ),
        ("name: a\nparts:\n- {reels: 1}", "line 3  parts[0].kind: missing; add it"),
        ("name: a\nparts: {kind: disk}", "line 2  parts: a block of keys is not a list; write"),
        ("name: a\nparts:\n- {kind: tape, reels: 9.5}", "line 3  parts[0].reels: 9.5 is not a wh"),
        ("name: never", "line 1: never is no name; choose another"),
        ("name: a\nsize_gb: 1", "line 2  size_gb: unknown key here; it belongs under `parts`"),
    ],
)
def test_each_fault_says_line_key_what_is_wrong_and_the_repair(text, expected):
    found = faults(text)
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_a_validator_can_name_several_keys():
    assert faults("name: both\nrates:\n  x: 1\nlevel: low\n") == [
        "line 3  rates.x: too low; raise it",
        "line 4  level: must be high",
    ]


def test_a_list_with_a_bad_entry_is_not_called_empty_as_well():
    assert faults("name: a\nfor: [7]") == ["line 2  for[0]: 7 is not text; put it in quotes"]


def test_a_file_s_unreadable_values_and_its_other_faults_are_told_together(tmp_path):
    path = tmp_path / "box.yaml"
    path.write_text(
        "name: box\n"
        "bought: 2026-02-31\n"
        "levle: high\n"
        "rates: {x: .nan, y: -1, x: 2}\n"
        "parts: [{kind: tape, reels: .inf}, {kind: .nan}, {kind: tape, reels: 0}]\n"
    )
    with pytest.raises(InputError) as raised:
        load_yaml(path, Box)
    assert [(fault.where, fault.key) for fault in raised.value.faults] == [
        ("line 2", "bought"),
        ("line 3", "levle"),
        ("line 4", "rates.x"),
        ("line 4", "rates.x"),
        ("line 4", "rates.y"),
        ("line 5", "parts[0].reels"),
        ("line 5", "parts[1].kind"),
        ("line 5", "parts[2].reels"),
    ]


def test_an_unreadable_value_brings_no_fault_of_its_own_parts(tmp_path):
    path = tmp_path / "box.yaml"
    path.write_text("name: .nan\nfor: .inf\n")
    with pytest.raises(InputError) as raised:
        load_yaml(path, Box)
    assert [str(fault) for fault in raised.value.faults] == [
        "line 1  name: .nan is not a finite number; give a number",
        "line 2  for: .inf is not a finite number; give a number",
    ]


def test_a_sound_file_is_loaded(tmp_path):
    path = tmp_path / "box.yaml"
    path.write_text("name: box\nparts: [{kind: tape, reels: 3}]\n")
    assert load_yaml(path, Box) == Box(name="box", parts=(Tape(kind="tape", reels=3),))
