from __future__ import annotations

import datetime
import io
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from planner.report.pack import Pack
from planner.report.xlsx import render
from planner.spec.money import Autoscaled, Lease
from planner.spec.offer import ExchangeRate
from tests.report.records import firmness, money, offer, option, price, record

SOFFICE = shutil.which("soffice")


def book(data: bytes, *, values: bool = False) -> Any:
    return openpyxl.load_workbook(io.BytesIO(data), data_only=values)


def column(sheet: Any, title: str, header: int = 1) -> list[Any]:
    titles = [cell.value for cell in sheet[header]]
    at = titles.index(title)
    return [row[at].value for row in sheet.iter_rows(min_row=header + 1) if row[at].value]


def texts_of(sheet: Any) -> list[Any]:
    return [cell.value for row in sheet.iter_rows() for cell in row if cell.value is not None]


def test_a_buyer_finds_the_sheets_that_a_decision_needs():
    names = book(render(Pack(record()))).sheetnames
    assert names == ["Decision", "Options", "Prices", "Assumptions", "Sensitivity"]


def test_four_dollars_and_1500_tokens_a_second_show_74_cents_and_at_30_percent_two_dollars_47():
    options = book(render(Pack(record())), values=True)["Options"]
    assert column(options, "USD per Mtok output at full load")[0] == pytest.approx(0.741, abs=5e-4)
    assert column(options, "USD per Mtok output")[0] == pytest.approx(2.47, abs=5e-3)


def test_a_month_is_730_hours_and_a_year_8760():
    options = book(render(Pack(record())), values=True)["Options"]
    assert column(options, "USD per month (730 h)") == [4 * 730, 9 * 730]
    assert column(options, "USD per year (8760 h)") == [4 * 8760, 9 * 8760]


def test_amounts_are_formulas_that_lead_to_the_price_sheet():
    options = book(render(Pack(record())))["Options"]
    assert column(options, "USD per instance-hour")[1] == "=Prices!$L$4"
    assert column(options, "USD per hour")[1] == "=H3*J3/(1-K3)"
    assert column(options, "USD per hour, invoiced")[1] == "=H3*J3"
    assert column(options, "USD per month (730 h)")[1] == "=L3*730"


def test_discount_contract_and_currency_make_the_price():
    cut = offer(list_price_per_hour=5.0, discount_share=0.2)
    agreed = offer(
        instance_type="a.2x", gpus=2, list_price_per_hour=12.0, contracted_price_per_hour=9.0
    )
    prices = book(render(Pack(record(offers=(cut, agreed)))))["Prices"]
    assert column(prices, "USD per instance-hour", 2) == [
        '=IF(J3="",H3*(1-I3),J3)*K3',
        '=IF(J4="",H4*(1-I4),J4)*K4',
    ]
    assert column(prices, "USD per unit of currency", 2) == [1.0, 1.0]


def sold(usd_per_hour: float, run_hours: float | None = None, **terms: Any) -> Any:
    """Return the workbook of one option, bought on these terms."""
    row = price(offer()).model_copy(update=terms)
    one = option(money=money(row, usd_per_hour), run_hours=run_hours)
    given = record(options=(one,), picks={"cheapest": one.id})
    return book(render(Pack(given)), values=True)


def facts(made: Any) -> dict[str, Any]:
    return {row[0].value: row[1].value for row in made["Decision"].iter_rows()}


def test_exchange_rate_and_spot_allowance_stand_apart_with_day_and_source():
    rate = ExchangeRate(usd=1.16, date=datetime.date(2026, 11, 2), source="ECB")
    spot = {"term": "spot", "interruption_share": 0.1, "usd_per_instance_hour": 1.0}
    made = sold(1.0, **spot, row_usd_per_hour=0.9, currency="EUR", exchange=rate)
    prices = made["Prices"]
    assert column(prices, "USD per unit of currency", 2) == [1.16]
    assert column(prices, "Spot: share that does no work", 2) == [0.1]
    assert column(prices, "Exchange rate of", 2) == ["2026-11-02"]
    assert column(prices, "Exchange rate from", 2) == ["ECB"]
    assert column(prices, "USD per instance-hour", 2) == [0.9]
    # By hand: $0.90 a paid hour are $1 an hour of work; 730 h are $657 and $730.
    found = facts(made)
    assert found["USD per instance-hour"] == 0.9
    assert found["USD per hour, spot allowance included"] == 1.0
    assert found["USD per month (730 h), spot allowance included"] == 730
    assert found["USD per month (730 h), invoiced"] == pytest.approx(657)


def test_what_a_price_binds_to_stands_on_the_first_sheet_and_only_there_where_it_does():
    lease = Lease(hours=26280, upfront_share=0.5, minimum_instances=2, quota_instances=4)
    found = facts(sold(11.0, lease=lease))
    # By hand: 11 x 26,280 = 289,080.
    assert (found["Due at once [USD]"], found["Bound for, in all [USD]"]) == (144540, 289080)
    assert (found["Fewest instances sold"], found["Quota [instances]"]) == (2, 4)
    assert found["Shortest lease [h]"] == 26280
    unbound = facts(sold(11.0))
    assert not {"Due at once [USD]", "Shortest lease [h]", "Quota [instances]"} & unbound.keys()


def test_a_job_that_ends_has_no_month_and_uses_its_deadline():
    made = sold(4.0, run_hours=2.0)
    assert not [name for name in facts(made) if name and "month" in name]
    titles = [cell.value for cell in made["Options"][1]]
    assert "Share of the deadline used" in titles
    assert "Utilization, busy hour" not in titles


def test_offline_what_a_choice_costs_too_much_is_of_the_run():
    one = option(run_hours=2.0)
    given = Pack(record(options=(one,), picks={"cheapest": one.id}), firmness())
    assert "Regret [USD for the run] if" in texts_of(book(render(given))["Sensitivity"])
    online = Pack(record(picks={"cheapest": "o-00000001"}), firmness())
    assert "Regret [USD/h] if" in texts_of(book(render(online))["Sensitivity"])


def test_text_that_looks_like_a_formula_stays_text():
    texts = ('=HYPERLINK("http://x")', "+1", "-2", "@SUM(A1)")
    evil = offer(provider=texts[0], source=texts[1], region=texts[2], note=texts[3])
    sold = option(provider=texts[0], region=texts[2], money=money(price(evil), 4.0))
    given = record(offers=(evil,), options=(sold,), picks={"cheapest": sold.id})
    sheets = book(render(Pack(given)))
    cells = [c for sheet in sheets for row in sheet.iter_rows() for c in row if c.value in texts]
    assert {cell.value for cell in cells} == set(texts)
    assert {cell.data_type for cell in cells} == {"s"}
    assert all(cell.quotePrefix for cell in cells)


def test_the_same_plan_gives_the_same_bytes():
    assert render(Pack(record())) == render(Pack(record()))


def test_headers_stay_in_view_and_columns_are_wide_enough_for_their_ids():
    sheets = book(render(Pack(record())))
    assert sheets["Options"].freeze_panes == "D2"
    assert sheets["Prices"].freeze_panes == "C3"
    assert sheets["Options"].column_dimensions["B"].width >= len("o-00000001")


def test_a_plan_without_an_option_still_says_why():
    sheets = book(render(Pack(record(options=(), picks={}))))
    texts = [cell.value for row in sheets["Decision"].iter_rows() for cell in row]
    assert "No candidate meets every target (20 considered)." in texts


def recalculated(changed: Any, folder: Path) -> Any:
    """Return the values of a workbook after LibreOffice has opened and saved it."""
    before = folder / "changed.xlsx"
    changed.save(before)
    command = [str(SOFFICE), f"-env:UserInstallation=file://{folder}/profile", "--headless"]
    subprocess.run(
        [*command, "--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", folder / "out",
         before],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return book((folder / "out" / "changed.xlsx").read_bytes(), values=True)


needs_office = pytest.mark.skipif(SOFFICE is None, reason="LibreOffice (soffice) is not installed")


@needs_office
def test_libreoffice_recalculates_after_a_price_change(tmp_path: Path):
    changed = book(render(Pack(record())))
    changed["Prices"]["H3"] = 10.0
    after = recalculated(changed, tmp_path)
    assert column(after["Options"], "USD per month (730 h)") == [10 * 730, 9 * 730]
    assert column(after["Options"], "USD per Mtok output")[0] == pytest.approx(2.46914 * 10 / 4)
    texts = [cell.value for row in after["Decision"].iter_rows() for cell in row]
    assert "no: run plan reprice" in texts
    assert "o-00000002" in texts


@needs_office
def test_a_buyer_types_an_api_price_and_a_commitment_and_gets_the_break_evens(tmp_path: Path):
    changed = book(render(Pack(record())))
    sheet = changed["Sensitivity"]
    rows = {str(row[0].value).strip(): row[0].row for row in sheet.iter_rows()}
    sheet.cell(rows["API price, USD per Mtok output"], 2).value = 2.0
    sheet.cell(rows["Committed USD per instance-hour"], 2).value = 3.0
    after = recalculated(changed, tmp_path)["Sensitivity"]
    # By hand: $4/h over $2 a million tokens are 555.6 tokens/s, 37 % of 1,500; $3 of $4 are
    # three quarters of 730 hours.
    tokens = after.cell(rows["output tokens/s from which it pays"], 2).value
    assert tokens == pytest.approx(4 / 2 * 1e6 / 3600)
    assert after.cell(rows["as share of capacity"], 2).value == pytest.approx(tokens / 1500)
    assert after.cell(rows["hours a month from which it pays"], 2).value == pytest.approx(547.5)


def test_the_file_holds_no_macro_and_no_link_to_another():
    names = zipfile.ZipFile(io.BytesIO(render(Pack(record())))).namelist()
    assert not [name for name in names if "vba" in name.lower() or "externalLink" in name]


def test_the_sensitivity_sheet_shows_tornado_flip_rates_and_regret_as_numbers():
    given = Pack(record(picks={"cheapest": "o-00000001"}), firmness())
    cells = texts_of(book(render(given), values=True)["Sensitivity"])
    for wanted in (2.96296, 1.97531, 0.625, 9.0, 1.25, 4.5, "price", "traffic +20 %"):
        assert wanted in cells


def test_a_fleet_that_follows_the_load_shows_its_price_beside_the_fixed_one():
    scaled = Autoscaled(replicas_by_hour=(1,) * 24, usd_per_hour=2.0, usd_per_mtok_output=1.23457)
    row = record().options[0].money.model_copy(update={"autoscaled": scaled})
    given = record(options=(option(money=row),), picks={"cheapest": "o-00000001"})
    sheets = book(render(Pack(given)), values=True)
    assert column(sheets["Options"], "USD per Mtok output, autoscaled") == [1.23457]
    assert column(sheets["Options"], "Autoscaled, share of the fixed price") == [
        pytest.approx(0.5, rel=1e-5)
    ]
    assert "USD per Mtok output, autoscaled" in texts_of(sheets["Decision"])
    assert "USD per Mtok output, autoscaled" not in texts_of(
        book(render(Pack(record())))["Decision"]
    )
