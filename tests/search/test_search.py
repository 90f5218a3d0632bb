"""The search against plain enumeration, and its laws."""

from dataclasses import replace

import numpy as np
import pytest

from planner.pareto import rounded
from planner.search.archive import Archive
from planner.search.inner import deployments, service
from planner.search.search import Settings, search
from planner.search.shapes import shape_table
from tests.search.problems import everything, offline, random_problem, vectors

SEEDS = range(30)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_search_finds_exactly_what_enumeration_finds(seed):
    problem = random_problem(seed)
    referee = search(problem, settings=Settings(enumerate_all=True))
    found = search(problem, settings=Settings(seed=seed))
    assert referee.scored <= 200_000
    assert found.proven
    assert vectors(found.entries) == vectors(referee.entries)


def test_seeds_sampler_and_polish_alone_miss_little():
    """No promise, but without it large spaces would not be worth searching."""
    recalls = []
    for seed in SEEDS:
        problem = random_problem(seed)
        referee = vectors(search(problem, settings=Settings(enumerate_all=True)).entries)
        found = search(problem, settings=Settings(seed=seed, prove=False))
        # Where no corner is worth keeping everything has been looked at.
        assert found.proven or referee
        assert not found.proven or vectors(found.entries) == referee
        if referee:
            recalls.append(len(vectors(found.entries) & referee) / len(referee))
    assert len(recalls) >= 8
    assert min(recalls) >= 0.9
    assert np.mean(recalls) >= 0.99


def test_the_random_problems_are_not_empty():
    sizes = [len(search(random_problem(seed)).entries) for seed in SEEDS[:6]]
    assert sum(size > 10 for size in sizes) >= 4


def test_enumeration_is_the_definition():
    """The archive against a filter written out by hand, on one problem."""
    problem = random_problem(3)
    found = search(problem, settings=Settings(enumerate_all=True))
    table = shape_table(problem)
    rows = deployments(problem, table, everything(table))
    served = service(problem, table, rows)
    kept: dict[tuple[int, int, bool], list[tuple[float, ...]]] = {}
    for i in range(len(rows)):
        shape = rows.shape[i]
        ttft, tpot = served[i]
        if not (ttft <= problem.reach.ttft and tpot <= problem.reach.tpot):
            continue
        size = table.gpus[shape]
        for home in table.home_hardware[table.home_start[shape] : table.home_start[shape + 1]]:
            if not rows.sizes[i] & table.size_bit[home]:
                continue
            gpus = problem.tables.hardware[home].gpus
            inside = gpus // size
            count = rows.replicas[i]
            need = -(-count // inside) if inside >= 1 else count * -(-size // gpus)
            engine, layout = (
                int(table.shapes.stack[shape]),
                problem.layouts[table.shapes.layout[shape]],
            )
            unseen = layout.pp > 1 or layout.tp * layout.dp > gpus
            point = (need, ttft, tpot, table.loss[shape])
            kept.setdefault((int(home), engine, unseen), []).append(point)
    expected = set()
    for (home, engine, unseen), points in kept.items():
        rivals = points + (kept.get((home, engine, False), []) if unseen else [])
        for p in points:
            if not any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in rivals):
                expected.add((float(home), *map(float, p)))
    assert expected
    assert vectors(found.entries) == expected


def test_same_seed_gives_the_same_archive_to_the_last_bit():
    runs = [search(random_problem(1), settings=Settings(seed=7, prove=False)) for _ in range(2)]
    first, second = (run.entries for run in runs)
    assert first.points.tobytes() == second.points.tobytes()
    assert first.rows.shape.tobytes() == second.rows.shape.tobytes()
    assert runs[0].scored == runs[1].scored


def test_another_seed_gives_the_same_front_where_it_is_proven():
    archives = [search(random_problem(2), settings=Settings(seed=s)).entries for s in (1, 2)]
    assert vectors(archives[0]) == vectors(archives[1])


def test_the_guide_does_not_change_a_proven_archive():
    problem = random_problem(5)
    prices = np.linspace(1.0, 50.0, len(problem.tables.hardware))
    plain, guided = search(problem), search(problem, prices)
    assert vectors(plain.entries) == vectors(guided.entries)


def test_no_entry_is_dominated_by_its_engine_on_its_class_or_out_of_reach():
    problem = random_problem(4)
    found = search(problem)
    entries = found.entries
    assert (entries.served <= [problem.reach.ttft, problem.reach.tpot]).all()
    kind = Archive(problem, found.table).sets(entries)
    for one in set(kind.tolist()):
        points = entries.points[kind == one]
        for i, point in enumerate(points):
            others = np.delete(points, i, axis=0)
            assert not (others <= point).all(axis=1).any()


@pytest.mark.parametrize("seed", [3, 4, 8])
def test_the_archive_of_all_engines_is_the_archives_of_each_engine_alone(seed):
    # So what is found with some engines is found with more, whatever is thought of it later.
    problem = random_problem(seed)
    alone = set()
    for stack in problem.tables.stacks:
        tables = replace(problem.tables, stacks=(stack,))
        alone |= vectors(search(replace(problem, tables=tables)).entries)
    assert alone
    assert vectors(search(problem).entries) == alone


def inside_a_server(found, problem):
    """Entries without pipeline stages whose replicas fit into a server."""
    entries, table = found.entries, found.table
    layout, base = table.bases.layout, table.base_of[entries.rows.shape]
    gpus = np.array([h.gpus for h in problem.tables.hardware])[entries.hardware]
    return entries.take((layout.pp[base] == 1) & (layout.tp[base] * layout.dp[base] <= gpus))


@pytest.mark.parametrize("seed", [3, 4, 8])
def test_layouts_that_nobody_measured_hide_none_that_somebody_has(seed):
    # What is found without pipeline stages is found with them: picks may not rest on these.
    problem = random_problem(seed)
    plain = tuple(dict.fromkeys(replace(layout, pp=1) for layout in problem.layouts))
    staged = (*plain, *(replace(layout, pp=2) for layout in plain))
    alone, together = (
        vectors(inside_a_server(search(replace(problem, layouts=layouts)), problem))
        for layouts in (plain, staged)
    )
    assert alone
    assert alone == together


def test_one_more_allowed_format_never_makes_the_archive_worse():
    wide = random_problem(6)
    narrow = replace(
        wide,
        losses=tuple(
            tuple(replace(loss, supported=loss.supported and w == 0) for loss in row)
            for w, row in enumerate(wide.losses)
        ),
    )
    few, many = search(narrow).entries, search(wide).entries
    assert len(few)
    for home, point in zip(few.hardware, few.points, strict=True):
        rivals = many.points[many.hardware == home]
        assert (rivals <= point).all(axis=1).any()


def test_a_time_limit_of_nothing_stops_before_the_proof():
    found = search(random_problem(1), settings=Settings(time_limit=1e-9))
    assert found.stopped == "time limit"
    assert not found.proven
    assert found.trials == 0


def test_trials_are_counted():
    assert search(random_problem(1), settings=Settings(trials=75)).trials == 75


def test_interrupting_keeps_what_was_found():
    def impatient(phrase, share):
        if phrase == "proving the front":
            raise KeyboardInterrupt

    found = search(random_problem(1), progress=impatient)
    assert found.stopped == "interrupted"
    assert not found.proven
    assert len(found.entries)


class TestOffline:
    problem = offline(random_problem(8), requests=50_000, deadline_s=6 * 3600)

    def test_every_entry_meets_the_deadline(self):
        entries = search(self.problem).entries
        assert len(entries)
        assert (entries.served[:, 0] <= 6 * 3600).all()

    def test_search_is_enumeration(self):
        found = search(self.problem)
        referee = search(self.problem, settings=Settings(enumerate_all=True))
        assert found.proven
        assert vectors(found.entries) == vectors(referee.entries)

    def test_instance_hours_are_instances_times_the_run(self):
        found = search(self.problem)
        table = found.table
        entries = found.entries
        for i in range(len(entries)):
            shape = entries.rows.shape[i]
            size = table.gpus[shape]
            gpus = self.problem.tables.hardware[entries.hardware[i]].gpus
            fitting = max(gpus // size, 1)
            instances = -(-entries.rows.replicas[i] // fitting) * -(-size // gpus)
            hours = entries.served[i, 0] / 3600
            assert entries.points[i, 0] == float(rounded(instances * hours))
        assert len(table)
