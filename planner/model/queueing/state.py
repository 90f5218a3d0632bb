"""What the open-loop model says of each candidate, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Columns, Floats, Indices

Metric = Literal["ttft", "tpot", "e2e", "itl"]
Flags = NDArray[np.bool_]

HIGHEST_UTILIZATION = 0.85
HIGHEST_WAIT_PROBABILITY = 0.02
FEWEST_SLOTS = 8.0
SHORT_OUTPUT = 100.0
SAFE_SHARE = 0.8
SAFE_SHARE_SHORT = 0.7


@dataclass(frozen=True)
class OpenLoop(Columns):
    """Steady state; candidates lie on the last axis.

    Attributes:
        capacity: Highest stable rate over all replicas [requests/s], (n,).
        utilization: Rate / capacity; infinity where the model does not fit, (n,).
        batch: Sequences between first and last token per dp rank, (n,).
        slots: Sequences that can be resident per dp rank; below 1 = impossible, (n,).
        wait_probability: Probability of finding no free slot or KV memory, (n,).
        output_rate: Output tokens per second delivered over all replicas, (n,).
        own: TTFT of a request that waits for nothing, by prompt node [s], (nodes, n).
        quiet: Probability of meeting no other prompt, (n,).
        pause: Time for which a new request waits at most if it meets none [s], (n,).
        awake: Probability that a step is running, (n,).
        wait_shape, wait_scale: Generalised Pareto wait of those that meet others [1], [s], (n,).
        wait_mean, wait_variance: Wait of all, slots aside [s], [s^2], (n,).
        slot_wait: Mean wait of those that find no slot [s], (n,).
        accepted: Tokens per engine step of a sequence, (n,).
        steps: Engine steps after the first token, by output node, (nodes, n).
        step: Mean engine step that a request sees, by output node [s], (nodes, n).
        calm: Probability that no prompt is computed meanwhile, by output node, (nodes, n).
        calm_step: Mean engine step then [s], (n,).
        drift: Variance of a request's mean step as the batch varies, by output node [s^2].
        crowd: Variance of it as prompts come in, by output node [s^2], (nodes, n).
        filled, filled_step: Variance for both reasons, and mean, of the mean step of a request of
            which every step carries prompts, one more among them than usual [s^2], [s],
            (nodes, n).
        fastest, fullest, slowest: A step that decodes one sequence, one that decodes as many as
            fit, and one with as many prompts as fit; where these run alone, they count to the
            next step that decodes [s], (n,).
        decode: Step that only decodes, at the usual batch [s], (n,).
        decode_sd: Its standard deviation as the batch varies [s], (n,).
        mixed: Share of the steps that carry prompt tokens, (n,).
        chunk: What those tokens add to a long step, by prompt node [s], (nodes, n).
        carrying: Least step with them, by prompt node [s], (nodes, n).
        chunk_weight: Share of the prompt steps of each node, (nodes, n).
    """

    capacity: Floats
    utilization: Floats
    batch: Floats
    slots: Floats
    wait_probability: Floats
    output_rate: Floats
    own: Floats
    quiet: Floats
    pause: Floats
    awake: Floats
    wait_shape: Floats
    wait_scale: Floats
    wait_mean: Floats
    wait_variance: Floats
    slot_wait: Floats
    accepted: Floats
    steps: Floats
    step: Floats
    calm: Floats
    calm_step: Floats
    drift: Floats
    crowd: Floats
    filled: Floats
    filled_step: Floats
    fastest: Floats
    fullest: Floats
    slowest: Floats
    decode: Floats
    decode_sd: Floats
    mixed: Floats
    chunk: Floats
    carrying: Floats
    chunk_weight: Floats

    def take(self, rows: Indices | Flags) -> Self:
        """Return the named candidates, in that order."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        picked: dict[str, Any] = {
            field.name: getattr(self, field.name).take(index, axis=-1) for field in fields(self)
        }
        return type(self)(**picked)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the candidates of all parts, one after the other."""
        joined: dict[str, Any] = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts], axis=-1)
            for field in fields(cls)
        }
        return cls(**joined)


@dataclass(frozen=True)
class Gates(Columns):
    """Marks of the options on which the formulas are to be trusted; they hide no row, (n,).

    Attributes:
        utilization: At most 0.85: beyond it TTFT p95 is not even repeatable in simulation.
        wait_probability: At most 0.02: near 0.05 the p95 jumps to the wait for a slot.
        slots: At least 8 resident sequences: with fewer, single prompts block the queue.
    """

    utilization: Flags
    wait_probability: Flags
    slots: Flags

    @property
    def all(self) -> Flags:
        """Rows that carry every mark."""
        return self.utilization & self.wait_probability & self.slots


def gates(state: OpenLoop) -> Gates:
    """Return the marks of trust, (n,)."""
    return Gates(
        state.utilization <= HIGHEST_UTILIZATION,
        state.wait_probability <= HIGHEST_WAIT_PROBABILITY,
        state.slots >= FEWEST_SLOTS,
    )


def safe_share(mean_output: float) -> float:
    """Share of the predicted highest rate to use until a simulation has checked an option.

    Args:
        mean_output: Mean output length [tokens].

    Source:
        At 0.8 (0.7 for short outputs) 99 % (95 %) of random scenarios met their targets in
        simulation: planner/model/README.md#queueing.
    """
    return SAFE_SHARE_SHORT if mean_output < SHORT_OUTPUT else SAFE_SHARE
