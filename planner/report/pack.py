"""What a report file shows: the stored plan, and how firm its choices are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.report import words
from planner.select.firmness import Firmness
from planner.spec.option import Option
from planner.spec.record import PlanRecord


@dataclass(frozen=True)
class Pack:
    """A plan to be signed.

    Attributes:
        record: The plan.
        firmness: How firm its picks are; None = not asked, or the model is not at hand.
        notes: What a reader must know of that, in sentences.
    """

    record: PlanRecord
    firmness: Firmness | None = None
    notes: tuple[str, ...] = ()

    def picked(self) -> Mapping[str, list[str]]:
        """Return option id -> titles of its picks, in the order of the picks."""
        titles: dict[str, list[str]] = {}
        for pick, identity in self.record.picks.items():
            titles.setdefault(identity, []).append(words.PICK_TITLES.get(pick, pick))
        return titles

    def option(self, identity: str) -> Option:
        """Return the option of the front with this id."""
        return next(option for option in self.record.options if option.id == identity)

    def listed(self) -> tuple[Option, ...]:
        """Return the front, then untrusted options; where there is neither, the misses."""
        record = self.record
        misses = tuple(miss.option for miss in record.misses)
        return (*record.options, *record.untrusted) or misses
