"""What a read file is: its content, and the line of each part of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.errors import Fault, InputError

KeyPath = tuple[str | int, ...]

DEPTH = 64
"""Levels of nesting that a file may have."""

TOO_DEEP = f"nested deeper than {DEPTH} levels; flatten it"


def dotted(path: KeyPath) -> str:
    """Return a key path as people write it: ``traffic.classes[0].share``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            word = part if part and part.isprintable() and len(part) <= 80 else ascii(part[:80])
            text += f".{word}" if text else word
    return text


def key_path(key: str) -> KeyPath:
    """Return the path of a dotted key; empty for none.

    >>> key_path("traffic.classes[0].share")
    ('traffic', 'classes', 0, 'share')
    """
    found = re.findall(r"\[(\d+)\]|([^.\[\]]+)", key)
    return tuple(int(number) if number else name for number, name in found)


@dataclass(frozen=True)
class Document:
    """A file's content and where each part of it stands.

    Attributes:
        source: Name of the file, for messages.
        data: Mappings as dict with text keys, lists as tuples, scalars as Python values.
        lines: Line (from 1) of each key path.
    """

    source: str
    data: object
    lines: Mapping[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """Return the line of a key path, or of its nearest parent that has one; 1 at worst."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return self.lines.get((), 1)

    def fault(self, path: KeyPath, message: str) -> Fault:
        """Return a fault that names the line and the dotted key of `path`."""
        return Fault(f"line {self.line(path)}", dotted(path), message)


class UnfitValuesError(InputError):
    """A file whose form is sound, but some of whose values cannot be read.

    Attributes:
        document: The rest of the file; an unfit value is an ``object()`` or NaN, which no spec
            accepts.
    """

    def __init__(self, document: Document, faults: Iterable[Fault]) -> None:
        """Args: document: what could be read; faults: those of the values, at least one."""
        self.document = document
        super().__init__(document.source, faults)
