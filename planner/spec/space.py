"""A search space: which deployments a plan looks at (``search_spaces/*.yaml``)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.spec.base import Count, Many, Spec
from planner.spec.load import KeyFaultsError
from planner.spec.names import Names, SomeNames, Text

ALL = "all"
"""In ``weights`` and ``kv``: every format that model, engine and accelerator can run."""

Condition = Literal[
    "tp_divides_node",
    "tp_within_link_domain",
    "pp_only_across_nodes_or_when_needed",
    "dp_only_moe_or_mla",
    "dp_only_mla",
    "replica_within_node",
    "replica_spans_whole_servers",
]
"""Rules that leave out shapes nobody would run; memory and engine limits always hold.

tp_divides_node: tp divides the GPUs of an instance or is a multiple of them.
tp_within_link_domain: tp reaches no further than the scale-up link.
pp_only_across_nodes_or_when_needed: pp > 1 only if the replica spans instances, or if no pp = 1
    shape of the same formats fits in memory.
dp_only_moe_or_mla: attention data parallel > 1 only for mixtures of experts or latent attention.
dp_only_mla: attention data parallel > 1 only for latent attention.
replica_within_node: tp * pp * dp is at most the GPUs of an instance.
replica_spans_whole_servers: a replica reaches beyond its instance only where instances are whole
    servers (8 GPUs, or all that the link joins): parts of servers come without a fast network.
"""

Choices = Annotated[Many[Count], Field(min_length=1)]


class SpeculationRange(Spec):
    """One method and the numbers of draft tokens to try; ``off`` has none."""

    method: Text
    draft_tokens: Many[Annotated[int, Field(ge=1, le=16)]] = ()

    @model_validator(mode="after")
    def _only_off_drafts_nothing(self) -> Self:
        if (self.method == "off") == bool(self.draft_tokens):
            message = "missing; add a list such as [1, 3]"
            if self.draft_tokens:
                message = "off drafts nothing; remove it"
            raise KeyFaultsError(("draft_tokens", message))
        return self


class ReplicaRange(Spec):
    """Numbers of replicas to try.

    Attributes:
        max: Most replicas.
        spread: Factors on the fewest replicas that carry the load; rounded up, without repeats.
    """

    max: Count
    spread: Annotated[Many[Annotated[float, Field(ge=1)]], Field(min_length=1)]


class SearchSpace(Spec):
    """One space. Every list is a set of choices; the space is their product under `conditions`.

    Attributes:
        id: File stem.
        description: What it is for, in a sentence.
        weights, kv: Format ids, or ``all``.
        tensor_parallel, pipeline_parallel, data_parallel: Degrees; dp = attention data parallel.
        speculation: Methods and draft lengths.
        max_num_seqs: Sequences in flight, per dp rank.
        token_budget: Tokens per step, per dp rank.
        replicas: Numbers of replicas.
        engines: Engine ids; empty = every searched one.
        conditions: Rules that every shape keeps.
    """

    id: Text
    description: Text
    weights: SomeNames
    kv: SomeNames
    tensor_parallel: Choices
    pipeline_parallel: Choices
    data_parallel: Choices
    speculation: Annotated[Many[SpeculationRange], Field(min_length=1)]
    max_num_seqs: Choices
    token_budget: Choices
    replicas: ReplicaRange
    engines: Names = ()
    conditions: Many[Condition] = ()

    @model_validator(mode="after")
    def _no_choice_twice(self) -> Self:
        lists = {name: getattr(self, name) for name in type(self).model_fields}
        faults = [
            (name, "one choice is named twice; keep one")
            for name, choices in lists.items()
            if isinstance(choices, tuple) and len(set(choices)) < len(choices)
        ]
        if faults:
            raise KeyFaultsError(*faults)
        return self
