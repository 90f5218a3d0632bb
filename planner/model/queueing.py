"""Open loop: requests arrive at a given rate; their waiting and latency percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Candidates, Columns, Floats, Indices, Parameters
from planner.model.forward import decode_step, prefill
from planner.model.memory import sequences_that_fit
from planner.model.terms import Terms, terms
from planner.model.workload import Workload

Metric = Literal["ttft", "tpot", "e2e", "itl"]
ITERATIONS = 9
BISECTIONS = 28
HIGHEST_UTILIZATION = 0.999


@dataclass(frozen=True)
class OpenLoop(Columns):
    """Steady state of each candidate.

    Attributes:
        capacity: Highest stable rate over all replicas [requests/s], (n,).
        utilization: Rate / capacity, (n,).
        batch: Sequences decoding per dp rank, (n,).
        slots: Sequences that can be resident per dp rank, (n,).
        wait_probability: Probability that a request finds no free slot or KV memory, (n,).
        output_rate: Output tokens per second delivered over all replicas, (n,).
        step: Mean time between two tokens [s], (n,).
        step_sd: Standard deviation of a request's mean step [s], (n,).
        floor: Fastest step [s], (n,).
        slot_wait: Mean wait of those that wait for a slot [s], (n,).
        delay: Mean wait before the own prefill begins, slots aside [s], (n,).
        own: TTFT of a request that waits for nothing [s], (nodes, n).
    """

    capacity: Floats
    utilization: Floats
    batch: Floats
    slots: Floats
    wait_probability: Floats
    output_rate: Floats
    step: Floats
    step_sd: Floats
    floor: Floats
    slot_wait: Floats
    delay: Floats
    own: Floats

    def take(self, rows: Indices | NDArray[np.bool_]) -> Self:
        """Return the named rows, in that order; candidates lie on the last axis."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        picked: dict[str, Any] = {
            f.name: getattr(self, f.name).take(index, axis=-1) for f in fields(self)
        }
        return type(self)(**picked)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of all parts, one after the other."""
        joined: dict[str, Any] = {
            f.name: np.concatenate([getattr(part, f.name) for part in parts], axis=-1)
            for f in fields(cls)
        }
        return cls(**joined)


@dataclass(frozen=True)
class Gates(Columns):
    """Marks of options on which the formula is to be trusted; no row is hidden by them, (n,).

    Attributes:
        utilization: At most 0.85.
        wait_probability: At most 0.02.
        slots: At least 8 resident sequences.
    """

    utilization: NDArray[np.bool_]
    wait_probability: NDArray[np.bool_]
    slots: NDArray[np.bool_]

    @property
    def all(self) -> NDArray[np.bool_]:
        """Rows that carry every mark."""
        return self.utilization & self.wait_probability & self.slots


def safe_share(mean_output: float) -> float:
    """Share of the predicted safe rate to use until a simulation has checked an option.

    Source: 94 to 99 % of random scenarios hold at this share, planner/model/README.md#queueing.
    """
    return 0.7 if mean_output < 100 else 0.8


def gates(state: OpenLoop) -> Gates:
    """Return the marks of trust."""
    return Gates(state.utilization <= 0.85, state.wait_probability <= 0.02, state.slots >= 8)


def capacity(c: Candidates, p: Parameters, w: Workload) -> Floats:
    """Highest stable rate of one replica [requests/s], (n,)."""
    t = terms(c, p)
    slots = _slots(c, w)
    return _capacity(c, p, t, w, slots) * c.layout.dp


def _slots(c: Candidates, w: Workload) -> Floats:
    fits = sequences_that_fit(c, np.full(len(c), w.context_end))
    return np.minimum(fits, c.layout.max_sequences)


def _stall(c: Candidates, p: Parameters, t: Terms, w: Workload) -> Floats:
    budget = np.maximum(c.layout.token_budget, 64.0)
    return prefill(t, p, w.prompt, w.prefix_hit, budget).stall


def _capacity(c: Candidates, p: Parameters, t: Terms, w: Workload, slots: Floats) -> Floats:
    held = np.maximum(slots, 1.0)
    stall = (w.weight * _stall(c, p, t, w)).sum(axis=0)
    step = decode_step(t, p, held, np.full(len(c), w.context))
    by_slots = held / ((w.steps_mean + 1.0) * step + held * stall)
    tokens = w.prompt_mean * (1.0 - w.prefix_hit) + w.steps_mean
    started = c.layout.token_budget / tokens
    batch = np.minimum(started * w.steps_mean, held)
    by_tokens = started / (decode_step(t, p, batch, np.full(len(c), w.context)) + started * stall)
    best = np.minimum(by_slots, by_tokens)
    return np.where(slots >= 1.0, best, 0.0)


def _burstiness(w: Workload, replicas: Floats, routing: str) -> Floats:
    """Squared CV of the gaps that one replica sees: splitting smooths bursts.

    Least-loaded routing is taken like round robin.
    """
    if routing == "random":
        return 1.0 + (w.burstiness - 1.0) / replicas
    return w.burstiness / replicas


def steady_state(
    c: Candidates,
    p: Parameters,
    w: Workload,
    rate: Floats,
    *,
    routing: str = "least_loaded",
) -> OpenLoop:
    """Return the steady state at `rate` requests per second over all replicas, (n,)."""
    t = terms(c, p)
    ranks = c.layout.replicas * c.layout.dp
    slots = _slots(c, w)
    limit = _capacity(c, p, t, w, slots)
    use = rate / np.maximum(limit * ranks, 1e-12)
    arrivals = np.minimum(rate / ranks, HIGHEST_UTILIZATION * np.maximum(limit, 1e-12))
    stall_at = _stall(c, p, t, w)
    stall = (w.weight * stall_at).sum(axis=0)
    load = np.minimum(arrivals * stall, 0.97)
    held = np.maximum(slots, 1.0)
    context = np.full(len(c), w.context)
    batch = held * np.minimum(use, 1.0)
    for _ in range(ITERATIONS):
        step = decode_step(t, p, batch, context) / (1.0 - load)
        batch = np.minimum(0.5 * (batch + arrivals * w.steps_mean * step), held)
    pure = decode_step(t, p, batch, context)
    step = pure / (1.0 - load)
    ca2 = _burstiness(w, c.layout.replicas, routing)
    spread = np.sqrt(np.maximum(batch, 0.05))
    drift = 2.0 * np.maximum(limit - arrivals, 1e-9) / (np.maximum(limit, 1e-9) * (1.0 + ca2))
    beta = (held - 0.5 - batch) / spread
    wait_probability = np.clip(np.exp(-0.5 * np.maximum(beta, 0.0) ** 2), 0.0, 1.0)
    alone = prefill(t, p, w.prompt, w.prefix_hit, c.layout.token_budget).alone
    accepted = t.accepted
    own = (
        pure * accepted
        + np.maximum(stall_at, alone - pure * accepted)
        + p.first_token
        + p.frontend_request
        + p.frontend_token * w.prompt
    )
    second = (w.weight * stall_at**2).sum(axis=0)
    queue = 0.5 * (1.0 + ca2) * arrivals * second / 2.0 / (1.0 - load) ** 2
    per_step = arrivals * second / np.maximum(w.steps_mean, 1.0) / step
    return OpenLoop(
        capacity=limit * ranks,
        utilization=use,
        batch=batch,
        slots=slots,
        wait_probability=np.where(slots >= 1.0, wait_probability, 1.0),
        output_rate=np.minimum(rate, limit * ranks) * w.output_mean,
        step=step,
        step_sd=np.sqrt(per_step) * step * 0.0 + 0.1 * step,
        floor=0.5 * pure,
        slot_wait=1.0 / (drift * np.maximum(limit, 1e-9)),
        delay=0.5 * pure * accepted + queue,
        own=own,
    )


def survival(state: OpenLoop, w: Workload, metric: Metric, limit: Floats | float) -> Floats:
    """P(metric > limit [s]), (n,)."""
    at = np.broadcast_to(np.asarray(limit, dtype=np.float64), state.step.shape)
    over = _SURVIVALS[metric](state, w, at)
    return np.where(state.utilization >= 1.0, 1.0, np.clip(over, 0.0, 1.0))


def _log_normal(mean: Floats, sd: Floats, limit: Floats) -> Floats:
    s2 = np.log1p((sd / mean) ** 2)
    z = (np.log(mean) - s2 / 2.0 - np.log(limit)) / np.sqrt(np.maximum(s2, 1e-10))
    result: Floats = _normal(z)
    return result


def _normal(z: Floats) -> Floats:
    result: Floats = 1.0 / (1.0 + np.exp(-np.clip(z * (1.5976 + 0.070565992 * z * z), -60.0, 60.0)))
    return result


def _ttft(s: OpenLoop, w: Workload, limit: Floats) -> Floats:
    over = limit - s.own
    quick = np.exp(-np.maximum(over, 0.0) / s.delay)
    slow = np.exp(-np.maximum(over - s.delay, 0.0) / s.slot_wait)
    mixed = quick + s.wait_probability * np.maximum(slow - quick, 0.0)
    result: Floats = (w.weight * mixed).sum(axis=0)
    return result


def _tpot(s: OpenLoop, _: Workload, limit: Floats) -> Floats:
    return _log_normal(s.step, s.step_sd, np.maximum(limit, 1e-9))


def _e2e(s: OpenLoop, w: Workload, limit: Floats) -> Floats:
    first = (w.weight * s.own).sum(axis=0) + s.delay
    steps = w.output - 1.0
    mean = first + steps * s.step
    sd = np.sqrt((steps * s.step_sd) ** 2 + (0.5 * first) ** 2)
    quick = _log_normal(mean, sd, np.maximum(limit, 1e-9))
    slow = np.exp(-np.maximum(limit - mean, 0.0) / s.slot_wait)
    mixed = quick + s.wait_probability * np.maximum(slow - quick, 0.0)
    result: Floats = (w.weight * mixed).sum(axis=0)
    return result


_SURVIVALS = {"ttft": _ttft, "tpot": _tpot, "e2e": _e2e, "itl": _tpot}


def percentile(state: OpenLoop, w: Workload, metric: Metric, share: float) -> Floats:
    """Smallest t [s] with P(metric > t) <= 1 - share, (n,); infinity where overloaded."""
    low = np.full_like(state.step, np.log(1e-6))
    high = np.full_like(state.step, np.log(1e6))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        above = survival(state, w, metric, np.exp(middle)) > 1.0 - share
        low = np.where(above, middle, low)
        high = np.where(above, high, middle)
    return np.where(state.utilization >= 1.0, np.inf, np.exp(0.5 * (low + high)))
