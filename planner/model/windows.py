"""Load that changes: percentiles over stretches of time, each in a steady state of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Candidates, Floats, Parameters
from planner.model.queueing import Metric, OpenLoop, steady_state, survival
from planner.model.workload import Workload

BISECTIONS = 40
SHORTEST, LONGEST = 1e-6, 1e6
"""Latencies between which a percentile is sought [s]."""


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
    size = len(found.states[0].utilization)
    low = np.full(size, np.log(SHORTEST))
    high = np.full(size, np.log(LONGEST))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        over = np.zeros(size)
        for window, state in zip(found.windows, found.states, strict=True):
            over += window.share * survival(state, window.workload, metric, np.exp(middle))
        above = over > 1.0 - share
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    lost = found.overloaded_share() > 1.0 - share
    return np.where(lost, np.inf, np.exp(0.5 * (low + high)))
