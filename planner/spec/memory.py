"""How an engine accounts for device memory, by version."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.spec.base import Count, Name, NonNegative, Share, Spec, Text


class StartupDefaults(Spec):
    """What the engine profiles with where the user sets no limits.

    Attributes:
        min_memory_gib: Smallest memory of a GPU that this holds for.
        not_on: Accelerators that are excepted.
        max_num_seqs, token_budget: Batch limit and tokens of a step.
    """

    min_memory_gib: NonNegative
    not_on: tuple[Name, ...] = ()
    max_num_seqs: Count
    token_budget: Count


class StaticReserve(Spec):
    """Memory kept out of the static share where the user sets none.

    Attributes:
        constant_gib, per_gpu_gib: Kept back, and per GPU of a replica [GiB].
        per_token_mib: Per token of the step budget [MiB].
        floor_gib: At least this much on GPUs above floor_above_gib [GiB].
    """

    constant_gib: NonNegative
    per_gpu_gib: NonNegative
    per_token_mib: NonNegative
    floor_gib: NonNegative = 0.0
    floor_above_gib: NonNegative = 0.0


class MemoryRule(Spec):
    """How a generation accounts for device memory from some version on.

    Attributes:
        first_version: First version it holds for.
        fraction: Default share of memory that the engine may fill; None = by static_reserve.
        planned_fraction: The share that a plan sets by flag, as operators do who tune it.
        fraction_of: ``total`` (weights, context, activations, KV together);
            ``free-before-weights`` (weights and KV; activations live outside: SGLang);
            ``free-after-weights`` (KV alone, of what the rest leaves free: TensorRT-LLM).
        static_reserve: See fraction.
        driver_gib: Memory that the driver keeps from programs [GiB].
        context_gib: What one GPU holds beside weights, activations, KV: CUDA context ... [GiB].
        group_gib: Communication buffers of tensor parallelism by link kind; others 0 [GiB].
        sampler_bytes: Peak of sampling per sampled sequence and vocabulary entry [B].
        forward_copies: Hidden states alive at the peak of a forward pass; 0 = activations are not
            accounted for one by one, but part of context_gib.
        graph_gib, graph_gib_per_layer: CUDA graphs, where counted against the fraction [GiB].
        cache: ``whole`` = layers with a window hold all tokens; ``windows`` = the window only;
            ``grouped`` = the same, paged in equal groups of layers.
        prints: Tokens the engine states: ``pool`` = of the pool; ``longest-request`` = longest
            requests that fit, in tokens (differs for windows and recurrent states).
        startup: What it profiles with where the user sets no limits; the first that holds counts.
        whole_prompts: Up to this context, prompts are profiled whole [tokens]; 0 = in chunks.
        source: Where the rule comes from.
    """

    first_version: tuple[int, ...] = (0,)
    fraction: Share | None = None
    planned_fraction: Share
    fraction_of: Literal["total", "free-before-weights", "free-after-weights"] = "total"
    static_reserve: StaticReserve | None = None
    driver_gib: NonNegative = 0.0
    context_gib: NonNegative
    group_gib: dict[Name, NonNegative] = Field(default_factory=dict)
    sampler_bytes: NonNegative = 0.0
    forward_copies: NonNegative = 0.0
    graph_gib: NonNegative = 0.0
    graph_gib_per_layer: NonNegative = 0.0
    cache: Literal["whole", "windows", "grouped"] = "windows"
    prints: Literal["pool", "longest-request"] = "pool"
    startup: tuple[StartupDefaults, ...] = ()
    whole_prompts: Annotated[int, Field(ge=0)] = 0
    source: Text

    @model_validator(mode="after")
    def _has_a_share(self) -> Self:
        if self.fraction is None and self.static_reserve is None:
            raise ValueError("fraction: missing; state it, or static_reserve")
        return self
