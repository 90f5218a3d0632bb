from __future__ import annotations

import pytest

from planner.commands.export import export
from planner.counting import counted
from planner.report import words
from tests.deploy.plans import record, stored
from tests.report.records import record as bought


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 entries"), (1, "1 entry"), (2, "2 entries"), (1.5, "1.5 entries")]
)
def test_only_exactly_one_is_singular(count, text):
    assert counted(count, "entry", "entries") == text


def test_a_count_can_be_shown_in_its_own_form():
    assert counted(1000, "point", shown="1,000") == "1,000 points"
    assert counted(1, "replica", shown="one") == "one replica"


@pytest.mark.parametrize(("replicas", "words"), [(1, ": 1 replica of 4 x"), (2, ": 2 replicas of")])
def test_an_exported_file_counts_its_replicas_in_plain_english(replicas, words, tmp_path):
    plan = stored(tmp_path / "plan.json", record(replicas=replicas))
    for text in export(plan, "cheapest", "kubernetes").files.values():
        assert words in text


def test_a_search_that_found_one_of_everything_says_so_in_plain_english():
    made = bought()
    one = {"shapes": 1, "candidates": 1, "scored": 1, "trials": 1, "missed": 1, "simulated": 1}
    search = made.search.model_copy(update=one)
    alone = made.model_copy(update={"search": search, "options": made.options[:1]})
    told = words.found(alone)
    assert told.startswith("1 option on the front, from 1 shape (1 candidate, 1 scored, 1 trial);")
    assert "missed 1 point," in told
    assert "by simulation, 1 deployment around the front held" in told
