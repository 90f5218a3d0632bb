"""JSON with the line of each key."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from planner.errors import Fault, InputError
from planner.files.disk import read_text
from planner.files.document import DEPTH, TOO_DEEP, Document, KeyPath, UnfitValuesError, dotted

JSON_BYTES = 64_000_000

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|\n|[^\s{}\[\],:"]+')


def read_json(path: Path) -> Document:
    """Read a JSON file; lists become tuples.

    Raises:
        InputError: The file cannot be read or is no JSON; as :class:`UnfitValuesError` where it
            only names a key twice or holds NaN.
    """
    return parse_json(read_text(path, JSON_BYTES), str(path))


class _Objects:
    """Makes the objects of JSON text, and remembers whether one names a key twice."""

    twice = False

    def __call__(self, items: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(items)
        self.twice |= len(made) != len(items)
        return made


def repeats_a_key(text: str) -> bool:
    """Return whether an object of valid JSON text names a key twice."""
    objects = _Objects()
    json.loads(text, object_pairs_hook=objects)
    return objects.twice


def parse_json(text: str, source: str) -> Document:
    """Read JSON text; `source` names it in messages.

    Raises:
        InputError: As for :func:`read_json`.
    """
    objects = _Objects()
    try:
        data = _with_tuples(json.loads(text, object_pairs_hook=objects), DEPTH)
    except json.JSONDecodeError as error:
        message = f"not valid JSON ({error.msg}, column {error.colno}); mend it there"
        raise InputError(source, [Fault(f"line {error.lineno}", "", message)]) from None
    except RecursionError:
        raise InputError(source, [TOO_DEEP]) from None
    except ValueError:
        raise InputError(source, ["holds a number that is too long; shorten it"]) from None
    lines = _JsonLines(text)
    document = Document(source, data, lines)
    faults = [*(lines.repeated() if objects.twice else ()), *_not_finite(document, data)]
    if faults:
        raise UnfitValuesError(document, faults)
    return document


def _with_tuples(value: Any, depth: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if not depth:
        raise RecursionError
    if isinstance(value, dict):
        return {key: _with_tuples(item, depth - 1) for key, item in value.items()}
    return tuple(_with_tuples(item, depth - 1) for item in value)


def _not_finite(document: Document, value: Any, path: KeyPath = ()) -> Iterator[Fault]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite(document, item, (*path, key))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _not_finite(document, item, (*path, index))
    elif isinstance(value, float) and not math.isfinite(value):
        yield document.fault(path, "not a finite number; give a number")


class _JsonLines(Mapping[KeyPath, int]):
    """Lines of the key paths of valid JSON text, found when the first one is asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[KeyPath, int] | None = None
        self._twice: list[tuple[KeyPath, int]] = []

    def __getitem__(self, path: KeyPath) -> int:
        return self._lines()[path]

    def __iter__(self) -> Iterator[KeyPath]:
        return iter(self._lines())

    def __len__(self) -> int:
        return len(self._lines())

    def repeated(self) -> list[Fault]:
        """Return a fault for each key that an object names twice."""
        self._lines()
        return [
            Fault(f"line {line}", dotted(path), "written twice; keep one")
            for path, line in self._twice
        ]

    def _lines(self) -> dict[KeyPath, int]:
        if self._found is None:
            self._found = {}
            self._scan(self._found)
        return self._found

    def _scan(self, found: dict[KeyPath, int]) -> None:
        path: list[str | int] = []
        line, key_next = 1, False
        for token in (match.group() for match in _JSON_TOKEN.finditer(self._text)):
            if token == "\n":
                line += 1
                continue
            if token in {"}", "]"}:
                path.pop()
                key_next = False
            elif token == ",":
                key_next = not isinstance(path[-1], int)
                path[-1] = path[-1] if key_next else int(path[-1]) + 1
            elif key_next and token != ":":
                path[-1] = json.loads(token)
                key_next = False
                if tuple(path) in found:
                    self._twice.append((tuple(path), line))
                found[tuple(path)] = line
            elif token != ":":
                found.setdefault(tuple(path), line)
                if token in "{[":
                    path.append("" if token == "{" else 0)
                    key_next = token == "{"
