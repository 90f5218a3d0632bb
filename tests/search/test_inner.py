"""The inner solve against a plain version that tries every batch limit."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from planner.model.memory import sequences_that_fit
from planner.model.queueing import capacity
from planner.search.inner import (
    DEVIATIONS,
    ROOM,
    Rows,
    deployments,
    mean_batch,
    only_full,
    row_candidates,
)
from planner.search.shapes import shape_table
from planner.spec.slo import Slo
from tests.search.problems import asked_problem, everything, example_problem, random_problem


def by_trying(problem, table, shape: int, budget: int) -> tuple[float, float, int]:
    """What a replica carries at most, the fewest replicas, the smallest batch limit that does.

    With room for chance if there is such a limit, else the largest that does.
    """
    limits, rate = problem.inner.batch_limits, problem.demand.rate
    count = min(int(np.searchsorted(limits, table.fits[shape])) + 1, len(limits))
    every = Rows(
        np.full(count, shape),
        np.arange(count),
        np.full(count, budget),
        np.ones(count),
        np.full(count, -1),
    )
    c = row_candidates(problem, table, every)
    each = capacity(c, problem.parameters, problem.demand.workload) * problem.demand.headroom
    replicas = max(float(np.ceil(rate / each.max() - 1e-9)), 1.0)
    one = Rows(*map(np.array, ([shape], [0], [budget], [replicas], [-1])))
    batch = float(mean_batch(problem, table, one)[0])
    room = batch * ROOM + DEVIATIONS * np.sqrt(batch) + 1.0
    carries = [i for i in range(count) if each[i] * replicas >= rate * (1 - 1e-9)]
    roomy = [i for i in carries if limits[i] >= room]
    return each.max(), replicas, min(roomy) if roomy else max(carries)


def filled_counts(problem, table, shape: int, best: float) -> list[float]:
    """The fewest and the space's factors on them, each filling the instances of each home."""
    found = set()
    for home in table.home_hardware[table.home_start[shape] : table.home_start[shape + 1]]:
        inside = max(int(problem.tables.hardware[home].gpus // table.gpus[shape]), 1)
        fewest = max(np.ceil(problem.demand.rate / best - 1e-9), 1.0)
        for factor in problem.inner.spread:
            count = np.ceil(fewest * factor - 1e-9)
            full = -(-count // inside) * inside
            found.add(max(min(full, problem.inner.max_replicas), count))
    most = min(problem.inner.max_replicas, np.floor(problem.reach.gpus / table.gpus[shape]))
    return sorted(count for count in found if count <= most)


def assert_as_by_trying(problem, table, shapes) -> int:
    rows = deployments(problem, table, shapes)
    got: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for shape, budget, replicas, limit in zip(
        rows.shape.tolist(), rows.budget.tolist(), rows.replicas, rows.limit, strict=True
    ):
        got.setdefault((shape, budget), []).append((replicas, limit))
    for (shape, budget), found in got.items():
        best, fewest, limit = by_trying(problem, table, shape, budget)
        counts = filled_counts(problem, table, shape, best)
        assert fewest <= counts[0]
        assert found == [(count, limit) for count in counts]
    return len(got)


@pytest.mark.parametrize("seed", range(1, 7))
def test_the_fewest_replicas_and_their_limit_are_those_of_trying_every_limit(seed):
    problem = random_problem(seed)
    table = shape_table(problem)
    shapes = everything(table)
    assert assert_as_by_trying(problem, table, shapes[:: len(shapes) // 60 + 1]) > 10


@pytest.mark.parametrize("name", ["rag-8b", "code-moe-mla"])
def test_so_they_are_where_there_are_many_limits(name):
    problem = example_problem(name, "wide")
    table = shape_table(problem)
    assert assert_as_by_trying(problem, table, everything(table)[:: len(table) // 60]) > 100


@pytest.mark.parametrize("spare", [0, 1])
def test_gpus_that_are_paid_for_are_used(spare):
    """Eight GPUs a server: one-GPU replicas come in eights, spares among them."""
    problem = replace(example_problem("chat-70b", "default"), spare=spare)
    table = shape_table(problem)
    sizes = np.array([h.gpus for h in problem.tables.hardware])
    homes = [
        sizes[table.home_hardware[table.home_start[i] : table.home_start[i + 1]]]
        for i in range(len(table))
    ]
    eights = [i for i, own in enumerate(homes) if (own == 8).all() and table.gpus[i] == 1]
    rows = deployments(problem, table, np.array(eights))
    assert len(rows) > 100
    assert ((rows.replicas + spare) % 8 == 0).all()


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


@pytest.mark.parametrize(
    ("sizes", "count", "full", "on"),
    [((2, 8), 3, 3, [2]), ((2, 8), 4, 4, [2, 8]), ((8,), 3, 4, [8]), ((8,), 9, 12, [8])],
)
def test_any_count_is_raised_to_what_fills_and_says_which_sizes_it_fills(sizes, count, full, on):
    """Replicas of two GPUs: a server of eight holds four, one of two holds one."""
    problem = example_problem("chat-70b", "default")
    table, hardware = shape_table(problem), problem.tables.hardware
    shape = next(
        i
        for i in range(len(table))
        if table.gpus[i] == 2 and {hardware[h].gpus for h in homes_of(table, i)} == set(sizes)
    )
    zero, every = np.zeros(1, dtype=np.intp), np.array([-1])
    rows = Rows(np.array([shape]), zero, zero, np.array([float(count)]), every)
    got = only_full(problem, table, rows)
    bit = {h.gpus: table.size_bit[number] for number, h in enumerate(hardware)}
    assert got.replicas.tolist() == [full]
    assert got.sizes.tolist() == [sum(bit[size] for size in on)]


def homes_of(table, shape: int) -> list[int]:
    return table.home_hardware[table.home_start[shape] : table.home_start[shape + 1]].tolist()


def test_a_small_job_runs_nowhere_that_activations_leave_no_room_for_a_request():
    asked = {
        "model": "microsoft/phi-4",
        "task": "summarization",
        "traffic": {
            "offline": {"requests": 1, "deadline_hours": 0.1},
            "prompt_tokens": 500,
            "output_tokens": 1,
        },
        "objectives": ("usd_per_mtok_output", "quality_loss_percent"),
    }
    problem = asked_problem(Slo.model_validate(asked), "default")
    table = shape_table(problem)
    rows = deployments(problem, table, everything(table))
    c = row_candidates(problem, table, rows)
    held = sequences_that_fit(c, np.full(len(c), 500.5))
    assert len(rows) > 1000
    assert held.min() >= 1.0
