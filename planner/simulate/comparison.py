"""Percentiles of a candidate by formula and by simulation, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from planner.model.arrays import Candidates, Parameters
from planner.model.queueing import percentile, steady_state
from planner.model.windows import Window, window_percentile, window_states
from planner.model.workload import Workload
from planner.simulate.run import Metric, Run

METRICS: tuple[Metric, ...] = ("ttft", "tpot", "e2e", "itl")
SHARES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Case:
    """A candidate and what it is asked.

    Attributes:
        candidate: One row.
        parameters: Fitted values.
        workload: Lengths and burstiness for the formula.
        rate: Requests per second over all replicas.
        routing: How requests are spread.
        windows: Windows of a trace; empty = one rate.
    """

    candidate: Candidates
    parameters: Parameters
    workload: Workload
    rate: float
    routing: str = "least_loaded"
    windows: tuple[Window, ...] = ()


@dataclass(frozen=True)
class Line:
    """One percentile [s].

    Attributes:
        metric, share: As ttft, 0.95.
        formula: At the steady rate; infinity = overloaded.
        windows: Over the windows of a trace; nan = there are none.
        simulated: Median over the runs.
        low, high: Least and largest of the runs.
    """

    metric: Metric
    share: float
    formula: float
    windows: float
    simulated: float
    low: float
    high: float

    @property
    def key(self) -> str:
        """Name as in slo.yaml, ``ttft_p95_ms``."""
        return f"{self.metric}_p{round(self.share * 100)}_ms"


def compare(case: Case, runs: Sequence[Run]) -> tuple[Line, ...]:
    """Return every percentile of a candidate by formula and of its runs.

    Args:
        case: The candidate.
        runs: Simulations of it.
    """
    c, p, w = case.candidate, case.parameters, case.workload
    state = steady_state(c, p, w, np.array([case.rate]), routing=case.routing)
    over = window_states(c, p, case.windows, routing=case.routing) if case.windows else None
    lines = []
    for metric in METRICS:
        found = np.array([run.percentiles(metric, SHARES) for run in runs])
        for column, share in enumerate(SHARES):
            by_window = float("nan")
            if over is not None:
                by_window = float(window_percentile(over, metric, share)[0])
            lines.append(
                Line(
                    metric=metric,
                    share=share,
                    formula=float(percentile(state, w, metric, share)[0]),
                    windows=by_window,
                    simulated=median(found[:, column].tolist()),
                    low=float(found[:, column].min()),
                    high=float(found[:, column].max()),
                )
            )
    return tuple(lines)
