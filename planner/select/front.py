"""The front: what can be bought, keeps every limit, and is beaten by nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.candidates.demand import decodes
from planner.cost import Quotes
from planner.model.arrays import Floats, Indices
from planner.pareto import nondominated, rounded
from planner.select.answers import Answers, Priced, priced
from planner.select.objectives import chosen, points
from planner.spec.archive import ClassArchive
from planner.spec.option import GATED, Reason
from planner.spec.slo import Slo

UNTRUSTED_SHOWN = 6
"""Untrusted options listed at most; one an accelerator."""


@dataclass(frozen=True)
class Front:
    """The options of a plan.

    Attributes:
        trusted: Prices that picks may rest on.
        rows: Rows of the front, cheapest first.
        points: Their objectives, (n, m).
        every: Prices with flagged rows.
        untrusted: Rows worth knowing of that picks may not rest on, cheapest first.
        objectives: Names of the objectives.
        decodes: Whether any request has a second token: else nobody has a TPOT.
    """

    trusted: Priced
    rows: Indices
    points: Floats
    every: Priced
    untrusted: Indices
    objectives: tuple[str, ...]
    decodes: bool = True


def front(
    found: Answers, archives: Sequence[ClassArchive], quotes: Mapping[str, Quotes], slo: Slo
) -> Front:
    """Return the front of an archive under the limits, prices and objectives of slo.yaml.

    Args:
        found: From ``answers(archives)``.
        archives: The archive.
        quotes: All prices by hardware class id, flagged ones among them.
        slo: Limits, objectives, and what picks may rest on.
    """
    allowed = slo.purchase
    clean = quotes if allowed.allow_flagged_prices else {k: q.clean() for k, q in quotes.items()}
    trusted = priced(found, archives, clean, slo)
    every = priced(found, archives, quotes, slo)
    objectives = chosen(slo)
    values = points(trusted, objectives)
    good = holds(trusted) & ~found.gated
    if not allowed.allow_unvalidated:
        good &= ~found.unvalidated
    rows = _best(values, np.flatnonzero(good))
    rows = rows[np.lexsort((*values[rows].T[::-1], cost(trusted)[rows]))]
    return Front(
        trusted=trusted,
        rows=rows,
        points=values[rows],
        every=every,
        untrusted=_untrusted(every, trusted, rows, slo),
        objectives=tuple(objective.name for objective in objectives),
        decodes=decodes(slo),
    )


def holds(answer: Priced) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark the rows that can be bought and keep every limit."""
    result: np.ndarray[tuple[int], np.dtype[np.bool_]] = (answer.worst() <= 1.0) & np.isfinite(
        answer.bill.usd_per_hour
    )
    return result


def cost(answer: Priced) -> Floats:
    """Return the price per million output tokens, rounded: a last bit decides nothing."""
    return rounded(answer.money["usd_per_mtok_output"])


def reasons(answer: Priced, slo: Slo, row: int) -> tuple[Reason, ...]:
    """Return why a pick may not rest on a row; empty = it may."""
    found, allowed = answer.answers, slo.purchase
    why: list[Reason] = []
    if found.unvalidated[row] and not allowed.allow_unvalidated:
        why.append("unvalidated evidence")
    if answer.flagged[row] and not allowed.allow_flagged_prices:
        why.append("flagged price")
    if found.gated[row]:
        why.append(GATED)
    return tuple(why)


def _best(values: Floats, rows: Indices) -> Indices:
    return rows[nondominated(values[rows])]


def _untrusted(every: Priced, trusted: Priced, rows: Indices, slo: Slo) -> Indices:
    """Return, an accelerator each, rows that are cheaper than every option of the front."""
    found = every.answers
    candidates = np.flatnonzero(holds(every))
    candidates = candidates[[bool(reasons(every, slo, int(row))) for row in candidates]]
    if len(rows):
        candidates = candidates[cost(every)[candidates] < cost(trusted)[rows].min()]
    order = candidates[np.lexsort((candidates, cost(every)[candidates]))]
    _, first = np.unique(found.place[order], return_index=True)
    return order[np.sort(first)][:UNTRUSTED_SHOWN]
