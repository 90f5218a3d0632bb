"""Fitted numbers for an engine generation on an accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.candidates.memory_rule import memory_row
from planner.model.arrays import Parameters
from planner.spec.accelerator import Accelerator
from planner.spec.efficiency import Efficiency, ErrorEntry, Evidence, Fitted
from planner.spec.engine import Generation

GLOBAL = {
    "attention_efficiency": "attention_efficiency",
    "grouped_gemm_efficiency": "grouped_gemm_efficiency",
    "grouped_gemm_half_tokens": "grouped_gemm_half_tokens",
    "grouped_gemm_width": "grouped_gemm_width",
    "grouped_gemm_token_cap": "grouped_gemm_token_cap",
    "block_fp8_gemm": "block_fp8_gemm",
    "weight_only_expert_read": "weight_only_expert_read",
    "weight_only_dense_read": "weight_only_dense_read",
    "block_fp8_units": "block_fp8_units",
    "indexer_units": "indexer_units",
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
        "special_units": v["special_units"] * v["special_factor"],
        "weight_only_units": v["weight_only_units"],
        "prefill_layer": v["prefill_layer_s"] * v["prefill_factor"],
        "prefill_special": v["prefill_special_s"] * v["prefill_factor"],
        "cohort": v["cohort_prompts"] * v["cohort_factor"],
        "bunching": v["bunching"],
        "mixed": float(g.scheduler == "mixed"),
        "full_length": float(g.kv_reservation == "full-length"),
        "block": float(g.block_tokens),
        **memory_row(g, stack.version, link_kind),
        "max_sequences": float(g.max_num_seqs),
    }


def error_entry(
    efficiency: Efficiency, generation: str, accelerator: Accelerator, metric: str
) -> ErrorEntry:
    """Return the measured error of a metric; the entry without evidence where there is none.

    A borrowing accelerator takes its lender's quantiles with the distance to 1 doubled, and is
    unvalidated.
    """
    for entry in efficiency.errors:
        if (entry.generation, entry.accelerator, entry.metric) == (
            generation,
            accelerator.id,
            metric,
        ):
            return entry
    return next(entry for entry in efficiency.default_errors if entry.metric == metric)


RANK: dict[Evidence, int] = {"validated": 0, "wide": 1, "unvalidated": 2}


def evidence(efficiency: Efficiency, generation: str, accelerator: Accelerator) -> Evidence:
    """Return how well this engine generation is known on this accelerator: the worst of TPOT
    and TTFT where both were measured, else that of the time per request."""
    found = [
        e.evidence
        for e in efficiency.errors
        if (e.generation, e.accelerator) == (generation, accelerator.id)
    ]
    return max(found, key=RANK.__getitem__) if found else "unvalidated"
