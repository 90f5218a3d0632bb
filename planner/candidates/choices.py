"""Choices (indices into tables of specs) -> Candidates (columns of floats)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from planner.candidates.efficiency import Stack, engine_row
from planner.candidates.figures import model_figures
from planner.candidates.hardware import HardwareClass, wire
from planner.candidates.weights import weight_row
from planner.model.arrays import (
    Candidates,
    ChipFigures,
    Columns,
    EngineFigures,
    Floats,
    Indices,
    LayoutFigures,
    ModelFigures,
    WeightFigures,
)
from planner.spec.accelerator import Accelerator
from planner.spec.architecture import Architecture
from planner.spec.calibration import Calibration, CalibrationKey, apply
from planner.spec.efficiency import Efficiency
from planner.spec.precision import KvFormat, WeightFormat
from planner.spec.speculation import SpeculationMethod
from planner.units import GB, GIB, TERA

T = TypeVar("T", bound=Columns)
Row = Mapping[str, float]


@dataclass(frozen=True)
class Tables:
    """The specs that choices point into."""

    efficiency: Efficiency
    architectures: tuple[Architecture, ...]
    hardware: tuple[HardwareClass, ...]
    stacks: tuple[Stack, ...]
    weights: tuple[WeightFormat, ...]
    kv: tuple[KvFormat, ...]
    methods: tuple[SpeculationMethod | None, ...] = (None,)
    calibration: Calibration | None = None


@dataclass(frozen=True)
class Choices(Columns):
    """One deployment a row: indices into Tables, then plain numbers as in LayoutFigures.

    `method` 0 with draft_tokens 0 is speculation off.
    """

    architecture: Indices
    hardware: Indices
    stack: Indices
    weights: Indices
    kv: Indices
    method: Indices
    tp: Floats
    pp: Floats
    dp: Floats
    replicas: Floats
    max_sequences: Floats
    token_budget: Floats
    draft_tokens: Floats
    accept_first: Floats
    accept_decay: Floats
    poll_steps: Floats
    batch_wait_steps: Floats


def gather(columns: type[T], keys: tuple[Indices, ...], make: Callable[..., Row]) -> T:
    """Return the columns whose row i is ``make(*key i)``; equal keys are made once."""
    shape = tuple(int(key.max(initial=0)) + 1 for key in keys)
    codes = np.ravel_multi_index(keys, shape)
    distinct, inverse = np.unique(codes, return_inverse=True)
    made = [
        make(*(int(part) for part in parts))
        for parts in zip(*np.unravel_index(distinct, shape), strict=True)
    ]
    names = columns.__dataclass_fields__
    return columns(
        **{name: np.array([row[name] for row in made], dtype=float)[inverse] for name in names}
    )


def build(tables: Tables, choices: Choices) -> Candidates:
    """Return the candidates that the choices name.

    Args:
        tables: Specs.
        choices: Indices and numbers, (n,).

    Returns:
        Candidates, (n,), SI units. Support is not checked here: see ``support.py``.
    """
    t, c = tables, choices
    tp = c.tp.astype(np.intp)
    rates = gather_wires(t, c.hardware, tp)
    made = Candidates(
        model=gather(ModelFigures, (c.architecture,), lambda a: model_figures(t.architectures[a])),
        weights=gather(
            WeightFigures,
            (c.architecture, c.weights, c.hardware),
            lambda a, w, h: weight_row(t.architectures[a], t.weights[w], t.hardware[h].accelerator),
        ),
        chip=rates,
        engine=gather(
            EngineFigures,
            (c.stack, c.hardware, tp),
            lambda s, h, width: engine_row(
                t.efficiency,
                t.stacks[s],
                t.hardware[h].accelerator,
                wire(t.hardware[h], width).kind,
            ),
        ),
        layout=_layout(t, c),
    )
    return made if t.calibration is None else _calibrated(t, c, made)


@dataclass(frozen=True)
class _OwnFactors(Columns):
    """Factors of a calibration, (n,); 1 where it says nothing."""

    tpot: Floats
    ttft: Floats


def _calibrated(t: Tables, c: Choices, made: Candidates) -> Candidates:
    def factors(a: int, h: int, s: int, w: int) -> Row:
        key = CalibrationKey(
            t.architectures[a].id,
            t.hardware[h].accelerator.id,
            t.stacks[s].generation.id,
            t.weights[w].id,
        )
        return apply(t.calibration, key)._asdict()

    own = gather(_OwnFactors, (c.architecture, c.hardware, c.stack, c.weights), factors)
    engine = replace(made.engine, step_factor=own.tpot, prompt_factor=own.ttft)
    return replace(made, engine=engine)


def gather_wires(tables: Tables, hardware: Indices, tp: Indices) -> ChipFigures:
    """Return the chip columns for these hardware classes and tensor-parallel widths."""
    return gather(ChipFigures, (hardware, tp), lambda h, w: chip_row(tables.hardware[h], w))


FLOPS_PER_EXPONENTIAL = 256.0
"""Dense BF16 FLOP in the time of one exponential where an accelerator's file has no rate (H100)."""


def exponentials(chip: Accelerator) -> float:
    """Return the rate of the special-function units [1/s]."""
    if chip.exponential_tera_per_s is not None:
        return chip.exponential_tera_per_s * TERA
    return chip.peak_tflops["bf16"] * TERA / FLOPS_PER_EXPONENTIAL


def chip_row(hardware: HardwareClass, tp: int) -> dict[str, float]:
    """Return one row of ChipFigures (SI units)."""
    chip = hardware.accelerator
    return {
        "memory": chip.memory_gib * GIB,
        "bandwidth": chip.memory_bandwidth_gb_per_s * GB,
        "peak16": chip.peak_tflops["bf16"] * TERA,
        "exponentials": exponentials(chip),
        "link": wire(hardware, tp).rate,
        "internode": max(hardware.internode_gb_per_s, 1e-3) * GB,
        "power": float("nan") if chip.tdp_w is None else chip.tdp_w,
        "gpus_per_node": float(hardware.node_gpus),
    }


def _layout(t: Tables, c: Choices) -> LayoutFigures:
    kv_bytes = np.array([k.bytes_per_element for k in t.kv])[c.kv]
    methods = [
        (m.draft_layers, float(m.draft_head), m.draft_parameters_share) if m else (0.0, 0.0, 0.0)
        for m in t.methods
    ]
    costs = np.array(methods, dtype=float)[c.method]
    return LayoutFigures(
        tp=c.tp,
        pp=c.pp,
        dp=c.dp,
        replicas=c.replicas,
        max_sequences=c.max_sequences,
        token_budget=c.token_budget,
        kv_bytes=kv_bytes,
        draft_tokens=c.draft_tokens,
        accept_first=c.accept_first,
        accept_decay=c.accept_decay,
        draft_layers=costs[:, 0],
        draft_head=costs[:, 1],
        draft_share=costs[:, 2],
        poll_steps=c.poll_steps,
        batch_wait_steps=c.batch_wait_steps,
    )
