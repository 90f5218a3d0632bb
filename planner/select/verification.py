"""Simulations of one deployment: the percentiles that slo.yaml limits, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, sqrt
from typing import Literal

import numpy as np

from planner.candidates.demand import EVERY, Kind, kinds, sized_rate
from planner.importers.traces import Trace
from planner.model.arrays import Floats, Indices
from planner.select.strata import Strata
from planner.simulate import Arrivals, Deployment, Run, random_arrivals, simulate
from planner.simulate.run import Metric
from planner.spec.slo import Slo
from planner.units import MILLI

SEEDS = 2
MEASURED = 1500
"""Requests of a run that are measured, for percentiles up to p95; more for higher ones."""
MOST_REQUESTS = 20_000
SERVERS = 8
"""Servers simulated at most: a larger fleet at the same rate a server only waits less, but for
outputs of one length (``selection.ENDS_TOGETHER``)."""
WARM_UP, COOL_DOWN = 2.0, 0.5
"""Left out at the beginning and end, in mean residence times of a request."""
BATCHES = 8
"""Stretches of a run whose spread says how sure a percentile is."""
STUDENT = 2.602
"""99 % quantile of Student's t with SEEDS * BATCHES - 1 = 15 degrees of freedom: of all sizes and
deployments that are tried the least that holds is taken, so that luck adds up."""
LEVELS = 64
REFERENCE = 2000
"""Lengths, at even ranks, that stand for all of a kind of request."""
DECIDING: dict[Metric, Literal["prompt", "output"]] = {"ttft": "prompt", "e2e": "output"}
"""Metric -> the length that decides most of it."""


@dataclass(frozen=True)
class Wanted:
    """A percentile that is asked for.

    Attributes:
        key: As in slo.yaml, ``ttft_p95_ms``.
        metric: ttft, tpot, e2e or itl.
        share: Share of the requests within it.
        limit: Longest value allowed, margin for the model's error taken off [s]; infinity = none.
        kind: Number of the kind of request that it is about; EVERY = all together.
    """

    key: str
    metric: Metric
    share: float
    limit: float = inf
    kind: int = EVERY


@dataclass(frozen=True)
class Effort:
    """How much is simulated.

    Attributes:
        measured: Requests of a run that are measured, for percentiles up to p95.
        servers: Servers simulated at most.
        probe: Whether one seed may do where it misses a limit.
    """

    measured: int = MEASURED
    servers: int = SERVERS
    probe: bool = False


@dataclass(frozen=True)
class Seen:
    """A simulated percentile [s], and the upper end of its one-sided 99 % interval.

    Both are 0 where no request has such a latency, as TPOT of one token: any limit holds.
    """

    value: float
    upper: float

    @property
    def empty(self) -> bool:
        """Whether no request has such a latency."""
        return self.upper <= 0.0


@dataclass(frozen=True)
class Observation:
    """What the runs of a deployment gave.

    Attributes:
        seen: By key of what was wanted.
        holds: Whether the upper end of every percentile is within its limit.
        utilization: Mean share of the time that a server is busy.
        seeds, requests, replicas: Of the runs; replicas as simulated.
    """

    seen: dict[str, Seen]
    holds: bool
    utilization: float
    seeds: tuple[int, ...]
    requests: int
    replicas: int


@dataclass(frozen=True)
class Drawn:
    """Requests of one seed, and the kind of each."""

    arrivals: Arrivals
    kind: Indices

    def first(self, count: int, rate: float) -> Drawn:
        """Return the first `count` requests, drawn at 1/s, at another rate [1/s]."""
        a = self.arrivals
        timed = Arrivals(a.time[:count] / rate, a.prompt[:count], a.output[:count])
        return Drawn(timed, self.kind[:count])


@dataclass
class Requests:
    """The requests that slo.yaml describes, drawn once for each seed.

    Every fleet gets the same ones, so that two sizes differ by nothing else.
    """

    slo: Slo
    seed: int = 0
    _drawn: dict[int, Drawn] = field(default_factory=dict)
    _strata: dict[tuple[int, Metric], Strata] = field(default_factory=dict)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the runs, from that of the plan."""
        return tuple(SEEDS * self.seed + number for number in range(SEEDS))

    def draw(self, seed: int, count: int, rate: float = 1.0) -> Drawn:
        """Return the first `count` requests of a seed at a rate [requests/s]."""
        known = self._drawn.get(seed)
        if known is None or len(known.kind) < count:
            known = self._fresh(seed, max(count, 2 * MEASURED))
            self._drawn[seed] = known
        return known.first(count, rate)

    def strata(self, want: Wanted) -> Strata | None:
        """Return the strata of the length that decides most of a latency; None = of none."""
        at = want.kind, want.metric
        if want.metric in DECIDING and at not in self._strata:
            every = kinds(self.slo)
            mine = every if want.kind == EVERY else (every[want.kind],)
            lengths = [getattr(self._typical(kind), DECIDING[want.metric]) for kind in mine]
            shares = np.repeat([kind.share for kind in mine], REFERENCE)
            self._strata[at] = Strata.of(np.concatenate(lengths), shares)
        return self._strata.get(at)

    def _typical(self, kind: Kind) -> Arrivals:
        """Return requests of a kind whose lengths have even ranks; times do not matter."""
        ranks = (np.arange(REFERENCE) + 0.5) / REFERENCE
        mixed = np.random.default_rng(0).permutation(ranks)
        lengths = [
            np.maximum(np.rint([length.quantile(rank) for rank in at.tolist()]), 1.0)
            for length, at in ((kind.prompt, ranks), (kind.output, mixed))
        ]
        every = Arrivals(ranks, *(length.astype(np.int64) for length in lengths))
        longest = self.slo.traffic.longest
        return every if longest is None else cut(every, longest)

    def _fresh(self, seed: int, count: int) -> Drawn:
        traffic, every = self.slo.traffic, kinds(self.slo)
        alone = [
            random_arrivals(
                1.0,
                count,
                kind.prompt.quantile,
                kind.output.quantile,
                burstiness=traffic.burstiness,
                seed=seed,
            )
            for kind in every
        ]
        bounds = np.cumsum([kind.share for kind in every])
        which = np.random.default_rng([seed, 2]).random(count) * bounds[-1]
        kind = np.minimum(np.searchsorted(bounds, which), len(every) - 1)
        row = np.arange(count)
        prompt = np.stack([one.prompt for one in alone])[kind, row]
        output = np.stack([one.output for one in alone])[kind, row]
        drawn = Arrivals(alone[0].time, prompt, output)
        longest = traffic.longest
        return Drawn(drawn if longest is None else cut(drawn, longest), kind)


@dataclass(frozen=True)
class Replay:
    """Recorded requests, replayed once; of a long trace those around its busiest minute."""

    slo: Slo
    trace: Trace
    seed: int = 0

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seed of random routing."""
        return (self.seed,)

    def strata(self, want: Wanted) -> None:
        """Return none: the requests are what they are."""
        del want

    def draw(self, seed: int, count: int, rate: float = 1.0) -> Drawn:
        """Return the requests at their own times; seed, count and rate change nothing."""
        del seed, count, rate
        trace = self.trace
        first = _busiest(trace.arrival_s)
        part = slice(first, first + MOST_REQUESTS)
        time = trace.arrival_s[part] - trace.arrival_s[first]
        arrivals = Arrivals(time, trace.prompt_tokens[part], trace.output_tokens[part])
        return Drawn(arrivals, np.zeros(len(arrivals), dtype=np.intp))


def _busiest(time: Floats) -> int:
    """Return the first of the requests around the busiest minute."""
    if len(time) <= MOST_REQUESTS:
        return 0
    middle = int(np.argmax(np.searchsorted(time, time + 60.0) - np.arange(len(time))))
    return int(np.clip(middle - MOST_REQUESTS // 2, 0, len(time) - MOST_REQUESTS))


def cut(arrivals: Arrivals, longest: int) -> Arrivals:
    """Return the requests with prompts cut, then outputs, so that both together fit."""
    output = np.minimum(arrivals.output, longest - 1)
    return Arrivals(arrivals.time, np.minimum(arrivals.prompt, longest - output), output)


def observe(
    fleet: Deployment,
    requests: Requests | Replay,
    wanted: Sequence[Wanted],
    in_flight: float,
    effort: Effort = Effort(),
) -> Observation:
    """Simulate a deployment with every seed.

    Args:
        fleet: The deployment with all its replicas.
        requests: What it serves.
        wanted: Percentiles, with their limits.
        in_flight: Requests in the whole fleet at a time, roughly: sets the length of a run.
        effort: How much to simulate.

    Returns:
        Percentiles over all runs. Their interval rests on the spread between stretches of the
        runs, so it knows of queues that build up and drain (batch means).

    Source:
        A. M. Law, Simulation Modeling and Analysis, 5th ed., 2015, section 9.5.3.
    """
    replay = isinstance(requests, Replay)
    replicas = (
        fleet.replicas if replay else min(fleet.replicas, max(effort.servers // fleet.ranks, 1))
    )
    part = replicas / fleet.replicas
    small = replace(fleet, replicas=replicas)
    rate = sized_rate(requests.slo) * part
    share = max(want.share for want in wanted)
    count, warm_up, cool_down = _length(in_flight * part, share, effort.measured)
    if replay:
        warm_up = cool_down = 0.0
    runs: list[Run] = []
    whose: list[Indices] = []
    seen: dict[str, Seen] = {}
    for seed in requests.seeds:
        drawn = requests.draw(seed, count, rate)
        done = simulate(small, drawn.arrivals, seed=seed, warm_up=warm_up, cool_down=cool_down)
        runs.append(done)
        whose.append(drawn.kind)
        seen = {want.key: of_kind(runs, whose, want, requests.strata(want)) for want in wanted}
        count = len(drawn.kind)
        if replay:
            # It has happened once and as it is: nothing is uncertain about it.
            seen = {key: Seen(found.value, found.value) for key, found in seen.items()}
        if effort.probe and any(seen[want.key].value > want.limit for want in wanted):
            break
    return Observation(
        seen=seen,
        holds=all(seen[want.key].upper <= want.limit for want in wanted),
        utilization=float(np.mean([run.utilization for run in runs])),
        seeds=requests.seeds[: len(runs)],
        requests=count,
        replicas=replicas,
    )


def _length(in_flight: float, share: float, least: int) -> tuple[int, float, float]:
    """Return requests of a run, and the shares left out first and last."""
    measured = least * min(max(0.05 / (1.0 - share), 1.0), 3.0)
    warm, cool = WARM_UP * in_flight, COOL_DOWN * in_flight
    total = min(measured + warm + cool, MOST_REQUESTS)
    return ceil(total), min(warm / total, 0.5), min(cool / total, 0.2)


def of_kind(
    runs: Sequence[Run], whose: Sequence[Indices], want: Wanted, strata: Strata | None = None
) -> Seen:
    """Return a percentile of one kind of request; ITL is the same for all."""
    if want.kind != EVERY and want.metric != "itl":
        runs = [
            replace(run, measured=run.measured & (kind == want.kind))
            for run, kind in zip(runs, whose, strict=True)
        ]
    return percentile(runs, want.metric, want.share, strata)


def percentile(
    runs: Sequence[Run], metric: Metric, share: float, strata: Strata | None = None
) -> Seen:
    """Return a percentile over runs and the upper end of its interval.

    The interval is that of the share of requests above a threshold: the mean over stretches plus
    Student's t times its standard error must stay within 1 - share.

    Args:
        runs: The runs.
        metric, share: What is asked for.
        strata: Those of the length that decides most of it; None = each request counts alike.
    """
    parts = [part for run in runs for part in _stretches(run, metric, strata)]
    if not parts:
        return Seen(0.0, 0.0)
    values = np.concatenate([value for value, _ in parts])
    weights = np.concatenate([weight for _, weight in parts])
    order = np.argsort(values, kind="stable")
    ranks = np.cumsum(weights[order]) / weights.sum()
    levels = np.linspace(share, 1.0, LEVELS)
    places = np.minimum(np.searchsorted(ranks, levels - 1e-12), len(values) - 1)
    thresholds = values[order][places]
    above = np.stack([_above(value, weight, thresholds) for value, weight in parts])
    error = above.std(axis=0, ddof=1) / sqrt(len(parts)) if len(parts) > 1 else 0.0
    sure = above.mean(axis=0) + STUDENT * error <= 1.0 - share + 1e-12
    return Seen(float(thresholds[0]), float(thresholds[int(sure.argmax())]))


def _stretches(run: Run, metric: Metric, strata: Strata | None) -> list[tuple[Floats, Floats]]:
    """Return values and their weights, in stretches of a run."""
    if metric == "itl":
        times = run.arrival[run.measured]
        inside = (run.gap_end >= times[0]) & (run.gap_end <= times[-1])
        order = np.argsort(run.gap_end[inside], kind="stable")
        values, weights = run.gap[inside][order], run.gaps[inside][order]
    else:
        values = getattr(run, metric)[run.measured]
        values = values[~np.isnan(values)]
        weights = np.ones(len(values))
    cuts = [len(values) * number // BATCHES for number in range(1, BATCHES)]
    if strata is not None:
        lengths = np.split(getattr(run, DECIDING[metric])[run.measured], cuts)
        weights = np.concatenate([strata.weights(part) for part in lengths])
    pairs = zip(np.split(values, cuts), np.split(weights, cuts), strict=True)
    return [(value, weight) for value, weight in pairs if weight.sum() > 0]


def _above(values: Floats, weights: Floats, thresholds: Floats) -> Floats:
    """Return the share of the weight above each threshold."""
    order = np.argsort(values, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weights[order])])
    within = total[np.searchsorted(values[order], thresholds, side="right")]
    shares: Floats = 1.0 - within / total[-1]
    return shares


def in_seconds(limit_ms: float, margin: float) -> float:
    """Return a limit of slo.yaml [ms] as a limit on the simulated value [s]."""
    return limit_ms * MILLI / margin
