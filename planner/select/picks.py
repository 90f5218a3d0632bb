"""Picks, and the few other options that a person should see."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.model.arrays import Floats
from planner.select.front import Front, cost

SHOWN = 12
"""Options shown beside the picks."""
SAME = 0.02
"""Options that differ by less than this share in money and in both latencies are one to a
person."""


def picks(front: Front) -> dict[str, int]:
    """Return pick -> position in ``front.rows``; empty if the front is.

    What is no objective has no pick: the front need not hold what has least of it.
    """
    if not len(front.rows):
        return {}
    price = cost(front.trusted)[front.rows]
    return {
        name: int(np.lexsort((price, *reversed(rule(front))))[0])
        for name, rule in RULES.items()
        if any(objective.startswith(NEEDS.get(name, "")) for objective in front.objectives)
    }


Rule = Callable[[Front], tuple[Floats, ...]]


def _latency(metric: str) -> Rule:
    """By the first objective of the metric."""

    def least(front: Front) -> tuple[Floats, ...]:
        name = next(name for name in front.objectives if name.startswith(metric))
        return (front.trusted.answers.latency[name][front.rows],)

    return least


def _columns(*names: str) -> Rule:
    return lambda front: tuple(front.trusted.answers.columns[name][front.rows] for name in names)


def _distance(front: Front) -> Floats:
    """Distance from the ideal point, in log units: each objective over the best of it.

    Quality loss, which may be 0, counts as 1 + loss in percent. Rounded: points are, so that
    further digits say nothing.
    """
    logs = _logs(front.points)
    result: Floats = np.sqrt(((logs - logs.min(axis=0)) ** 2).sum(axis=1)).round(4)
    return result


def _logs(values: Floats) -> Floats:
    shifted = np.where((values == 0).any(axis=0), values + 1.0, values)
    result: Floats = np.log(np.minimum(shifted, 1e12))
    return result


RULES: dict[str, Rule] = {
    "cheapest": lambda _: (),
    "balanced": lambda front: (_distance(front),),
    "lowest_ttft": _latency("ttft"),
    "lowest_tpot": _latency("tpot"),
    # The median is compared in half points; what is equal there may differ in what is risked.
    "best_quality": _columns("loss_objective", "loss_p90"),
}
"""Pick -> what it has least of, the first thing first; ties go to the cheaper option."""
NEEDS = {"lowest_ttft": "ttft", "lowest_tpot": "tpot", "best_quality": "quality"}
"""Pick -> how the objective begins without which there is none."""


def shown(front: Front, picked: dict[str, int]) -> list[int]:
    """Return positions of at most SHOWN further options, cheapest first.

    Options that a person cannot tell apart are one; of the rest, each next one is that which
    differs most, in log units of the objectives, from all that are already there.
    """
    if not len(front.rows):
        return []
    logs = _logs(front.points)
    taken = sorted(set(picked.values()))
    left = _distinct(front, taken)
    chosen: list[int] = []
    while left and len(chosen) < SHOWN:
        at = logs[[*taken, *chosen]]
        gaps = [float(np.min(np.abs(logs[i] - at).sum(axis=1))) for i in left]
        chosen.append(left.pop(int(np.argmax(gaps))))
    return sorted(chosen)


def _distinct(front: Front, taken: list[int]) -> list[int]:
    """Return positions that differ from the taken ones and from each other by SAME."""
    answer, rows, found = front.trusted, front.rows, front.trusted.answers
    seen_by_users = ("ttft_p95_ms", "tpot_p95_ms") if front.decodes else ("ttft_p95_ms",)
    seen = np.column_stack(
        [
            np.log(cost(answer)[rows]),
            *(np.log(np.minimum(found.latency[key][rows], 1e12)) for key in seen_by_users),
            found.columns["loss_objective"][rows],
        ]
    )
    kept: list[int] = []
    for position in range(len(rows)):
        near = seen[[*taken, *kept]] - seen[position]
        if not (np.abs(near) < SAME).all(axis=1).any():
            kept.append(position)
    return kept
