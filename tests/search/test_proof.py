"""``--prove``: decides the whole space, adds what the search had missed, and says so."""

import pytest

from planner import plan
from planner.report.words import found
from planner.search.search import Settings, search
from tests.search.problems import offline, random_problem, vectors
from tests.search.test_spaces import example

PROBLEMS = [3, 8, 11]


def jobs() -> list:
    return [offline(random_problem(seed), 2e6, 86_400.0) for seed in PROBLEMS]


@pytest.mark.parametrize("seed", PROBLEMS)
def test_a_proof_adds_exactly_what_the_search_had_missed(seed):
    """Referee: enumeration, and the same search without proof."""
    problem = random_problem(seed)
    missing = search(problem, settings=Settings(trials=10, prove=False))
    proven = search(problem, settings=Settings(trials=10, prove=True))
    truth = search(problem, settings=Settings(enumerate_all=True))
    assert vectors(proven.entries) == vectors(truth.entries)
    assert proven.missed == len(vectors(truth.entries) - vectors(missing.entries))
    assert proven.proven
    assert not missing.proven


def test_the_search_does_miss_points_that_a_proof_adds():
    """Without a problem where it does, the test above could not fail."""
    missed = [search(job, settings=Settings(trials=1, prove=True)).missed for job in jobs()]
    assert max(missed) > 0


def test_points_missed_are_counted_only_where_a_proof_was_asked_for():
    problem = random_problem(3)
    assert search(problem).missed is None
    assert search(problem, settings=Settings(prove=False)).missed is None


def test_a_proof_in_parts_is_the_proof_as_a_whole(monkeypatch):
    problem = random_problem(8)
    whole = search(problem, settings=Settings(prove=True))
    monkeypatch.setattr("planner.search.search.PROOF_SHAPES", 100)
    monkeypatch.setattr("planner.search.search.SHARED_SHAPES", 100)
    monkeypatch.setattr("planner.search.parts.LEAST", 20)
    shares: list[float] = []

    def progress(phrase: str, share: float) -> None:
        if phrase == "proving the front":
            shares.append(share)

    # What a helper decides shows when it is done: the shares of one process are counted.
    parts = search(problem, settings=Settings(prove=True, processes=1), progress=progress)
    assert vectors(parts.entries) == vectors(whole.entries)
    assert parts.proven
    assert shares == sorted(shares)
    assert len(shares) > 5
    assert shares[-1] <= 1


def test_a_proof_cut_short_proves_nothing(monkeypatch):
    monkeypatch.setattr("planner.search.search.PROOF_SHAPES", 10)
    problem = random_problem(8)
    cut = search(problem, settings=Settings(prove=True, time_limit=1e-6))
    assert not cut.proven
    assert cut.stopped == "time limit"


def test_the_record_and_the_report_say_what_a_proof_found():
    record = plan(example("chat-70b"), space="quick", verify=False, prove=True)
    assert record.search.proven
    assert record.search.missed is not None
    told = record.search.model_copy(update={"missed": 1234})
    missed = found(replace_search(record, told))
    assert "the formula's front is proven exact; the search had missed 1,234 points" in missed
    assert "points, which the proof has added" in missed
    none = found(replace_search(record, told.model_copy(update={"missed": 0})))
    assert "the formula's front is proven exact, stopped at fixed point" in none
    cut = told.model_copy(update={"proven": False, "stopped": "interrupted", "missed": None})
    assert "front is not proven exact, interrupted" in found(replace_search(record, cut))


def replace_search(record, search):
    return record.model_copy(update={"search": search})
