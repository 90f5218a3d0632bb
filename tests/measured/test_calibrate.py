"""Calibration: factors by hand, the bound, and what it buys on published rows."""

import csv
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.score import score_points
from planner.catalog import load_catalog
from planner.measured.calibrate import SPREADS, Measured, calibrate, fit, under_load
from planner.spec.calibration import CalibrationKey, apply
from planner.spec.point import Point
from planner.spec.result import Result, Statistics

PUBLISHED = Path(__file__).parents[1] / "published"
DATE = "2026-11-20"
POINT = Point(
    model="meta-llama/Llama-3.1-8B-Instruct",
    accelerator="h100-sxm",
    engine="vllm",
    weights="bf16",
    concurrency=1,
)
KEY = CalibrationKey("llama-3.1-8b", "h100-sxm", "vllm-v1", "bf16")


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


def run(catalog, concurrency, *, ttft=1.0, tpot=1.0, point=POINT, prompt=1000.0, instead=None):
    """A run whose latencies are the predicted ones times a factor."""
    given = {
        "tool": "vllm-bench",
        "file": f"c{concurrency}.json",
        "load": "closed_loop",
        "concurrency": float(concurrency),
        "requests": 20 * concurrency,
        "prompt_tokens": prompt,
        "output_tokens": 200.0,
        "ttft": Statistics(mean=1.0),
        "tpot": Statistics(mean=1.0),
    }
    blank = Result(**given)
    (score,) = score_points(catalog, [under_load(point, blank)])
    measured = {
        "ttft": Statistics(mean=score.figures["ttft_ms"] * ttft),
        "tpot": Statistics(mean=score.figures["tpot_ms"] * tpot),
        "output_tokens_per_s": score.figures["output_tokens_per_s"] / tpot,
    }
    result = Result(**(given | measured | (instead or {})))
    return Measured(under_load(point, result), result)


def by_hand(ratios, metric):
    between, within = SPREADS[metric]
    n = len(ratios)
    weight = n * between**2 / (n * between**2 + within**2)
    return math.exp(weight * float(np.median(np.log(ratios))))


def test_the_factor_is_the_median_ratio_drawn_towards_one(catalog):
    runs = [run(catalog, c, tpot=r) for c, r in ((4, 1.1), (16, 1.2), (64, 1.6))]
    (entry,) = calibrate(catalog, runs, DATE).entries
    assert entry.key == KEY
    # ln 1.2 x 3 / (3 + (0.10 / 0.12)^2) = 0.14805.
    assert entry.tpot.value == pytest.approx(math.exp(0.14805), rel=1e-4)
    assert (entry.tpot.low, entry.tpot.high) == pytest.approx((1.1, 1.6))
    assert entry.ttft.value == pytest.approx(1.0)
    assert entry.sources == ("c4.json", "c16.json", "c64.json")


def test_the_leave_one_out_error_is_that_of_the_other_runs_factor():
    factor = fit([1.1, 1.2], "tpot")
    others = [by_hand([1.2], "tpot"), by_hand([1.1], "tpot")]
    before = np.mean([abs(1 / 1.1 - 1), abs(1 / 1.2 - 1)])
    after = np.mean([abs(others[0] / 1.1 - 1), abs(others[1] / 1.2 - 1)])
    assert factor.error_before == pytest.approx(before, rel=1e-4)
    assert factor.error_after == pytest.approx(after, rel=1e-4)


def test_one_outlier_does_not_move_the_factor():
    assert fit([1.1, 1.1, 1.1, 9.0, 1.1], "tpot").value == fit([1.1] * 5, "tpot").value


@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=9), st.sampled_from(["ttft", "tpot"]))
def test_a_factor_lies_between_one_and_the_median_ratio(ratios, metric):
    value, middle = fit(ratios, metric).value, math.exp(np.median(np.log(ratios)))
    assert min(1.0, middle) - 1e-4 <= value <= max(1.0, middle) + 1e-4


def test_factors_are_kept_apart_by_weight_format(catalog):
    fp8 = POINT.model_copy(update={"weights": "fp8"})
    runs = [run(catalog, c, tpot=1.2) for c in (4, 16)]
    runs += [run(catalog, c, tpot=0.9, point=fp8) for c in (8, 32)]
    found = calibrate(catalog, runs, DATE)
    assert [entry.weights for entry in found.entries] == ["bf16", "fp8"]
    assert apply(found, KEY).tpot > 1 > apply(found, KEY._replace(weights="fp8")).tpot
    assert apply(found, KEY._replace(accelerator="h200-sxm")) == (1.0, 1.0)
    assert apply(None, KEY) == (1.0, 1.0)


def test_a_single_run_is_refused(catalog):
    found = calibrate(catalog, [run(catalog, 16)], DATE)
    assert found.entries == ()
    (rejection,) = found.rejected
    assert rejection.source == "c16.json"
    assert "a factor needs two" in rejection.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # 16.1 GB of weights over 3.35 TB/s take 4.8 ms at the least.
        ({"tpot": Statistics(mean=4.0), "output_tokens_per_s": 200.0}, "was speculation on"),
        # 1000 tokens x 2 x 7.5e9 FLOP over 989 TFLOP/s take 15 ms at the least.
        ({"ttft": Statistics(mean=9.0)}, "prefix cache"),
        ({"speculated": True}, "the server speculated"),
    ],
    ids=["TPOT", "TTFT", "drafts accepted"],
)
def test_a_run_that_beats_the_bound_is_rejected_with_the_reason(changes, words, catalog):
    runs = [run(catalog, 4), run(catalog, 16), run(catalog, 1, instead=changes)]
    found = calibrate(catalog, runs, DATE)
    assert [bad.source for bad in found.rejected] == ["c1.json"]
    assert words in found.rejected[0].reason
    assert len(found.entries[0].sources) == 2


def test_a_run_just_above_the_bound_is_used(catalog):
    runs = [run(catalog, 4), run(catalog, 1, tpot=0.8)]
    (score,) = score_points(catalog, [runs[1].point])
    assert runs[1].result.tpot.mean > score.figures["bound_tpot_ms"]
    assert calibrate(catalog, runs, DATE).rejected == ()


def test_a_deployment_that_cannot_run_is_listed_not_raised(catalog):
    wrong = POINT.model_copy(update={"tp": 3})
    runs = [run(catalog, 4), run(catalog, 16)]
    runs.append(Measured(under_load(wrong, runs[0].result), runs[0].result))
    (rejection,) = calibrate(catalog, runs, DATE).rejected
    assert "tp 3 does not divide 32 attention heads" in rejection.reason


def published_groups(metric):
    """ln(measured / predicted) of rows whose model family the fit has not seen, by key."""
    with (PUBLISHED / "left_out.csv").open(encoding="utf-8") as file:
        left_out = {row["id"]: row for row in csv.DictReader(file)}
    groups = defaultdict(list)
    with (PUBLISHED / "serving.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found = left_out.get(row["id"])
            if row["stratum"] != "core" or found is None or not found[f"family_{metric}"]:
                continue
            key = (row["family"], found["accelerator"], found["generation"], row["weights"])
            groups[key].append(float(found[f"family_{metric}"]))
    return [np.array(ratios) for ratios in groups.values() if len(ratios) >= 6]


@pytest.mark.parametrize("metric", ["ttft", "tpot"])
def test_the_spreads_are_those_of_the_published_rows(metric):
    logs = [np.log(ratios) for ratios in published_groups(metric)]
    between = np.std([np.median(group) for group in logs])
    within = np.mean([np.std(group) for group in logs])
    assert (between, within) == pytest.approx(SPREADS[metric], rel=0.1)


@pytest.mark.parametrize(
    ("metric", "before", "after"),
    [("tpot", 0.10, 0.10), ("ttft", 0.20, 0.25)],
    ids=["TPOT from about 12 % to below 10 %", "TTFT from about 25 %, not for the worse"],
)
def test_three_runs_lower_the_error_of_an_unseen_model_family(metric, before, after):
    """Mean over 20 draws; three rows of each group calibrate the group's others."""
    groups = published_groups(metric)
    assert len(groups) >= 40
    plain, corrected = [], []
    for draw in range(20):
        random = np.random.default_rng(draw)
        for ratios in groups:
            order = random.permutation(len(ratios))
            known, others = ratios[order[:3]], ratios[order[3:]]
            factor = fit(known.tolist(), metric).value
            plain += list(np.abs(1 / others - 1))
            corrected += list(np.abs(factor / others - 1))
    assert np.mean(plain) > before
    assert np.mean(corrected) < after
    assert np.mean(corrected) < 0.95 * np.mean(plain)
