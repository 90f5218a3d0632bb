"""Candidates typed by hand: an 8B model with 8 KV heads on an 80 GB, 3 TB/s chip."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np

from planner.model.arrays import (
    Candidates,
    ChipFigures,
    EngineFigures,
    LayoutFigures,
    ModelFigures,
    Parameters,
    WeightFigures,
)
from planner.model.batching import Load
from planner.model.bounds import PERFECT
from planner.model.workload import Workload, workload

KINDS = {
    "model": ModelFigures,
    "weights": WeightFigures,
    "chip": ChipFigures,
    "engine": EngineFigures,
    "layout": LayoutFigures,
}
VOCABULARY, HIDDEN, LAYERS, KV_HEADS, HEADS, HEAD_DIM = 64, 4096, 32, 8, 32, 128
PARAMETERS = 8e9
MODEL = {
    "layers": LAYERS, "hidden": HIDDEN, "vocab": VOCABULARY,
    "embedding_parameters": VOCABULARY * HIDDEN,
    "attention_parameters": 2e9, "dense_parameters": PARAMETERS - 2e9 - VOCABULARY * HIDDEN,
    "experts": 1, "active": 1,
    "full_kv": LAYERS * 2 * KV_HEADS * HEAD_DIM, "full_kv_heads": KV_HEADS, "window_kv_heads": 1,
    "full_decode_flops": LAYERS * 4 * HEADS * HEAD_DIM,
    "full_prefill_flops": LAYERS * 4 * HEADS * HEAD_DIM,
    "full_padding": 1, "window_padding": 1, "state_padding": 1,
}  # fmt: skip
MIXTURE = {
    "dense_parameters": 0.0, "experts": 64, "active": 4, "moe_layers": LAYERS,
    "expert_parameters": 1e8, "expert_width": 14336,
}  # fmt: skip
WEIGHTS = {
    "attention_bytes": 2, "dense_bytes": 2, "expert_bytes": 2, "head_bytes": 2,
    "attention_peak": 990e12, "dense_peak": 990e12, "expert_peak": 990e12,
}  # fmt: skip
CHIP = {
    "memory": 80e9, "bandwidth": 3e12, "peak16": 990e12, "exponentials": 3.9e12, "link": 450e9,
    "internode": 50e9, "gpus_per_node": 8,
}  # fmt: skip
ENGINE = {
    "hbm": 1, "kv_read": 1, "gemm": 1, "link_share": 1, "mixed": 1, "cohort": 1,
    "bunching": 1, "block": 16, "memory_share": 1, "window_saves": 1, "max_sequences": 1e6,
    "step_factor": 1, "prompt_factor": 1,
    "startup_sequences": math.nan, "startup_tokens": math.nan,
}  # fmt: skip
LAYOUT = {
    "tp": 1, "pp": 1, "dp": 1, "replicas": 1, "max_sequences": 1e6, "token_budget": 1e9,
    "kv_bytes": 2, "accept_decay": 1,
}  # fmt: skip
UNIFORM: Parameters = replace(PERFECT, expert_popularity=np.inf)
"""Every efficiency 1, every overhead 0, all experts equally popular."""


def candidate(**changed: dict[str, float]) -> Candidates:
    """One candidate; `changed` holds figures by part, e.g. ``layout={"tp": 2}``."""
    given = {"model": MODEL, "weights": WEIGHTS, "chip": CHIP, "engine": ENGINE, "layout": LAYOUT}
    parts: dict[str, Any] = {}
    for name, kind in KINDS.items():
        values = {**given[name], **changed.get(name, {})}
        parts[name] = kind(**{f.name: floats(values.get(f.name, 0.0)) for f in fields(kind)})
    return Candidates(**parts)


def floats(*values: float) -> Any:
    return np.array(values, dtype=float)


def load(rows: int = 1, **given: float) -> Load:
    values = {
        "prompt": 1000.0, "output": 200.0, "identical": 0.0, "prefix_hit": 0.0,
        "concurrency": 16.0, "waves": np.inf, "requests": 16.0, **given,
    }  # fmt: skip
    return Load(**{name: np.full(rows, value) for name, value in values.items()})


def value(array: Any) -> float:
    assert array.shape == (1,)
    return float(array[0])


def constant(prompt: float, output: float) -> Workload:
    """Return the statistics of requests that all have these lengths, with Poisson arrivals."""
    return workload(lambda _: prompt, lambda _: output)
