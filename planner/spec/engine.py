"""Serving engines and their generations: scheduler, memory rule, supported formats, start."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.accelerator import Vendor
from planner.spec.base import Count, Name, Spec, Text
from planner.spec.memory import MemoryRule
from planner.spec.runtime import Runtime


class Generation(Spec):
    """Versions of an engine that behave alike.

    Attributes:
        id: Generation id (vllm-v1 ...), the key into ``efficiency.yaml``.
        aliases: Labels seen in data files (vllm_v1 ...).
        versions: Human-readable range.
        first_version: First version of it, as a tuple of numbers for look-up.
        current: Whether a plan may use it.
        scheduler: ``mixed`` batches prompts with decodes; ``prefill-first`` runs prompts alone.
        kv_reservation: ``full-length`` (prompt + all output) or ``on-demand``.
        block_tokens: KV block size [tokens].
        memory: Memory rules by version, the oldest first.
        max_num_seqs, token_budget: Defaults.
        weights, kv, speculation: Format and method ids by vendor; the others are unsupported.
        weight_only_fallback: Weight formats that it runs weight-only (BF16 arithmetic) on
            accelerators of that vendor that lack the format's own arithmetic.
        runtime: How it is started; None = not a generation that is deployed.
    """

    id: Name
    aliases: tuple[Name, ...] = ()
    versions: Name
    first_version: tuple[int, ...]
    current: bool
    scheduler: Literal["mixed", "prefill-first"]
    kv_reservation: Literal["full-length", "on-demand"]
    block_tokens: Count
    memory: Annotated[tuple[MemoryRule, ...], Field(min_length=1)]
    max_num_seqs: Count
    token_budget: Count
    weights: dict[Vendor, tuple[Name, ...]]
    weight_only_fallback: dict[Vendor, tuple[Name, ...]] = Field(default_factory=dict)
    kv: dict[Vendor, tuple[Name, ...]]
    speculation: dict[Vendor, tuple[Name, ...]] = Field(default_factory=dict)
    pipeline_parallel: bool = True
    attention_data_parallel: bool = True
    runtime: Runtime | None = None
    source: Text


class Engine(Spec):
    """One engine (a file of ``hardware_catalog/engines``)."""

    id: Name
    name: Name
    aliases: tuple[Name, ...] = ()
    searched: bool
    generations: Annotated[tuple[Generation, ...], Field(min_length=1)]
