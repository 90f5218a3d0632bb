"""A search's archive -> the columns of the record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.candidates.demand import Target
from planner.candidates.hardware import HardwareClass
from planner.candidates.margins import margin
from planner.model.arrays import Floats, Indices
from planner.model.batching import offline_batch
from planner.model.queueing import OpenLoop, percentile, steady_state
from planner.pareto import rounded
from planner.search.archive import Entries
from planner.search.blocks import by_block
from planner.search.inner import Rows as Deployments
from planner.search.inner import bought, job_load, row_candidates
from planner.search.problem import Problem
from planner.search.search import Found
from planner.search.setup import Setting
from planner.search.shapes import ShapeTable
from planner.spec.archive import ClassArchive, Hardware, Rows
from planner.spec.money import Draw
from planner.units import MILLI, SECONDS_PER_HOUR

STANDARD = tuple(
    Target(f"{metric}_p{share}_ms", metric, share, np.inf)
    for metric in ("ttft", "tpot", "e2e")
    for share in (50, 95)
)
"""Percentiles that every record holds."""
SERVED = ("ttft_p95_ms", "tpot_p95_ms")
"""Those that the search has seen."""

Column = tuple[float | None, ...]


@dataclass(frozen=True)
class Performance:
    """What the model says of deployments, (n,); times in the units of the record."""

    latency: dict[str, Floats]
    capacity: Floats
    utilization: Floats
    wait: Floats
    slots: Floats
    output: Floats
    run: Floats


def performance(
    problem: Problem,
    table: ShapeTable,
    rows: Deployments,
    served: Floats,
    targets: Iterable[Target] = (),
) -> Performance:
    """Return the whole performance of deployments.

    Args:
        problem: Model, load.
        table: Shapes that the rows point into.
        rows: Deployments.
        served: What the search has seen of them, as ``inner.service`` returns it.
        targets: Percentiles wanted beside the standard ones.
    """
    seen = {key: column / MILLI for key, column in zip(SERVED, served.T, strict=False)}
    seen = seen if problem.demand.job is None else {}
    every = {target.key: target for target in (*STANDARD, *targets)}
    wanted = tuple(target for target in every.values() if target.key not in seen)
    score = _online if problem.demand.job is None else _offline
    parts = by_block(lambda at: score(problem, table, rows.take(at), wanted), len(rows))
    names = ("capacity", "utilization", "wait", "slots", "output", "run")
    none = np.zeros(0)
    joined = {n: np.concatenate([none, *(getattr(part, n) for part in parts)]) for n in names}
    latency = {
        target.key: np.concatenate([none, *(part.latency[target.key] for part in parts)])
        for target in wanted
    }
    return Performance(latency | seen, **joined)


def _online(
    problem: Problem, table: ShapeTable, rows: Deployments, wanted: Sequence[Target]
) -> Performance:
    demand, w = problem.demand, problem.demand.workload
    c = row_candidates(problem, table, rows)
    rate = np.full(len(rows), demand.rate)
    state: OpenLoop = steady_state(c, problem.parameters, w, rate, routing=demand.routing)
    return Performance(
        latency={
            target.key: percentile(
                state,
                demand.seen_by(target.kind),
                target.metric,  # type: ignore[arg-type]
                target.percentile / 100,
            )
            / MILLI
            for target in wanted
        },
        capacity=state.capacity * w.output_mean,
        utilization=state.utilization,
        wait=state.wait_probability,
        slots=state.slots,
        output=state.output_rate,
        run=np.full(len(rows), np.nan),
    )


def _offline(
    problem: Problem, table: ShapeTable, rows: Deployments, wanted: Sequence[Target]
) -> Performance:
    c = row_candidates(problem, table, rows)
    batch = offline_batch(c, problem.parameters, job_load(problem, c))
    nothing = np.full(len(rows), np.nan)
    job = problem.demand.job
    assert job is not None
    return Performance(
        latency=dict.fromkeys((target.key for target in wanted), nothing),
        capacity=batch.output_rate,
        utilization=batch.run / job.deadline,
        wait=nothing,
        slots=np.minimum(batch.fits, c.layout.max_sequences),
        output=batch.output_rate,
        run=batch.run / SECONDS_PER_HOUR,
    )


def archives(
    made: Setting, problem: Problem, found: Found, confidence: float, targets: Sequence[Target]
) -> tuple[ClassArchive, ...]:
    """Return the record's archive, class by class.

    Args:
        made: Names behind the problem's indices.
        problem: The problem as searched.
        found: Result of the search.
        confidence: That of slo.yaml, for the margins.
        targets: Percentiles that slo.yaml sets limits on.
    """
    entries = found.entries
    first, back = _distinct(entries.rows)
    rows, served = entries.rows.take(first), entries.served[first]
    performed = performance(problem, found.table, rows, served, targets)
    classes = []
    for number, hardware in enumerate(problem.tables.hardware):
        mine = np.flatnonzero(entries.hardware == number)
        if not len(mine):
            continue
        columns = _columns(made, problem, found, entries.take(mine), (performed, back[mine]))
        generations = sorted(set(columns.generation))
        efficiency, chip = problem.tables.efficiency, hardware.accelerator
        classes.append(
            ClassArchive(
                hardware=_hardware(hardware, made.draws[number]),
                margins=tuple(margin(efficiency, g, chip, confidence) for g in generations),
                rows=columns,
            )
        )
    return tuple(classes)


def _distinct(rows: Deployments) -> tuple[Indices, Indices]:
    """Return the first of each deployment, and for each row which of those it is."""
    keys = np.stack([rows.shape, rows.limit, rows.budget, rows.replicas])
    _, first, back = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return first.astype(np.intp), back.ravel()


def _hardware(hardware: HardwareClass, draw: Draw | None) -> Hardware:
    chip = hardware.accelerator
    guessed = {key for source in chip.sources if source.assumed for key in source.keys}
    return Hardware(
        id=hardware.id,
        accelerator=chip.id,
        name=chip.name,
        gpus_per_instance=hardware.gpus,
        link=hardware.link_kind,
        link_domain=max(hardware.link_domain, 1),
        link_gb_per_s=hardware.link_gb_per_s,
        internode_gb_per_s=hardware.internode_gb_per_s,
        memory_gib=chip.memory_gib,
        assumed=tuple(sorted(guessed)),
        draw=draw,
    )


def _columns(
    made: Setting,
    problem: Problem,
    found: Found,
    entries: Entries,
    performed: tuple[Performance, Indices],
) -> Rows:
    perf, at = performed
    rows, shapes, inner = entries.rows, found.table.shapes.take(entries.rows.shape), problem.inner
    layouts = [problem.layouts[i] for i in shapes.layout]
    drafts = [problem.drafts[i] for i in shapes.draft]
    methods = [problem.tables.methods[d.method] for d in drafts]
    losses = [problem.losses[w][k] for w, k in zip(shapes.weights, shapes.kv, strict=True)]
    instances = bought(problem, found.table, rows, entries.hardware)
    gpus = instances * np.array([h.gpus for h in problem.tables.hardware])[entries.hardware]
    latency = {key: _numbers(values[at]) for key, values in perf.latency.items()}
    standard = {target.key: latency.pop(target.key) for target in STANDARD}
    return Rows(
        engine=tuple(made.engines[i] for i in shapes.stack),
        generation=tuple(problem.tables.stacks[i].generation.id for i in shapes.stack),
        weights=tuple(problem.tables.weights[i].id for i in shapes.weights),
        kv=tuple(problem.tables.kv[i].id for i in shapes.kv),
        tp=tuple(x.tp for x in layouts),
        pp=tuple(x.pp for x in layouts),
        dp=tuple(x.dp for x in layouts),
        speculation=tuple("off" if m is None else m.id for m in methods),
        draft_tokens=tuple(d.tokens for d in drafts),
        accept_first=tuple(float(d.first) for d in drafts),
        accept_decay=tuple(float(d.decay) for d in drafts),
        max_num_seqs=_counts(inner.batch_limits[rows.limit]),
        token_budget=_counts(inner.token_budgets[rows.budget]),
        replicas=_counts(rows.replicas),
        instances=_counts(instances),
        gpus=_counts(gpus),
        **standard,
        further_ms=latency,
        output_tokens_per_s=_finite(perf.output[at]),
        capacity_tokens_per_s=_finite(perf.capacity[at]),
        utilization=_finite(perf.utilization[at]),
        wait_probability=_numbers(perf.wait[at]),
        slots=_finite(perf.slots[at]),
        run_hours=_numbers(perf.run[at]),
        loss_objective=_finite(np.array([loss.objective for loss in losses])),
        loss_p90=_finite(np.array([loss.p90 for loss in losses])),
        power_w=_numbers(gpus * _rated(found, rows)),
    )


def _rated(found: Found, rows: Deployments) -> Floats:
    """Rated power of a GPU of each deployment [W], (n,)."""
    return found.table.bases.chip.power[found.table.base_of[rows.shape]]


def _counts(values: Floats) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _finite(values: Floats) -> tuple[float, ...]:
    return tuple(rounded(values).tolist())


def _numbers(values: Floats) -> Column:
    short = rounded(values)
    return tuple(
        v if ok else None for v, ok in zip(short.tolist(), np.isfinite(short), strict=True)
    )
