"""Weight and KV-cache formats, and what they cost in quality."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.spec.base import Name, Positive, Spec, Text

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

    @model_validator(mode="after")
    def _quantiles_are_in_order(self) -> Self:
        if not self.p10 <= self.median <= self.p90:
            raise ValueError(
                f"p10 {self.p10}, median {self.median} and p90 {self.p90} must not fall; sort them"
            )
        return self


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
        needs_opt_in: Offered only if named in ``quality.allow`` (thin or no evidence).
        source: What the bytes and the fall-back rest on.
        quality: Loss table. Empty = no loss by definition for the widest format (the baseline);
            for any other = no evidence.
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
    source: Text | None = None
    quality: tuple[QualityCell, ...] = ()
    quality_source: Text | None = None

    @property
    def stored_bytes(self) -> float:
        """Bytes of one stored number, block scales included."""
        return self.bytes_per_parameter


class KvFormat(Spec):
    """A KV-cache format; fields as in WeightFormat."""

    id: Name
    name: Name
    aliases: tuple[Name, ...] = ()
    bytes_per_element: Positive
    needs_opt_in: bool = False
    source: Text | None = None
    quality: tuple[QualityCell, ...] = ()
    quality_source: Text | None = None

    @property
    def stored_bytes(self) -> float:
        """Bytes of one stored number, block scales included."""
        return self.bytes_per_element


class Precisions(Spec):
    """``hardware_catalog/precisions.yaml``."""

    weights: Annotated[tuple[WeightFormat, ...], Field(min_length=1)]
    kv: Annotated[tuple[KvFormat, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _every_name_means_one_format(self) -> Self:
        for kind, formats in (("weights", self.weights), ("kv", self.kv)):
            names = Counter(name.casefold() for fmt in formats for name in {fmt.id, *fmt.aliases})
            doubled = sorted(name for name, count in names.items() if count > 1)
            if doubled:
                raise ValueError(f"{kind}: {', '.join(doubled)} names two formats; keep it in one")
        return self

    @model_validator(mode="after")
    def _losses_and_bytes_have_a_source(self) -> Self:
        for kind, formats in (("weights", self.weights), ("kv", self.kv)):
            for fmt in formats:
                if fmt.source is None:
                    raise ValueError(f"{kind}: {fmt.id} has no source; add `source`")
                if fmt.quality and fmt.quality_source is None:
                    raise ValueError(f"{kind}: {fmt.id} has no quality_source; add it")
        return self

    @model_validator(mode="after")
    def _only_the_widest_format_may_lack_evidence(self) -> Self:
        kinds: tuple[tuple[str, tuple[WeightFormat | KvFormat, ...]], ...] = (
            ("weights", self.weights),
            ("kv", self.kv),
        )
        for kind, formats in kinds:
            widest = max(fmt.stored_bytes for fmt in formats)
            for fmt in formats:
                if fmt.stored_bytes < widest and not (fmt.quality or fmt.needs_opt_in):
                    raise ValueError(
                        f"{kind}: {fmt.id} has no quality cells; add them, or needs_opt_in: true"
                    )
        return self
