"""Points (rows of the CSV of ``plan score``) -> Candidates and loads, with a status a row."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from planner.candidates.choices import Choices, Tables, build
from planner.candidates.efficiency import Stack
from planner.candidates.hardware import HardwareClass, hardware_class
from planner.candidates.memory_rule import memory_rule, startup
from planner.candidates.models import architecture_of
from planner.candidates.support import (
    Layout,
    kv_fault,
    layout_fault,
    speculation_fault,
    weights_fault,
)
from planner.catalog import Catalog, version_numbers
from planner.errors import InputError
from planner.model.arrays import Candidates, Floats, Indices
from planner.model.batching import Load
from planner.spec.accelerator import Accelerator, Link
from planner.spec.architecture import Architecture
from planner.spec.base import Source
from planner.spec.engine import Generation
from planner.spec.point import Point
from planner.spec.precision import KvFormat, WeightFormat
from planner.spec.speculation import SpeculationMethod
from planner.units import GIB

SERVER_GPUS = 8
"""GPUs per server where a point does not say."""
NEAR_MEMORY = 0.03
"""Accelerators whose memory differs by less than this share may be the same chip."""
OWN_4BIT = "fp4"
"""Checkpoint label: the model's own 4-bit format."""
OFF = ("", "off", "none")
BEYOND_CONTEXT = "beyond_context"
"""Status of a point whose requests are longer than its model was made for; it has figures."""
SCORED = frozenset({"ok", BEYOND_CONTEXT})
"""Statuses of points that have all figures."""
INVALID = "invalid"
"""Status of a point that names or states what cannot be."""

T = TypeVar("T")


class Interned(Generic[T]):
    """A list of distinct values and the index of each."""

    def __init__(self, *values: T) -> None:
        self.values: list[T] = []
        self._index: dict[Hashable, int] = {}
        for number, value in enumerate(values):
            self.add(number, value)

    def add(self, key: Hashable, value: T) -> int:
        """Return the index of the value with this key, adding it if it is new."""
        if key not in self._index:
            self._index[key] = len(self.values)
            self.values.append(value)
        return self._index[key]


@dataclass(frozen=True)
class Resolved:
    """A point with its names replaced by catalog entries."""

    point: Point
    architecture: Architecture
    accelerator: Accelerator
    stack: Stack
    weights: WeightFormat
    kv: KvFormat
    method: SpeculationMethod | None
    hardware: HardwareClass
    memory_only: bool


@dataclass(frozen=True)
class Rejected:
    """Why a point cannot be scored: a status of ``plan score`` and its reason."""

    status: str
    reason: str


@dataclass(frozen=True)
class Batch:
    """The points that can be scored, as columns.

    Attributes:
        rows: Position of each candidate among the points given.
        resolved: Names resolved, in the same order.
        candidates, load: Columns, (n,).
    """

    rows: Indices
    resolved: tuple[Resolved, ...]
    candidates: Candidates
    load: Load


@dataclass
class PointResolver:
    """Resolves names against a catalog; remembers what it has looked up."""

    catalog: Catalog
    _architectures: dict[str, Architecture | InputError] = field(default_factory=dict)
    _generations: dict[tuple[str, str], Generation] = field(default_factory=dict)

    def architecture(self, name: str) -> Architecture:
        """Return the architecture of a known name or config path (raises InputError)."""
        if name not in self._architectures:
            try:
                self._architectures[name] = architecture_of(name)
            except InputError as error:
                self._architectures[name] = error
        found = self._architectures[name]
        if isinstance(found, InputError):
            raise found
        return found

    def _generation(self, engine: str, version: str) -> Generation:
        key = (engine, version)
        if key not in self._generations:
            self._generations[key] = self.catalog.generation(engine, version)
        return self._generations[key]

    def resolve(self, point: Point) -> Resolved | Rejected:
        """Return the point with catalog entries, or why it cannot be scored."""
        try:
            architecture = self.architecture(point.model)
        except InputError as error:
            return Rejected("unknown_model", _one_line(error))
        try:
            return self._with_entries(point, architecture)
        except InputError as error:
            return Rejected("unsupported", _one_line(error))

    def _with_entries(self, point: Point, architecture: Architecture) -> Resolved | Rejected:
        catalog = self.catalog
        memory_only = point.accelerator == ""
        accelerator = (
            self._anonymous(point.gpu_memory_gib or 1.0)
            if memory_only
            else catalog.accelerator(point.accelerator)
        )
        unknown = point.engine_generation and catalog.generation_fault(
            point.engine, point.engine_generation
        )
        if unknown:
            return Rejected(INVALID, f"engine_generation: {unknown}")
        generation = self._generation(point.engine, point.engine_generation or point.engine_version)
        stack = Stack(generation, version_numbers(point.engine_version))
        weights = catalog.weight_format(_format_name(point.weights, architecture))
        kv = catalog.kv_format(point.kv)
        off = point.speculation.casefold() in OFF
        method = None if off else catalog.speculation_method(point.speculation)
        hardware = hardware_class(accelerator, max(SERVER_GPUS, memory_only * point.tp))
        layout = Layout(point.tp, point.pp, point.dp, point.ep)
        faults = (
            ()
            if memory_only
            else (
                weights_fault(stack, accelerator, weights),
                kv_fault(stack, accelerator, kv),
                speculation_fault(stack, accelerator, architecture, method, asked=True),
                _length_fault(point),
            )
        )
        reasons = [r for r in (*faults, layout_fault(stack, hardware, architecture, layout)) if r]
        if reasons:
            return Rejected("unsupported", "; ".join(reasons))
        return Resolved(
            point, architecture, accelerator, stack, weights, kv, method, hardware, memory_only
        )

    def _anonymous(self, memory_gib: float) -> Accelerator:
        """An accelerator of which only the memory matters.

        Its link is the fastest of those that accelerators of nearly its memory have.
        """
        import datetime

        return Accelerator.model_construct(
            id="unnamed",
            name="unnamed",
            vendor="nvidia",
            generation="unnamed",
            aliases=(),
            memory_gib=memory_gib,
            memory_bandwidth_gb_per_s=1.0,
            peak_tflops={"bf16": 1.0},
            link=self._likely_link(memory_gib),
            pcie_gb_per_s=None,
            internode_gb_per_s=None,
            tdp_w=None,
            borrow=None,
            notes="",
            sources=(
                Source.model_validate(
                    {
                        "for": ("memory_gib",),
                        "title": "assumed: given by the user",
                        "retrieved": datetime.date(2026, 11, 29),
                    }
                ),
            ),
        )

    def _likely_link(self, memory_gib: float) -> Link | None:
        known = sorted(
            self.catalog.accelerators.values(), key=lambda a: abs(a.memory_gib - memory_gib)
        )
        near = [a for a in known if abs(a.memory_gib - memory_gib) <= NEAR_MEMORY * memory_gib]
        links = [a.link for a in near or known[:1] if a.link is not None]
        return max(links, key=lambda link: link.gb_per_s, default=None)


def _length_fault(point: Point) -> str | None:
    """Return why the engine would refuse the requests; None = it would not."""
    limit = point.max_model_len
    if limit is None or point.longest <= limit:
        return None
    return f"requests of {point.longest:,.0f} tokens are longer than max_model_len {limit:,}"


def beyond_context(resolved: Resolved) -> str:
    """Return that requests are longer than the model was made for; empty = they are not.

    Engines can be told to take them, and benchmarks do.
    """
    longest, context = resolved.point.longest, resolved.architecture.max_context_tokens
    if resolved.memory_only or longest <= context:
        return ""
    return f"requests of {longest:,.0f} tokens are beyond the model's context of {context:,}"


def _one_line(error: InputError) -> str:
    return "; ".join(str(fault) for fault in error.faults)


def _format_name(label: str, architecture: Architecture) -> str:
    """Return a weight-format name: blank = as released, ``fp4`` = the model's own 4-bit format."""
    if not label:
        return architecture.native_format
    if label.casefold() == OWN_4BIT:
        return "mxfp4" if architecture.native_format == "mxfp4" else "nvfp4"
    return label


def to_batch(catalog: Catalog, resolved: Sequence[Resolved], rows: Sequence[int]) -> Batch:
    """Return the columns of resolved points.

    Args:
        catalog: For the fitted values.
        resolved: At least one point.
        rows: Their positions among the points given.
    """
    tables, choices = _choices(catalog, resolved)
    candidates = _with_overrides(build(tables, choices), resolved)
    return Batch(np.asarray(rows, dtype=np.intp), tuple(resolved), candidates, _load(resolved))


def _choices(catalog: Catalog, resolved: Sequence[Resolved]) -> tuple[Tables, Choices]:
    architectures: Interned[Architecture] = Interned()
    hardware: Interned[HardwareClass] = Interned()
    stacks: Interned[Stack] = Interned()
    weights: Interned[WeightFormat] = Interned()
    kv: Interned[KvFormat] = Interned()
    methods: Interned[SpeculationMethod | None] = Interned(None)
    indices = np.array(
        [
            (
                architectures.add(id(r.architecture), r.architecture),
                hardware.add(r.hardware.id, r.hardware),
                stacks.add((r.stack.generation.id, r.stack.version), r.stack),
                weights.add(r.weights.id, r.weights),
                kv.add(r.kv.id, r.kv),
                methods.add(r.method.id, r.method) if r.method else 0,
            )
            for r in resolved
        ],
        dtype=np.intp,
    )
    numbers = np.array([_numbers(r) for r in resolved], dtype=float)
    tables = Tables(
        calibration=catalog.calibration,
        efficiency=catalog.efficiency,
        architectures=tuple(architectures.values),
        hardware=tuple(hardware.values),
        stacks=tuple(stacks.values),
        weights=tuple(weights.values),
        kv=tuple(kv.values),
        methods=tuple(methods.values),
    )
    return tables, Choices(*indices.T, *numbers.T)


def _numbers(r: Resolved) -> tuple[float, ...]:
    p, generation = r.point, r.stack.generation
    drafts = float(p.draft_tokens) if r.method else 0.0
    return (
        float(p.tp),
        float(p.pp),
        float(p.dp),
        float(p.copies),
        float(p.max_num_seqs or generation.max_num_seqs),
        float(p.token_budget or generation.token_budget),
        drafts,
        p.acceptance if p.acceptance is not None else 0.0,
        1.0,
        p.scheduler_poll_steps,
        p.batch_wait_steps,
    )


def _column(resolved: Sequence[Resolved], name: str) -> Floats:
    """Return an optional field of the points; NaN where it is not given."""
    return np.array([getattr(r.point, name) or np.nan for r in resolved], dtype=float)


def _with_overrides(c: Candidates, resolved: Sequence[Resolved]) -> Candidates:
    memory = _column(resolved, "gpu_memory_gib") * GIB
    chip = replace(c.chip, memory=np.where(np.isnan(memory), c.chip.memory, memory))
    profiled = np.array([_startup(r) for r in resolved], dtype=float)
    engine = replace(
        c.engine,
        memory_share=np.array([_memory_share(r) for r in resolved], dtype=float),
        driver=np.where(np.isnan(memory), c.engine.driver, 0.0),
        startup_sequences=profiled[:, 0],
        startup_tokens=profiled[:, 1],
    )
    return replace(c, chip=chip, engine=engine)


def _memory_share(r: Resolved) -> float:
    """Share as stated, else what a plan sets.

    Of an engine that is looked at for its memory alone, its own default; NaN = by its reserve.
    """
    if r.point.memory_fraction is not None:
        return r.point.memory_fraction
    rule = memory_rule(r.stack.generation, r.stack.version)
    default = math.nan if rule.fraction is None else rule.fraction
    return default if r.memory_only else rule.planned_fraction


def _startup(r: Resolved) -> tuple[float, float]:
    """Batch limit and token budget of the start-up profile; NaN = as the point states."""
    p = r.point
    memory = p.gpu_memory_gib or r.accelerator.memory_gib
    rule = memory_rule(r.stack.generation, r.stack.version)
    sequences, tokens = startup(rule, r.accelerator, memory, p.max_model_len)
    return (
        math.nan if p.max_num_seqs else sequences,
        math.nan if p.token_budget else tokens,
    )


def _load(resolved: Sequence[Resolved]) -> Load:
    factor = _column(resolved, "length_factor")
    concurrency = np.nan_to_num(_column(resolved, "concurrency"), nan=np.inf)
    requests = _column(resolved, "num_requests")
    requests = np.where(np.isnan(requests), concurrency, requests)
    run = np.isfinite(_column(resolved, "num_requests")) & np.isfinite(concurrency)
    waves = np.full(len(factor), np.inf)
    waves[run] = np.maximum(requests[run] / concurrency[run], 1.0)
    return Load(
        prompt=_column(resolved, "prompt_tokens") * factor,
        output=_column(resolved, "output_tokens") * factor,
        identical=(factor == 1.0).astype(float),
        prefix_hit=np.zeros_like(factor),
        concurrency=concurrency,
        waves=waves,
        requests=requests,
    )
