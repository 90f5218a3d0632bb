"""Candidates typed by hand, whose step times are textbook service times."""

from __future__ import annotations

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

PARAMETERS = Parameters(
    attention_efficiency=1.0,
    softmax_slots=0.0,
    grouped_gemm_efficiency=1.0,
    grouped_gemm_half_tokens=1.0,
    grouped_gemm_width=1.0,
    grouped_gemm_token_cap=1e9,
    expert_activation_passes=0.0,
    token_activation_passes=0.0,
    block_fp8_promotion=1.0,
    weight_only_expert_read=1.0,
    weight_only_dense_read=1.0,
    block_fp8_layer=0.0,
    indexer_layer=0.0,
    expert_popularity=np.inf,
    unshared_prefill=0.0,
    first_token_steps=0.0,
    first_token=0.0,
    frontend_request=0.0,
    frontend_token=0.0,
    waves=1.0,
)


def filled(columns: Any, default: float, rows: int, **values: Any) -> Any:
    named = {
        field.name: np.broadcast_to(
            np.asarray(values.get(field.name, default), dtype=float), (rows,)
        ).copy()
        for field in fields(columns)
    }
    return columns(**named)


def server(
    *, token_time: Any = 0.0, launch: Any = 1e-6, rows: int = 1, **layout: Any
) -> Candidates:
    """Servers whose step takes `launch`, and `token_time` for each token in it [s]."""
    model = filled(
        ModelFigures,
        0.0,
        rows,
        layers=1,
        hidden=1,
        vocab=1e-9,
        attention_parameters=0.5 * np.asarray(token_time),
        experts=1,
        active=1,
        full_kv=1e-9,
        full_kv_heads=1,
        window_kv_heads=1,
        full_padding=1,
        window_padding=1,
        state_padding=1,
    )
    weights = filled(WeightFigures, 0.0, rows, attention_peak=1, dense_peak=1, expert_peak=1)
    chip = filled(ChipFigures, 1.0, rows, memory=1e12, bandwidth=1e30, peak16=1e30, gpus_per_node=8)
    engine = filled(
        EngineFigures,
        0.0,
        rows,
        hbm=1,
        kv_read=1,
        gemm=1,
        link_share=1,
        launch=launch,
        mixed=1,
        cohort=1,
        bunching=1,
        step_factor=1,
        prompt_factor=1,
        block=1,
        memory_share=1,
        max_sequences=1e6,
    )
    choices = {
        "tp": 1,
        "pp": 1,
        "dp": 1,
        "replicas": 1,
        "max_sequences": 1e5,
        "token_budget": 1e6,
        "kv_bytes": 1,
        "accept_decay": 1,
    } | layout
    return Candidates(
        model=model,
        weights=weights,
        chip=chip,
        engine=engine,
        layout=filled(LayoutFigures, 0.0, rows, **choices),
    )


def with_layout(c: Candidates, **values: Any) -> Candidates:
    """The same candidates with other choices."""
    size = len(c)
    columns = {
        name: np.broadcast_to(np.asarray(value, dtype=float), (size,)).copy()
        for name, value in values.items()
    }
    return replace(c, layout=replace(c.layout, **columns))
