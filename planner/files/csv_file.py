"""CSV with a header line, and the line of each row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from planner.counting import counted
from planner.errors import Fault, InputError
from planner.files.disk import read_text

CSV_BYTES = 256_000_000


@dataclass(frozen=True)
class CsvRow:
    """One row of a CSV file: the line it begins on (from 1), and its values by column name."""

    line: int
    values: dict[str, str]


def read_csv(path: Path) -> tuple[CsvRow, ...]:
    """Read a CSV file with a header line; blank rows are skipped, values are stripped.

    Raises:
        InputError: The file cannot be read, a column is unnamed or named twice, or a row does
            not have one value per column.
    """
    source = str(path)
    reader = csv.reader(io.StringIO(read_text(path, CSV_BYTES), newline=""), strict=True)
    rows: list[CsvRow] = []
    faults: list[Fault] = []
    header: list[str] | None = None
    begins = 1
    try:
        for values in reader:
            cells, line = [value.strip() for value in values], begins
            begins = reader.line_num + 1
            if not any(cells):
                continue
            if header is None:
                header = cells
                faults += _header_faults(line, header)
            elif len(cells) != len(header):
                held = f"{counted(len(cells), 'value')} for {counted(len(header), 'column')}"
                message = f"{held}; give one value per column, quote commas"
                faults.append(Fault(f"line {line}", "", message))
            else:
                rows.append(CsvRow(line, dict(zip(header, cells, strict=True))))
    except csv.Error as error:
        faults.append(Fault(f"line {reader.line_num}", "", f"not valid CSV ({error}); mend it"))
    if header is None and not faults:
        faults.append(Fault("", "", "no header line; name the columns in the first line"))
    if faults:
        raise InputError(source, faults)
    return tuple(rows)


def _header_faults(line: int, header: list[str]) -> Iterator[Fault]:
    for column, name in enumerate(header, start=1):
        if not name:
            yield Fault(f"line {line}", f"column {column}", "has no name; name it in the header")
        elif name in header[: column - 1]:
            yield Fault(f"line {line}", name, "two columns have this name; rename or drop one")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        yield Fault(f"line {line}", "", "columns are not parted by commas; save with commas")
