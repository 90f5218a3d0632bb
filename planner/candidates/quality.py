"""What a pair of formats costs in quality for a model and a task, and what that rests on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from planner.counting import counted
from planner.model.quality import Losses, compose, objective
from planner.spec.precision import KvFormat, QualityCell, Size, Task, WeightFormat

PartGrade = Literal["native", "measured", "good", "fair", "thin", "none"]

TASKS: Mapping[str, tuple[Task, ...]] = {
    "chat": ("easy",),
    "rag": ("easy",),
    "summarization": ("easy",),
    "reasoning": ("hard",),
    "code": ("hard",),
    "long_context": ("easy", "long_context"),
}
"""Task of slo.yaml -> the tasks of the loss table that it must stand."""

LONG_CONTEXT_TOKENS = 64_000
"""A p95 context beyond this must stand the long-context cells too."""

NARROW_BYTES = 0.75
"""Formats below this are 4-bit; no evidence was seen for 4-bit weights with a 4-bit cache."""

_BANDS: tuple[tuple[float, Size], ...] = (
    (5e9, "<5B"),
    (15e9, "5-15B"),
    (80e9, "15-80B"),
    (float("inf"), ">80B"),
)
_GRADES: tuple[PartGrade, ...] = ("native", "measured", "good", "fair", "thin", "none")
_NEAREST: tuple[Task, ...] = ("long_context", "hard", "easy")


@dataclass(frozen=True)
class QualityCase:
    """What the loss of a format depends on besides the format.

    Attributes:
        total_parameters: Parameters of the model; decides the size band.
        task: Task of slo.yaml, a key of TASKS.
        context_tokens: p95 of prompt + output [tokens].
        native_format: Weight format of the released checkpoint, which loses nothing.
        measured: The user's own evals: loss [%] by format (``fp8``, ``kv-fp8``); they win.
        allow: Formats (same keys) to offer without evidence.
    """

    total_parameters: float
    task: str
    context_tokens: float
    native_format: str = "bf16"
    measured: Mapping[str, float] = field(default_factory=dict)
    allow: Collection[str] = ()


@dataclass(frozen=True)
class Loss:
    """Loss of a pair of formats against the released checkpoint.

    Attributes:
        median: Expected loss [%].
        p90: Pessimistic end of the evidence [%]; what ``max_loss_percent`` limits.
        objective: The median rounded up to half a point [%]; reports show the median.
        grade: Of the weaker part: native (nothing lost by definition), measured (by the user),
            good, fair, thin, or none.
        basis: The cells it rests on, for people.
        rows: Published rows of the part with fewer; 0 = native, measured or no evidence.
        supported: Whether a plan may use the pair.
        reason: Why it may not; empty = it may.
    """

    median: float
    p90: float
    objective: float
    grade: PartGrade
    basis: str
    rows: int
    supported: bool
    reason: str = ""


@dataclass(frozen=True)
class _Part:
    """Loss [%] of the weights or of the cache alone."""

    key: str
    median: float
    p90: float
    grade: PartGrade
    rows: int
    basis: str
    opt_in: bool = False


def quality_loss(weights: WeightFormat, kv: KvFormat, case: QualityCase) -> Loss:
    """Return what the pair of formats costs in quality.

    The cell of a format: native = no loss; else the user's own measurement; else the table's cell
    for the size band and task; else its cell for the task over all sizes. Where a case must stand
    several tasks, the one with the worst p90 counts, and all must have a cell. An allowed format
    without a cell takes its cell of the nearest easier task, a lower bound, or 0.

    Args:
        weights: Weight format.
        kv: KV-cache format.
        case: Model, task, context and what slo.yaml says about quality.

    Returns:
        The loss [%], not supported where evidence is missing and the format is not allowed.
    """
    native = weights.id == case.native_format
    parts = (_part(weights, weights.id, case, native=native), _part(kv, f"kv-{kv.id}", case))
    both = compose(_losses(parts[0]), _losses(parts[1]))
    narrow = max(weights.stored_bytes, kv.stored_bytes) < NARROW_BYTES
    untried = narrow and any(part.grade != "measured" for part in parts)
    reason = _reason(parts, case, untried=untried)
    known = [part for part in parts if part.grade != "native"]
    return Loss(
        median=100 * float(both.median[0]),
        p90=100 * float(both.p90[0]),
        objective=100 * float(objective(both.median)[0]),
        grade="none" if untried else max((part.grade for part in parts), key=_GRADES.index),
        basis="; ".join(part.basis for part in known) or "the released checkpoint",
        rows=min((part.rows for part in known), default=0),
        supported=not reason,
        reason=reason,
    )


def size_band(total_parameters: float) -> Size:
    """Return the size band of the loss table."""
    return next(band for limit, band in _BANDS if total_parameters < limit)


def _tasks(case: QualityCase) -> tuple[Task, ...]:
    tasks = TASKS[case.task]
    long = case.context_tokens > LONG_CONTEXT_TOKENS and "long_context" not in tasks
    return (*tasks, "long_context") if long else tasks


def _cell(fmt: WeightFormat | KvFormat, band: Size, task: Task) -> QualityCell | None:
    cells = {cell.size: cell for cell in fmt.quality if cell.task == task}
    return cells.get(band) or cells.get("all")


def _part(
    fmt: WeightFormat | KvFormat, key: str, case: QualityCase, *, native: bool = False
) -> _Part:
    if native or not (fmt.quality or fmt.needs_opt_in):
        return _Part(key, 0.0, 0.0, "native", 0, f"{key}: no loss by definition")
    if key in case.measured:
        loss = case.measured[key]
        return _Part(key, loss, loss, "measured", 0, f"{key}: {loss:g} % measured by you")
    band, tasks = size_band(case.total_parameters), _tasks(case)
    cells = [_cell(fmt, band, task) for task in tasks]
    found = [cell for cell in cells if cell is not None]
    if len(found) < len(cells):
        return _without_evidence(fmt, key, band, tasks)
    worst = max(found, key=lambda cell: cell.p90)
    basis = f"{key}, {_title(worst)}"
    return _Part(key, worst.median, worst.p90, worst.grade, worst.rows, basis, fmt.needs_opt_in)


def _without_evidence(
    fmt: WeightFormat | KvFormat, key: str, band: Size, tasks: tuple[Task, ...]
) -> _Part:
    missing = next(task for task in tasks if _cell(fmt, band, task) is None)
    nearest = (_cell(fmt, band, task) for task in _NEAREST)
    cell = next((cell for cell in nearest if cell is not None), None)
    basis = f"{key}: no evidence for {missing.replace('_', ' ')} tasks"
    if cell is None:
        return _Part(key, 0.0, 0.0, "none", 0, f"{basis}; counted as no loss", opt_in=True)
    basis = f"{basis}; at least as on {_title(cell)}"
    return _Part(key, cell.median, cell.p90, "none", 0, basis, opt_in=True)


def _title(cell: QualityCell) -> str:
    size = "all sizes" if cell.size == "all" else cell.size
    task = cell.task.replace("_", " ")
    basis = f"{counted(cell.rows, 'row')}, {counted(cell.models, 'model')}, {cell.grade}"
    return f"{task} tasks, {size}: {basis}"


def _losses(part: _Part) -> Losses:
    return Losses(np.array([part.median / 100]), np.array([part.p90 / 100]))


def _reason(parts: tuple[_Part, _Part], case: QualityCase, *, untried: bool) -> str:
    blocked = [part for part in parts if part.opt_in and part.key not in case.allow]
    if blocked:
        keys = ", ".join(part.key for part in blocked)
        return f"too little evidence for the quality of {keys}; measure it or allow it"
    if untried and not any(part.key in case.allow for part in parts):
        keys = " with ".join(part.key for part in parts)
        return f"no evidence for the quality of {keys} together; measure both or allow one"
    return ""
