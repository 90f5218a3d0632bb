"""The pack as a workbook: a buyer changes a price, and every amount follows."""

from __future__ import annotations

import datetime
import io

from planner.report.pack import Pack
from planner.report.xlsx_book import Book
from planner.report.xlsx_decision import assumptions_sheet, decision_sheet
from planner.report.xlsx_firmness import firmness_sheet
from planner.report.xlsx_options import COLUMNS, PRICE_TITLES, options_sheet, prices_sheet


def render(pack: Pack) -> bytes:
    """Return an .xlsx file: decision, options, prices used, assumptions and sources, sensitivity.

    The same pack gives the same bytes: the file is dated by the day its prices are judged by.
    """
    import xlsxwriter

    out = io.BytesIO()
    workbook = xlsxwriter.Workbook(out, {"in_memory": True})
    created = datetime.datetime.fromisoformat(pack.record.inputs.as_of)
    title = f"Deployment plan for {pack.record.inputs.slo['model']}"
    workbook.set_properties({"title": title, "created": created})
    book = Book(workbook)
    # Sheets are made in the order of their tabs and filled in the order of their references.
    book.add("Decision", (30, *(28 for _ in pack.picked())) if pack.picked() else (40, 110), (1, 1))
    book.add("Options", (16, *(column.width for column in COLUMNS)), pages=(3, 0))
    book.add("Prices", [width for _, width in PRICE_TITLES])
    book.add("Assumptions", (20, 36, 110))
    book.add("Sensitivity", (34, *(18 for _ in range(7))))
    prices = prices_sheet(book, pack)
    places = options_sheet(book, pack, prices)
    decision_sheet(book, pack, places)
    assumptions_sheet(book, pack)
    firmness_sheet(book, pack, places)
    workbook.close()
    return out.getvalue()
