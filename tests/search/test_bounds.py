"""No deployment beats its optimistic values, and no archived one is thrown away by them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.search.bounds import matched, optimistic
from planner.search.inner import deployments, service
from planner.search.shapes import shape_table
from tests.search.problems import everything, example_problem, random_problem


@pytest.mark.parametrize("seed", range(14))
def test_no_deployment_is_faster_than_its_optimistic_values(seed):
    problem = random_problem(seed)
    table = shape_table(problem)
    rows = deployments(problem, table, everything(table))
    hopes = optimistic(problem, table, rows)
    served = service(problem, table, rows)
    assert (hopes <= served).all()


def test_deep_pipelines_are_no_faster_than_their_optimistic_values():
    """A long prompt in two chunks passes eight stages sooner than a shorter one in one."""
    problem = example_problem("rag-8b", "wide")
    table = shape_table(problem)
    deep = np.flatnonzero(np.array([x.pp for x in problem.layouts])[table.shapes.layout] >= 6)
    rows = deployments(problem, table, deep[:: len(deep) // 1500])
    hopes, served = optimistic(problem, table, rows), service(problem, table, rows)
    assert len(rows) > 5_000
    assert (hopes <= served).all()


POINTS = st.lists(
    st.tuples(st.integers(0, 2), *[st.integers(0, 4)] * 4).map(lambda t: tuple(map(float, t))),
    max_size=25,
)


@given(known=POINTS, asked=POINTS)
def test_matched_is_its_definition(known, asked):
    known = sorted(known)
    expected = [
        any(k[0] == a[0] and all(x <= y for x, y in zip(k[1:], a[1:], strict=True)) for k in known)
        for a in asked
    ]
    columns = np.array(known, dtype=float).reshape(-1, 5), np.array(asked).reshape(-1, 5)
    (k_set, k_points), (a_set, a_points) = (
        (c[:, 0].astype(np.intp), c[:, 1:].astype(float)) for c in columns
    )
    assert matched(k_set, k_points, a_set, a_points).tolist() == expected
