from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from planner.catalog import load_catalog
from planner.errors import InputError
from planner.measured.bench import bench
from planner.measured.fit import moved_rows, removed, resampled
from planner.measured.fitting import Stage, deployment, fit_stage, residuals, split_names, study
from planner.measured.published import published_folder, read_published
from planner.measured.store import Interval, with_errors, with_fitted
from planner.measured.values import CURRENT, GLOBALS, OTHERS, TIES, free, neutral, read, with_values
from planner.spec.efficiency import ErrorEntry

GEMM = ("parameters", "gemm_efficiency")
LAUNCH = ("generations", "vllm-v1", "launch_s")


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


@pytest.fixture(scope="module")
def work(catalog):
    return study(catalog)


@pytest.fixture(scope="module")
def made_up(catalog):
    """Rows whose measurements are what the model says with other values."""
    rows = [
        row
        for row in read_published(published_folder() / "serving.csv")
        if row.stratum == "core" and row.family == "Llama-3.1-70B"
    ]
    truth = with_values(catalog.efficiency, [GEMM, LAUNCH], [0.5, 5e-5])
    observed = bench(catalog, rows).predict(truth)
    told = [
        replace(row, observed={m: observed[m][i] for m in ("ttft", "tpot")})
        for i, row in enumerate(rows)
    ]
    frees = (
        free("parameters.gemm_efficiency", 0.2, 0.9),
        free("generations.vllm-v1.launch_s", 1e-6, 1e-4),
    )
    return Stage(bench(catalog, told), frees, {"tpot": 1.0, "ttft": 0.5})


def test_a_fit_finds_the_values_that_made_the_measurements(catalog, made_up):
    rows = np.arange(len(made_up.bench.rows))
    found = fit_stage(made_up, catalog.efficiency, rows)
    assert read(found, GEMM) == pytest.approx(0.5, rel=1e-3)
    assert read(found, LAUNCH) == pytest.approx(5e-5, rel=1e-3)


def test_a_few_wild_rows_do_not_move_a_fit(catalog, made_up):
    wild = made_up.bench.observed["tpot"].copy()
    wild[::25] *= 5
    stage = replace(
        made_up, bench=replace(made_up.bench, observed={**made_up.bench.observed, "tpot": wild})
    )
    found = fit_stage(stage, catalog.efficiency, np.arange(len(wild)))
    assert read(found, GEMM) == pytest.approx(0.5, rel=0.05)


def test_a_value_that_no_row_identifies_takes_its_neutral(catalog, made_up):
    unseen = free("parameters.indexer_layer_s", 1e-6, 3e-4, 1e-6)
    stage = replace(made_up, frees=(*made_up.frees, unseen))
    found = fit_stage(stage, catalog.efficiency, np.arange(len(stage.bench.rows)))
    assert read(found, unseen.place) == 1e-6


def test_the_stored_values_are_where_the_fit_ends(catalog, work):
    """A step along any core value makes the errors larger, or next to nothing smaller."""

    def cost(efficiency):
        scaled = residuals(work.core, efficiency) / 0.08
        return float((2 * (np.sqrt(1 + scaled**2) - 1)).sum())

    best = cost(catalog.efficiency)
    for own in work.core.frees:
        value = read(catalog.efficiency, own.place)
        for factor in (0.9, 1.1):
            moved = min(max(value * factor, own.low), own.high)
            assert cost(with_values(catalog.efficiency, [own.place], [moved])) > best * (1 - 1e-3)


def test_fewer_than_thirty_values_hold_for_everything():
    assert len(GLOBALS) < 30


def test_no_value_is_keyed_by_a_model(catalog, work):
    families = {row.family for stage in work.stages for row in stage.bench.rows}
    places = {part for own in (*GLOBALS, *CURRENT, *OTHERS) for part in own.place}
    assert not {name.casefold() for name in families} & {part.casefold() for part in places}


def test_stored_values_lie_within_their_bounds(catalog):
    for own in (*GLOBALS, *CURRENT, *OTHERS):
        assert own.low <= read(catalog.efficiency, own.place) * (1 + 1e-9)
        assert read(catalog.efficiency, own.place) <= own.high * (1 + 1e-9)


def test_tied_values_move_together(catalog):
    for place, tied in TIES.items():
        moved = with_values(catalog.efficiency, [place], [0.0123])
        assert [read(moved, other) for other in (place, *tied)] == [0.0123] * (1 + len(tied))


def test_an_unseen_engine_launches_like_the_mean_of_the_others(catalog):
    own = next(f for f in CURRENT if f.place == LAUNCH)
    others = [
        read(catalog.efficiency, ("generations", name, "launch_s"))
        for name in ("sglang", "trtllm-1")
    ]
    assert neutral(catalog.efficiency, own) == pytest.approx(np.mean(others))


@pytest.mark.parametrize(
    ("path", "expected"),
    [("parameters.gemm_efficiency", 0.9), ("parameters.sequence_s", 1e-7)],
    ids=["a share at its best", "a cost at its least"],
)
def test_a_term_is_removed_by_its_best_value(catalog, path, expected):
    own = next(f for f in GLOBALS if ".".join(f.place) == path)
    assert removed(catalog.efficiency, own) == expected


def test_a_value_moves_only_the_rows_it_concerns(catalog, work):
    own = next(f for f in GLOBALS if f.place[-1] == "indexer_layer_s")
    glm = sum(row.family == "GLM-5" for row in work.core.bench.rows)
    assert moved_rows(work.core, catalog.efficiency, own) == glm


def test_a_bootstrap_draws_whole_deployments(work):
    rows = work.core.bench.rows
    drawn = resampled(work.core, np.random.default_rng(3))
    sizes = Counter(map(deployment, rows))
    counts = Counter(deployment(rows[i]) for i in drawn)
    assert all(count % sizes[name] == 0 for name, count in counts.items())


@pytest.mark.parametrize("split", ["deployment", "family", "accelerator", "generation"])
def test_rows_of_one_deployment_are_left_out_together(work, split):
    for stage, names in zip(work.stages, split_names(work, split), strict=True):
        seen: dict[tuple[str, ...], set[str]] = {}
        for row, name in zip(stage.bench.rows, names, strict=True):
            key = (*deployment(row), row.point.engine_version if split == "generation" else "")
            seen.setdefault(key, set()).add(str(name))
        assert all(len(found) == 1 for found in seen.values())


TEXT = """parameters:
  gemm_efficiency: {value: 0.6, source: "fixed: x"}   # a remark
generations:
  vllm-v1:
    launch_s: {value: 6.8e-05, low: 6e-05, high: 7e-05, rows: 3, source: "y"}
links:
  nvlink: {share: {value: 0.1, source: "z"}, bulk_share: {value: 0.5, source: "z"}}
errors: []
default_errors: []
"""


def test_values_are_written_in_place_and_nothing_else_changes():
    text = with_fitted(
        TEXT,
        {
            GEMM: Interval(0.7, 0.65, 0.75, 12),
            LAUNCH: Interval(5e-5, 4e-5, 6e-5, 7),
            ("links", "nvlink", "share"): Interval(0.2, 0.1, 0.3, 5),
        },
    )
    expected = TEXT.replace("value: 0.6,", "value: 0.7, low: 0.65, high: 0.75, rows: 12,")
    expected = expected.replace(
        "value: 6.8e-05, low: 6e-05, high: 7e-05, rows: 3",
        "value: 5e-05, low: 4e-05, high: 6e-05, rows: 7",
    )
    expected = expected.replace("value: 0.1,", "value: 0.2, low: 0.1, high: 0.3, rows: 5,")
    assert text == expected


def test_a_value_without_an_entry_is_an_error():
    with pytest.raises(InputError, match="first_token_s: no entry"):
        with_fitted(TEXT, {("parameters", "first_token_s"): Interval(1, 1, 1, 1)})


def test_errors_replace_all_below_their_heading():
    entry = ErrorEntry(
        generation="g", accelerator="a", metric="time", rows=1,
        q10=0.9, q50=1.0, q90=1.25, evidence="wide", source="s",
    )  # fmt: skip
    text = with_errors(TEXT, [entry], [])
    assert text.startswith(TEXT.split("errors:", maxsplit=1)[0])
    assert text.endswith(
        "errors:\n  - {generation: g, accelerator: a, metric: time, rows: 1, q10: 0.9, q50: 1, "
        'q90: 1.25, evidence: wide, source: "s"}\ndefault_errors: []\n'
    )


def test_the_published_table_of_the_fit_shows_the_stored_values(catalog):
    lines = (published_folder() / "FIT.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:3]] for line in lines if "|" in line]
    shown = dict(cells)
    for own in (*GLOBALS, *CURRENT, *OTHERS):
        stored = read(catalog.efficiency, own.place)
        assert float(shown[".".join(own.place)]) == pytest.approx(stored, rel=1e-3)
