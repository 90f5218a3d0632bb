"""Speculative-decoding methods: conditional acceptance by task, draft cost, availability."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.base import Name, NonNegative, Share, Spec, Text

AcceptanceTask = Literal["chat", "coding", "math", "rag", "summarization", "any"]
Availability = Literal["always", "mtp-layers", "public-head", "asked"]


class Acceptance(Spec):
    """Acceptance of draft token i given the ones before: c_i = c1 * d^(i-1).

    Attributes:
        task: Acceptance task; chat -> chat, code -> coding, reasoning -> math.
        tier: For methods with several tiers: ``multi-step`` or ``single-module`` (mtp), ``weak``
            (an eagle3 head that fits badly); empty = the usual one.
        c1, d: Default; d = 1 is the textbook constant alpha.
        c1_low, c1_high: Range of the evidence.
        grade: good, fair, thin.
        basis: What the row rests on.
    """

    task: AcceptanceTask
    tier: str = ""
    c1: Share
    d: Annotated[float, Field(gt=0, le=1)]
    c1_low: Share
    c1_high: Share
    grade: Literal["good", "fair", "thin"]
    basis: Text


class SpeculationMethod(Spec):
    """One method.

    Attributes:
        draft_layers: Decoder layers that one draft token costs on the target's own shape.
        draft_head: Whether each draft token also reads the output head.
        draft_parameters_share: Share of the target's parameters that a draft model has (0 = none).
        available: Rule: always (ngram), mtp-layers (config has them), public-head (the model's
            JSON names one), asked (slo.yaml names the method).
        max_draft_tokens: Largest number of draft tokens offered.
    """

    id: Name
    name: Name
    aliases: tuple[Name, ...] = ()
    draft_layers: NonNegative = 0.0
    draft_head: bool = False
    draft_parameters_share: Share = 0.0
    available: Availability
    max_draft_tokens: Annotated[int, Field(ge=1, le=16)]
    acceptance: Annotated[tuple[Acceptance, ...], Field(min_length=1)]
    source: Text


class Speculation(Spec):
    """``hardware_catalog/speculation.yaml``."""

    methods: tuple[SpeculationMethod, ...]
