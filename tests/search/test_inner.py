"""The inner solve against a plain version that tries every batch limit."""

from itertools import pairwise

import numpy as np
import pytest

from planner.model.queueing import capacity
from planner.search.inner import (
    DEVIATIONS,
    ROOM,
    Rows,
    deployments,
    mean_batch,
    row_candidates,
)
from planner.search.shapes import shape_table
from tests.search.problems import everything, example_problem, random_problem


def fewest_by_trying(problem, table, shape: int, budget: int) -> tuple[float, int] | None:
    """Fewest replicas, and the smallest batch limit with room (else the largest) that does."""
    limits, rate = problem.inner.batch_limits, problem.demand.rate
    count = min(int(np.searchsorted(limits, table.fits[shape])) + 1, len(limits))
    every = Rows(np.full(count, shape), np.arange(count), np.full(count, budget), np.ones(count))
    c = row_candidates(problem, table, every)
    each = capacity(c, problem.parameters, problem.demand.workload) * problem.demand.headroom
    if each.max() <= 0:
        return None
    replicas = max(float(np.ceil(rate / each.max() - 1e-9)), 1.0)
    one = Rows(np.array([shape]), np.array([0]), np.array([budget]), np.array([replicas]))
    batch = float(mean_batch(problem, table, one)[0])
    room = batch * ROOM + DEVIATIONS * np.sqrt(batch) + 1.0
    carries = [i for i in range(count) if each[i] * replicas >= rate * (1 - 1e-9)]
    roomy = [i for i in carries if limits[i] >= room]
    return replicas, min(roomy) if roomy else max(carries)


def assert_fewest(problem, table, shapes) -> int:
    rows = deployments(problem, table, shapes)
    keys = list(zip(rows.shape.tolist(), rows.budget.tolist(), strict=True))
    first = [i for i, key in enumerate(keys) if i == 0 or keys[i - 1] != key]
    for i in first:
        expected = fewest_by_trying(problem, table, *keys[i])
        assert (rows.replicas[i], rows.limit[i]) == expected
    return len(first)


@pytest.mark.parametrize("seed", range(1, 7))
def test_the_fewest_replicas_and_their_limit_are_those_of_trying_every_limit(seed):
    problem = random_problem(seed)
    table = shape_table(problem)
    shapes = everything(table)
    assert assert_fewest(problem, table, shapes[:: len(shapes) // 60 + 1]) > 10


@pytest.mark.parametrize("name", ["rag-8b", "code-moe-mla"])
def test_so_they_are_where_there_are_many_limits(name):
    problem = example_problem(name, "wide")
    table = shape_table(problem)
    assert assert_fewest(problem, table, everything(table)[:: len(table) // 60]) > 100


def test_rows_of_a_shape_and_token_budget_lie_together_the_fewest_replicas_first():
    problem = random_problem(3)
    table = shape_table(problem)
    rows = deployments(problem, table, everything(table))
    keys = list(zip(rows.shape.tolist(), rows.budget.tolist(), strict=True))
    assert keys == sorted(keys)
    together = np.array([a == b for a, b in pairwise(keys)])
    assert together.any()
    assert (np.diff(rows.replicas)[together] > 0).all()
    assert (np.diff(rows.limit)[together] == 0).all()
