"""The shipped spaces: each of them loads, plans, and is as large as it says."""

from pathlib import Path

import pytest

from planner import plan
from planner.files import read_yaml
from planner.report.words import found
from planner.search.shapes import shape_table
from planner.spec.load import load
from planner.spec.space import SearchSpace
from tests.search.problems import example_problem

ROOT = Path(__file__).parents[2]
EXAMPLE = {
    "quick": "chat-70b",
    "default": "chat-70b",
    "moe": "code-moe-mla",
    "long-context": "long-context",
    "offline-batch": "offline-batch",
}
"""An example that a space is meant for; wide is measured in planner/search/README.md."""


def example(name: str) -> Path:
    return ROOT / "examples" / f"{name}.yaml"


def space(name: str) -> SearchSpace:
    return load(read_yaml(ROOT / "search_spaces" / f"{name}.yaml"), SearchSpace)


def test_every_shipped_space_has_a_test():
    shipped = {path.stem for path in (ROOT / "search_spaces").glob("*.yaml")}
    assert shipped == {*EXAMPLE, "wide"}


@pytest.mark.parametrize("name", EXAMPLE)
def test_a_space_plans_and_its_size_is_reported(name):
    """By hand: shapes x batch limits x token budgets x factors on the replicas."""
    record = plan(example(EXAMPLE[name]), space=name, verify=False)
    assert record.options
    asked, found_here = space(name), record.search
    inner = len(asked.max_num_seqs) * len(asked.token_budget) * len(asked.replicas.spread)
    assert found_here.candidates == found_here.shapes * inner
    assert f"{found_here.candidates:,} candidates" in found(record)


@pytest.mark.parametrize(
    "name", ["chat-70b", "code-moe-mla", "rag-8b", "long-context", "offline-batch"]
)
def test_the_wide_space_has_more_than_a_hundred_million_candidates(name):
    wide = space("wide")
    inner = len(wide.max_num_seqs) * len(wide.token_budget) * len(wide.replicas.spread)
    assert len(shape_table(example_problem(name, "wide"))) * inner > 1e8
