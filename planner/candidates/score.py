"""Scores of points: memory, closed loop, open loop and batches, by kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.candidates.efficiency import (
    HIGH,
    LOW,
    evidence,
    global_parameters,
    interval,
    layout_evidence,
    unmeasured,
)
from planner.candidates.points import (
    BEYOND_CONTEXT,
    Batch,
    PointResolver,
    Rejected,
    Resolved,
    beyond_context,
    to_batch,
)
from planner.catalog import Catalog
from planner.counting import request_rate
from planner.model.arrays import Floats, Parameters
from planner.model.batching import bulk_prefill, closed_loop, offline_batch
from planner.model.bounds import bound_prefill, bound_tpot
from planner.model.forward import decode_step
from planner.model.memory import (
    admitted_kv_bytes,
    kv_bytes_per_token,
    kv_pool_bytes,
    longest_that_fits,
    printed_tokens,
    reserved_tokens,
    weight_bytes,
)
from planner.model.queueing import Metric, percentile, steady_state
from planner.model.terms import terms
from planner.model.workload import Workload, workload
from planner.spec.efficiency import Evidence
from planner.spec.point import Point
from planner.units import GIB, MILLI

PERCENTILES = (0.5, 0.9, 0.95, 0.99)
MEAN_SHARES = tuple((number + 0.5) / 20 for number in range(20))
"""A mean is taken as that of the percentiles in the middle of 20 equal shares."""
OPEN_METRICS: tuple[Metric, ...] = ("ttft", "tpot", "e2e")
LATENCY_COLUMNS = ("ttft_ms", "tpot_ms", "e2e_s", "output_tokens_per_s")
PERCENTILE_COLUMNS = tuple(
    f"{metric}_p{round(share * 100)}_ms" for metric in OPEN_METRICS for share in PERCENTILES
)
MEMORY_COLUMNS = (
    "bound_tpot_ms",
    "weights_gib_per_gpu",
    "kv_bytes_per_token",
    "kv_cache_gib",
    "kv_cache_tokens",
    "max_concurrency",
)
INTERVALS: tuple[tuple[Literal["ttft", "tpot"], str], ...] = (
    ("ttft", "ttft_ms"),
    ("tpot", "tpot_ms"),
)
"""Metric -> column that gets the ends of an 80 % interval, `_low` and `_high`."""
INTERVAL_COLUMNS = tuple(f"{column}_{end}" for _, column in INTERVALS for end in ("low", "high"))
COLUMNS = (
    "status", "reason", *LATENCY_COLUMNS, *PERCENTILE_COLUMNS, *INTERVAL_COLUMNS, *MEMORY_COLUMNS,
    "evidence",
)  # fmt: skip

Scores = dict[str, Floats]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Scored:
    """Score of one point.

    A status (ok, beyond_context, memory_only, does_not_fit, overloaded, unsupported,
    unknown_model), the reason where it is not ok, and the figures by column name (NaN = not
    applicable).
    """

    status: str
    reason: str
    figures: Mapping[str, float]
    evidence: str


def score_points(catalog: Catalog, points: Sequence[Point]) -> list[Scored]:
    """Score deployments without a search.

    Args:
        catalog: Hardware, engines, fitted values.
        points: Deployments and loads.

    Returns:
        One score a point, in the same order; a point that cannot be scored never stops the rest.
    """
    resolver = PointResolver(catalog)
    found = [resolver.resolve(point) for point in points]
    results = [
        Scored(r.status, r.reason, {}, "") if isinstance(r, Rejected) else None for r in found
    ]
    rows = [row for row, r in enumerate(found) if isinstance(r, Resolved)]
    resolved = [r for r in found if isinstance(r, Resolved)]
    if resolved:
        batch = to_batch(catalog, resolved, rows)
        for row, scored in zip(rows, _score(catalog, batch), strict=True):
            results[row] = scored
    return [r for r in results if r is not None]


def _score(catalog: Catalog, batch: Batch) -> list[Scored]:
    parameters = global_parameters(catalog.efficiency)
    columns = _memory(batch)
    columns |= {name: np.full(len(batch.rows), np.nan) for name in LATENCY_COLUMNS}
    columns |= {name: np.full(len(batch.rows), np.nan) for name in PERCENTILE_COLUMNS}
    columns["bound_tpot_ms"] = np.full(len(batch.rows), np.nan)
    fits, room = _fits(batch), longest_that_fits(batch.candidates)
    modes = np.array([r.point.mode if not r.memory_only else "" for r in batch.resolved])
    for mode, scorer in SCORERS.items():
        chosen = np.flatnonzero((modes == mode) & fits)
        if chosen.size:
            part = Batch(
                batch.rows[chosen],
                tuple(batch.resolved[i] for i in chosen),
                batch.candidates.take(chosen),
                batch.load.take(chosen),
            )
            for name, values in _sensible(mode, part, scorer(part, parameters)).items():
                columns[name][chosen] = values
    columns["longest"] = room
    columns |= _intervals(catalog, batch, columns)
    return [_scored(catalog, batch, columns, fits, row) for row in range(len(batch.rows))]


def _sensible(mode: str, batch: Batch, scores: Scores) -> Scores:
    """Return the scores without TPOT where outputs have no second token."""
    if mode == "decode_only":
        return scores
    output = np.array([r.point.output_tokens for r in batch.resolved], dtype=float)
    single = np.round(output) <= 1.0
    return {
        name: np.where(single, np.nan, values) if "tpot" in name else values
        for name, values in scores.items()
    }


def _scored(catalog: Catalog, batch: Batch, columns: Scores, fits: Flags, row: int) -> Scored:
    resolved = batch.resolved[row]
    figures = {name: float(values[row]) for name, values in columns.items()}
    longest = figures.pop("longest")
    if not fits[row]:
        pool, weights = figures["kv_cache_gib"], figures["weights_gib_per_gpu"]
        reason = (
            f"weights {weights:.1f} GiB per GPU leave {pool:.1f} GiB for the KV cache; the longest "
            f"request that fits has {longest:.0f} tokens"
        )
        return Scored("does_not_fit", reason, figures, "")
    if resolved.memory_only:
        return Scored("memory_only", "no accelerator named", figures, "")
    known = _evidence(catalog, resolved)
    if resolved.point.mode == "open_loop" and not math.isfinite(figures["ttft_ms"]):
        rate = request_rate(f"{resolved.point.rate_per_s:g}")
        reason = f"the queue grows without end at {rate}"
        return Scored("overloaded", reason, figures, known)
    beyond = beyond_context(resolved)
    return Scored(BEYOND_CONTEXT if beyond else "ok", beyond, figures, known)


def _evidence(catalog: Catalog, r: Resolved) -> Evidence:
    stack = evidence(catalog.efficiency, r.stack.generation.id, r.hardware.accelerator)
    unseen = bool(unmeasured(r.point.tp, r.point.pp, r.point.dp, r.hardware.gpus))
    return layout_evidence(stack, unmeasured=unseen, speculates=r.method is not None)


def _intervals(catalog: Catalog, batch: Batch, columns: Scores) -> Scores:
    """Ends of the 80 % intervals of the latencies, (n,)."""
    stacks = [(r.stack.generation.id, r.hardware.accelerator) for r in batch.resolved]
    distinct = {(generation, chip.id): chip for generation, chip in stacks}
    ends: Scores = {}
    for metric, column in INTERVALS:
        for end, share in (("low", LOW), ("high", HIGH)):
            factor = {
                key: interval(catalog.efficiency, key[0], chip, metric, share)
                for key, chip in distinct.items()
            }
            factors = np.array([factor[generation, chip.id] for generation, chip in stacks])
            ends[f"{column}_{end}"] = columns[column] * factors
    return ends


def _fits(batch: Batch) -> Flags:
    """Whether the longest request fits in memory alone, (n,)."""
    need = admitted_kv_bytes(batch.candidates, _longest(batch))
    fits: Flags = kv_pool_bytes(batch.candidates) >= np.maximum(need, 1.0)
    return fits


def _longest(batch: Batch) -> Floats:
    """Tokens of the longest request: max_model_len, else the prompt and the answer held, (n,)."""
    limit = np.array([r.point.max_model_len or np.nan for r in batch.resolved], dtype=float)
    held = reserved_tokens(batch.candidates, batch.load.prompt, batch.load.output)
    return np.where(np.isnan(limit), held, limit)


def _memory(batch: Batch) -> Scores:
    c, load = batch.candidates, batch.load
    limit = np.array([r.point.max_model_len or np.nan for r in batch.resolved], dtype=float)
    longest = np.where(np.isnan(limit), load.prompt + load.output, limit)
    pool = kv_pool_bytes(c)
    sequences = np.maximum(pool, 0.0) / np.maximum(admitted_kv_bytes(c, longest), 1.0)
    return {
        "weights_gib_per_gpu": weight_bytes(c) / GIB,
        "kv_bytes_per_token": kv_bytes_per_token(c),
        "kv_cache_gib": pool / GIB,
        "kv_cache_tokens": printed_tokens(c, longest),
        "max_concurrency": np.minimum(sequences, c.layout.max_sequences)
        * c.layout.dp
        * c.layout.replicas,
    }


def _closed(batch: Batch, p: Parameters) -> Scores:
    out = closed_loop(batch.candidates, p, batch.load)
    return {
        "ttft_ms": out.ttft / MILLI,
        "tpot_ms": out.tpot / MILLI,
        "e2e_s": out.e2e,
        "output_tokens_per_s": out.output_rate,
        "bound_tpot_ms": _bound(batch, out.batch),
    }


def _bound(batch: Batch, sequences: Floats) -> Floats:
    context = batch.load.prompt + 0.5 * batch.load.output
    return bound_tpot(batch.candidates, sequences, context) / MILLI


def _offline(batch: Batch, p: Parameters) -> Scores:
    out = offline_batch(batch.candidates, p, batch.load)
    return {
        "ttft_ms": out.ttft / MILLI,
        "tpot_ms": out.tpot / MILLI,
        "e2e_s": out.run,
        "output_tokens_per_s": out.output_rate,
        "bound_tpot_ms": _bound(batch, out.batch),
    }


def _prefill_only(batch: Batch, p: Parameters) -> Scores:
    c, load = batch.candidates, batch.load
    prompts = load.concurrency / (c.layout.replicas * c.layout.dp)
    prompts = np.where(np.isfinite(prompts), prompts, 1.0)
    time = bulk_prefill(terms(c, p), p, load.prompt, prompts)
    return {"ttft_ms": np.maximum(time, bound_prefill(c, load.prompt)) / MILLI}


def _decode_only(batch: Batch, p: Parameters) -> Scores:
    c, load = batch.candidates, batch.load
    sequences = load.concurrency / (c.layout.replicas * c.layout.dp)
    step = decode_step(terms(c, p), p, sequences, load.prompt)
    return {
        "tpot_ms": step / MILLI,
        "output_tokens_per_s": load.concurrency / step,
        "bound_tpot_ms": bound_tpot(c, sequences, load.prompt) / MILLI,
    }


def _open(batch: Batch, p: Parameters) -> Scores:
    size = len(batch.rows)
    columns = {name: np.full(size, np.nan) for name in (*LATENCY_COLUMNS, *PERCENTILE_COLUMNS)}
    columns["bound_tpot_ms"] = np.full(size, np.nan)
    groups: dict[tuple[float, float, float], list[int]] = {}
    for row, r in enumerate(batch.resolved):
        key = (r.point.prompt_tokens, r.point.output_tokens, r.point.length_factor)
        groups.setdefault(key, []).append(row)
    for (prompt, output, factor), rows in groups.items():
        index = np.asarray(rows, dtype=np.intp)
        part = Batch(
            batch.rows[index],
            tuple(batch.resolved[i] for i in rows),
            batch.candidates.take(index),
            batch.load.take(index),
        )
        lengths = workload(_uniform(prompt, factor), _uniform(output, factor))
        for name, values in _open_group(part, p, lengths).items():
            columns[name][index] = values
    return columns


def _uniform(nominal: float, factor: float) -> Callable[[float], float]:
    """Quantile function of lengths uniform in [2f - 1, 1] x nominal."""
    low = 2.0 * factor - 1.0
    return lambda rank: nominal * (low + (1.0 - low) * rank)


def _open_group(batch: Batch, p: Parameters, lengths: Workload) -> Scores:
    c = batch.candidates
    rate = np.array([r.point.rate_per_s for r in batch.resolved], dtype=float)
    state = steady_state(c, p, lengths, rate)
    scores: Scores = {"output_tokens_per_s": state.output_rate}
    for metric in OPEN_METRICS:
        for share in PERCENTILES:
            found = percentile(state, lengths, metric, share)
            scores[f"{metric}_p{round(share * 100)}_ms"] = found / MILLI
    for metric, column, unit in (
        ("ttft", "ttft_ms", MILLI), ("tpot", "tpot_ms", MILLI), ("e2e", "e2e_s", 1.0),
    ):  # fmt: skip
        parts = [percentile(state, lengths, metric, share) for share in MEAN_SHARES]
        scores[column] = np.mean(parts, axis=0) / unit
    scores["bound_tpot_ms"] = _bound(batch, state.batch)
    return scores


SCORERS: dict[str, Callable[[Batch, Parameters], Scores]] = {
    "closed_loop": _closed,
    "open_loop": _open,
    "offline_batch": _offline,
    "prefill_only": _prefill_only,
    "decode_only": _decode_only,
}
