"""The format catalog: bytes, fall-backs, and the loss table against the published figures."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from planner.errors import InputError
from planner.files import read_yaml
from planner.spec.load import load
from planner.spec.precision import KvFormat, Precisions, QualityCell, WeightFormat

CATALOG = Path(__file__).parents[2] / "hardware_catalog"
PRECISIONS = load(read_yaml(CATALOG / "precisions.yaml"), Precisions)
WEIGHTS = {fmt.id: fmt for fmt in PRECISIONS.weights}
KV = {fmt.id: fmt for fmt in PRECISIONS.kv}
FORMATS: list[WeightFormat | KvFormat] = [*PRECISIONS.weights, *PRECISIONS.kv]
CELLS = [
    pytest.param(fmt, cell, id=f"{kind} {fmt.id} {cell.size} {cell.task}")
    for kind, formats in (("weights", PRECISIONS.weights), ("kv", PRECISIONS.kv))
    for fmt in formats
    for cell in fmt.quality
]


@pytest.mark.parametrize(
    ("format_id", "bits_and_scales"),
    [
        ("bf16", 16 / 8),
        ("fp8", 8 / 8),
        ("int8", 8 / 8),
        ("int8-weight-only", 8 / 8 + 2 / 128),
        ("int4", 4 / 8 + (2 + 4 / 8) / 128),
        ("nvfp4", 4 / 8 + 1 / 16),
        ("mxfp4", 4 / 8 + 1 / 32),
    ],
)
def test_weights_take_their_bits_and_their_block_scales(format_id, bits_and_scales):
    assert WEIGHTS[format_id].bytes_per_parameter == bits_and_scales


@pytest.mark.parametrize(
    ("format_id", "bits_and_scales"),
    [
        ("bf16", 2.0),
        ("fp8", 1.0),
        ("int8", 1.0),
        ("int4", 4 / 8 + 2 / 32),
        ("nvfp4", 4 / 8 + 1 / 16),
        ("mxfp4", 4 / 8 + 1 / 32),
    ],
)
def test_caches_take_their_bits_and_their_block_scales(format_id, bits_and_scales):
    assert KV[format_id].bytes_per_element == bits_and_scales


def test_only_integer_weight_only_formats_never_compute_in_their_own_type():
    assert {fmt.id for fmt in PRECISIONS.weights if fmt.weight_only} == {"int8-weight-only", "int4"}


def test_fp8_and_the_4_bit_floats_fall_back_to_weight_only_and_int8_does_not():
    falls_back = {fmt.id for fmt in PRECISIONS.weights if fmt.weight_only_fallback}
    assert falls_back == {"fp8", "nvfp4", "mxfp4"}


@pytest.mark.parametrize("format_id", ["int4", "nvfp4", "mxfp4"])
def test_a_4_bit_checkpoint_of_a_mixture_of_experts_quantizes_the_experts_only(format_id):
    assert WEIGHTS[format_id].default_groups_moe == ("experts",)
    assert set(WEIGHTS[format_id].default_groups_dense) >= {"attention", "dense"}


@pytest.mark.parametrize(
    ("label", "format_id"),
    [
        ("fp16", "bf16"),
        ("bf16/fp16", "bf16"),
        ("fp8 (runtime)", "fp8"),
        ("fp8 block", "fp8"),
        ("int8 w8a8", "int8"),
        ("int8 smoothquant", "int8"),
        ("gptq-int8", "int8-weight-only"),
        ("int8 (w8a16)", "int8-weight-only"),
        ("awq int4", "int4"),
        ("awq-int4", "int4"),
        ("gptq int4", "int4"),
        ("gptq-int4", "int4"),
        ("int4 w4a16 (gptq_marlin)", "int4"),
        ("int4 experts", "int4"),
        ("w8a8-fp8", "fp8"),
        ("w4a16-int4", "int4"),
    ],
)
def test_labels_of_data_files_name_their_weight_format(label, format_id):
    assert [fmt.id for fmt in PRECISIONS.weights if label in (fmt.id, *fmt.aliases)] == [format_id]


def test_fp4_is_left_to_the_model_because_it_means_its_own_4_bit_format():
    assert not any("fp4" in (fmt.id, *fmt.aliases) for fmt in FORMATS)


# The published summary: median and p90 by size band (knowledge, math, chat and, in the bands,
# a few code rows).
@pytest.mark.parametrize(
    ("format_id", "medians"),
    [
        ("int8", {"<5B": 0.6, "5-15B": 0.7, "15-80B": 0.6, ">80B": 0.7}),
        ("int8-weight-only", {"<5B": 2.0, "5-15B": 0.4, "15-80B": 1.2}),
        ("int4", {"<5B": 4.8, "5-15B": 1.9, "15-80B": 0.9, ">80B": 0.5}),
        ("nvfp4", {"<5B": 6.7, "5-15B": 2.8, "15-80B": 0.7, ">80B": 0.1}),
        ("mxfp4", {"5-15B": 9.0, "15-80B": 5.7}),
        ("fp8", {"<5B": 1.0, "5-15B": 0.2, "15-80B": 0.2, ">80B": 0.0}),
    ],
)
def test_the_loss_by_size_is_the_published_median(format_id, medians):
    cells = {c.size: c.median for c in WEIGHTS[format_id].quality if c.task == "easy"}
    cells.pop("all")
    assert {size: round(median, 1) for size, median in cells.items()} == medians


@pytest.mark.parametrize(
    ("fmt", "median", "p90"),
    [
        (WEIGHTS["fp8"], 0.65, 3.26),
        (WEIGHTS["int8"], 0.3, 5.16),
        (WEIGHTS["int4"], 1.5, 11.77),
        (WEIGHTS["nvfp4"], 0.85, 4.77),
        (KV["fp8"], 0.76, 2.75),
        (KV["int4"], 1.92, 6.1),
        (KV["mxfp4"], 21.73, 45.04),
    ],
    ids=lambda value: value.id if isinstance(value, WeightFormat | KvFormat) else "",
)
def test_reasoning_and_code_lose_the_published_median_and_p90(fmt, median, p90):
    (cell,) = [c for c in fmt.quality if (c.size, c.task) == ("all", "hard")]
    assert (cell.median, cell.p90) == (median, p90)


def test_the_long_context_cell_of_the_fp8_cache_holds_the_rows_at_128k_and_256k():
    # openai/mrcr and one needle test, vLLM blog 2026-04-22, base scores of 25 or more.
    at_128k = [5.27, -4.79, 6.39, 0.62, -0.52, 0.62, 2.18, 2.2]
    at_256k = [14.56, 18.42, 16.71, 18.41, -2.85, -0.25, 7.17]
    rows = sorted([*at_128k, *at_256k])
    (cell,) = [c for c in KV["fp8"].quality if c.task == "long_context"]
    assert (cell.median, cell.rows) == (rows[7], len(rows))
    # Linear interpolation: p90 lies 0.6 of the way from the 13th to the 14th of 15 rows.
    assert cell.p90 == pytest.approx(rows[12] + 0.6 * (rows[13] - rows[12]), abs=0.01)
    assert cell.p10 == pytest.approx(rows[1] + 0.4 * (rows[2] - rows[1]), abs=0.01)


@pytest.mark.parametrize(
    ("fmt", "task"),
    [
        (WEIGHTS["mxfp4"], "hard"),
        (WEIGHTS["int4"], "long_context"),
        (WEIGHTS["nvfp4"], "long_context"),
        (KV["int4"], "long_context"),
        (KV["nvfp4"], "easy"),
    ],
    ids=["mxfp4 hard", "int4 long", "nvfp4 long", "kv-int4 long", "kv-nvfp4"],
)
def test_what_nobody_measured_has_no_cell(fmt, task):
    assert not [c for c in fmt.quality if c.task == task]


def test_the_caches_with_thin_or_no_evidence_need_to_be_named():
    assert {fmt.id for fmt in FORMATS if fmt.needs_opt_in} == {"nvfp4", "mxfp4"}
    assert not any(fmt.needs_opt_in for fmt in PRECISIONS.weights)


@pytest.mark.parametrize(("fmt", "cell"), CELLS)
def test_a_cell_is_graded_by_its_rows_and_models_and_is_no_anecdote(fmt, cell):
    if cell.task == "long_context":
        assert cell.grade == "thin"
        return
    enough = {
        "good": cell.rows >= 30 and cell.models >= 8,
        "fair": cell.rows >= 10 and cell.models >= 4,
        "thin": True,
    }
    assert cell.grade == next(grade for grade, holds in enough.items() if holds)
    assert cell.models > 1 or cell.rows >= 3


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.id)
def test_a_loss_table_has_one_cell_a_place_and_a_dated_source(fmt):
    places = [(cell.size, cell.task) for cell in fmt.quality]
    assert len(places) == len(set(places))
    if fmt.quality:
        assert "retrieved 2026-11-29" in fmt.quality_source


def test_a_cell_whose_quantiles_cross_is_refused():
    entry = {"size": "all", "task": "easy", "median": 2.0, "p10": 0.0, "p90": 1.0}
    with pytest.raises(ValidationError, match="must not fall"):
        QualityCell.model_validate(entry | {"rows": 3, "models": 2, "grade": "thin"})


BROKEN = {
    "two formats of one name": (
        "aliases: [w8a8-fp8,",
        "aliases: [fp16, w8a8-fp8,",
        "fp16 names two formats",
    ),
    "no source": (
        '    source: "by definition: 8 bits; a scale per channel',
        '    # "',
        "int8 has no source",
    ),
    "a narrow format without cells": (
        "    needs_opt_in: true\n",
        "",
        "nvfp4 has no quality cells",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_catalog_is_refused_with_the_format_it_is_about(tmp_path, old, new, message):
    text = (CATALOG / "precisions.yaml").read_text()
    assert old in text
    path = tmp_path / "precisions.yaml"
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message):
        load(read_yaml(path), Precisions)
