"""Looking entries up by id or alias, without case; a slip is answered with the nearest name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from planner.errors import Fault, InputError, suggestion


class Named(Protocol):
    """What can be looked up."""

    @property
    def id(self) -> str:
        """Catalog id."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names."""


Entry = TypeVar("Entry", bound=Named)


def folded(name: str) -> str:
    """Return a name as it is compared: no case; space, hyphen and underscore are one."""
    return re.sub(r"[\s_-]+", "-", name.strip()).casefold()


class Names(Generic[Entry]):
    """Entries of one kind by id and alias.

    Attributes:
        kind: What an entry is called in messages.
        by_id: The entries in the order given.
        clashes: A fault for each name that two entries claim.
    """

    def __init__(self, kind: str, entries: Iterable[Entry]) -> None:
        """Args: kind: word for messages; entries: ids should differ."""
        self.kind = kind
        self.by_id: dict[str, Entry] = {}
        self.clashes: list[Fault] = []
        self._found: dict[str, Entry] = {}
        for entry in entries:
            self.by_id[entry.id] = entry
            for name in dict.fromkeys((entry.id, *entry.aliases)):
                self._claim(name, entry)

    def get(self, name: str) -> Entry | None:
        """Return the entry of that name, or None."""
        return self._found.get(folded(name))

    def find(self, name: str) -> Entry:
        """Return the entry of that name.

        Raises:
            InputError: No entry has that name; says which come near.
        """
        entry = self.get(name)
        if entry is None:
            raise InputError(self.kind, [Fault("", "", self.unknown(name))])
        return entry

    def unknown(self, name: str) -> str:
        """Return the message for a name that no entry has."""
        return f"'{name}' is unknown{self._hint(name)}"

    def _hint(self, name: str) -> str:
        word = folded(name)
        several = [key for key in self.by_id if word and folded(key).startswith(f"{word}-")]
        if several:
            return f"; it could be {', '.join(several)}"
        near = suggestion(word, self._found)
        return near or f"; known are {', '.join(self.by_id)}"

    def _claim(self, name: str, entry: Entry) -> None:
        holder = self._found.setdefault(folded(name), entry)
        if holder is not entry:
            message = f"'{name}' already names {holder.id}; remove it from one of them"
            self.clashes.append(Fault(entry.id, "aliases", message))

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.by_id.values())
