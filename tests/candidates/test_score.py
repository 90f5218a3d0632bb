from __future__ import annotations

import math
import time

import pytest

from planner.candidates.efficiency import interval
from planner.candidates.score import COLUMNS, score_points
from planner.catalog import load_catalog
from planner.measured.published import FILES, published_folder, read_published
from planner.spec.point import parse_point

CATALOG = load_catalog()
CELLS = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "accelerator": "h100-sxm",
    "concurrency": "16",
    "prompt_tokens": "1000",
    "output_tokens": "200",
}


def score(**changed):
    (found,) = score_points(CATALOG, [parse_point({**CELLS, **changed})])
    return found


@pytest.fixture(scope="module")
def rows():
    folder = published_folder()
    return [row for name in FILES for row in read_published(folder / name)]


def test_no_published_prediction_beats_the_bound(rows):
    for found in score_points(CATALOG, [row.point for row in rows]):
        if found.status == "ok" and math.isfinite(found.figures["tpot_ms"]):
            assert found.figures["tpot_ms"] >= found.figures["bound_tpot_ms"] * (1 - 1e-9)


def test_intervals_are_the_prediction_times_the_measured_quantiles():
    figures, chip = score().figures, CATALOG.accelerator("h100-sxm")
    for metric in ("ttft", "tpot"):
        for end, share in (("low", 0.1), ("high", 0.9)):
            factor = interval(CATALOG.efficiency, "vllm-v1", chip, metric, share)
            expected = figures[f"{metric}_ms"] * factor
            assert figures[f"{metric}_ms_{end}"] == pytest.approx(expected)
            assert f"{metric}_ms_{end}" in COLUMNS


def test_e2e_is_ttft_and_a_tpot_for_every_further_token():
    figures = score().figures
    expected = (figures["ttft_ms"] + 199 * figures["tpot_ms"]) / 1e3
    assert figures["e2e_s"] == pytest.approx(expected)
    assert figures["output_tokens_per_s"] == pytest.approx(16 * 200 / expected)


def test_a_decode_step_and_a_prefill_are_scored_alone():
    step = score(kind="decode_only")
    assert step.figures["output_tokens_per_s"] == pytest.approx(16e3 / step.figures["tpot_ms"])
    prompt = score(kind="prefill_only", concurrency="1")
    assert math.isnan(prompt.figures["tpot_ms"])
    # 1000 tokens of 8e9 parameters are 16 TFLOP: above 16 ms at 989 TFLOP/s.
    assert 16 < prompt.figures["ttft_ms"] < 60


def test_a_model_that_does_not_fit_says_how_much_is_missing():
    found = score(model="meta-llama/Llama-3.3-70B-Instruct", weights="bf16")
    assert found.status == "does_not_fit"
    assert "weights 131" in found.reason


def test_without_an_accelerator_memory_alone_is_told():
    found = score(accelerator="", gpu_memory_gib="80", concurrency="")
    assert found.status == "memory_only"
    assert found.figures["kv_bytes_per_token"] == 131_072
    assert math.isnan(found.figures["tpot_ms"])


def test_requests_beyond_the_models_context_are_scored_and_told():
    # Benchmarks run them: engines can be told to. Its context is 131,072 tokens.
    found = score(prompt_tokens="131000", concurrency="1")
    assert found.status == "beyond_context"
    assert found.figures["ttft_ms"] > 0
    assert found.reason == "requests of 131,200 tokens are beyond the model's context of 131,072"
    assert score(prompt_tokens="131000", concurrency="1", kind="prefill_only").reason == ""


def test_requests_beyond_what_the_engine_takes_are_not_scored():
    found = score(max_model_len="1199")
    assert found.status == "unsupported"
    assert found.reason == "requests of 1,200 tokens are longer than max_model_len 1,199"
    assert score(max_model_len="1200").status == "ok"


def test_a_row_that_cannot_be_scored_does_not_stop_the_others():
    points = [parse_point({**CELLS, **c}) for c in ({"tp": "3"}, {}, {"model": "no/such"})]
    found = score_points(CATALOG, points)
    assert [s.status for s in found] == ["unsupported", "ok", "unknown_model"]


def test_ten_thousand_rows_take_two_seconds_of_a_core_or_four_of_a_busy_one(rows):
    points = [row.point for row in rows if row.point.mode == "closed_loop"]
    points = (points * 6)[:10_000]
    begin = time.process_time()
    score_points(CATALOG, points)
    assert time.process_time() - begin < 4


@pytest.mark.parametrize("mode", ["closed_loop", "open_loop", "offline_batch"])
def test_outputs_of_one_token_have_no_tpot(mode):
    changed = {"open_loop": {"rate_per_s": "2"}, "offline_batch": {"requests": "100"}}
    figures = score(mode=mode, output_tokens="1", **changed.get(mode, {})).figures
    assert math.isfinite(figures["ttft_ms"])
    blank = [name for name in COLUMNS if "tpot" in name]
    assert len(blank) >= 4
    assert all(math.isnan(figures[name]) for name in blank)


@pytest.mark.parametrize(
    ("layout", "word"),
    [
        ({}, "validated"),
        ({"speculation": "ngram", "draft_tokens": "3"}, "wide"),
        ({"tp": "2", "pp": "2"}, "unvalidated"),
        ({"tp": "8", "dp": "2"}, "unvalidated"),
    ],
    ids=["one server", "speculation", "pipeline stages", "across servers of 8 GPUs"],
)
def test_evidence_is_the_worst_of_what_is_known_of_the_parts_as_in_plans(layout, word):
    found = score(**layout)
    assert (found.status, found.evidence) == ("ok", word)
