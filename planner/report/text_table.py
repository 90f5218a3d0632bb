"""Rows of values as text: aligned columns for people, CSV for programs."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.words import number

Value = str | float | int | None


def aligned(header: Sequence[str], rows: Sequence[Sequence[Value]]) -> str:
    """Return rows in columns: numbers to the right with three digits, a dash for none."""
    texts = [[_text(value) for value in row] for row in rows]
    widths = [max(len(line[i]) for line in (header, *texts)) for i in range(len(header))]
    right = [all(not isinstance(row[i], str) for row in rows) for i in range(len(header))]
    lines = [_line(header, widths, right), _line(["-" * width for width in widths], widths, right)]
    lines += [_line(line, widths, right) for line in texts]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _text(value: Value) -> str:
    return value if isinstance(value, str) else number(value)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    return "  ".join(
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    )
