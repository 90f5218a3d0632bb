"""The memory rule of an engine version, as columns of ``EngineFigures``."""

from __future__ import annotations

import math

from planner.spec.accelerator import Accelerator
from planner.spec.engine import Generation
from planner.spec.memory import MemoryRule, StaticReserve
from planner.units import GIB, MIB

NO_RESERVE = StaticReserve(constant_gib=0.0, per_gpu_gib=0.0, per_token_mib=0.0)


def memory_rule(generation: Generation, version: tuple[int, ...]) -> MemoryRule:
    """Return the rule that a version follows; of an unknown version (), the newest."""
    reached = [r for r in generation.memory if not version or r.first_version <= version]
    return (reached or list(generation.memory[:1]))[-1]


def memory_row(
    generation: Generation, version: tuple[int, ...], link_kind: str
) -> dict[str, float]:
    """Return the columns of EngineFigures that say how memory is accounted for (SI units)."""
    rule = memory_rule(generation, version)
    static = rule.static_reserve or NO_RESERVE
    return {
        "memory_share": rule.planned_fraction,
        "of_free": float(rule.fraction_of == "free-after-weights"),
        "of_start": float(rule.fraction_of == "free-before-weights"),
        "driver": rule.driver_gib * GIB,
        "reserve": rule.context_gib * GIB,
        "group_reserve": rule.group_gib.get(link_kind, 0.0) * GIB,
        "static_reserve": static.constant_gib * GIB,
        "static_token": static.per_token_mib * MIB,
        "static_gpu": static.per_gpu_gib * GIB,
        "static_floor": static.floor_gib * GIB,
        "static_floor_above": static.floor_above_gib * GIB,
        "sampler_bytes": rule.sampler_bytes,
        "forward_copies": rule.forward_copies,
        "graph": rule.graph_gib * GIB,
        "graph_layer": rule.graph_gib_per_layer * GIB,
        "startup_sequences": math.nan,
        "startup_tokens": math.nan,
        "window_saves": float(rule.cache != "whole"),
        "grouped": float(rule.cache == "grouped"),
        "by_request": float(rule.prints == "longest-request"),
    }


def startup(
    rule: MemoryRule, accelerator: Accelerator, memory_gib: float, longest: int | None
) -> tuple[float, float]:
    """Return what a start without limits profiles with: (sequences, tokens of a step).

    Args:
        rule: The engine's rule.
        accelerator: For exceptions.
        memory_gib: Memory of the GPU [GiB].
        longest: Longest context [tokens]; None = not stated.

    Returns:
        NaN for both where the rule has no defaults for this GPU.
    """
    for entry in rule.startup:
        if memory_gib >= entry.min_memory_gib and accelerator.id not in entry.not_on:
            whole = longest if longest is not None and longest <= rule.whole_prompts else 0
            return float(entry.max_num_seqs), float(max(entry.token_budget, whole))
    return math.nan, math.nan
