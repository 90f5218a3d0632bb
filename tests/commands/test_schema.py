from __future__ import annotations

import json

import pytest

from planner.commands.schema import described, names, publish, schema
from planner.errors import InputError
from planner.spec.slo import Quality, Slo
from planner.spec.targets import Targets


def test_a_key_is_described_by_the_line_that_the_spec_has_for_it():
    body = json.loads(schema("slo"))
    traffic = body["$defs"]["Traffic"]["properties"]
    expected = "Requests per second in the hour that is sized for [1/s]."
    assert traffic["rate_per_s"]["description"] == expected


def test_two_attributes_that_share_a_line_share_its_text():
    body = json.loads(schema("slo"))
    lengths = body["$defs"]["Traffic"]["properties"]
    assert lengths["prompt_tokens"]["description"] == "Lengths [tokens]."
    assert lengths["output_tokens"]["description"] == "Lengths [tokens]."


def test_a_key_with_another_name_in_the_file_keeps_its_text():
    body = json.loads(schema("slo"))
    assert body["properties"]["slo"]["description"].startswith("Latency targets")


def test_a_text_over_several_lines_is_read_whole():
    _, texts = described(Quality)
    assert texts["max_loss_percent"].endswith("of the evidence [%]; None = no limit.")
    assert set(texts) == {"max_loss_percent", "measured", "allow"}


def test_the_summary_of_a_class_is_its_first_line():
    assert described(Slo)[0] == (
        "The whole file. Written by key ``slo``, the targets are attribute ``targets``."
    )
    assert described(Targets)[1].keys() == Targets.model_fields.keys()


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'slo'"):
        schema("slos")


def test_publishing_writes_a_file_a_name(tmp_path):
    publish(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.json" for name in names()}
    assert (tmp_path / "slo.json").read_text(encoding="utf-8") == schema("slo")
