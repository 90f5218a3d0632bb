"""Fitted numbers of the serving model; nothing here is keyed by a model's name."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.base import Name, Spec

Evidence = Literal["validated", "wide", "unvalidated"]
Metric = Literal["ttft", "tpot", "throughput", "time"]


class Fitted(Spec):
    """A fitted (or fixed) value with its 5-95 % interval.

    Attributes:
        value: The value used; the unit is in the key.
        low, high: 5 and 95 % of bootstraps over deployments; None = fixed, not fitted.
        rows: Rows behind it; 0 = fixed.
        source: Where it comes from.
    """

    value: float
    low: float | None = None
    high: float | None = None
    rows: Annotated[int, Field(ge=0)] = 0
    source: Name


class AcceleratorEntry(Spec):
    """Values that replace the global ones on an accelerator.

    Attributes:
        accelerators: Accelerator ids.
        generations: Engine generations it holds for; empty = all.
        before: Only engine versions before this one, as a tuple of numbers; empty = all.
        parameters: The values.
    """

    accelerators: Annotated[tuple[Name, ...], Field(min_length=1)]
    generations: tuple[Name, ...] = ()
    before: tuple[int, ...] = ()
    parameters: dict[Name, Fitted]


class LinkEntry(Spec):
    """A link class.

    Attributes:
        share: Usable share of the one-way rate.
        latency_s: Latency of one collective [s].
    """

    share: Fitted
    latency_s: Fitted


class ErrorEntry(Spec):
    """Measured / predicted of one metric for one engine generation and accelerator.

    Attributes:
        q10, q50, q90: Quantiles of measured / predicted.
        rows: Measured rows behind them.
        evidence: validated, wide or unvalidated.
    """

    generation: Name
    accelerator: Name
    metric: Metric
    rows: Annotated[int, Field(ge=0)]
    q10: Annotated[float, Field(gt=0)]
    q50: Annotated[float, Field(gt=0)]
    q90: Annotated[float, Field(gt=0)]
    evidence: Evidence
    source: Name


class Efficiency(Spec):
    """``hardware_catalog/efficiency.yaml``.

    Attributes:
        parameters: Global values.
        neutral: What generations take where they say nothing.
        generations: Values by engine generation; they win over the global ones.
        accelerators: Values by accelerator; they win over both.
        links: By link kind.
        errors: Measured / predicted, where measured.
        default_errors: One entry a metric for everything else.
    """

    parameters: dict[Name, Fitted]
    neutral: dict[Name, Fitted]
    generations: dict[Name, dict[Name, Fitted]]
    accelerators: tuple[AcceleratorEntry, ...]
    links: dict[Name, LinkEntry]
    errors: tuple[ErrorEntry, ...]
    default_errors: tuple[ErrorEntry, ...]
