"""Step-level simulation of one option of a stored plan, beside the formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, isinf, isnan
from pathlib import Path

import numpy as np

from planner.candidates.demand import (
    EVERY,
    Target,
    of_model,
    sized_rate,
    slo_workload,
    targets,
)
from planner.candidates.models import architecture_of
from planner.candidates.trace_load import cut, timed_trace, trace_windows, whole_workload
from planner.catalog import Catalog, load_catalog
from planner.commands.explain import find_option
from planner.commands.stored import catalog_notes, check_catalog
from planner.counting import counted
from planner.errors import InputError
from planner.importers.traces import Trace
from planner.model.arrays import Floats, Indices
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

FEWEST_BEYOND = 10
"""Requests that should lie beyond a percentile that is judged."""
COMPARED = 0.95
"""Percentile by which the formula is said to miss the simulation."""
MORE = "Ask for more (--requests)."
LONGER = "Replay more of the trace (--requests), or a longer one."
LEAST_REQUESTS = 4000
REQUESTS_PER_REPLICA = 400
RESIDENCES = 10.0
"""Mean residence times of a request that a run lasts at least."""
MOST_REQUESTS = 200_000
WARM_UP = 0.15
SAMPLES = 24
"""Intervals in which queue and batch are shown."""
CLASSES = (
    "A trace does not say which class a request is of: limits of a class are not judged, and those"
    " of all classes are judged over all requests."
)


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
        limits: Targets of slo.yaml, without those that no request has, as TPOT of one token.
        attainment: Share of the requests that meet every limit on requests of their class.
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
        return _replayed(work, cut(timed_trace(trace, requests), slo.traffic.longest), seeds)
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

    def judged_alike(self) -> _Work:
        """Return the same with requests that are of no class and of any length."""
        unknown = {"classes": None, "prompt_tokens": None, "output_tokens": None}
        traffic = self.slo.traffic.model_copy(update=unknown)
        return replace(self, slo=self.slo.model_copy(update={"traffic": traffic}))


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
    found = _simulation(work, case, name, drawn, runs)
    few = _few(work.slo, _measured(drawn, runs), MORE)
    found = replace(found, notes=(*few, *found.notes))
    recorded = work.record.inputs.trace
    if recorded is None:
        return found
    busiest = "the trace" if recorded.window_s is None else f"its busiest {recorded.window_s:g} s"
    told = (
        f"The plan is for the trace {recorded.file}; these are {name} arrivals at the rate of"
        f" {busiest}: replay it with --trace."
    )
    return replace(found, notes=(told, *found.notes))


def _replayed(work: _Work, trace: Trace, seeds: int) -> Simulation:
    hit = work.slo.traffic.prefix_hit_rate
    case = replace(
        work.case(),
        workload=whole_workload(trace, prefix_hit=hit),
        rate=trace.rate_per_s,
        windows=trace_windows(trace, prefix_hit=hit),
    )
    fleet = deployment(case.candidate, case.parameters, case.workload, routing=work.slo.routing)
    arrivals = Arrivals(trace.arrival_s, trace.prompt_tokens, trace.output_tokens)
    drawn = Drawn(arrivals, np.zeros(len(arrivals), dtype=np.intp))
    times = seeds if work.slo.routing == "random" else 1
    runs = [
        run_fleet(fleet, arrivals, seed=seed, warm_up=0.0, cool_down=0.0) for seed in range(times)
    ]
    name = Path(trace.source).name
    every = [drawn] * times
    found = _simulation(work.judged_alike(), case, name, every, runs)
    classes = (CLASSES,) if work.slo.traffic.classes else ()
    few = _few(work.slo, _measured(every, runs), LONGER)
    return replace(found, notes=(*few, *classes, *found.notes, *trace.notes))


def _simulation(
    work: _Work, case: Case, source: str, drawn: Sequence[Drawn], runs: Sequence[Run]
) -> Simulation:
    lines, limits = compare(case, runs), _limits(work.slo, drawn, runs)
    judged = [(run, _bounds(work.slo, one.kind)) for one, run in zip(drawn, runs, strict=True)]
    return Simulation(
        option=work.option,
        source=source,
        rate_per_s=case.rate,
        seeds=len(runs),
        requests=len(drawn[0].kind),
        lines=lines,
        limits=tuple(limit for limit in limits if not np.isnan(limit.simulated_ms)),
        attainment=float(np.mean([run.attainment(bounds) for run, bounds in judged])),
        goodput_per_s=float(np.mean([run.goodput(bounds) for run, bounds in judged])),
        output_tokens_per_s=float(np.mean([run.output_rate() for run in runs])),
        utilization=float(np.mean([run.utilization for run in runs])),
        batch=float(np.mean([run.batch for run in runs])),
        preemptions=sum(run.preemptions for run in runs),
        rejected=sum(run.rejected for run in runs),
        overloaded=any(run.overloaded for run in runs),
        timeline=runs[0].timeline(SAMPLES),
        notes=(
            *catalog_notes(work.record, work.catalog),
            *_unjudged(limits),
            *_warnings(lines, runs, _measured(drawn, runs)),
        ),
    )


def _bounds(slo: Slo, kind: Indices) -> Mapping[str, Floats]:
    """Return the longest times that each request may take by the targets of its class [s].

    Args:
        slo: Targets.
        kind: Number of each request's class.
    """
    wanted = [target for target in targets(slo) if target.metric != "itl"]
    bounds = {target.metric: np.full(len(kind), np.inf) for target in wanted}
    for target in sorted(wanted, key=_rank):
        mine = (kind == target.kind) | (target.kind == EVERY)
        bounds[target.metric][mine] = target.limit * MILLI
    return bounds


def _few(slo: Slo, measured: int, remedy: str) -> Iterator[str]:
    """Yield that a limited percentile rests on few requests, where it does."""
    highest = max((target.percentile for target in targets(slo)), default=0.0)
    if highest and measured * (1.0 - highest / 100) < FEWEST_BEYOND:
        yield (
            f"Of {counted(measured, 'measured request')} fewer than {FEWEST_BEYOND} lie"
            f" beyond a p{highest:g}: chance decides whether it holds. {remedy}"
        )


def _measured(drawn: Sequence[Drawn], runs: Sequence[Run]) -> int:
    """Return how many different requests are measured: those of a trace count once."""
    once = {id(one): run for one, run in zip(drawn, runs, strict=True)}
    return sum(int(run.measured.sum()) for run in once.values())


def _unjudged(limits: Sequence[Limit]) -> Iterator[str]:
    """Say which targets no simulated request has a value of."""
    for limit in limits:
        if np.isnan(limit.simulated_ms):
            yield f"{limit.key} is not judged: no simulated request has such a time."


def _rank(target: Target) -> tuple[int, float]:
    """Order targets so that the one that a single request is judged by comes last."""
    return (target.percentile, -target.limit)


def _limits(slo: Slo, drawn: Sequence[Drawn], runs: Sequence[Run]) -> tuple[Limit, ...]:
    found = []
    for target in targets(slo):
        values = []
        for one, run in zip(drawn, runs, strict=True):
            mine = run
            if target.kind != EVERY and target.metric != "itl":
                mine = replace(run, measured=run.measured & (one.kind == target.kind))
            values.append(mine.percentiles(target.metric, [target.percentile / 100])[0])  # type: ignore[arg-type]
        found.append(Limit(target.key, target.limit, float(np.median(values)) / MILLI))
    return tuple(found)


def _warnings(lines: Sequence[Line], runs: Sequence[Run], measured: int) -> Iterator[str]:
    if any(run.overloaded for run in runs):
        yield "Overloaded: the queue keeps growing, so percentiles depend on the length of the run."
    if sum(run.rejected for run in runs):
        yield "Some requests are longer than the KV memory of a server; they count as never served."
    if any(isinf(line.formula) for line in lines):
        yield "The formula calls this load, at a steady rate, more than the option can take."
    if measured * (1.0 - COMPARED) < FEWEST_BEYOND:
        return
    for line in lines:
        if line.share != COMPARED or line.metric == "itl" or not isfinite(line.simulated):
            continue
        factor = max(line.formula / line.simulated, line.simulated / line.formula)
        if factor >= MISS and isfinite(factor):
            over = "" if isnan(line.windows) else f" (over windows {_in_ms(line.windows)})"
            yield (
                f"The formula at a steady rate misses {line.key} by a factor of {factor:.1f}:"
                f" {_in_ms(line.formula)}{over} against {_in_ms(line.simulated)}."
            )


def _in_ms(seconds: float) -> str:
    return f"{seconds / MILLI:,.4g}" if isfinite(seconds) else "no bound"
