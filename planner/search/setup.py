"""slo.yaml, catalog and space -> the problem that a search solves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from planner.candidates.acceptance import acceptance
from planner.candidates.choices import Tables
from planner.candidates.demand import (
    context_quantile,
    decodes,
    kinds,
    longer_share,
    of_model,
    sized_rate,
    slo_mixture,
    targets,
)
from planner.candidates.efficiency import Stack, global_parameters
from planner.candidates.figures import parameter_counts
from planner.candidates.hardware import HardwareClass, hardware_class
from planner.candidates.margins import margin
from planner.candidates.quality import Loss, QualityCase, quality_loss
from planner.candidates.support import Layout
from planner.catalog import Catalog
from planner.cost_owned import draw_of, use_of
from planner.errors import Fault, InputError
from planner.search.problem import Demand, Draft, Inner, Job, Problem, Reach
from planner.spec.architecture import Architecture
from planner.spec.money import Draw
from planner.spec.offer import Offer
from planner.spec.precision import KvFormat, WeightFormat
from planner.spec.slo import Slo
from planner.spec.space import ALL, SearchSpace
from planner.spec.speculation import SpeculationMethod
from planner.units import MILLI, SECONDS_PER_HOUR

OFF = "off"
FURTHER = (5.0, 8.0, 13.0, 20.0, 32.0, 50.0)
"""Factors on the fewest replicas that are tried where those of the space meet nothing."""


@dataclass(frozen=True)
class Setting:
    """A problem and the names that its indices stand for.

    Attributes:
        problem: What the search solves.
        engines: Engine id of each stack of the tables.
        offers: Offers of each hardware class of the tables.
        weights, kv: Format ids.
        notes: What had to be assumed, in sentences.
        draws: Power of each hardware class of the tables; None = unknown.
    """

    problem: Problem
    engines: tuple[str, ...]
    offers: tuple[tuple[Offer, ...], ...]
    notes: tuple[str, ...]
    draws: tuple[Draw | None, ...]


def setting(
    slo: Slo,
    catalog: Catalog,
    space: SearchSpace,
    architecture: Architecture,
    offers: Sequence[Offer],
) -> Setting:
    """Return the problem that slo.yaml poses.

    Args:
        slo: What is asked.
        catalog: Hardware, engines, formats, fitted values.
        space: Choices to explore.
        architecture: The model.
        offers: What may be bought.

    Raises:
        InputError: Names that the catalog does not know.
    """
    longest, notes = longest_request(slo, architecture)
    slo = of_model(slo, architecture.max_context_tokens)
    weights = _weights(catalog, space, architecture)
    kv = _formats(catalog.precisions.kv, [catalog.kv_format(n).id for n in _named(space.kv)])
    engines, stacks = _stacks(slo, catalog, space)
    classes = _classes(catalog, offers)
    methods, drafts, asked = _drafts(slo, catalog, space, architecture)
    tables = Tables(
        calibration=catalog.calibration,
        efficiency=catalog.efficiency,
        architectures=(architecture,),
        hardware=tuple(made for made, _ in classes),
        stacks=stacks,
        weights=weights,
        kv=kv,
        methods=methods,
    )
    problem = Problem(
        tables=tables,
        parameters=global_parameters(catalog.efficiency),
        losses=_losses(weights, kv, quality_case(slo, catalog, architecture)),
        layouts=tuple(
            Layout(tp, pp, dp)
            for tp, pp, dp in product(
                sorted(space.tensor_parallel),
                sorted(space.pipeline_parallel),
                sorted(space.data_parallel),
            )
        ),
        drafts=drafts,
        asked=asked,
        inner=_inner(space),
        conditions=space.conditions,
        demand=_demand(slo, longest, tables, _lost(slo, catalog, offers)),
        spare=slo.purchase.spare_replicas,
    )
    moe = use_of(slo, architecture).moe
    draws = tuple(draw_of(c.accelerator, catalog.terms.power, moe=moe) for c, _ in classes)
    return Setting(problem, engines, tuple(sold for _, sold in classes), notes, draws)


def quality_case(slo: Slo, catalog: Catalog, architecture: Architecture) -> QualityCase:
    """Return what the quality loss of formats depends on."""
    return QualityCase(
        total_parameters=parameter_counts(architecture).total,
        task=slo.task,
        context_tokens=_served_context(slo, architecture, 0.95),
        native_format=architecture.native_format,
        measured={_format_key(catalog, k): v for k, v in slo.quality.measured.items()},
        allow=tuple(_format_key(catalog, key) for key in slo.quality.allow),
    )


def reach_of(slo: Slo, slack: float) -> Reach:
    """Return how far candidates may lie from the targets to be worth knowing.

    Args:
        slo: Targets, quality, purchase limits.
        slack: Factor on the latency targets.
    """
    limits = {metric: _highest_p95(slo, metric) * MILLI * slack for metric in ("ttft", "tpot")}
    offline, loss = slo.traffic.offline, slo.quality.max_loss_percent
    return Reach(
        ttft=limits["ttft"],
        tpot=limits["tpot"],
        run=np.inf if offline is None else offline.deadline_hours * SECONDS_PER_HOUR,
        loss=np.inf if loss is None else loss,
        gpus=slo.purchase.max_gpus or np.inf,
    )


def _highest_p95(slo: Slo, metric: str) -> float:
    """Return the p95 of all requests that the targets allow at most [ms]; infinity = any."""
    limits: dict[int, float] = {}
    for target in targets(slo):
        # A target on a higher percentile bounds the p95 too; one on a lower does not.
        if target.metric == metric and target.percentile >= 95:
            limits[target.kind] = min(limits.get(target.kind, np.inf), target.limit)
    # If every kind keeps its limit, one in twenty of all exceed the largest of them.
    return max(limits.values()) if len(limits) == len(kinds(slo)) else np.inf


def with_reach(problem: Problem, reach: Reach) -> Problem:
    """Return the problem with another reach."""
    return replace(problem, reach=reach)


def everywhere(problem: Problem) -> Problem:
    """Return the problem with no reach, and with larger fleets than its space asks for."""
    spread = np.union1d(problem.inner.spread, FURTHER)
    return replace(problem, reach=Reach(), inner=replace(problem.inner, spread=spread))


def _served_context(slo: Slo, architecture: Architecture, share: float) -> float:
    """Return the quantile of prompt + output [tokens] after the cut."""
    cut = of_model(slo, architecture.max_context_tokens).traffic.longest
    return min(context_quantile(slo, share), cut or architecture.max_context_tokens)


def longest_request(slo: Slo, architecture: Architecture) -> tuple[float, tuple[str, ...]]:
    """Return the most tokens of a request, and what is to be said of longer ones."""
    asked, most = slo.traffic.max_context_tokens, architecture.max_context_tokens
    limit = most if asked is None else asked
    longest = context_quantile(slo, 0.99)
    if longest > limit:
        whose = "the model's" if asked is None else "traffic.max_context_tokens,"
        share = longer_share(slo, limit)
        note = (
            f"Requests longer than {whose} {limit} tokens are cut to that: {share:.0%} of all (the"
            f" p99 is {longest:.0f}). Latencies and costs are of what is left."
        )
        return float(limit), (note,)
    return longest if asked is None else float(asked), ()


def _named(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name.casefold() != ALL)


def _formats(known: Sequence[KvFormat], ids: Sequence[str]) -> tuple[KvFormat, ...]:
    return tuple(fmt for fmt in known if not ids or fmt.id in ids)


def _bits(fmt: WeightFormat) -> int:
    """Bits of a weight, without the share of its scales."""
    return int(8 * fmt.bytes_per_parameter)


def _weights(
    catalog: Catalog, space: SearchSpace, architecture: Architecture
) -> tuple[WeightFormat, ...]:
    """Return the released format and those of the space with fewer bits; never an upcast."""
    native = catalog.weight_format(architecture.native_format)
    ids = [catalog.weight_format(name).id for name in _named(space.weights)]
    return tuple(
        fmt
        for fmt in catalog.precisions.weights
        if fmt.id == native.id or (_bits(fmt) < _bits(native) and (not ids or fmt.id in ids))
    )


def _stacks(
    slo: Slo, catalog: Catalog, space: SearchSpace
) -> tuple[tuple[str, ...], tuple[Stack, ...]]:
    names = slo.engines or space.engines or tuple(e.id for e in catalog.engines.values())
    engines = [catalog.engine(name) for name in names]
    if slo.engines or space.engines:
        faults = [
            Fault("", "engines", f"{e.id} is scored but not searched; use plan score, or remove it")
            for e in engines
            if not e.searched
        ]
        if faults:
            raise InputError("slo.yaml", faults)
    found = [
        (engine.id, Stack(generation))
        for engine in sorted(engines, key=lambda e: e.id)
        for generation in engine.generations
        if engine.searched and generation.current
    ]
    return tuple(name for name, _ in found), tuple(stack for _, stack in found)


def _classes(
    catalog: Catalog, offers: Sequence[Offer]
) -> tuple[tuple[HardwareClass, tuple[Offer, ...]], ...]:
    found: dict[str, tuple[HardwareClass, list[Offer]]] = {}
    for offer in offers:
        chip = catalog.accelerators[offer.accelerator]
        made = hardware_class(chip, offer.gpus, offer.link, offer.internode_gb_per_s)
        found.setdefault(made.id, (made, []))[1].append(offer)
    return tuple((found[key][0], tuple(found[key][1])) for key in sorted(found))


def _format_key(catalog: Catalog, name: str) -> str:
    """Return the quality key of a format: ``fp8``, or ``kv-fp8`` for the cache."""
    if name.casefold().startswith("kv-"):
        return f"kv-{catalog.kv_format(name[3:]).id}"
    return catalog.weight_format(name).id


def _losses(
    weights: Sequence[WeightFormat], kv: Sequence[KvFormat], case: QualityCase
) -> tuple[tuple[Loss, ...], ...]:
    return tuple(tuple(quality_loss(w, k, case) for k in kv) for w in weights)


def _drafts(
    slo: Slo, catalog: Catalog, space: SearchSpace, architecture: Architecture
) -> tuple[tuple[SpeculationMethod | None, ...], tuple[Draft, ...], frozenset[str]]:
    """Return the methods, the choices among them, and the ids that slo.yaml names.

    Where no request has a second token there is nothing to draft: no method is tried beside off.
    """
    named = slo.speculation.methods
    chosen = [n for n in named or () if n.casefold() != OFF]
    own = {
        catalog.speculation_method(name).id: value
        for name, value in slo.speculation.acceptance.items()
    }
    asked = frozenset({catalog.speculation_method(name).id for name in chosen} | set(own))
    ranges = {
        catalog.speculation_method(x.method).id: x.draft_tokens
        for x in space.speculation
        if x.method.casefold() != OFF
    }
    usual = sorted({tokens for lengths in ranges.values() for tokens in lengths}) or [1, 3]
    methods: list[SpeculationMethod | None] = [None]
    drafts = [Draft()] if named is None or any(n.casefold() == OFF for n in named) else []
    idle = bool(drafts) and not decodes(slo)
    for method in catalog.speculation.methods:
        wanted = method.id in asked if named is not None else method.id in {*ranges, *asked}
        if idle or not wanted:
            continue
        methods.append(method)
        row = own.get(method.id) or acceptance(method, slo.task, architecture)
        first, decay = row.c1, row.d
        drafts += [
            Draft(len(methods) - 1, tokens, first, decay)
            for tokens in ranges.get(method.id, tuple(usual))
            if tokens <= method.max_draft_tokens
        ]
    return tuple(methods), tuple(drafts), asked


def _inner(space: SearchSpace) -> Inner:
    return Inner(
        batch_limits=np.array(sorted(space.max_num_seqs), dtype=float),
        token_budgets=np.array(sorted(space.token_budget), dtype=float),
        spread=np.array(sorted(space.replicas.spread), dtype=float),
        max_replicas=float(space.replicas.max),
    )


def _lost(slo: Slo, catalog: Catalog, offers: Sequence[Offer]) -> float:
    """Return the largest share of what is paid for that does no work.

    Where spot is allowed at least the catalog's, so that archives stand when offers come and go.
    """
    share = catalog.terms.interruption_share
    usual = share if "spot" in slo.purchase.terms else 0.0
    return max([usual, *(offer.lost_share(share) for offer in offers)])


def _job(slo: Slo, tables: Tables, lost: float) -> Job | None:
    """Return the offline work of slo.yaml; None = it asks for none."""
    offline, confidence = slo.traffic.offline, slo.targets.confidence
    if offline is None:
        return None
    margins = [
        [
            margin(tables.efficiency, stack.generation.id, h.accelerator, confidence).e2e
            for stack in tables.stacks
        ]
        for h in tables.hardware
    ]
    deadline = offline.deadline_hours * SECONDS_PER_HOUR
    return Job(offline.requests, deadline, np.array(margins), lost)


def _demand(slo: Slo, longest: float, tables: Tables, lost: float) -> Demand:
    mixed = slo_mixture(slo)
    return Demand(
        workload=mixed.whole,
        parts=mixed.parts,
        rate=sized_rate(slo),
        longest=longest,
        headroom=slo.headroom,
        routing=slo.routing,
        job=_job(slo, tables, lost),
    )
