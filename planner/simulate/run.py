"""What a simulated fleet did: latencies, goodput, load, queue and batch over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Floats
from planner.simulate.arrivals import Arrivals
from planner.simulate.deployment import Deployment
from planner.simulate.server import Book, Server

Metric = Literal["ttft", "tpot", "e2e", "itl"]
GROWTH_SHARE = 0.02
"""Share of the arrivals by which the queue may grow in a stable run."""
GROWTH_REQUESTS = 10.0


@dataclass(frozen=True)
class Window:
    """Shares of the requests, first and last, that are left out of the statistics."""

    warm_up: float
    cool_down: float


@dataclass(frozen=True)
class Level:
    """A number that changes over time, in intervals: its mean and its largest value, (samples,)."""

    mean: Floats
    largest: Floats


@dataclass(frozen=True)
class Timeline:
    """State over time in even intervals, all servers together, (samples,).

    Attributes:
        time: Ends of the intervals [s].
        queue: Requests not yet admitted (preempted ones not counted).
        batch: Requests between first and last token.
        in_flight: Requests arrived and not done.
    """

    time: Floats
    queue: Level
    batch: Level
    in_flight: Level


@dataclass(frozen=True)
class Run:
    """One simulation; arrays are by request in order of arrival.

    Attributes:
        arrival, admitted: Arrival, first admission to a server's batch [s].
        ttft: Time to first token, front end included [s]; infinity if rejected.
        tpot: (e2e - ttft) / (output - 1) [s]; nan for outputs of one token.
        e2e: Time to the last token [s].
        prompt, output: Lengths [tokens].
        measured: Requests outside warm-up and cool-down.
        gap_end, gap, gaps: End [s], mean length [s] and number of the gaps between a sequence's
            emissions, by step or stretch of equal steps: tokens that one verification yields
            come together.
        servers: Servers of the fleet.
        batch: Mean decoding sequences per server while requests arrive.
        utilization: Mean share of the time that a server is not idle while requests arrive.
        preemptions: Times that a request lost its KV.
        rejected: Requests too long for the KV memory of a server.
        overloaded: The queue kept growing while requests arrived.
    """

    arrival: Floats
    admitted: Floats
    ttft: Floats
    tpot: Floats
    e2e: Floats
    prompt: NDArray[np.int64]
    output: NDArray[np.int64]
    measured: NDArray[np.bool_]
    gap_end: Floats
    gap: Floats
    gaps: Floats
    servers: int
    batch: float
    utilization: float
    preemptions: int
    rejected: int
    overloaded: bool

    @property
    def done(self) -> Floats:
        """Time of the last token [s], (requests,)."""
        return self.arrival + self.e2e

    def percentiles(self, metric: Metric, shares: Sequence[float]) -> tuple[float, ...]:
        """Percentiles over the measured requests (ITL: over the gaps in that time) [s].

        Args:
            metric: ttft, tpot, e2e or itl.
            shares: Shares in [0, 1], as 0.95.

        Returns:
            One value a share; nan if nothing was measured.
        """
        if metric == "itl":
            return self._gap_percentiles(shares)
        values = getattr(self, metric)[self.measured]
        values = np.sort(values[~np.isnan(values)])
        if not len(values):
            return tuple(float("nan") for _ in shares)
        # The smallest value that is not exceeded by more than 1 - share: infinities are no trouble.
        ranks = np.ceil(np.asarray(shares) * len(values)).astype(int) - 1
        return tuple(values[np.clip(ranks, 0, len(values) - 1)].tolist())

    def _gap_percentiles(self, shares: Sequence[float]) -> tuple[float, ...]:
        times = self.arrival[self.measured]
        if not len(times):
            return tuple(float("nan") for _ in shares)
        inside = (self.gap_end >= times[0]) & (self.gap_end <= times[-1])
        order = np.argsort(self.gap[inside], kind="stable")
        gap, total = self.gap[inside][order], np.cumsum(self.gaps[inside][order])
        if not len(gap):
            return tuple(float("nan") for _ in shares)
        places = np.searchsorted(total, np.asarray(shares) * total[-1])
        return tuple(gap[np.minimum(places, len(gap) - 1)].tolist())

    def mean(self, metric: Literal["ttft", "tpot", "e2e"]) -> float:
        """Mean over the measured requests [s]."""
        values = getattr(self, metric)[self.measured]
        values = values[~np.isnan(values)]
        return float(values.mean()) if len(values) else float("nan")

    def attainment(self, limits: Mapping[str, float | Floats]) -> float:
        """Share of the measured requests that meet every limit.

        Args:
            limits: Metric (ttft, tpot, e2e) -> longest time allowed, of all or of each request
                [s]; a request with one token meets any TPOT.

        Returns:
            Share in [0, 1].
        """
        met = self.measured.copy()
        for metric, limit in limits.items():
            met &= ~(getattr(self, metric) > limit)
        count = int(self.measured.sum())
        return float(met.sum()) / count if count else float("nan")

    def goodput(self, limits: Mapping[str, float | Floats]) -> float:
        """Requests per second that meet every limit, of those that arrive while measuring."""
        times = self.arrival[self.measured]
        span = float(times[-1] - times[0]) if len(times) > 1 else 0.0
        return self.attainment(limits) * (len(times) - 1) / span if span > 0 else float("nan")

    def output_rate(self) -> float:
        """Output tokens per second while measuring, of all requests; nan without a duration.

        The first token of a request comes at its TTFT, the others evenly until it is done.
        """
        times, alive = self.arrival[self.measured], np.isfinite(self.e2e)
        begin, end = (float(times[0]), float(times[-1])) if len(times) else (0.0, 0.0)
        if end <= begin:
            return float("nan")
        first, last = (self.arrival + self.ttft)[alive], self.done[alive]
        during = np.clip(np.minimum(last, end) - np.maximum(first, begin), 0.0, None)
        share = during / np.where(last > first, last - first, 1.0)
        tokens = (first >= begin) & (first <= end)
        return float((tokens + share * (self.output[alive] - 1.0)).sum()) / (end - begin)

    def timeline(self, samples: int = 200) -> Timeline:
        """Return queue, batch and requests in flight in even intervals until the last token."""
        alive = np.isfinite(self.e2e)
        arrival, done = self.arrival[alive], self.done[alive]
        edges = np.linspace(0.0, float(done.max()) if len(done) else 0.0, samples + 1)
        return Timeline(
            time=edges[1:],
            queue=_level(arrival, self.admitted[alive], edges),
            batch=_level(arrival + self.ttft[alive], done, edges),
            in_flight=_level(arrival, done, edges),
        )


def _level(more: Floats, fewer: Floats, edges: Floats) -> Level:
    """Return how many have come and not gone, between edges.

    Args:
        more, fewer: When they come, when they go.
        edges: Rising; intervals lie between.
    """
    times, place = np.unique(np.concatenate([edges, more, fewer]), return_inverse=True)
    change = np.repeat([0.0, 1.0, -1.0], [len(edges), len(more), len(fewer)])
    level = np.cumsum(np.bincount(place, change, len(times)))[:-1]
    if not len(level):
        return Level(np.zeros(len(edges) - 1), np.zeros(len(edges) - 1))
    starts = place[: len(edges) - 1]
    spent = np.add.reduceat(level * np.diff(times), starts)
    return Level(spent / np.diff(edges), np.maximum.reduceat(level, starts))


def collect(
    deployment: Deployment,
    arrivals: Arrivals,
    book: Book,
    servers: Sequence[Server],
    window: Window,
) -> Run:
    """Return the record of a finished simulation."""
    count = len(arrivals)
    rejected = np.array(book.rejected, dtype=bool)
    lag = np.array(book.lag) - arrivals.time
    first = np.array(book.first) + lag
    last = np.array(book.done) + lag
    outside = deployment.frontend_request + deployment.frontend_token * arrivals.prompt
    ttft = np.where(rejected, np.inf, first + outside + deployment.first_token)
    e2e = np.where(rejected, np.inf, last + outside + deployment.first_token)
    steps = np.where(arrivals.output > 1, arrivals.output - 1.0, np.nan)
    tpot = np.where(rejected, np.inf, (last - first) / steps)
    measured = np.zeros(count, dtype=bool)
    measured[int(window.warm_up * count) : count - int(window.cool_down * count)] = True
    gaps = np.array([value for server in servers for value in server.gaps]).reshape(-1, 3)
    begin, end = (float(arrivals.time[0]), float(arrivals.time[-1])) if count else (0.0, 0.0)
    inside = (gaps[:, 0] > begin) & (gaps[:, 0] <= end)
    span = max(end - begin, 1e-12) * len(servers)
    admitted = np.array(book.admitted)
    return Run(
        arrival=arrivals.time,
        admitted=admitted,
        ttft=ttft,
        tpot=tpot,
        e2e=e2e,
        prompt=arrivals.prompt,
        output=arrivals.output,
        measured=measured,
        gap_end=gaps[:, 0],
        gap=gaps[:, 1],
        gaps=gaps[:, 2],
        servers=len(servers),
        batch=float((gaps[inside, 1] * gaps[inside, 2]).sum()) / span,
        utilization=1.0 - sum(_idle(server, begin, end) for server in servers) / span,
        preemptions=sum(book.preemptions),
        rejected=int(rejected.sum()),
        overloaded=_growing(arrivals.time, admitted[~rejected]),
    )


def _idle(server: Server, begin: float, end: float) -> float:
    """Idle seconds of a server between two times."""
    edges = np.array([*server.idle, np.inf][: len(server.idle) // 2 * 2 + 2])
    spans = np.clip(edges, begin, end).reshape(-1, 2)
    return float((spans[:, 1] - spans[:, 0]).sum())


def _growing(arrival: Floats, admitted: Floats) -> bool:
    """Whether the queue of the last quarter is longer than that of the second by a trend."""
    count = len(arrival)
    if count < 2 or arrival[-1] <= arrival[0]:
        return False
    span = arrival[-1] - arrival[0]
    time = arrival[0] + span * np.linspace(0.25, 1.0, 301)
    queue = _passed(arrival, time) - _passed(admitted, time)
    growth = float(queue[200:].mean() - queue[:100].mean())
    return growth > max(GROWTH_SHARE * count / 2, GROWTH_REQUESTS)


def _passed(events: Floats, time: Floats) -> Floats:
    """Events that lie at or before each time."""
    return np.searchsorted(np.sort(events), time, side="right").astype(np.float64)
