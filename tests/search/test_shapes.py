"""The shape table against the rules it stands for."""

from dataclasses import replace

import numpy as np
import pytest

from planner.candidates.acceptance import acceptance
from planner.candidates.support import kv_fault, layout_fault, weights_fault
from planner.search.allowed import RULES, gpus
from planner.search.inner import deployments
from planner.search.shapes import shape_table
from tests.search.problems import catalog, everything, random_problem, random_setting


@pytest.mark.parametrize("seed", [1, 6, 10])
def test_every_shape_is_supported_and_fits(seed):
    problem = random_problem(seed)
    table, t = shape_table(problem), problem.tables
    for row in table.shapes.axes()[:300]:
        hardware, stack = t.hardware[row[0]], t.stacks[row[1]]
        chip, layout = hardware.accelerator, problem.layouts[row[4]]
        assert not weights_fault(stack, chip, t.weights[row[2]])
        assert not kv_fault(stack, chip, t.kv[row[3]])
        assert not layout_fault(stack, hardware, t.architectures[0], layout)
    assert (table.fits >= 1).all()


def test_each_home_of_a_shape_keeps_the_conditions():
    problem = replace(random_problem(10), conditions=("tp_divides_node", "replica_within_node"))
    table = shape_table(problem)
    architecture = problem.tables.architectures[0]
    assert len(table)
    for i in range(len(table)):
        layout = problem.layouts[table.shapes.layout[i]]
        for home in table.home_hardware[table.home_start[i] : table.home_start[i + 1]]:
            hardware = problem.tables.hardware[home]
            assert all(RULES[name](hardware, architecture, layout) for name in problem.conditions)
            assert gpus(layout) <= hardware.gpus


def test_pipelines_are_kept_only_across_instances_or_where_nothing_else_fits():
    free = replace(random_problem(8), conditions=())
    ruled = replace(free, conditions=("pp_only_across_nodes_or_when_needed",))
    table, all_of_them = shape_table(ruled), shape_table(free)
    hardware, layouts = ruled.tables.hardware, ruled.layouts

    def formats(t, i):
        s = t.shapes
        return (int(s.stack[i]), int(s.weights[i]), int(s.kv[i]))

    flat = {
        (int(home), *formats(all_of_them, i))
        for i in range(len(all_of_them))
        if layouts[all_of_them.shapes.layout[i]].pp == 1
        for home in all_of_them.home_hardware[
            all_of_them.home_start[i] : all_of_them.home_start[i + 1]
        ]
    }
    dropped = len(all_of_them.home_hardware) - len(table.home_hardware)
    assert dropped > 0
    for i in range(len(table)):
        layout = layouts[table.shapes.layout[i]]
        for home in table.home_hardware[table.home_start[i] : table.home_start[i + 1]]:
            across = gpus(layout) > hardware[home].gpus
            assert layout.pp == 1 or across or (int(home), *formats(table, i)) not in flat


def test_twins_are_scored_alike():
    """A shape stands for all its homes: each of them alone gives the same rows."""
    problem = random_problem(10)
    table = shape_table(problem)
    counts = np.diff(table.home_start)
    shared = int(np.argmax(counts))
    assert counts[shared] > 1
    homes = table.home_hardware[table.home_start[shared] : table.home_start[shared + 1]]
    axes = table.shapes.axes()[shared]
    for home in homes:
        alone = replace(
            problem, tables=replace(problem.tables, hardware=(problem.tables.hardware[home],))
        )
        single = shape_table(alone)
        row = single.find(np.array([[0, *axes[1:]]]))
        assert row[0] >= 0
        assert single.fits[row[0]] == table.fits[shared]


def test_deployments_carry_the_load_and_use_the_smallest_batch_limit_that_does():
    problem = random_problem(8)
    table = shape_table(problem)
    rows = deployments(problem, table, everything(table))
    assert (rows.replicas <= problem.inner.max_replicas).all()
    assert (rows.replicas == np.round(rows.replicas)).all()
    keys = np.stack([rows.shape, rows.budget, rows.replicas])
    assert np.unique(keys, axis=1).shape[1] == len(rows)


def test_the_released_format_is_never_upcast():
    _, made = random_setting(3)
    assert made.problem.tables.architectures[0].native_format == "fp8"
    ids = {fmt.id for fmt in made.problem.tables.weights}
    assert "fp8" in ids
    assert not ids & {"bf16", "int8", "int8-weight-only"}


@pytest.mark.parametrize(
    ("method", "task", "trained", "expected"),
    [
        ("mtp", "code", True, (0.89, 0.96)),
        ("mtp", "code", False, (0.85, 0.73)),
        ("ngram", "chat", False, (0.27, 1.0)),
        ("eagle3", "reasoning", False, (0.82, 0.94)),
        ("draft-model", "chat", False, (0.65, 1.0)),
    ],
    ids=[
        "layers trained for several steps",
        "one module reused",
        "single turn",
        "math",
        "any task",
    ],
)
def test_acceptance_is_that_of_the_task_and_tier(method, task, trained, expected):
    """Expected values: the table of published acceptance in speculation.yaml's sources."""
    _, made = random_setting(1)
    architecture = made.problem.tables.architectures[0].model_copy(
        update={"mtp_trained_steps": trained}
    )
    found = acceptance(catalog().speculation_method(method), task, architecture)
    assert (found.c1, found.d) == expected
