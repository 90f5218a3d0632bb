"""A file of deployments: a CSV of points, or YAML or JSON with one deployment or a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.candidates.points import INVALID
from planner.errors import Fault, InputError
from planner.files import (
    Document,
    KeyPath,
    UnfitValuesError,
    read_csv,
    read_json,
    read_yaml,
)
from planner.spec.load import faults_of, together
from planner.spec.point import COLUMN_SYNONYMS, P, Point, parse_as

READERS = {".yaml": read_yaml, ".yml": read_yaml, ".json": read_json}


@dataclass(frozen=True)
class PointRow:
    """One deployment of a file.

    Attributes:
        document: The file, or the line of a CSV.
        path: Where the deployment stands in it.
        values: Its values as text, by column.
    """

    document: Document
    path: KeyPath
    values: Mapping[str, str]

    @property
    def place(self) -> str:
        """Where it stands, as ``line 3``."""
        return self.fault("", "").where

    def as_written(self, text: str) -> str:
        """Return text in which columns have the names that the file gives them."""
        for own, name in COLUMN_SYNONYMS.items():
            if own in self.values and name not in self.values:
                text = text.replace(name, own)
        return text

    def point(self, stated: Mapping[str, str] | None = None) -> Point:
        """Return the deployment; what is stated takes the place of its own values.

        Raises:
            InputError: Every fault of the row, with its line.
        """
        return self.read_as(Point, stated)

    def read_as(self, form: type[P], stated: Mapping[str, str] | None = None) -> P:
        """Return the deployment as a point of some form.

        Raises:
            InputError: Every fault of the row, with its line.
        """
        try:
            return parse_as(form, {**self.values, **(stated or {})})
        except InputError as error:
            faults = [self.fault(fault.key, fault.message) for fault in error.faults]
            raise InputError(self.document.source, faults) from None

    def fault(self, key: str, message: str) -> Fault:
        """Return a fault that names the line and the key; an empty key = the whole row."""
        return self.document.fault((*self.path, key) if key else self.path, message)


def in_one_line(error: InputError) -> str:
    """Return the faults of one deployment as a cell says them: without their line."""
    return "; ".join(str(Fault("", fault.key, fault.message)) for fault in error.faults)


def invalid_rows(rows: Sequence[PointRow], results: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a remark that names the rows that are no deployments, each with its line.

    Args:
        rows: The deployments of one file.
        results: Status and reason of each.
    """
    faults = [
        f"{row.place}  {row.as_written(reason)}"
        for row, (status, reason) in zip(rows, results, strict=True)
        if status == INVALID
    ]
    if faults:
        yield str(InputError(rows[0].document.source, faults))


def read_points(file: Path) -> tuple[PointRow, ...]:
    """Read a file of deployments; their values are not looked at yet.

    Raises:
        InputError: The file cannot be read, or holds no row.
    """
    read = READERS.get(file.suffix.casefold())
    if read is not None:
        return _entries(read, file)
    rows = read_csv(file)
    if not rows:
        raise InputError(str(file), ["no rows; add one deployment a line below the header"])
    if "model" not in rows[0].values:
        fault = Fault("line 1", "model", "missing column; name the model of each row")
        raise InputError(str(file), [fault])
    return tuple(
        PointRow(Document(str(file), row.values, {(): row.line}), (), row.values) for row in rows
    )


def _entries(read: Callable[[Path], Document], file: Path) -> tuple[PointRow, ...]:
    """Read the deployments of a YAML or JSON file.

    Where values cannot be read, the faults of the others are told with them.
    """
    try:
        return _rows(read(file))
    except UnfitValuesError as error:
        rows = _rows(error.document)
        others = [fault for row in rows for fault in faults_of(row.point)]
        raise together(error, others) from None


def _rows(document: Document) -> tuple[PointRow, ...]:
    data = document.data
    several = isinstance(data, tuple)
    entries = data if isinstance(data, tuple) else (data,)
    if not all(isinstance(entry, Mapping) for entry in entries):
        message = "must hold one deployment (keys and values) or a list of them"
        raise InputError(document.source, [message])
    return tuple(
        PointRow(
            document,
            (number,) if several else (),
            {str(key): _cell(value) for key, value in entry.items()},
        )
        for number, entry in enumerate(entries)
    )


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
