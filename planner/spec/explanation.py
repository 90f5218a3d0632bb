"""An option, explained: what ``plan explain`` shows."""

from __future__ import annotations

from dataclasses import dataclass

from planner.spec.option import Option


@dataclass(frozen=True)
class Item:
    """One number: what it is, its value with unit, how it comes about, what it rests on."""

    name: str
    value: str
    formula: str = ""
    source: str = ""


@dataclass(frozen=True)
class Section:
    """Items of one subject."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Explanation:
    """An option, explained."""

    option: Option
    sections: tuple[Section, ...]
