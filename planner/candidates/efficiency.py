"""Fitted numbers for an engine generation on an accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.candidates.memory_rule import memory_row
from planner.model.arrays import Parameters
from planner.spec.accelerator import Accelerator
from planner.spec.efficiency import Efficiency, ErrorEntry, Evidence, Fitted, Metric
from planner.spec.engine import Generation

GLOBAL = {
    "attention_efficiency": "attention_efficiency",
    "softmax_slots": "softmax_slots",
    "grouped_gemm_efficiency": "grouped_gemm_efficiency",
    "grouped_gemm_half_tokens": "grouped_gemm_half_tokens",
    "grouped_gemm_width": "grouped_gemm_width",
    "grouped_gemm_token_cap": "grouped_gemm_token_cap",
    "expert_activation_passes": "expert_activation_passes",
    "token_activation_passes": "token_activation_passes",
    "block_fp8_promotion": "block_fp8_promotion",
    "weight_only_expert_read": "weight_only_expert_read",
    "weight_only_dense_read": "weight_only_dense_read",
    "block_fp8_layer": "block_fp8_layer_s",
    "indexer_layer": "indexer_layer_s",
    "expert_popularity": "expert_popularity",
    "unshared_prefill": "unshared_prefill",
    "first_token_steps": "first_token_steps",
    "first_token": "first_token_s",
    "frontend_request": "frontend_request_s",
    "frontend_token": "frontend_token_s",
    "waves": "waves",
}
"""Field of Parameters -> key of ``efficiency.yaml``."""


@dataclass(frozen=True)
class Stack:
    """An engine generation in some version on an accelerator.

    Attributes:
        generation: The generation.
        version: Version as numbers; empty = unknown, the generation's usual one.
    """

    generation: Generation
    version: tuple[int, ...] = ()


def global_parameters(efficiency: Efficiency) -> Parameters:
    """Return the values that hold for every candidate."""
    return Parameters(**{field: efficiency.parameters[key].value for field, key in GLOBAL.items()})


def _values(entries: Mapping[str, Fitted]) -> dict[str, float]:
    return {key: entry.value for key, entry in entries.items()}


def stack_values(
    efficiency: Efficiency, stack: Stack, accelerator: Accelerator
) -> dict[str, float]:
    """Return all values of a stack by their key in ``efficiency.yaml``; later tables win."""
    values = _values(efficiency.parameters)
    values |= _values(efficiency.neutral)
    values |= _values(efficiency.generations[stack.generation.id])
    names = {accelerator.id, accelerator.borrow or accelerator.id}
    for entry in efficiency.accelerators:
        fits = not entry.generations or stack.generation.id in entry.generations
        old = not entry.before or (stack.version != () and stack.version < entry.before)
        if fits and old and names & set(entry.accelerators):
            values |= _values(entry.parameters)
    return values


def engine_row(
    efficiency: Efficiency, stack: Stack, accelerator: Accelerator, link_kind: str
) -> dict[str, float]:
    """Return one row of EngineFigures (SI units)."""
    v = stack_values(efficiency, stack, accelerator)
    g = stack.generation
    link = efficiency.links[link_kind]
    return {
        "hbm": v["hbm_efficiency"],
        "kv_read": v["kv_read_efficiency"],
        "gemm": v["gemm_efficiency"],
        "link_share": link.share.value,
        "link_latency": link.latency_s.value,
        "launch": v["launch_s"] * v["launch_factor"],
        "sequence": v["sequence_s"] * v["sequence_factor"],
        "step_constant": v["step_constant_s"],
        "special_layer": v["special_layer_s"] * v["special_factor"],
        "weight_only_layer": v["weight_only_layer_s"],
        "prefill_layer": v["prefill_layer_s"] * v["prefill_factor"],
        "prefill_special": v["prefill_special_s"] * v["prefill_factor"],
        "cohort": v["cohort_prompts"] * v["cohort_factor"],
        "bunching": v["bunching"],
        "mixed": float(g.scheduler == "mixed"),
        "full_length": float(g.kv_reservation == "full-length"),
        "block": float(g.block_tokens),
        **memory_row(g, stack.version, link_kind),
        "max_sequences": float(g.max_num_seqs),
        "step_factor": 1.0,
        "prompt_factor": 1.0,
    }


LOW, HIGH = 0.1, 0.9
"""Ends of the 80 % interval that reports show."""
BORROWED = 2.0
"""A borrowed interval is this much wider, in the logarithm."""


def error_entry(
    efficiency: Efficiency, generation: str, accelerator: Accelerator, metric: str
) -> ErrorEntry:
    """Return the measured error of a metric; the entry without evidence where there is none.

    A borrowing accelerator takes its lender's quantiles with the distance to 1 doubled, and is
    unvalidated.
    """
    own = _entry(efficiency, generation, accelerator.id, metric)
    if own is not None:
        return own
    lent = _entry(efficiency, generation, accelerator.borrow or "", metric)
    if lent is not None:
        wider = {name: getattr(lent, name) ** BORROWED for name in ("q10", "q50", "q90")}
        return lent.model_copy(
            update={**wider, "accelerator": accelerator.id, "evidence": "unvalidated"}
        )
    return next(entry for entry in efficiency.default_errors if entry.metric == metric)


def _entry(
    efficiency: Efficiency, generation: str, accelerator: str, metric: str
) -> ErrorEntry | None:
    wanted = (generation, accelerator, metric)
    return next(
        (e for e in efficiency.errors if (e.generation, e.accelerator, e.metric) == wanted), None
    )


def interval(
    efficiency: Efficiency,
    generation: str,
    accelerator: Accelerator,
    metric: Metric,
    confidence: float,
) -> float:
    """Quantile of measured / predicted: what a prediction is multiplied by.

    A latency target holds with chance c if prediction x interval(c) meets it; a throughput target
    if prediction x interval(1 - c) does.

    Args:
        efficiency: Measured errors.
        generation: Engine generation.
        accelerator: The chip.
        metric: What is predicted.
        confidence: Share of cases at or below the result, above 0 and below 1.

    Returns:
        The quantile of a two-piece log-normal through the stored 10, 50 and 90 %.

    Source:
        Two-piece normal: K. F. Wallis, Statist. Sci. 29(1), 2014, doi:10.1214/13-STS417, here in
        the logarithm and joined at the median.
    """
    entry = error_entry(efficiency, generation, accelerator, metric)
    side = entry.q90 if confidence > 0.5 else entry.q10
    steps = abs(NormalDist().inv_cdf(confidence)) / NormalDist().inv_cdf(HIGH)
    return float(entry.q50 * (side / entry.q50) ** steps)


RANK: dict[Evidence, int] = {"validated": 0, "wide": 1, "unvalidated": 2}


def evidence(efficiency: Efficiency, generation: str, accelerator: Accelerator) -> Evidence:
    """Return how well this engine generation is known on this accelerator."""
    found = [
        e.evidence
        for e in efficiency.errors
        if (e.generation, e.accelerator) == (generation, accelerator.id)
    ]
    return max(found, key=RANK.__getitem__) if found else "unvalidated"


def unmeasured(tp: ArrayLike, pp: ArrayLike, dp: ArrayLike, server: ArrayLike) -> NDArray[np.bool_]:
    """Mark the layouts that the fit saw none of: with pipeline stages, or across servers.

    Args:
        tp, pp, dp: Parallel degrees, (n,) or one.
        server: GPUs of a server, likewise.

    >>> unmeasured([8, 8, 16], [1, 2, 1], 1, 8).tolist()
    [False, True, True]
    """
    result: NDArray[np.bool_] = np.greater(pp, 1) | (np.multiply(tp, dp) > server)
    return result


def layout_evidence(stack: Evidence, *, unmeasured: bool, speculates: bool) -> Evidence:
    """Return how well a deployment is known: the worst of what is known of its parts.

    Speculation was measured on too few stacks to call any of them validated
    (planner/model/README.md).

    Args:
        stack: How well its engine generation is known on its accelerator.
        unmeasured: What ``unmeasured`` says of its layout.
        speculates: Whether it drafts tokens.

    >>> layout_evidence("validated", unmeasured=False, speculates=True)
    'wide'
    >>> layout_evidence("wide", unmeasured=True, speculates=False)
    'unvalidated'
    """
    layout: Evidence = "unvalidated" if unmeasured else "validated"
    drafts: Evidence = "wide" if speculates else "validated"
    return max((stack, layout, drafts), key=RANK.__getitem__)
