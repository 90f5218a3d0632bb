"""A calibration file reaches scores, plans and what is done with stored plans."""

from dataclasses import replace

import numpy as np
import pytest

from planner.commands.plan import plan
from planner.commands.portfolio import portfolio
from planner.commands.score import score
from planner.commands.simulate import simulate
from planner.model.bounds import perfect_terms
from planner.model.forward import decode_step
from planner.model.terms import terms
from planner.spec.calibration import read_calibration
from planner.spec.record_file import read_record
from tests.random_candidates import parameters, random_candidates

POINT = (
    "model,accelerator,engine,weights,kv,tp,concurrency,prompt_tokens,output_tokens\n"
    "meta-llama/Llama-3.1-70B,h200-sxm,vllm,fp8,fp8,4,16,1000,1000\n"
    "meta-llama/Llama-3.1-70B,h100-sxm,vllm,fp8,fp8,4,16,1000,1000\n"
)
SLO = """\
model: meta-llama/Llama-3.1-70B
traffic: {rate_per_s: 2, prompt_tokens: 1000, output_tokens: 250}
slo: {ttft_p95_ms: 2000, tpot_p95_ms: 60}
purchase: {accelerators: [h200-sxm]}
speculation: {methods: ["off"]}
engines: [vllm]
"""


def calibration(folder, factor):
    path = folder / f"own-{factor}.yaml"
    path.write_text(
        'date: "2026-11-20"\ncatalog_digest: some\nentries:\n'
        "  - {model: llama-3.1-70b, accelerator: h200-sxm, generation: vllm-v1, weights: fp8,\n"
        "     sources: [a, b],\n"
        f"     tpot: {{value: {factor}, low: 1, high: 2, points: 2,"
        " error_before: 0.3, error_after: 0.1}}\n"
    )
    return path


def tpot_ms(table):
    column = table.columns.index("tpot_ms")
    return [float(row[column]) for row in table.rows]


def test_a_factor_moves_the_stack_that_it_was_measured_on_and_no_other(tmp_path):
    points = tmp_path / "points.csv"
    points.write_text(POINT)
    plain = tpot_ms(score(points))
    own = tpot_ms(score(points, calibration=calibration(tmp_path, 1.3)))
    # Decoding 16 sequences is reading and launching almost alone, so the factor comes out nearly.
    assert own[0] / plain[0] == pytest.approx(1.3, abs=0.03)
    assert own[1] == plain[1]


def test_a_plan_applies_and_keeps_its_calibration(tmp_path):
    slo = tmp_path / "slo.yaml"
    slo.write_text(SLO)
    plain = plan(slo, verify=False)
    own = plan(slo, calibration=calibration(tmp_path, 1.5), verify=False)
    assert plain.inputs.calibration is None
    assert own.inputs.calibration.entries[0].tpot.value == 1.5

    def slowest(record):
        return max(o.tpot.p50_ms for o in record.options if o.weights == "fp8")

    assert slowest(own) != slowest(plain)
    shown = next(o for o in own.options if o.weights == "fp8")
    lines = {(x.metric, x.share): x for x in simulate(own, option=shown.id, requests=2000).lines}
    found = lines["tpot", 0.5]
    assert found.simulated * 1e3 == pytest.approx(shown.tpot.p50_ms, rel=0.1)


def test_no_factor_beats_the_data_sheet():
    p = parameters()
    c = random_candidates(200, 7)
    tiny = np.full(len(c), 1e-3)
    own = replace(c, engine=replace(c.engine, step_factor=tiny, prompt_factor=tiny))
    batch, context = np.full(len(c), 8.0), np.full(len(c), 2000.0)
    got = decode_step(terms(own, p), p, batch, context)
    least = perfect_terms(c)
    reads = least.attention_read + least.dense_read + least.head_read
    assert (got * least.accepted >= reads * (1 - 1e-9)).all()


def test_every_plan_of_a_portfolio_has_the_calibration_of_the_plan_made_alone(tmp_path):
    slo, loose = tmp_path / "slo.yaml", tmp_path / "loose.yaml"
    slo.write_text(SLO)
    loose.write_text(SLO.replace("tpot_p95_ms: 60", "tpot_p95_ms: 90"))
    factors = calibration(tmp_path, 1.3)
    folder = tmp_path / "plans"
    made = portfolio([slo, loose], calibration=factors, space="quick", folder=folder)
    assert made.calibration == read_calibration(factors)
    for one, file in zip(made.plans, (slo, loose), strict=True):
        record = read_record(folder / one.file)
        alone = plan(file, calibration=factors, space="quick", verify=False)
        assert record.inputs.calibration == read_calibration(factors)
        assert record.options == alone.options


def test_a_portfolio_kept_without_a_calibration_is_not_taken_for_one_with_it(tmp_path):
    slo, folder = tmp_path / "slo.yaml", tmp_path / "plans"
    slo.write_text(SLO)
    plain = portfolio([slo], space="quick", folder=folder)
    own = portfolio([slo], calibration=calibration(tmp_path, 1.3), space="quick", folder=folder)
    assert plain.plans[0].file != own.plans[0].file
    ways = [made.plans[0].chosen.parts[0].option.tpot.p95_ms for made in (plain, own)]
    assert ways[0] != ways[1]
