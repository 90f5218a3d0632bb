from __future__ import annotations

import pytest

from planner.commands.export import export
from planner.commands.portfolio_choice import _lacking
from planner.counting import counted, request_rate
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


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("1", "1 request/s"),
        ("1.2", "1.2 requests/s"),
        ("0.1", "0.1 requests/s"),
        ("11", "11 requests/s"),
    ],
)
def test_a_rate_of_one_request_is_told_in_the_singular(shown, said):
    assert request_rate(shown) == said


@pytest.mark.parametrize(
    ("amount", "word", "said"),
    [
        ("1", "GPUs", "1 GPU"),
        ("2", "GPUs", "2 GPUs"),
        ("1", "h100-sxm GPUs at gcp", "1 h100-sxm GPU at gcp"),
        ("1", "USD/h", "1 USD/h"),
    ],
)
def test_what_a_shared_limit_lacks_is_told_in_the_singular_for_one(amount, word, said):
    assert _lacking(amount, word) == said
