"""Step-level simulation of a CSV of points, beside the formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.candidates.efficiency import global_parameters
from planner.candidates.points import (
    BEYOND_CONTEXT,
    INVALID,
    PointResolver,
    Rejected,
    Resolved,
    beyond_context,
    to_batch,
)
from planner.catalog import Catalog, load_catalog
from planner.commands.points_file import PointRow, in_one_line, invalid_rows, read_points
from planner.commands.score import DIGITS, ScoreTable, unread
from planner.counting import request_rate
from planner.errors import InputError
from planner.model.memory import reserved_tokens, sequences_that_fit
from planner.model.workload import Workload, workload
from planner.select.verification import cut
from planner.simulate import Arrivals, Run, deployment, random_arrivals
from planner.simulate import simulate as run_fleet
from planner.simulate.comparison import METRICS, SHARES, Case, compare
from planner.spec.lengths import MAX_TOKENS, QuantileLengths
from planner.spec.point import ArrivingPoint, Point
from planner.units import MILLI

Quantile = Callable[[float], float]
REQUESTS = 4000
WARM_UP = 0.15
FIGURES = tuple(f"{metric}_p{round(share * 100)}_ms" for metric in METRICS for share in SHARES)
FACTS = ("output_tokens_per_s", "busy_share", "batch", "queue_max", "preemptions", "rejected")
COLUMNS = (
    "status",
    "reason",
    *FIGURES,
    *(f"formula_{name}" for name in FIGURES),
    *FACTS,
    "overloaded",
    "requests",
)


def simulate_points(
    file: Path,
    *,
    requests: int | None = None,
    seeds: int = 2,
    catalog: Path | Catalog | None = None,
) -> ScoreTable:
    """Simulate deployments under open-loop load.

    Args:
        file: CSV or YAML of points as for ``plan score``, each with rate_per_s; further columns
            are those of ``ArrivingPoint``.
        requests: Requests of a run where a row does not say; None = 4000.
        seeds: Runs of each row.
        catalog: Catalog folder; None = the shipped one.

    Returns:
        One row a point: its own columns, status, reason, simulated percentiles, those of the
        formula, and what the fleet did (``busy_share``: share of the time that servers are at
        work). A row that cannot be simulated says why.

    Raises:
        InputError: The file or the catalog cannot be read.
    """
    known = catalog if isinstance(catalog, Catalog) else load_catalog(catalog)
    entries = read_points(file)
    resolver = PointResolver(known)
    results = [_row(known, resolver, row, (requests or REQUESTS, seeds)) for row in entries]
    given = tuple(dict.fromkeys(name for row in entries for name in row.values))
    own = tuple(name for name in given if name not in COLUMNS)
    rows = tuple(
        (*(row.values.get(name, "") for name in own), *(result.get(name, "") for name in COLUMNS))
        for row, result in zip(entries, results, strict=True)
    )
    said = [(result["status"], result.get("reason", "")) for result in results]
    remarks = (*invalid_rows(entries, said), *unread(own, ArrivingPoint))
    return ScoreTable((*own, *COLUMNS), rows, remarks)


def _row(
    catalog: Catalog, resolver: PointResolver, row: PointRow, size: tuple[int, int]
) -> dict[str, str]:
    if not row.values.get("rate_per_s", "").strip():
        return {"status": INVALID, "reason": "rate_per_s: missing; a simulation needs arrivals"}
    try:
        point = row.read_as(ArrivingPoint)
    except InputError as error:
        return {"status": INVALID, "reason": in_one_line(error)}
    resolved = resolver.resolve(point)
    if isinstance(resolved, Rejected):
        return {"status": resolved.status, "reason": resolved.reason}
    if resolved.memory_only:
        return {"status": "unsupported", "reason": "no accelerator named"}
    return _simulated(catalog, resolved, point, size)


@dataclass(frozen=True)
class _Uniform:
    """Lengths uniform in [2f - 1, 1] x nominal."""

    nominal: float
    factor: float

    def quantile(self, share: float) -> float:
        low = 2.0 * self.factor - 1.0
        return self.nominal * (low + (1.0 - low) * share)


def _lengths(nominal: float, p95: float | None, point: Point) -> QuantileLengths | _Uniform:
    if p95 is None:
        return _Uniform(nominal, point.length_factor)
    return QuantileLengths(p50=nominal, p95=p95)


@dataclass(frozen=True)
class _Load:
    """The requests of a row.

    Attributes:
        point: What the row says.
        longest: Longest request that is served, prompt and output [tokens].
    """

    point: ArrivingPoint
    longest: int

    @property
    def lengths(self) -> tuple[Quantile, Quantile]:
        """Quantile functions of prompt and output, before the cut [tokens]."""
        p = self.point
        prompt = _lengths(p.prompt_tokens, p.prompt_tokens_p95, p)
        return prompt.quantile, _lengths(p.output_tokens, p.output_tokens_p95, p).quantile

    def workload(self) -> Workload:
        """Return them as the formula sees them."""
        p = self.point
        return workload(
            *self.lengths,
            longest=self.longest,
            burstiness=p.burstiness,
            prefix_hit=p.prefix_hit_rate,
        )

    def draw(self, count: int, seed: int) -> Arrivals:
        """Return some of them, before the cut."""
        p = self.point
        rate = p.rate_per_s or math.nan
        return random_arrivals(rate, count, *self.lengths, burstiness=p.burstiness, seed=seed)

    def told(self, drawn: Sequence[Arrivals]) -> str:
        """Return how many drawn requests are cut; empty = none."""
        long = sum(int((one.prompt + one.output > self.longest).sum()) for one in drawn)
        count = sum(map(len, drawn))
        what = f"{long:,} of {count:,} requests are longer than {self.longest:,} tokens"
        return f"{what} and are cut to that" if long else ""


def _load(resolved: Resolved, point: ArrivingPoint) -> _Load:
    context = resolved.architecture.max_context_tokens
    served = MAX_TOKENS if beyond_context(resolved) else context
    return _Load(point, point.max_model_len or served)


def _simulated(
    catalog: Catalog, resolved: Resolved, point: ArrivingPoint, size: tuple[int, int]
) -> dict[str, str]:
    batch, load = to_batch(catalog, [resolved], [0]), _load(resolved, point)
    longest = reserved_tokens(batch.candidates, batch.load.prompt, batch.load.output)
    if sequences_that_fit(batch.candidates, longest)[0] < 1.0:
        return {"status": "does_not_fit", "reason": "one request does not fit in memory"}
    case = Case(
        candidate=batch.candidates,
        parameters=global_parameters(catalog.efficiency),
        workload=load.workload(),
        rate=point.rate_per_s or math.nan,
        routing=point.routing,
    )
    count = point.num_requests or size[0]
    # A run of a stated length is taken whole, as a benchmark's is.
    warm_up = 0.0 if point.num_requests else WARM_UP
    fleet = deployment(case.candidate, case.parameters, case.workload, routing=point.routing)
    drawn = [load.draw(count, seed) for seed in range(size[1])]
    runs = [
        run_fleet(fleet, cut(one, load.longest), seed=seed, warm_up=warm_up)
        for seed, one in enumerate(drawn)
    ]
    figures = _figures(case, runs) | _facts(runs)
    status, reason = _verdict(runs, point, beyond_context(resolved), load.told(drawn))
    return {
        "status": status,
        "reason": reason,
        **{name: _text(value) for name, value in figures.items()},
        "overloaded": "1" if any(run.overloaded for run in runs) else "0",
        "requests": str(count),
    }


def _verdict(runs: Sequence[Run], point: ArrivingPoint, beyond: str, told: str) -> tuple[str, str]:
    """Return status and reason of a row, in the words of ``plan score``.

    Args:
        runs: What was simulated.
        point: The row.
        beyond: Why its requests are beyond the context of the model; empty = they are not.
        told: What else is to be said of its requests.
    """
    if any(run.overloaded for run in runs):
        rate = request_rate(f"{point.rate_per_s:g}")
        return "overloaded", f"the queue grows without end at {rate}; times grow with the run"
    return (BEYOND_CONTEXT, beyond) if beyond else ("ok", told)


def _figures(case: Case, runs: Sequence[Run]) -> dict[str, float]:
    """Return latencies, simulated and by the formula [ms]; nan = no request has one."""
    lines = compare(case, runs)
    return {line.key: line.simulated / MILLI for line in lines} | {
        f"formula_{line.key}": math.nan if math.isnan(line.simulated) else line.formula / MILLI
        for line in lines
    }


def _facts(runs: Sequence[Run]) -> dict[str, float]:
    return {
        "output_tokens_per_s": float(np.mean([run.output_rate() for run in runs])),
        "busy_share": float(np.mean([run.utilization for run in runs])),
        "batch": float(np.mean([run.batch for run in runs])),
        "queue_max": max(float(run.timeline().queue.largest.max()) for run in runs),
        "preemptions": float(sum(run.preemptions for run in runs)),
        "rejected": float(sum(run.rejected for run in runs)),
    }


def _text(value: float) -> str:
    return f"{value:.{DIGITS}g}" if math.isfinite(value) else ""
