"""Open-loop runs of real servers, simulated with their own number of requests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from planner.candidates.efficiency import global_parameters
from planner.candidates.points import PointResolver, Rejected, to_batch
from planner.catalog import Catalog
from planner.errors import Fault, InputError
from planner.files import read_csv
from planner.model.arrays import Candidates
from planner.model.memory import kv_bytes_per_token, kv_pool_bytes
from planner.model.queueing import percentile, steady_state
from planner.model.workload import workload
from planner.simulate import deployment, random_arrivals, simulate
from planner.spec.lengths import Lengths, MomentLengths, QuantileLengths
from planner.spec.point import Point, parse_point
from planner.units import MILLI

COMPARED = (("ttft", 0.5), ("ttft", 0.99), ("tpot", 0.5), ("tpot", 0.99))
LENGTH_CV = 0.8
"""Spread of ShareGPT's prompts and outputs, cut at 1024 tokens and 2048 together."""
SEEDS = 5
LONG_RUN = 2000
"""Requests simulated where a run does not say how many it had."""


@dataclass(frozen=True)
class Measured:
    """One run of a server under open-loop load.

    Attributes:
        id, source: Of the row.
        point: Deployment and rate; its lengths are the means.
        prompt, output: Distributions of the lengths.
        requests: Requests of the run.
        replayed_tokens: Tokens served between two requests with the same prompt: the server's
            prefix cache answers the second if its memory holds them; infinity = distinct prompts.
        latency: Measured percentiles by metric and share [s].
        outside: Why the run is not compared; empty = it is.
    """

    id: str
    source: str
    point: Point
    prompt: Lengths
    output: Lengths
    requests: int
    replayed_tokens: float
    latency: Mapping[tuple[str, float], float]
    outside: str


@dataclass(frozen=True)
class Compared:
    """A measured percentile beside the simulated one and the formula's [s]."""

    id: str
    metric: str
    share: float
    measured: float
    simulated: float
    formula: float


def read_open_loop(path: Path) -> tuple[Measured, ...]:
    """Read a CSV of runs: columns of ``plan score``, and those of ``Measured``.

    Raises:
        InputError: With every row that is no deployment, or that is compared but measures nothing.
    """
    runs: list[Measured] = []
    faults: list[Fault] = []
    for row in read_csv(path):
        place, cells = f"line {row.line}", row.values
        if cells["outside"]:
            continue
        try:
            run = _measured(cells, parse_point(cells))
        except InputError as error:
            faults += [Fault(place, fault.key, fault.message) for fault in error.faults]
            continue
        if not run.latency:
            faults.append(Fault(place, "ttft_p50_ms", "nothing measured; say why in `outside`"))
        runs.append(run)
    if faults:
        raise InputError(str(path), faults)
    return tuple(runs)


def left_out(path: Path) -> dict[str, str]:
    """Return the runs of a file that are not compared: id -> reason."""
    cells = (row.values for row in read_csv(path))
    return {row["id"]: row["outside"] for row in cells if row["outside"]}


def _measured(cells: Mapping[str, str], point: Point) -> Measured:
    latency = {}
    for metric, share in COMPARED:
        text = cells.get(f"{metric}_p{round(share * 100)}_ms", "")
        if text:
            latency[metric, share] = float(text) * MILLI
    return Measured(
        id=cells["id"],
        source=cells["source"],
        point=point,
        prompt=_lengths(point.prompt_tokens, cells["prompt_fixed"] == "1"),
        output=_lengths(point.output_tokens, cells["output_fixed"] == "1"),
        requests=int(point.num_requests or LONG_RUN),
        replayed_tokens=float(cells["replayed_tokens"] or math.inf),
        latency=latency,
        outside=cells["outside"],
    )


def _lengths(mean: float, fixed: bool) -> Lengths:
    if fixed:
        return QuantileLengths(p50=mean, p95=mean)
    return MomentLengths(mean=mean, cv=LENGTH_CV)


def cached_share(run: Measured, c: Candidates) -> float:
    """Return the share of a prompt that the prefix cache serves.

    The cache forgets the least recently used blocks. Prompts that come round in turn are all
    found if everything served in between fits, and none of them if it does not. Of a prompt that
    is found, the last block (half a block on average) is computed again.
    """
    if math.isinf(run.replayed_tokens):
        return 0.0
    holds = float(kv_pool_bytes(c)[0] / kv_bytes_per_token(c)[0])
    if holds < run.replayed_tokens:
        return 0.0
    again = 0.5 * (float(c.engine.block[0]) + 1.0)
    return max(1.0 - again / run.point.prompt_tokens, 0.0)


def compare(catalog: Catalog, runs: Iterable[Measured]) -> tuple[Compared, ...]:
    """Simulate every run with its own number of requests, from an empty server to the last token.

    Args:
        catalog: Hardware, engines, fitted values.
        runs: The runs.

    Returns:
        One entry a measured percentile: the median over seeds, since a p99 of 200 requests is
        the second or third largest.

    Raises:
        InputError: A run that the catalog cannot describe.
    """
    resolver = PointResolver(catalog)
    return tuple(entry for run in runs for entry in _compared(catalog, resolver, run))


def _compared(catalog: Catalog, resolver: PointResolver, run: Measured) -> list[Compared]:
    resolved = resolver.resolve(run.point)
    if isinstance(resolved, Rejected):
        raise InputError(run.id, [resolved.reason])
    c = to_batch(catalog, [resolved], [0]).candidates
    p, rate = global_parameters(catalog.efficiency), run.point.rate_per_s or math.nan
    w = workload(run.prompt.quantile, run.output.quantile, prefix_hit=cached_share(run, c))
    state, fleet = steady_state(c, p, w, np.array([rate])), deployment(c, p, w)
    done = []
    for seed in range(SEEDS):
        requests = random_arrivals(
            rate, run.requests, run.prompt.quantile, run.output.quantile, seed=seed
        )
        done.append(simulate(fleet, requests, seed=seed, warm_up=0.0, cool_down=0.0))
    return [
        Compared(
            id=run.id,
            metric=metric,
            share=share,
            measured=value,
            simulated=median(one.percentiles(metric, [share])[0] for one in done),  # type: ignore[arg-type]
            formula=float(percentile(state, w, metric, share)[0]),  # type: ignore[arg-type]
        )
        for (metric, share), value in run.latency.items()
    ]


def median_error(entries: Sequence[Compared], metric: str, share: float) -> float:
    """Return the median of |simulated / measured - 1| of one percentile."""
    chosen = [e for e in entries if (e.metric, e.share) == (metric, share)]
    return median(abs(e.simulated / e.measured - 1.0) for e in chosen)
