"""The front in plain characters: cost against TPOT, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.report import words
from planner.spec.record import PlanRecord

HEIGHT = 12
WIDEST = 100
LABEL = 10
NARROWEST = 40
FEWEST = 3
"""Options below which a plot tells nothing."""
MARKS = {
    "cheapest": "C",
    "balanced": "B",
    "lowest_ttft": "F",
    "lowest_tpot": "T",
    "best_quality": "Q",
}
"""Pick -> its letter. Where picks share a place, the first of these is shown."""
OPTION = "."


@dataclass(frozen=True)
class Scale:
    """Logarithmic scale of an axis over so many cells."""

    low: float
    high: float
    cells: int

    def cell(self, value: float) -> int:
        """Return the cell of a value, from 0."""
        return round(self.share(value) * (self.cells - 1))

    def share(self, value: float) -> float:
        """Return the place of a value between the ends, 0 to 1."""
        if self.high <= self.low:
            return 0.0
        return math.log(value / self.low) / math.log(self.high / self.low)

    def at(self, cell: int) -> float:
        """Return the value in the middle of a cell."""
        step = cell / max(self.cells - 1, 1)
        return float(self.low * (self.high / self.low) ** step)


def front_plot(record: PlanRecord, width: int) -> list[str]:
    """Return lines that show the front; none where there is little to show, or no latency.

    Args:
        record: The plan.
        width: Columns of the terminal.
    """
    places = {o.id: (o.tpot.p95_ms, o.money.usd_per_mtok_output) for o in record.options if o.tpot}
    cells = min(width, WIDEST) - LABEL - 2
    if len(places) < FEWEST or cells < NARROWEST:
        return []
    x = _scale([place[0] for place in places.values()], cells)
    y = _scale([place[1] for place in places.values()], HEIGHT)
    grid = [[" "] * cells for _ in range(HEIGHT)]
    for tpot, cost in places.values():
        grid[HEIGHT - 1 - y.cell(cost)][x.cell(tpot)] = OPTION
    for pick, mark in reversed(MARKS.items()):
        if record.picks.get(pick) in places:
            tpot, cost = places[record.picks[pick]]
            grid[HEIGHT - 1 - y.cell(cost)][x.cell(tpot)] = mark
    return [
        "USD per Mtok output over TPOT p95, both logarithmic",
        *_rows(grid, y),
        f"{'':>{LABEL}} +{'-' * cells}",
        f"{'':>{LABEL + 2}}{_ticks(x)}",
        _legend(record),
    ]


def _scale(values: Sequence[float], cells: int) -> Scale:
    return Scale(min(values), max(values), cells)


def _rows(grid: list[list[str]], y: Scale) -> list[str]:
    labelled = {0, HEIGHT // 2, HEIGHT - 1}
    return [
        f"{words.money(y.at(HEIGHT - 1 - row)) if row in labelled else '':>{LABEL}}"
        f" |{''.join(line).rstrip()}"
        for row, line in enumerate(grid)
    ]


def _ticks(x: Scale) -> str:
    """Return the values at the ends and in the middle, each under its place."""
    left, middle, right = (
        words.milliseconds(x.at(cell)) for cell in (0, x.cells // 2, x.cells - 1)
    )
    start = x.cells // 2 - len(middle) // 2
    return f"{left:<{start}}{middle}".ljust(x.cells - len(right)) + right


def _legend(record: PlanRecord) -> str:
    picked = [
        f"{mark} {words.PICK_TITLES[pick].lower().replace('ttft', 'TTFT').replace('tpot', 'TPOT')}"
        for pick, mark in MARKS.items()
        if pick in record.picks
    ]
    return f"{'':>{LABEL + 2}}{', '.join(picked)}, {OPTION} others"
