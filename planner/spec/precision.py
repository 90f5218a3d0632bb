"""Weight and KV-cache formats, and what they cost in quality."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.base import Name, Positive, Spec

Task = Literal["easy", "hard", "long_context"]
Size = Literal["<5B", "5-15B", "15-80B", ">80B", "all"]
Grade = Literal["good", "fair", "thin", "none"]


class QualityCell(Spec):
    """Quality loss of a format against the released checkpoint, for one size and task.

    Attributes:
        size: Band of total parameters; ``all`` where the evidence does not separate sizes.
        task: easy (knowledge, math, chat), hard (reasoning, code), long_context.
        median, p10, p90: Relative loss [%]; negative = gain.
        rows, models: Evidence behind it.
        grade: good = 30+ rows and 8+ models, fair = 10+/4+, thin = the rest, none.
    """

    size: Size
    task: Task
    median: float
    p10: float
    p90: float
    rows: Annotated[int, Field(ge=0)]
    models: Annotated[int, Field(ge=0)]
    grade: Grade


class WeightFormat(Spec):
    """A weight format.

    Attributes:
        id: Format id of design.md section 2.
        aliases: Labels seen in files.
        bytes_per_parameter: Stored and read, block scales included [B].
        weight_only: Always computes in BF16 (int4, int8-weight-only).
        weight_only_fallback: May run weight-only where the format is not native.
        default_groups_dense, default_groups_moe: Groups that a checkpoint of the format quantizes
            where the model's JSON does not say.
        needs_opt_in: Offered only if named in ``quality.allow`` (no evidence).
        quality: Loss table; empty = no loss by definition (bf16).
        quality_source: Where the table comes from, dated.
    """

    id: Name
    name: Name
    aliases: tuple[Name, ...] = ()
    bytes_per_parameter: Positive
    weight_only: bool = False
    weight_only_fallback: bool = False
    default_groups_dense: tuple[Literal["attention", "dense", "experts"], ...]
    default_groups_moe: tuple[Literal["attention", "dense", "experts"], ...]
    needs_opt_in: bool = False
    quality: tuple[QualityCell, ...] = ()
    quality_source: str = ""


class KvFormat(Spec):
    """A KV-cache format; fields as in WeightFormat."""

    id: Name
    name: Name
    aliases: tuple[Name, ...] = ()
    bytes_per_element: Positive
    needs_opt_in: bool = False
    quality: tuple[QualityCell, ...] = ()
    quality_source: str = ""


class Precisions(Spec):
    """``hardware_catalog/precisions.yaml``."""

    weights: Annotated[tuple[WeightFormat, ...], Field(min_length=1)]
    kv: Annotated[tuple[KvFormat, ...], Field(min_length=1)]
