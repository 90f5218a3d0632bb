"""A stored plan beside another catalog than the one that it was made with."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import openpyxl
import pytest

from planner.catalog import Catalog, load_catalog
from planner.commands.diff import diff
from planner.commands.export import export
from planner.commands.report import write_report
from planner.commands.reprice import reprice
from planner.commands.simulate import simulate
from planner.commands.stored import OTHER_CATALOG, catalog_notes
from planner.commands.why import why
from planner.errors import InputError
from planner.report.changes import render as changes_text
from planner.report.html_data import page_data
from planner.report.json_text import render as as_json
from planner.report.pack import Pack
from planner.report.why import render as why_text
from planner.spec.offer import ExchangeRate
from planner.spec.record import PlanRecord
from tests.cli.runner import run
from tests.commands.small_plans import price_rows, small_plan, write_prices

HARDWARE = Path(__file__).parents[2] / "hardware_catalog"
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
ASKED = f"""model: {MODEL}
traffic: {{rate_per_s: 8, prompt_tokens: 800, output_tokens: 300}}
slo: {{ttft_p95_ms: 800, tpot_p95_ms: 40}}
purchase: {{accelerators: [l40s, h100-sxm]}}
engines: [vllm]
"""


def told(workbook: Path) -> list[str]:
    """Return the texts at the left of the sheet on how firm the choice is."""
    sheet = openpyxl.load_workbook(workbook)["Sensitivity"]
    return [row[0].value for row in sheet.iter_rows()]


def figures(workbook: Path) -> list[tuple]:
    sheet = openpyxl.load_workbook(workbook)["Sensitivity"]
    return list(sheet.iter_rows(values_only=True))


@pytest.fixture(scope="module")
def own() -> Catalog:
    """A catalog whose accelerators differ from the shipped ones."""
    shipped = load_catalog()
    chip = shipped.accelerators["h100-sxm"].model_copy(update={"memory_bandwidth_gb_per_s": 4000.0})
    chips = {**shipped.accelerators, "h100-sxm": chip}
    return replace(shipped, accelerators=chips, digest="a" * 64, basis_digest="b" * 64)


@pytest.fixture(scope="module")
def plan(own: Catalog) -> PlanRecord:
    return small_plan(own)


@pytest.fixture
def stored(plan: PlanRecord, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(as_json(plan), encoding="utf-8")
    return path


def test_the_report_of_a_new_plan_rests_on_the_catalog_that_the_plan_rests_on(tmp_path, capsys):
    folder, slo, out = tmp_path / "mine", tmp_path / "slo.yaml", tmp_path / "plan.json"
    shutil.copytree(HARDWARE, folder)
    chip = folder / "accelerators" / "h100-sxm.yaml"
    text = chip.read_text(encoding="utf-8")
    assert "memory_bandwidth_gb_per_s: 3350" in text
    slower = text.replace("memory_bandwidth_gb_per_s: 3350", "memory_bandwidth_gb_per_s: 2500")
    chip.write_text(slower, encoding="utf-8")
    slo.write_text(ASKED, encoding="utf-8")
    at_once, later, shipped = (tmp_path / f"{n}.xlsx" for n in ("at_once", "later", "shipped"))
    mine = ("--catalog", str(folder))
    run(capsys, "--slo", str(slo), "--space", "quick", *mine, "--out", str(out),
        "--report", str(at_once))  # fmt: skip
    assert run(capsys, "report", str(out), "--to", str(later), *mine).err == ""
    assert run(capsys, "report", str(out), "--to", str(shipped)).err == f"{OTHER_CATALOG}\n"
    assert figures(at_once) == figures(later)
    assert figures(at_once) != figures(shipped)


def test_the_report_of_a_new_plan_finds_a_model_that_lies_beside_its_slo(tmp_path, capsys):
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
        "torch_dtype": "bfloat16",
    }  # fmt: skip
    (tmp_path / "mine.json").write_text(json.dumps(config))
    slo, to = tmp_path / "slo.yaml", tmp_path / "pack.xlsx"
    slo.write_text(ASKED.replace(MODEL, "mine.json"))
    ran = run(capsys, "--slo", str(slo), "--space", "quick", "--no-verify", "--report", str(to))
    assert (ran.code, "left out" in ran.err) == (0, False)
    assert "Price at which the pick is beaten" in told(to)


def test_the_sensitivity_sheet_says_that_the_catalog_is_another(stored: Path, own: Catalog):
    to = stored.with_name("pack.xlsx")
    assert write_report(stored, to) == (OTHER_CATALOG,)
    assert OTHER_CATALOG in told(to)
    assert write_report(stored, to, catalog=own) == ()
    assert OTHER_CATALOG not in told(to)


def test_the_page_carries_the_note_to_where_it_tells_how_firm_the_picks_are(plan: PlanRecord):
    data = page_data(Pack(plan, None, (OTHER_CATALOG,)))
    assert data["firm_notes"] == [OTHER_CATALOG]


def test_a_table_of_options_computes_nothing_anew(stored: Path):
    assert write_report(stored, stored.with_name("options.csv")) == ()


def test_prices_laid_over_the_catalog_do_not_make_it_another(tmp_path: Path):
    shipped = load_catalog()
    rows = price_rows(shipped.offers[:3], seed=0, spread=0.1)
    with_prices = load_catalog(prices=[write_prices(tmp_path / "p.csv", rows)])
    assert with_prices.digest != shipped.digest
    assert catalog_notes(small_plan(with_prices), shipped) == ()


def test_a_plan_that_noted_only_the_whole_digest_is_compared_by_it(plan: PlanRecord, own: Catalog):
    old = plan.model_copy(update={"inputs": plan.inputs.model_copy(update={"basis_digest": None})})
    assert catalog_notes(old, own) == ()
    assert catalog_notes(old, replace(own, digest="c" * 64)) == (OTHER_CATALOG,)


def test_a_new_price_says_it_until_the_catalog_is_the_right_one(plan: PlanRecord, own: Catalog):
    other = reprice(plan).record
    assert other.assumptions.count(OTHER_CATALOG) == 1
    assert reprice(other).record.assumptions.count(OTHER_CATALOG) == 1
    assert OTHER_CATALOG not in reprice(other, catalog=own).record.assumptions


def test_a_search_at_new_prices_is_of_the_catalog_at_hand_and_says_so(plan: PlanRecord):
    search = plan.search.model_copy(update={"proven": False})
    found = reprice(plan.model_copy(update={"search": search}))
    assert found.notes == (OTHER_CATALOG,)
    assert OTHER_CATALOG not in found.record.assumptions
    assert catalog_notes(found.record, load_catalog()) == ()


def test_why_not_says_it_once_below_the_answers(plan: PlanRecord, own: Catalog, tmp_path: Path):
    file = tmp_path / "deployments.csv"
    file.write_text("model,accelerator\n" + "".join(f"{MODEL},{c}\n" for c in ("l40s", "h100-sxm")))
    assert why_text(why(plan, file)).count(OTHER_CATALOG) == 1
    assert OTHER_CATALOG not in why_text(why(plan, file, catalog=own))


def test_a_simulation_and_exported_files_say_it(plan: PlanRecord, own: Catalog, stored: Path):
    assert OTHER_CATALOG in simulate(plan, requests=50, seeds=1).notes
    assert OTHER_CATALOG not in simulate(plan, requests=50, seeds=1, catalog=own).notes
    made = export(stored, "cheapest", "vllm")
    assert OTHER_CATALOG in made.notes
    assert any(f"NOTE: {OTHER_CATALOG}" in text for text in made.files.values())


def test_a_difference_of_catalogs_is_an_input_that_differs(plan: PlanRecord):
    shipped = load_catalog()
    text = changes_text(diff(plan, small_plan(shipped)))
    assert f"catalog: {'b' * 12} -> {shipped.basis_digest[:12]}" in text


@pytest.fixture
def in_euro(plan: PlanRecord, tmp_path: Path) -> Path:
    """A plan with prices in a currency that only its own catalog has a rate for."""
    offers = tuple(offer.model_copy(update={"currency": "EUR"}) for offer in plan.offers)
    path = tmp_path / "euro.json"
    path.write_text(as_json(plan.model_copy(update={"offers": offers})), encoding="utf-8")
    return path


def test_a_currency_without_a_rate_is_refused_with_the_plan_and_the_repair(in_euro: Path):
    said = r"euro\.json: 1 problem\n.*lacks a rate for EUR, .* by --catalog"
    with pytest.raises(InputError, match=said):
        reprice(in_euro)


def test_a_report_without_rates_shows_all_but_how_firm_the_picks_are(in_euro: Path, own: Catalog):
    to = in_euro.with_name("pack.xlsx")
    (note,) = write_report(in_euro, to)
    assert note.startswith("How firm the picks are is left out: the catalog lacks a rate for EUR")
    assert note in told(to)
    rate = ExchangeRate(usd=1.1, date=date(2026, 11, 2), source="ECB")
    known = replace(own, exchange={"EUR": rate})
    assert write_report(in_euro, to, catalog=known) == ()
    with pytest.raises(InputError, match="lacks a rate for EUR"):
        write_report(in_euro, to, catalog=own)


def test_a_simulation_needs_the_hardware_but_no_rate(in_euro: Path, own: Catalog):
    assert simulate(in_euro, requests=50, seeds=1, catalog=own).requests == 50
    few = {key: chip for key, chip in own.accelerators.items() if key != "l40s"}
    with pytest.raises(InputError, match=r"euro\.json: 1 problem\n.*lacks l40s"):
        simulate(in_euro, requests=50, seeds=1, catalog=replace(own, accelerators=few))
