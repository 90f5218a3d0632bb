from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.candidates.efficiency import evidence
from planner.catalog import data_root, load_catalog
from planner.measured.accuracy import (
    BEGIN,
    END,
    comparisons,
    measured_errors,
    render,
    render_readme_block,
    summary,
    with_block,
)
from planner.measured.evidence import verdict
from planner.measured.left_out import FILE, FITTED, SPLITS, STORED, read_left_out
from planner.measured.published import generation_id, published_folder

FOLDER = published_folder()
CURRENT = ("vllm-v1", "sglang", "trtllm-1")


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


@pytest.fixture(scope="module")
def scored(catalog):
    return comparisons(catalog, FOLDER)


@pytest.fixture(scope="module")
def left():
    return read_left_out(FOLDER / FILE)


def errors(ratios):
    found = 1 / ratios[np.isfinite(ratios)] - 1
    return np.abs(found).mean() * 100, np.median(np.abs(found)) * 100


def test_the_table_in_the_repository_is_what_the_code_produces(catalog):
    assert (FOLDER / "ERRORS.md").read_text(encoding="utf-8") == render(catalog, FOLDER)


def test_the_block_in_the_readme_is_what_the_code_produces(catalog):
    readme = Path(FOLDER).parents[1] / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    assert with_block(text, render_readme_block(catalog, FOLDER)) == text


def test_the_block_replaces_what_stands_between_the_markers():
    assert with_block(f"a {BEGIN} old {END} b", f"{BEGIN}new{END}") == f"a {BEGIN}new{END} b"


def test_the_errors_in_the_catalog_are_those_of_the_left_out_rows(catalog):
    found, default = measured_errors(catalog, FOLDER)
    assert catalog.efficiency.errors == found
    assert catalog.efficiency.default_errors == default


def test_the_left_out_rows_belong_to_the_stored_values(scored, left):
    """The fit writes both; one without the other would describe another model."""
    now = {}
    for found in scored:
        ratios = {metric: found.ratio(metric) for metric in STORED}
        for i, row in enumerate(found.rows):
            now[row.id] = [ratios[metric][i] for metric in STORED]
    stored = np.array([left.ratios[FITTED][metric] for metric in STORED]).T
    current = np.array([now[name] for name in left.ids])
    np.testing.assert_allclose(current, stored, rtol=2e-3)


def test_an_error_is_predicted_over_measured():
    assert summary(np.array([0.5, 1.0, 2.0, np.nan])) == "50.0 / 50.0 / +0.0 (3)"


@pytest.mark.parametrize(
    ("metric", "mean", "median"), [("tpot", 8.5, 6.5), ("ttft", 20.0, 15.0), ("throughput", 9.5, 7)]
)
def test_core_rows_are_predicted_this_well(scored, metric, mean, median):
    found = errors(scored[0].ratio(metric))
    assert found[0] <= mean
    assert found[1] <= median


def test_other_rows_are_predicted_this_well(scored):
    ratios = scored[1].ratio("time")
    assert errors(ratios)[0] <= 12.0
    assert errors(ratios)[1] <= 8.2
    current = np.isin(np.array(scored[1].generations), CURRENT)
    assert errors(ratios[current])[0] <= 12
    assert errors(ratios[current])[1] <= 8.5


def test_no_published_row_is_left_unscored(scored):
    assert [found.rejected for found in scored] == [(), ()]


def core(left):
    ids = {row.id for row in comparisons(load_catalog(), FOLDER)[0].rows}
    return np.array([name in ids for name in left.ids])


@pytest.mark.parametrize(("metric", "mean"), [("tpot", 11.2), ("ttft", 23.0)])
def test_an_unseen_model_family_is_predicted_this_well(left, metric, mean):
    assert errors(left.ratios["family"][metric][core(left)])[0] <= mean


@pytest.mark.parametrize("metric", STORED)
@pytest.mark.parametrize("split", ["family", "deployment"])
def test_80_percent_intervals_cover_that_share_of_left_out_rows(catalog, left, metric, split):
    entries = {
        (e.generation, e.accelerator): e for e in catalog.efficiency.errors if e.metric == metric
    }
    inside = []
    for ratio, *pair in zip(
        left.ratios[split][metric], left.generations, left.accelerators, strict=True
    ):
        if np.isfinite(ratio):
            entry = entries[tuple(pair)]
            inside.append(entry.q10 <= ratio <= entry.q90)
    assert 0.75 <= np.mean(inside) <= 0.87


def test_throughput_per_gpu_ranks_deployments_of_unseen_families(scored, left):
    """Groups of the same model, accelerator and lengths, at least eight rows."""
    from scipy.stats import spearmanr

    family = dict(zip(left.ids, left.ratios["family"]["time"], strict=True))
    groups: dict[tuple[object, ...], list[tuple[float, float]]] = {}
    for row, time, rate in zip(
        scored[0].rows, scored[0].observed["time"], scored[0].observed["throughput"], strict=True
    ):
        p = row.point
        key = (p.model, p.accelerator, p.prompt_tokens, p.output_tokens)
        gpus = p.tp * p.dp * p.pp
        # Four digits: a configuration measured again is one prediction, so its runs are tied.
        predicted = float(f"{rate * family[row.id] / gpus:.4g}")
        groups.setdefault(key, []).append((predicted, rate / gpus))
        assert time > 0
    found = [spearmanr(*zip(*group, strict=True))[0] for group in groups.values() if len(group) > 7]
    assert len(found) >= 20
    assert np.median(found) >= 0.985


STATUS = {
    "validated": "a100-sxm-40 a100-sxm-80 h100-sxm h200-sxm gh200 h100-pcie l40s rtxpro6000-bse",
    "wide": "mi300x a10g rtx4090 h20-96 mi250 mi325x h200-nvl l4",
    "unvalidated": "t4 rtx5090 a100-pcie-40 a100-pcie-80 h100-nvl mi355x gaudi2 gaudi3 tpu-v5e "
    "tpu-v5p tpu-v6e inferentia2 trainium2 gb300",
}


@pytest.mark.parametrize(
    ("accelerator", "expected"), [(name, word) for word in STATUS for name in STATUS[word].split()]
)
def test_accelerators_carry_the_evidence_that_was_found_for_them(catalog, accelerator, expected):
    """The best word of any engine generation."""
    order = ["validated", "wide", "unvalidated"]
    chip = catalog.accelerators[accelerator]
    words = [evidence(catalog.efficiency, g, chip) for g in catalog.efficiency.generations]
    assert min(words, key=order.index) == expected


@pytest.mark.parametrize(
    ("rows", "median", "mean", "trusted", "word"),
    [
        (30, 0.10, 0.15, True, "validated"),
        (29, 0.10, 0.15, True, "wide"),
        (30, 0.11, 0.15, True, "wide"),
        (30, 0.10, 0.16, True, "wide"),
        (30, 0.10, 0.15, False, "wide"),
    ],
)
def test_evidence_needs_rows_small_errors_and_trust(rows, median, mean, trusted, word):
    assert verdict(rows, median, mean, trusted=trusted) == word


def test_without_evidence_intervals_are_wider_than_with_it(catalog):
    def width(entry):
        return entry.q90 / entry.q10

    default = {e.metric: width(e) for e in catalog.efficiency.default_errors}
    for metric, wide in default.items():
        validated = [
            width(e)
            for e in catalog.efficiency.errors
            if e.metric == metric and e.evidence == "validated" and e.rows
        ]
        assert wide > np.median(validated)


def test_generations_are_named_as_the_catalog_names_them(catalog, scored):
    for found in scored:
        for row, name in zip(found.rows, found.generations, strict=True):
            assert generation_id(catalog, row.point) == name
    assert data_root().is_dir()
    assert len(SPLITS) == 4
