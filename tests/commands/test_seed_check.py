"""$4 an hour and 1,500 tokens/s are $0.741 per million tokens, at 30 % use $2.47: everywhere."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import openpyxl
import pytest

from planner.catalog import load_catalog
from planner.commands.report import write_report
from planner.commands.reprice import reprice
from planner.report import FORMATS
from planner.spec.record import PlanRecord
from tests.commands.small_plans import slo, small_plan

FULL, USED = 0.741, 2.47


@pytest.fixture(scope="module")
def record() -> PlanRecord:
    """A plan of one deployment: 1,500 tokens/s of capacity, 450 in the mean, for $4 an hour."""
    catalog = load_catalog()
    traffic = {
        "rate_per_s": 3.0,
        "mean_rate_per_s": 1.5,
        "prompt_tokens": 900.0,
        "output_tokens": 300.0,
    }
    old = small_plan(catalog, slo(traffic=traffic))
    archive = next(one for one in old.archive if one.hardware.gpus_per_instance == 1)
    row = archive.rows.instances.index(1)
    rows = archive.rows.model_dump()
    further = rows.pop("further_ms")
    one = {name: (values[row],) for name, values in rows.items()} | {
        "capacity_tokens_per_s": (1500.0,),
        "output_tokens_per_s": (900.0,),
        "utilization": (0.6,),
    }
    single = archive.rows.model_validate(
        one | {"further_ms": {name: (values[row],) for name, values in further.items()}}
    )
    offer = next(o for o in old.offers if o.accelerator == archive.hardware.accelerator)
    sold = offer.model_copy(
        update={"gpus": 1, "list_price_per_hour": 4.0, "contracted_price_per_hour": None}
    )
    sold = sold.model_copy(update={"link": "", "internode_gb_per_s": None, "discount_share": 0.0})
    bare = old.model_copy(
        update={
            **{"options": (), "picks": {}, "shown": (), "untrusted": ()},
            "archive": (archive.model_copy(update={"rows": single}),),
            "offers": (sold.model_copy(update={"flag": "", "currency": "USD"}),),
        }
    )
    return reprice(bare, catalog=catalog).record


def test_the_record_holds_both(record: PlanRecord):
    (option,) = record.options
    assert option.money.usd_per_hour == 4.0
    assert option.money.mean_utilization == pytest.approx(0.3)
    assert option.money.usd_per_mtok_full == pytest.approx(FULL, abs=5e-4)
    assert option.money.usd_per_mtok_output == pytest.approx(USED, abs=5e-3)


def test_the_table_shows_both(record: PlanRecord):
    lines = FORMATS["table"](record, width=120, color=False).splitlines()
    used = next(line for line in lines if "$/Mtok output" in line)
    full = next(line for line in lines if "at full load" in line)
    assert "$2.47" in used
    assert "$0.741" in full


def test_csv_holds_both(record: PlanRecord):
    (row,) = csv.DictReader(io.StringIO(FORMATS["csv"](record, width=0, color=False)))
    assert float(row["usd_per_mtok_output"]) == pytest.approx(USED, abs=5e-3)
    assert float(row["usd_per_mtok_full"]) == pytest.approx(FULL, abs=5e-4)


def test_json_holds_both(record: PlanRecord):
    (option,) = json.loads(FORMATS["json"](record, width=0, color=False))["options"]
    assert option["money"]["usd_per_mtok_output"] == pytest.approx(USED, abs=5e-3)
    assert option["money"]["usd_per_mtok_full"] == pytest.approx(FULL, abs=5e-4)


def test_the_workbook_holds_both_as_numbers(record: PlanRecord, tmp_path: Path):
    plan = tmp_path / "plan.json"
    plan.write_text(FORMATS["json"](record, width=0, color=False), encoding="utf-8")
    write_report(plan, tmp_path / "pack.xlsx")
    book = openpyxl.load_workbook(tmp_path / "pack.xlsx", data_only=True)
    header, values = list(book["Options"].iter_rows(values_only=True))[:2]
    cells = dict(zip(header, values, strict=True))
    assert cells["USD per Mtok output"] == pytest.approx(USED, abs=5e-3)
    assert cells["USD per Mtok output at full load"] == pytest.approx(FULL, abs=5e-4)
