"""The Optuna study: trials are shapes, seeds breed, limits are constraints."""

import numpy as np
import pytest

from planner.search.archive import Archive
from planner.search.seeds import neighbours, seed_shapes
from planner.search.shapes import shape_table
from planner.search.study import (
    FIRST_GENERATION,
    POPULATION,
    UNSUPPORTED,
    WORST,
    Judge,
    explore,
    names,
    open_study,
    plant,
)
from tests.search.problems import random_problem


@pytest.fixture(scope="module")
def judge():
    problem = random_problem(8)
    table = shape_table(problem)
    archive = Archive(problem, table)
    return Judge(archive, np.ones(len(problem.tables.hardware)))


def test_planted_seeds_are_the_parents_of_the_first_generation(judge):
    """Added trials lack NSGA-II's mark and would be ignored; the key is Optuna's private one."""
    study = open_study(judge.archive.problem, seed=0)
    plant(study, judge, np.arange(200))
    assert len(study.trials) == POPULATION
    explore(study, judge, 1, lambda: False)
    (key,) = FIRST_GENERATION
    assert study.trials[-1].system_attrs[key] == 1
    parents = study._storage.get_study_system_attrs(study._study_id)
    (cached,) = [v for k, v in parents.items() if "parent" in k]
    assert set(cached) <= {t._trial_id for t in study.trials[:POPULATION]}


def test_trials_carry_readable_parameters_values_and_constraints(judge):
    study = open_study(judge.archive.problem, seed=0)
    assert explore(study, judge, 60, lambda: False) == 60
    axes = names(judge.archive.problem).axes()
    for trial in study.trials:
        assert {k: trial.params[k] in labels for k, labels in axes.items()} == dict.fromkeys(
            axes, True
        )
        assert len(trial.values) == 4
    assert len({t.params["weights"] for t in study.trials}) > 1


def test_a_shape_that_does_not_exist_breaks_its_constraint(judge):
    (verdict,) = judge.judge(np.array([-1]))
    assert verdict.violation == UNSUPPORTED
    assert verdict.values == (WORST,) * 4


def test_a_verdict_is_the_best_of_each_objective_over_the_shape_s_deployments(judge):
    verdicts = judge.judge(np.arange(len(judge.archive.table)))
    good = [i for i, v in enumerate(verdicts) if v.violation <= 0]
    assert good
    for i in good[:20]:
        mine = judge.archive.entries.points[judge.archive.entries.rows.shape == i]
        if len(mine):
            assert (np.array(verdicts[i].values) <= mine.min(axis=0)).all()


def test_judging_again_scores_nothing_again(judge):
    judge.judge(np.arange(50))
    before = judge.archive.scored
    judge.judge(np.arange(50))
    assert judge.archive.scored == before


def test_stop_is_polled_before_each_batch(judge):
    study = open_study(judge.archive.problem, seed=0)
    answers = iter([False, True])
    assert explore(study, judge, 500, lambda: next(answers)) == POPULATION


def test_seeds_have_each_accelerator_engine_and_format_that_runs():
    problem = random_problem(10)
    table = shape_table(problem)
    seeds = table.shapes.take(seed_shapes(problem, table))
    chips = [h.accelerator.id for h in problem.tables.hardware]

    def kinds(shapes):
        chip = [chips[i] for i in shapes.hardware]
        return set(zip(chip, shapes.stack.tolist(), shapes.weights.tolist(), strict=True))

    plain = (table.shapes.draft == 0) & (table.shapes.kv == table.shapes.kv.min())
    assert kinds(seeds) == kinds(table.shapes.take(plain))


def test_neighbours_differ_in_one_choice():
    problem = random_problem(10)
    table = shape_table(problem)
    start = np.array([0, len(table) // 2])
    near = neighbours(problem, table, start)
    assert set(start) <= set(near)
    axes, of = table.shapes.axes(), table.shapes.axes()[start]
    for row in near:
        # The first axis names the first class on which the layout behaves alike.
        gaps = [(axes[row][1:] != one[1:]).sum() for one in of]
        assert min(gaps) <= 1


def test_a_shape_is_found_by_its_choices():
    problem = random_problem(10)
    table = shape_table(problem)
    assert table.find(table.shapes.axes()).tolist() == list(range(len(table)))
