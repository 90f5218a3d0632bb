"""``slo.yaml``: what a person asks of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from planner.spec.base import Many, Spec
from planner.spec.lengths import Lengths, MomentLengths, QuantileLengths
from planner.spec.load import KeyFaultsError
from planner.spec.names import Names, SomeNames, Text
from planner.spec.purchase import Owned, Purchase
from planner.spec.short_forms import ShortForm
from planner.spec.targets import Targets
from planner.spec.traffic import Offline, Traffic, TrafficClass

Task = Literal["chat", "rag", "summarization", "reasoning", "code", "long_context"]
Objective = Literal[
    "usd_per_mtok_output",
    "usd_per_mtok_total",
    "ttft_p50_ms",
    "ttft_p95_ms",
    "tpot_p50_ms",
    "tpot_p95_ms",
    "e2e_p95_ms",
    "quality_loss_percent",
    "gpus",
    "power_w",
    "kwh_per_mtok_output",
]
DEFAULT_OBJECTIVES: tuple[Objective, ...] = (
    "usd_per_mtok_output",
    "tpot_p95_ms",
    "ttft_p95_ms",
    "quality_loss_percent",
)
_Percent = Annotated[float, Field(ge=-100, le=100)]


class Autoscale(Spec):
    """Replicas follow the load profile.

    Attributes:
        boot_minutes: Time until a new replica serves [min].
    """

    boot_minutes: Annotated[float, Field(ge=0, le=1440)]


class Quality(Spec):
    """How much quality may be lost to quantization.

    Attributes:
        max_loss_percent: Most loss against the released checkpoint, at the pessimistic end
            (p90) of the evidence [%]; None = no limit.
        measured: Own results by weight-format id, or ``kv-`` and the cache format [%];
            negative = gain. They replace the table.
        allow: Formats without evidence that may be offered all the same.
    """

    max_loss_percent: Annotated[float, Field(ge=0, le=100)] | None = None
    measured: dict[Text, _Percent] = Field(default_factory=dict)
    allow: Names = ()


class DraftAcceptance(Spec):
    """Chance that draft token i is accepted, given the ones before: c1 * d^(i-1).

    A bare number in the file is c1 with d = 1.

    Attributes:
        c1: For the first draft token.
        d: Decay from one draft token to the next.
    """

    c1: Annotated[float, Field(gt=0, lt=1)]
    d: Annotated[float, Field(gt=0, le=1)] = 1.0


def _constant_acceptance(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"c1": value}
    return value


_Acceptance = Annotated[
    DraftAcceptance,
    BeforeValidator(_constant_acceptance),
    ShortForm({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
]


class SpeculationChoice(Spec):
    """Speculative decoding.

    Attributes:
        methods: Methods to try (``off`` = none); None = all that the model and engine offer.
        acceptance: Own acceptance by method, instead of the catalog's.
    """

    methods: SomeNames | None = None
    acceptance: dict[Text, _Acceptance] = Field(default_factory=dict)


class Slo(Spec):
    """The whole file. Written by key ``slo``, the targets are attribute ``targets``.

    Attributes:
        model: Known name, ``hub:org/name``, or path to a Hugging Face config.json or model folder.
        task: What the model is used for; moves quality loss and draft acceptance.
        traffic: Load.
        targets: Latency targets (key ``slo``); may be empty for offline work.
        headroom: Share of the predicted safe rate that is used until a simulation has checked
            the option. Where the file states none, 0.7 for outputs below 100 tokens on average.
        routing: How requests are spread over replicas.
        autoscale: Replicas follow ``traffic.load_profile``.
        quality: How much quality may be lost to quantization.
        speculation: Methods of speculative decoding to try, and their acceptance.
        objectives: Two to four things to trade off; the cost always is one more.
        purchase: What may be bought, where, and how much of it.
        engines: Engines to choose from; empty = every searched one.
    """

    model: Text
    task: Task = "chat"
    traffic: Traffic
    targets: Annotated[Targets, Field(alias="slo")] = Targets()
    headroom: Annotated[float, Field(gt=0, le=1)] = 0.8
    routing: Literal["least_loaded", "random"] = "least_loaded"
    autoscale: Autoscale | None = None
    quality: Quality = Quality()
    speculation: SpeculationChoice = SpeculationChoice()
    objectives: Annotated[Many[Objective], Field(min_length=2, max_length=4)] = DEFAULT_OBJECTIVES
    purchase: Purchase = Purchase()
    engines: Names = ()

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        faults = list(self._faults())
        if faults:
            raise KeyFaultsError(*faults)
        return self

    def _faults(self) -> Iterator[tuple[str, str]]:
        offline = self.traffic.offline is not None
        named = self.targets.items() or any(kind.slo.items() for kind in self.traffic.classes or ())
        if not named and not offline:
            yield "slo", "no target; add one such as ttft_p95_ms: 800, or traffic.offline"
        if self.targets.items() and offline:
            yield "slo", "offline work has a deadline, not a latency target; remove the targets"
        for number, kind in enumerate(self.traffic.classes or ()):
            # Records state the default of what slo.yaml leaves out.
            if kind.slo.confidence not in (self.targets.confidence, Targets().confidence):
                yield (
                    f"traffic.classes[{number}].slo.confidence",
                    "one confidence holds for all classes; state it under slo",
                )
        if self.autoscale is not None and self.traffic.load_profile is None:
            yield "autoscale", "has no load to follow; add traffic.load_profile"
        if len(set(self.objectives)) < len(self.objectives):
            yield "objectives", "one is named twice; keep one"


__all__ = [
    "DEFAULT_OBJECTIVES",
    "Autoscale",
    "DraftAcceptance",
    "Lengths",
    "MomentLengths",
    "Objective",
    "Offline",
    "Owned",
    "Purchase",
    "Quality",
    "QuantileLengths",
    "Slo",
    "SpeculationChoice",
    "Targets",
    "Task",
    "Traffic",
    "TrafficClass",
]
