"""How firm the picks of a stored plan are."""

from __future__ import annotations

from planner.commands.stored import Stored
from planner.select.firmness import Firmness
from planner.select.scenarios import Subjects
from planner.select.sensitivity import CHANGE, Ground, firmness


def plan_firmness(stored: Stored, change: float = CHANGE) -> Firmness:
    """Return how firm the picks of a plan are, at the plan's own prices.

    Args:
        stored: The plan with catalog and model.
        change: Share by which prices, traffic and lengths are moved.
    """
    record, slo = stored.record, stored.slo
    if not record.picks:
        return Firmness(change, (), ())
    held = frozenset(name for check in record.verification for name in check.held)
    subjects = Subjects(stored.scene, slo, record.options, held)
    every = stored.quotes()
    allowed = slo.purchase.allow_flagged_prices
    quotes = every if allowed else {key: one.clean() for key, one in every.items()}
    return firmness(Ground(record, subjects, quotes, stored.case), change)
