"""Step-level simulation of one option of a stored plan, beside the formula."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from planner.candidates.demand import Target, of_model, sized_rate, slo_workload, targets
from planner.candidates.models import architecture_of
from planner.candidates.trace_load import cut, trace_windows, whole_workload
from planner.catalog import Catalog, load_catalog
from planner.commands.explain import find_option
from planner.commands.stored import catalog_notes, check_catalog
from planner.errors import InputError
from planner.importers.traces import Trace, read_trace
from planner.select.deploy import Scene, repeat
from planner.select.formula_misses import MISS
from planner.select.verification import Drawn, Requests
from planner.simulate import Run, Timeline, deployment
from planner.simulate import simulate as run_fleet
from planner.simulate.arrivals import Arrivals
from planner.simulate.comparison import Case, Line, compare
from planner.spec.architecture import Architecture
from planner.spec.option import Option
from planner.spec.record import PlanRecord
from planner.spec.record_file import asked_slo, read_record
from planner.spec.slo import Slo
from planner.units import MILLI

LEAST_REQUESTS = 4000
REQUESTS_PER_REPLICA = 400
RESIDENCES = 10.0
"""Mean residence times of a request that a run lasts at least."""
MOST_REQUESTS = 200_000
WARM_UP = 0.15
SAMPLES = 24
"""Instants at which queue and batch are shown."""


@dataclass(frozen=True)
class Limit:
    """A latency target and the simulated percentile [ms], without margin for the model's error."""

    key: str
    limit_ms: float
    simulated_ms: float

    @property
    def holds(self) -> bool:
        """Whether the percentile is within the target."""
        return self.simulated_ms <= self.limit_ms


@dataclass(frozen=True)
class Simulation:
    """What simulations say of an option.

    Attributes:
        option: The option.
        source: ``Poisson``, ``gamma`` or the name of a trace.
        rate_per_s: Requests per second over all replicas.
        seeds, requests: Runs, and requests of each.
        lines: Percentiles by formula and simulation [s].
        limits: Targets of slo.yaml.
        attainment: Share of the requests that meet every target's limit.
        goodput_per_s: Requests per second that do.
        output_tokens_per_s: Output of the whole fleet.
        utilization: Share of the time that a server is busy.
        batch: Mean sequences decoding per server.
        preemptions, rejected: Times that a request lost its KV; requests too long for it.
        overloaded: The queue kept growing in some run.
        timeline: State over time in the first run, all servers together.
        notes: What a reader must know, in sentences.
    """

    option: Option
    source: str
    rate_per_s: float
    seeds: int
    requests: int
    lines: tuple[Line, ...]
    limits: tuple[Limit, ...]
    attainment: float
    goodput_per_s: float
    output_tokens_per_s: float
    utilization: float
    batch: float
    preemptions: int
    rejected: int
    overloaded: bool
    timeline: Timeline
    notes: tuple[str, ...]


def simulate(
    plan: PlanRecord | Path,
    *,
    option: str = "cheapest",
    trace: Path | None = None,
    requests: int | None = None,
    seeds: int = 2,
    catalog: Path | Catalog | None = None,
) -> Simulation:
    """Simulate an option of a plan step by step.

    Args:
        plan: The plan, or its ``plan.json``.
        option: Option id, or the name of a pick.
        trace: Requests to replay instead of those that slo.yaml describes.
        requests: Requests of a run; None = enough for a steady state, or the whole trace.
        seeds: Runs; a trace is replayed once unless the routing is random.
        catalog: Catalog that the plan was made with; None = the shipped one.

    Raises:
        InputError: A file cannot be read, or the plan has no such option, or it is offline work.
    """
    record, source = (plan, "plan") if isinstance(plan, PlanRecord) else (read_record(plan), plan)
    folder = Path() if isinstance(plan, PlanRecord) else plan.parent
    chosen = find_option(record, option, str(source))
    slo = asked_slo(record)
    if slo.traffic.offline is not None:
        raise InputError(str(source), ["is offline work; there are no arrivals to simulate"])
    known = catalog if isinstance(catalog, Catalog) else load_catalog(catalog)
    check_catalog(known, record, str(source))
    known = replace(known, calibration=record.inputs.calibration)
    near = folder / slo.model
    architecture = architecture_of(str(near) if near.exists() else slo.model)
    slo = of_model(slo, architecture.max_context_tokens)
    work = _Work(record, chosen, slo, known, architecture)
    if trace is not None:
        return _replayed(work, cut(read_trace(trace), slo.traffic.longest), requests, seeds)
    return _drawn(work, requests, seeds)


@dataclass(frozen=True)
class _Work:
    record: PlanRecord
    option: Option
    slo: Slo
    catalog: Catalog
    architecture: Architecture

    def case(self) -> Case:
        """Return the option as a candidate under the load of slo.yaml."""
        scene = Scene(self.catalog, self.architecture, self.record.archive)
        names = [archive.hardware.id for archive in self.record.archive]
        place = np.array([names.index(self.option.hardware)], dtype=np.intp)
        row = np.array([self.option.archive_row], dtype=np.intp)
        replicas = np.array([float(self.option.replicas)])
        return Case(
            candidate=repeat(scene.candidates(place, row), replicas),
            parameters=scene.parameters,
            workload=slo_workload(self.slo),
            rate=sized_rate(self.slo),
            routing=self.slo.routing,
        )


def _drawn(work: _Work, requests: int | None, seeds: int) -> Simulation:
    case = work.case()
    fleet = deployment(case.candidate, case.parameters, case.workload, routing=work.slo.routing)
    residence = work.option.e2e.p50_ms * MILLI if work.option.e2e else 0.0
    enough = max(
        LEAST_REQUESTS,
        REQUESTS_PER_REPLICA * fleet.replicas,
        int(RESIDENCES * residence * case.rate),
    )
    count = requests or min(enough, MOST_REQUESTS)
    source = Requests(work.slo)
    drawn = [source.draw(seed, count, case.rate) for seed in range(seeds)]
    runs = [
        run_fleet(fleet, one.arrivals, seed=seed, warm_up=WARM_UP) for seed, one in enumerate(drawn)
    ]
    name = "Poisson" if work.slo.traffic.burstiness == 1.0 else "gamma"
    return _simulation(work, case, name, drawn, runs)


def _replayed(work: _Work, trace: Trace, requests: int | None, seeds: int) -> Simulation:
    hit = work.slo.traffic.prefix_hit_rate
    case = replace(
        work.case(),
        workload=whole_workload(trace, prefix_hit=hit),
        rate=trace.rate_per_s,
        windows=trace_windows(trace, prefix_hit=hit),
    )
    fleet = deployment(case.candidate, case.parameters, case.workload, routing=work.slo.routing)
    part = slice(0, requests)
    arrivals = Arrivals(trace.arrival_s[part], trace.prompt_tokens[part], trace.output_tokens[part])
    drawn = Drawn(arrivals, np.zeros(len(arrivals), dtype=np.intp))
    times = seeds if work.slo.routing == "random" else 1
    runs = [
        run_fleet(fleet, arrivals, seed=seed, warm_up=0.0, cool_down=0.0) for seed in range(times)
    ]
    found = _simulation(work, case, Path(trace.source).name, [drawn] * times, runs)
    return replace(found, notes=(*found.notes, *trace.notes))


def _simulation(
    work: _Work, case: Case, source: str, drawn: Sequence[Drawn], runs: Sequence[Run]
) -> Simulation:
    lines = compare(case, runs)
    bounds = {t.metric: t.limit * MILLI for t in sorted(targets(work.slo), key=_rank)}
    bounds.pop("itl", None)
    return Simulation(
        option=work.option,
        source=source,
        rate_per_s=case.rate,
        seeds=len(runs),
        requests=len(drawn[0].kind),
        lines=lines,
        limits=_limits(work.slo, drawn, runs),
        attainment=float(np.mean([run.attainment(bounds) for run in runs])),
        goodput_per_s=float(np.mean([run.goodput(bounds) for run in runs])),
        output_tokens_per_s=float(np.mean([run.output_rate() for run in runs])),
        utilization=float(np.mean([run.utilization for run in runs])),
        batch=float(np.mean([run.batch for run in runs])),
        preemptions=sum(run.preemptions for run in runs),
        rejected=sum(run.rejected for run in runs),
        overloaded=any(run.overloaded for run in runs),
        timeline=runs[0].timeline(SAMPLES),
        notes=(*catalog_notes(work.record, work.catalog), *_warnings(lines, runs)),
    )


def _rank(target: Target) -> tuple[int, float]:
    """Order targets so that the one that a single request is judged by comes last."""
    return (target.percentile, -target.limit)


def _limits(slo: Slo, drawn: Sequence[Drawn], runs: Sequence[Run]) -> tuple[Limit, ...]:
    found = []
    for target in targets(slo):
        values = []
        for one, run in zip(drawn, runs, strict=True):
            mine = run
            if target.kind >= 0 and target.metric != "itl":
                mine = replace(run, measured=run.measured & (one.kind == target.kind))
            values.append(mine.percentiles(target.metric, [target.percentile / 100])[0])  # type: ignore[arg-type]
        found.append(Limit(target.key, target.limit, float(np.median(values)) / MILLI))
    return tuple(found)


def _warnings(lines: Sequence[Line], runs: Sequence[Run]) -> Iterator[str]:
    if any(run.overloaded for run in runs):
        yield "Overloaded: the queue keeps growing, so percentiles depend on the length of the run."
    if sum(run.rejected for run in runs):
        yield "Some requests are longer than the KV memory of a server; they count as never served."
    for line in lines:
        if line.share != 0.95 or line.metric == "itl" or not np.isfinite(line.simulated):
            continue
        factor = max(line.formula / line.simulated, line.simulated / line.formula)
        if factor >= MISS:
            over = "" if np.isnan(line.windows) else f" (over windows {line.windows / MILLI:,.4g})"
            yield (
                f"The formula at a steady rate misses {line.key} by a factor of {factor:.1f}:"
                f" {line.formula / MILLI:,.4g}{over} against {line.simulated / MILLI:,.4g}."
            )
