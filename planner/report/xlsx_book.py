"""A workbook: cell formats, and cells that hold numbers, inert text or formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.report.csv_text import FORMULA_STARTS

INK = "#1f2a37"
PALE = "#eef2f7"
INPUT = "#fff9db"
LINE = "#d5dbe3"
NUMBER_FORMATS: Mapping[str, str] = {
    "text": "@",
    "guarded": "@",
    "usd": "$#,##0.00",
    "usd_whole": "$#,##0",
    "usd_mtok": "$#,##0.000",
    "count": "#,##0",
    "number": "#,##0.0##",
    "one": "#,##0.0",
    "share": "0.0%",
    "factor": "0.0000",
    "ms": "#,##0.0",
}
"""Number format of each kind of cell."""
LINE_HEIGHT = 15.0
"""Height of a line of text [points]."""
FILL = 1.12
"""Share of a column's width that lines fill before they break, about."""

Value = str | int | float | None


@dataclass(frozen=True)
class Formula:
    """A formula and its value, which programs that do not calculate show."""

    text: str
    value: Value


@dataclass
class Book:
    """A workbook of XlsxWriter with the formats of all sheets."""

    workbook: Any
    _formats: dict[tuple[str, str], Any] = field(default_factory=dict)
    _sheets: dict[str, Any] = field(default_factory=dict)
    _widths: dict[str, Sequence[float]] = field(default_factory=dict)
    _lines: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, name: str, widths: Sequence[float], pages: tuple[int, int] = (1, 0)) -> None:
        """Add a sheet that prints landscape.

        Args:
            name: Tab.
            widths: Of its columns, in characters.
            pages: Pages side by side, and one below the other, to fit it to; 0 = any number.
        """
        sheet = self.workbook.add_worksheet(name)
        sheet.set_landscape()
        sheet.set_paper(9)
        sheet.fit_to_pages(*pages)
        for column, width in enumerate(widths):
            sheet.set_column(column, column, width)
        self._widths[name] = widths
        sheet.set_margins(left=0.4, right=0.4, top=0.5, bottom=0.6)
        sheet.set_footer("&L&A&RPage &P of &N")
        sheet.hide_gridlines(2)
        self._sheets[name] = sheet

    def sheet(self, name: str) -> Any:
        """Return a sheet."""
        return self._sheets[name]

    def format(self, kind: str, style: str = "cell") -> Any:
        """Return the cell format of a kind of number in a style of ``STYLES``."""
        if (kind, style) not in self._formats:
            properties = {"num_format": NUMBER_FORMATS[kind], "valign": "top", **STYLES[style]}
            if NUMBER_FORMATS[kind] == "@":
                guard = {"quote_prefix": True} if kind == "guarded" else {}
                properties = {"text_wrap": True, "align": "left", **guard, **properties}
            self._formats[kind, style] = self.workbook.add_format(properties)
        return self._formats[kind, style]

    def put(self, name: str, at: tuple[int, int], value: Value | Formula, kind: str = "text",
            style: str = "cell") -> None:  # fmt: skip
        """Write one cell; text is never taken for a formula or a link.

        Args:
            name: Sheet.
            at: Row and column from 0.
            value: What it holds; None = blank with its format.
            kind: Key of ``NUMBER_FORMATS``.
            style: Key of ``STYLES``.
        """
        sheet, cell_format = self.sheet(name), self.format(kind, style)
        if isinstance(value, Formula):
            sheet.write_formula(*at, value.text, cell_format, value.value)
        elif isinstance(value, str):
            # The prefix keeps it text when somebody edits the cell.
            guarded = "guarded" if value.startswith(FORMULA_STARTS) else "text"
            sheet.write_string(*at, value, self.format(guarded, style))
            self._make_room(name, at, value, style)
        elif value is None:
            sheet.write_blank(*at, None, cell_format)
        else:
            sheet.write_number(*at, value, cell_format)

    def _make_room(self, name: str, at: tuple[int, int], text: str, style: str) -> None:
        """Heighten a row for wrapped text; programs that do not lay rows out anew need it."""
        row, column = at
        if not STYLES[style].get("text_wrap", True):
            return
        width = self._widths[name][column]
        lines = sum(-(-max(len(line), 1) // int(width * FILL)) for line in text.split("\n"))
        if lines > self._lines.get((name, row), 1):
            self._lines[name, row] = lines
            self.sheet(name).set_row(row, lines * LINE_HEIGHT)

    def header(self, name: str, row: int, titles: list[str]) -> None:
        """Write a header row."""
        for column, title in enumerate(titles):
            self.put(name, (row, column), title, style="header")


_CELL = {"bottom": 1, "bottom_color": LINE}
STYLES: Mapping[str, Mapping[str, Any]] = {
    "cell": _CELL,
    "bold": {**_CELL, "bold": True},
    "fact": {**_CELL, "align": "left"},
    "input": {**_CELL, "bg_color": INPUT, "font_color": "#1d4ed8"},
    "header": {"bold": True, "font_color": "#ffffff", "bg_color": INK, "valign": "vcenter"},
    "group": {"bold": True, "bg_color": PALE, "font_color": INK},
    "title": {"bold": True, "font_size": 16, "font_color": INK, "text_wrap": False},
    "plain": {"text_wrap": False},
    "note": {"italic": True, "font_color": "#5b6675", "text_wrap": False},
}
"""Looks of a cell."""


def cell(sheet: str, row: int, column: int) -> str:
    """Return the absolute reference to a cell of a sheet, row and column from 0."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    return f"{sheet}!{xl_rowcol_to_cell(row, column, row_abs=True, col_abs=True)}"
