"""`plan calibrate`: result files and the deployment in, a calibration file out."""

import json

import pytest

from planner.candidates.score import score_points
from planner.catalog import load_catalog
from planner.commands.calibrate import calibrate, calibration_text
from planner.errors import InputError
from planner.spec.calibration import read_calibration
from planner.spec.point import Point
from tests.importers.benchmark_files import WRITERS, Run, vllm

DATE = "2026-11-20"
POINT = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "engine": "vllm", "weights": "bf16"}


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


@pytest.fixture
def deployment(tmp_path):
    path = tmp_path / "deployment.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in POINT.items()))
    return path


def measured(catalog, concurrency, *, tpot=1.2, ttft=1.0):
    point = Point(
        **POINT,
        concurrency=concurrency,
        prompt_tokens=1000,
        output_tokens=200,
        num_requests=20 * concurrency,
    )
    (score,) = score_points(catalog, [point])
    return Run(
        ttft={},
        tpot={},
        ttft_mean=score.figures["ttft_ms"] * ttft,
        tpot_mean=score.figures["tpot_ms"] * tpot,
        concurrency=concurrency,
        requests=20 * concurrency,
        throughput=score.figures["output_tokens_per_s"] / tpot,
        accept_length=None,
    )


@pytest.mark.parametrize("tool", list(WRITERS))
def test_every_tools_files_give_the_factor_that_they_were_made_with(
    tool, tmp_path, catalog, deployment
):
    name, write = WRITERS[tool]
    paths = []
    for concurrency in (4, 16, 64):
        path = tmp_path / f"c{concurrency}-{name}"
        path.write_text(write(measured(catalog, concurrency)))
        paths.append(path)
    found = calibrate(paths, deployment=deployment, date=DATE)
    (entry,) = found.entries
    assert (entry.tpot.low, entry.tpot.high) == pytest.approx((1.2, 1.2), rel=1e-3)
    assert entry.tpot.value == pytest.approx(1.1596, rel=1e-3)
    assert entry.tpot.error_after < 0.5 * entry.tpot.error_before
    assert entry.ttft.value == pytest.approx(1.0, rel=1e-3)


def test_the_file_reads_back_as_it_was_written(tmp_path, catalog, deployment):
    paths = [tmp_path / f"{c}.json" for c in (4, 16)]
    for path, concurrency in zip(paths, (4, 16), strict=True):
        path.write_text(vllm(measured(catalog, concurrency)))
    found = calibrate(paths, deployment=deployment, date=DATE)
    stored = tmp_path / "calibration.yaml"
    stored.write_text(calibration_text(found))
    assert read_calibration(stored) == found
    assert read_calibration(stored).digest == found.digest
    assert "date: '2026-11-20'" in stored.read_text().replace('"', "'")


def test_unusable_runs_of_a_file_are_listed(tmp_path, catalog, deployment):
    good = [json.loads(vllm(measured(catalog, c))) for c in (4, 16)]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(json.dumps(run) for run in [*good, {**good[0], "completed": 0}]))
    found = calibrate([path], deployment=deployment, date=DATE)
    assert [(bad.source, bad.reason) for bad in found.rejected] == [
        ("runs.jsonl line 3", "completed is 0")
    ]


def test_rows_of_a_deployment_table_are_matched_by_file_name(tmp_path, catalog):
    paths = [tmp_path / f"{c}.json" for c in (4, 16)]
    for path, concurrency in zip(paths, (4, 16), strict=True):
        path.write_text(vllm(measured(catalog, concurrency)))
    table = tmp_path / "deployments.csv"
    header = "model,accelerator,engine,weights,result\n"
    row = "llama-3.1-8b,h100-sxm,vllm,bf16,"
    table.write_text(f"{header}{row}4.json\n{row}16\n")
    assert len(calibrate(paths, deployment=table, date=DATE).entries[0].sources) == 2
    table.write_text(f"{header}{row}4.json\n{row}17\n")
    with pytest.raises(InputError, match=r"result: no row names 16\.json"):
        calibrate(paths, deployment=table, date=DATE)


def test_it_must_be_said_what_was_measured(tmp_path):
    with pytest.raises(InputError, match="say what was measured"):
        calibrate([tmp_path / "a.json"], date=DATE)


def test_a_bad_deployment_names_line_and_key(tmp_path, deployment):
    deployment.write_text("accelerator: h100-sxm\ntp: none\n")
    with pytest.raises(InputError) as caught:
        calibrate([tmp_path / "a.json"], deployment=deployment, date=DATE)
    assert {(fault.where, fault.key) for fault in caught.value.faults} == {
        ("line 1", "model"),
        ("line 2", "tp"),
    }


def test_no_factor_at_all_lists_every_reason(tmp_path, catalog, deployment):
    path = tmp_path / "one.json"
    path.write_text(vllm(measured(catalog, 16)))
    with pytest.raises(InputError, match=r"one\.json: not used: the only run of llama-3\.1-8b"):
        calibrate([path], deployment=deployment, date=DATE)


def test_a_run_with_an_impossible_load_is_answered_not_a_crash(tmp_path, catalog, deployment):
    path = tmp_path / "run.json"
    stated = json.loads(vllm(measured(catalog, 4)))
    stated |= {"total_input_tokens": 1e30, "completed": 10}
    path.write_text(json.dumps(stated))
    with pytest.raises(InputError) as caught:
        calibrate([path, path], deployment=deployment, date=DATE)
    assert "run.json" in str(caught.value)
