"""A row of the archive with its price -> an Option that a person can read and buy."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from planner.candidates.demand import decodes, job_load, sized_rate, slo_workload, targets
from planner.candidates.quality import QualityCase, quality_loss
from planner.cost import Quotes
from planner.cost_owned import carbon_g_per_mtok, owned_gpu, owned_parts, use_of
from planner.model.arrays import Candidates, Floats, Indices
from planner.model.batching import offline_batch
from planner.model.bounds import bound_tpot
from planner.model.memory import (
    kv_bytes,
    kv_bytes_per_token,
    kv_pool_bytes,
    reserve_bytes,
    reserved_tokens,
    weight_bytes,
)
from planner.model.queueing import steady_state
from planner.pareto import rounded_number
from planner.select.acceptance_range import Moves, Range, acceptance_range, moves
from planner.select.answers import Priced
from planner.select.autoscale import autoscaled
from planner.select.binding import StepShares, binding, step_shares
from planner.select.deploy import OFF, Scene
from planner.select.front import reasons
from planner.select.intervals import intervals
from planner.spec.archive import Hardware
from planner.spec.money import Autoscaled, Energy, Lease, Money, OwnedParts, Price
from planner.spec.offer import Offer
from planner.spec.option import Latency, MemoryUse, Option, QualityLoss, TargetResult
from planner.spec.slo import Slo
from planner.units import GIB, MILLI


@dataclass(frozen=True)
class Shop:
    """Prices and the rows of the record's offers that they stand for."""

    quotes: dict[str, Quotes]
    offers: tuple[Offer, ...]

    @cached_property
    def numbers(self) -> dict[tuple[str, ...], int]:
        """Row number of each offer, by its key."""
        return {offer.key: number for number, offer in enumerate(self.offers)}


@dataclass(frozen=True)
class _Figures:
    """What the model says of the rows beyond the archive, (n,)."""

    bound_ms: Floats
    weights: Floats
    pool: Floats
    reserve: Floats
    device: Floats
    per_token: Floats
    sequences: Floats
    shares: StepShares
    ranges: list[Range | None]
    moves: list[Moves]


def options(
    scene: Scene, shop: Shop, slo: Slo, case: QualityCase, chosen: tuple[Priced, Indices]
) -> tuple[Option, ...]:
    """Return options in the order of the rows.

    Args:
        scene: Catalog, model, archive.
        shop: Prices; those that ``chosen`` was billed with.
        slo: What was asked.
        case: What the quality loss depends on.
        chosen: Priced rows, and which of them.
    """
    answer, rows = chosen
    if not len(rows):
        return ()
    found = answer.answers
    c = scene.candidates(found.place[rows], found.row[rows])
    at = zip(found.place[rows].tolist(), found.row[rows].tolist(), strict=True)
    figures = _figures(scene, slo, c, [acceptance_range(scene, slo, *one) for one in at])
    scaled = autoscaled(scene, slo, shop.quotes, chosen)
    return tuple(
        _option(scene, shop, slo, case, _Row(answer, int(row), figures, i, scaled[i]))
        for i, row in enumerate(rows)
    )


@dataclass(frozen=True)
class _Row:
    """One row: its place in the priced answers and in the figures, and its price autoscaled."""

    answer: Priced
    row: int
    figures: _Figures
    at: int
    autoscaled: Autoscaled | None

    def column(self, name: str) -> float:
        return float(self.answer.answers.columns[name][self.row])

    def maybe(self, name: str) -> float | None:
        value = self.column(name)
        return number(value) if np.isfinite(value) else None


def number(value: float) -> float:
    """Return a number with the digits of the record."""
    return rounded_number(float(value))


def _figures(scene: Scene, slo: Slo, c: Candidates, ranges: list[Range | None]) -> _Figures:
    w = slo_workload(slo)
    one = np.ones(len(c))
    context = w.context * one
    if slo.traffic.offline is None:
        state = steady_state(c, scene.parameters, w, sized_rate(slo) * one, routing=slo.routing)
        batch = state.batch
    else:
        batch = offline_batch(c, scene.parameters, job_load(slo, len(c))).batch
    held = reserved_tokens(c, w.prompt_mean * one, w.output_mean * one)
    pool = kv_pool_bytes(c)
    return _Figures(
        bound_ms=bound_tpot(c, batch, context) / MILLI,
        weights=weight_bytes(c) / GIB,
        pool=pool / GIB,
        reserve=reserve_bytes(c) / GIB,
        device=c.chip.memory / GIB,
        per_token=kv_bytes_per_token(c),
        sequences=pool / np.maximum(kv_bytes(c, held), 1.0),
        shares=step_shares(c, scene.parameters, batch, context),
        ranges=ranges,
        moves=moves(scene, slo, c, ranges),
    )


SAME = (
    "engine", "generation", "weights", "kv", "tp", "pp", "dp", "replicas", "max_num_seqs",
    "token_budget", "speculation", "draft_tokens", "wait_probability",
)  # fmt: skip
"""Columns of the archive that an option has too."""
LENGTH = "run_hours"
"""Column of the answers that an option has too: on spot it is longer than in the archive."""
RATES = ("utilization", "slots", "output_tokens_per_s", "capacity_tokens_per_s")
"""Columns of the answers that an option has too: a simulation may have moved them."""
UNBOUND = Lease(hours=0.0, upfront_share=0.0, minimum_instances=1, quota_instances=None)
"""An instance that may be given back at once, as many as one likes."""


def _option(scene: Scene, shop: Shop, slo: Slo, case: QualityCase, r: _Row) -> Option:
    found = r.answer.answers
    place, row = int(found.place[r.row]), int(found.row[r.row])
    hardware, rows = scene.archives[place].hardware, scene.archives[place].rows
    money = _money(scene, shop, slo, hardware, r)
    bought = int(r.answer.bill.instances[r.row])
    off, limit = rows.speculation[row] == OFF, rows.max_num_seqs[row]
    ttft, tpot = _latency(r, "ttft"), _latency(r, "tpot") if decodes(slo) else None
    seen = scene.archives[place].simulated_seen(row)
    shared: dict[str, Any] = {name: getattr(rows, name)[row] for name in SAME}
    shared |= {name: r.column(name) for name in RATES} | {LENGTH: r.maybe(LENGTH)}
    return Option(
        id=identity(scene, place, row),
        hardware=hardware.id,
        accelerator=hardware.accelerator,
        accelerator_name=hardware.name,
        archive_row=row,
        provider=money.price.provider,
        region=money.price.region,
        instances=bought,
        gpus=bought * hardware.gpus_per_instance,
        gpus_per_replica=rows.tp[row] * rows.pp[row] * rows.dp[row],
        spare_replicas=slo.purchase.spare_replicas,
        acceptance=None if off else (rows.accept_first[row], rows.accept_decay[row]),
        acceptance_range=r.figures.ranges[r.at],
        **shared,
        ttft=ttft,
        tpot=tpot,
        e2e=_latency(r, "e2e"),
        bound_tpot_ms=number(r.figures.bound_ms[r.at]),
        targets=_targets(slo, r),
        rate_per_s=number(_rate(slo, rows.run_hours[row])),
        memory=_memory(r),
        money=money,
        quality=_quality(scene, case, rows.weights[row], rows.kv[row]),
        power_w=r.maybe("power_w"),
        energy=_energy(slo, r),
        evidence=found.evidence[r.row],
        intervals=intervals(
            scene.catalog,
            (rows.generation[row], hardware.accelerator),
            (_p95(seen, "ttft", ttft), _p95(seen, "tpot", tpot), r.maybe(LENGTH)),
            r.column("capacity_tokens_per_s"),
            money.usd_per_mtok_full,
            r.figures.moves[r.at],
        ),
        flags=reasons(r.answer, slo, r.row),
        binding=binding(r.answer, r.row, r.figures.shares, r.at, _limited(r, limit)),
    )


def _limited(r: _Row, limit: int) -> bool:
    """Whether memory, not the batch limit, bounds the sequences that are resident."""
    return r.column("slots") < limit * (1 - 1e-9)


def identity(scene: Scene, place: int, row: int) -> str:
    """Return the id of a deployment: what is run on what, without price."""
    rows = scene.archives[place].rows
    names = (
        "generation", "weights", "kv", "tp", "pp", "dp", "speculation", "draft_tokens",
        "max_num_seqs", "token_budget", "replicas", "instances",
    )  # fmt: skip
    parts = [scene.architecture.name, scene.archives[place].hardware.id]
    parts += [str(getattr(rows, name)[row]) for name in names]
    return f"o-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:8]}"


def _rate(slo: Slo, run_hours: float | None) -> float:
    offline = slo.traffic.offline
    if offline is None or run_hours is None:
        return sized_rate(slo)
    return offline.requests / (run_hours * 3600.0)


def _latency(r: _Row, metric: str) -> Latency | None:
    found = r.answer.answers
    keys = [f"{metric}_p{share}_ms" for share in (50, 95)]
    values = [float(found.latency[key][r.row]) for key in keys]
    upper = [float(found.upper[key][r.row]) for key in keys]
    if not np.isfinite([*values, *upper]).all():
        return None
    return Latency(
        p50_ms=number(values[0]),
        p95_ms=number(values[1]),
        p50_upper_ms=number(upper[0]),
        p95_upper_ms=number(upper[1]),
    )


def _p95(seen: Mapping[str, float | None], metric: str, formula: Latency | None) -> float | None:
    """Return the p95 of a metric as simulated, else by formula [ms]; None = it has none."""
    if formula is None:
        return None
    return seen.get(f"{metric}_p95_ms") or formula.p95_ms


def _targets(slo: Slo, r: _Row) -> tuple[TargetResult, ...]:
    found = r.answer.answers
    results = []
    for target in targets(slo):
        value = float(found.latency[target.key][r.row])
        upper = float(found.upper[target.key][r.row])
        results.append(_target(target.key, target.limit, value, upper))
    if slo.traffic.offline is not None:
        limit = slo.traffic.offline.deadline_hours
        hours, upper = r.column("run_hours"), r.column("run_upper_hours")
        results.append(_target("deadline_hours", limit, hours, upper))
    return tuple(results)


def _target(key: str, limit: float, value: float, upper: float) -> TargetResult:
    return TargetResult(
        key=key,
        limit=limit,
        predicted=number(value) if np.isfinite(value) else None,
        upper=number(upper) if np.isfinite(upper) else None,
        holds=upper <= limit,
    )


def _memory(r: _Row) -> MemoryUse:
    f, i = r.figures, r.at
    device, weights, pool, reserve = (
        number(column[i]) for column in (f.device, f.weights, f.pool, f.reserve)
    )
    return MemoryUse(
        device_gib=device,
        weights_gib=weights,
        kv_pool_gib=pool,
        reserve_gib=reserve,
        unused_gib=number(max(device - weights - pool - reserve, 0.0)),
        kv_bytes_per_token=number(f.per_token[i]),
        sequences=number(max(f.sequences[i], 0.0)),
    )


def _money(scene: Scene, shop: Shop, slo: Slo, hardware: Hardware, r: _Row) -> Money:
    bill, money = r.answer.bill, r.answer.money
    quotes = shop.quotes[hardware.id]
    index = int(bill.offer[r.row])
    offer, price = quotes.offers[index], quotes.prices[index]
    job = float(money["usd_per_job"][r.row])
    names = ("usd_per_hour", "usd_per_mtok_output", "usd_per_mtok_total", "usd_per_mtok_full")
    return Money(
        **{name: number(money[name][r.row]) for name in names},
        mean_utilization=number(money["mean_utilization"][r.row]),
        usd_per_job=number(job) if np.isfinite(job) else None,
        autoscaled=r.autoscaled,
        owned=_parts(scene, slo, offer, int(bill.instances[r.row]), price),
        price=_price(scene, shop, offer, price),
    )


def _price(scene: Scene, shop: Shop, offer: Offer, price: float) -> Price:
    return Price(
        offer=shop.numbers[offer.key],
        provider=offer.provider,
        instance_type=offer.instance_type,
        region=offer.region,
        term=offer.term,
        usd_per_instance_hour=number(price),
        row_usd_per_hour=number(scene.catalog.usd_per_hour(offer)),
        interruption_share=offer.lost_share(scene.catalog.terms.interruption_share),
        list_price_per_hour=offer.list_price_per_hour,
        contracted_price_per_hour=offer.contracted_price_per_hour,
        currency=offer.currency,
        exchange=scene.catalog.exchange.get(offer.currency),
        seen=offer.seen,
        seen_basis=offer.seen_basis,
        source=offer.source,
        flag=offer.flag,
        lease=_lease(offer),
    )


def _lease(offer: Offer) -> Lease | None:
    """Return what an offer binds the buyer to; None = to nothing."""
    lease = Lease(
        hours=offer.lease_hours,
        upfront_share=offer.upfront_share,
        minimum_instances=offer.minimum_instances,
        quota_instances=offer.quota_instances,
    )
    return None if lease == UNBOUND else lease


def _parts(scene: Scene, slo: Slo, offer: Offer, instances: int, price: float) -> OwnedParts | None:
    """Return what the price of owned hardware is made of."""
    owned = slo.purchase.owned
    if owned is None or offer.term != "owned":
        return None
    use = use_of(slo, scene.architecture)
    chip = scene.catalog.accelerators[offer.accelerator]
    cost = owned_gpu(scene.catalog, chip, owned, use)
    return owned_parts(cost, instances * offer.gpus, instances * price)


def _energy(slo: Slo, r: _Row) -> Energy | None:
    power = {name: float(values[r.row]) for name, values in r.answer.power.items()}
    if not all(np.isfinite(value) for value in power.values()):
        return None
    owned, carbon = slo.purchase.owned, slo.purchase.carbon_g_per_kwh
    per_mtok = power["kwh_per_mtok_output"]
    return Energy(
        **{name: number(value) for name, value in power.items()},
        pue=(owned.pue if owned else None) or 1.0,
        g_co2e_per_mtok_output=None
        if carbon is None
        else number(carbon_g_per_mtok(per_mtok, carbon)),
    )


def _quality(scene: Scene, case: QualityCase, weights: str, kv: str) -> QualityLoss:
    loss = quality_loss(scene.catalog.weight_format(weights), scene.catalog.kv_format(kv), case)
    return QualityLoss(
        median=number(loss.median),
        p90=number(loss.p90),
        grade=loss.grade,
        basis=loss.basis,
        rows=loss.rows,
    )
