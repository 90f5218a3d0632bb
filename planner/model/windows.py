"""Load that changes: percentiles over stretches of time, each in a steady state of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Candidates, Floats, Indices, Parameters
from planner.model.queueing import Metric, OpenLoop, steady_state
from planner.model.queueing.latency import RANGE, survival_function
from planner.model.roots import falling_root
from planner.model.workload import Workload


@dataclass(frozen=True)
class Window:
    """A stretch of time.

    Attributes:
        share: Share of all requests that arrive in it.
        rate: Requests per second.
        workload: Their lengths.
    """

    share: float
    rate: float
    workload: Workload


@dataclass(frozen=True)
class WindowStates:
    """Steady states of candidates in every window.

    Attributes:
        windows: The windows; their shares add up to 1.
        states: One a window, each of (n,) candidates.
    """

    windows: tuple[Window, ...]
    states: tuple[OpenLoop, ...]

    def overloaded_share(self) -> Floats:
        """Share of the requests that arrive in windows beyond capacity, (n,)."""
        pairs = zip(self.windows, self.states, strict=True)
        parts = [w.share * (state.utilization >= 1.0) for w, state in pairs]
        total: Floats = np.sum(parts, axis=0)
        return total


def window_states(
    c: Candidates,
    p: Parameters,
    windows: Sequence[Window],
    *,
    routing: str = "least_loaded",
) -> WindowStates:
    """Return the steady states of the candidates in every window."""
    states = (
        steady_state(c, p, window.workload, np.full(len(c), window.rate), routing=routing)
        for window in windows
    )
    return WindowStates(tuple(windows), tuple(states))


def window_percentile(found: WindowStates, metric: Metric, share: float) -> Floats:
    """Smallest t [s] with P(metric > t) <= 1 - share over all windows, (n,).

    Each window counts by its requests and is taken to be in its own steady state, which holds if
    queues build up and drain faster than the load moves. A window beyond capacity exceeds any t,
    so the percentile is infinite once such windows hold more than 1 - share of the requests.

    Source: our derivation, planner/model/README.md#queueing; on public traces it repairs most of
    what one steady rate misses.
    """
    result = np.full(len(found.states[0].utilization), np.inf)
    kept = np.flatnonzero(found.overloaded_share() <= 1.0 - share)

    def excess(rows: Indices) -> Callable[[Floats], Floats]:
        parts = [
            (window.share, survival_function(state.take(kept[rows]), window.workload, metric))
            for window, state in zip(found.windows, found.states, strict=True)
        ]

        def over(x: Floats) -> Floats:
            longer = [part * survival(np.exp(x)) for part, survival in parts]
            total: Floats = np.sum(longer, axis=0) - (1.0 - share)
            return total

        return over

    low, high = (np.full(len(kept), np.log(end)) for end in RANGE)
    result[kept] = np.exp(falling_root(excess, (low, high), (low, high)))
    return result
