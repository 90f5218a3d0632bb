"""What someone else's file says in the words of slo.yaml, as far as it goes; the rest is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from planner.errors import Fault, InputError
from planner.files import Document, KeyPath, dotted

SHOWN = 60
"""Characters of a foreign value that are shown."""


@dataclass(frozen=True)
class Given:
    """A value of slo.yaml.

    Attributes:
        value: The value, in the unit of its key.
        comment: Where it comes from, and what was converted.
    """

    value: object
    comment: str = ""


@dataclass(frozen=True)
class Draft:
    """The part of an slo.yaml that a foreign file gives.

    Attributes:
        origin: What the file is, for people.
        values: By dotted key of slo.yaml.
        left_out: What has no counterpart, as ``key: value``.
        notes: What else a person should know, in sentences.
    """

    origin: str
    values: Mapping[str, Given]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Foreign:
    """A part of a foreign file that remembers what was read of it.

    Attributes:
        document: The file.
        root: Key path of the part.
    """

    document: Document
    root: KeyPath = ()
    _read: set[KeyPath] = field(default_factory=set)
    _faults: list[Fault] = field(default_factory=list)

    def get(self, *path: str | int) -> object:
        """Return the value at a key path below the root; None where there is none."""
        self._read.add(path)
        return self.peek(*path)

    def peek(self, *path: str | int) -> object:
        """Return the value at a key path, which does not count as read."""
        return _at(self.document.data, (*self.root, *path))

    def block(self, *path: str | int) -> Mapping[str, object]:
        """Return the keys of a block, which do not count as read; empty where there is none."""
        value = self.peek(*path)
        return value if isinstance(value, Mapping) else {}

    def items(self, *path: str | int) -> int:
        """Return the number of entries of a list, which do not count as read."""
        value = self.peek(*path)
        return len(value) if isinstance(value, tuple) else 0

    def text(self, *path: str | int) -> str:
        """Return a text; empty where there is none."""
        value = self.get(*path)
        if value is None or isinstance(value, str):
            return (value or "").strip()
        self._fault(path, f"{shown(value)} is not text; put it in quotes")
        return ""

    def positive(self, *path: str | int) -> float | None:
        """Return a number above 0, whole ones as int; text that is one counts."""
        value = self.get(*path)
        if value is None:
            return None
        number = _number(value)
        if number is None or number <= 0:
            self._fault(path, f"{shown(value)} is not a number above 0; mend it")
            return None
        return number

    def skip(self, *path: str | int) -> None:
        """Count everything at a key path as read: it says nothing of the load or its limits."""
        self._read.add(path)

    def left_out(self) -> tuple[str, ...]:
        """Return what was not read, as ``key: value``, after raising what is at fault.

        Raises:
            InputError: With every fault met while reading.
        """
        if self._faults:
            raise InputError(self.document.source, self._faults)
        return tuple(self._unread((), self.peek()))

    def _unread(self, path: KeyPath, value: object) -> Iterator[str]:
        if path in self._read:
            return
        if isinstance(value, Mapping) and value:
            for key, item in value.items():
                yield from self._unread((*path, key), item)
        elif isinstance(value, tuple) and value:
            for number, item in enumerate(value):
                yield from self._unread((*path, number), item)
        else:
            yield f"{dotted(path)}: {shown(value)}"

    def _fault(self, path: KeyPath, message: str) -> None:
        self._faults.append(self.document.fault((*self.root, *path), message))


def _at(value: object, path: KeyPath) -> object:
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(str(part))
        elif isinstance(value, tuple) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def shown(value: object) -> str:
    """Return a foreign value for a message: one printable line, not too long."""
    text = value if isinstance(value, str) else str(value)
    if not text.isprintable():
        text = ascii(text)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else number
