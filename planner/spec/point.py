"""One deployment to score: a row of the CSV that ``plan score`` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from planner.files import Document
from planner.spec.load import KeyFaultsError, load
from planner.spec.traffic import Burstiness, HitRate

Kind = Literal["closed_loop", "open_loop", "offline_batch", "prefill_only", "decode_only"]
KIND_SYNONYMS = {"server_poisson": "open_loop"}
COLUMN_SYNONYMS = {
    "engine_gen": "engine_generation",
    "isl": "prompt_tokens",
    "input_len": "prompt_tokens",
    "osl": "output_tokens",
    "output_len": "output_tokens",
    "max_concurrency": "concurrency",
}
"""Column as benchmarks name it -> ours, which counts where a file has both."""

Tokens = Annotated[float, Field(ge=1, le=1e8)]
Requests = Annotated[float, Field(ge=1e-6, le=1e9)]
Degree = Annotated[int, Field(ge=1, le=4096)]
TokenCount = Annotated[int, Field(ge=1, le=100_000_000)]
Steps = Annotated[float, Field(ge=0, le=1e4)]

P = TypeVar("P", bound="Point")


class Point(BaseModel):
    """A deployment and what is asked of it; blank cells take the defaults.

    Attributes:
        kind: closed_loop (default with concurrency), open_loop (with rate_per_s), offline_batch,
            prefill_only, decode_only.
        concurrency: Requests in flight over all replicas.
        num_requests: Requests of the run; over concurrency = prompts per slot.
        prompt_tokens, output_tokens: Nominal lengths.
        length_factor: Lengths are uniform in [2f-1, 1] x nominal, so their mean is f x nominal.
        tp, pp, dp: Parallel degrees of a replica; one of up to 8 GPUs is taken to lie in one
            server, a larger one in servers of 8.
        max_num_seqs, token_budget: Per dp rank.
        replicas: Copies of the model; default: n_gpus / (tp * pp * dp), else 1.
        memory_fraction: Replaces the engine's default.
        gpu_memory_gib: Memory of an unnamed accelerator, or as the driver reports it.
        acceptance: Constant acceptance of a draft token (c1, with d = 1).
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    model: Annotated[str, Field(min_length=1)]
    accelerator: str = ""
    engine: str = "vllm"
    engine_version: str = ""
    engine_generation: str = ""
    weights: str = ""
    kv: str = "bf16"
    tp: Degree = 1
    pp: Degree = 1
    dp: Degree = 1
    ep: Degree = 1
    kind: Kind | None = None
    concurrency: Requests | None = None
    rate_per_s: Requests | None = None
    num_requests: Requests | None = None
    prompt_tokens: Tokens = 1024.0
    output_tokens: Tokens = 256.0
    length_factor: Annotated[float, Field(ge=0.5, le=1)] = 1.0
    replicas: Degree | None = None
    n_gpus: Degree | None = None
    max_num_seqs: TokenCount | None = None
    token_budget: TokenCount | None = None
    memory_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    max_model_len: Annotated[int, Field(ge=1)] | None = None
    gpu_memory_gib: Annotated[float, Field(gt=0)] | None = None
    speculation: str = ""
    draft_tokens: Annotated[int, Field(ge=0, le=16)] = 0
    acceptance: Annotated[float, Field(ge=0, le=1)] | None = None
    scheduler_poll_steps: Steps = 0.0
    batch_wait_steps: Steps = 0.0

    @model_validator(mode="after")
    def _states_a_load(self) -> Self:
        if self.accelerator == "" and self.gpu_memory_gib is None:
            raise ValueError("accelerator: missing; name one, or give gpu_memory_gib")
        needs = {
            "open_loop": ("rate_per_s", self.rate_per_s),
            "closed_loop": ("concurrency", self.concurrency),
            "decode_only": ("concurrency", self.concurrency),
            "offline_batch": ("num_requests", self.num_requests or self.concurrency),
        }
        if self.accelerator and self.mode in needs:
            name, value = needs[self.mode]
            if value is None:
                raise ValueError(f"{name}: missing; {self.mode} needs it")
        return self

    @property
    def copies(self) -> int:
        """Replicas, with their default."""
        if self.replicas is not None:
            return self.replicas
        return max((self.n_gpus or 1) // (self.tp * self.pp * self.dp), 1)

    @property
    def longest(self) -> float:
        """Tokens of the longest request: its prompt, and its output where it is generated."""
        alone = self.mode in ("prefill_only", "decode_only")
        return self.prompt_tokens + (0.0 if alone else self.output_tokens)

    @property
    def mode(self) -> Kind:
        """The kind, with its default."""
        if self.kind is not None:
            return self.kind
        return "open_loop" if self.rate_per_s is not None else "closed_loop"


class ArrivingPoint(Point):
    """A point to simulate: requests arrive at random.

    Attributes:
        num_requests: Requests of the run.
        prompt_tokens_p95, output_tokens_p95: p95 of log-normal lengths whose medians are
            prompt_tokens and output_tokens; None = lengths as for ``plan score``.
        burstiness, prefix_hit_rate, routing: As in slo.yaml.
    """

    num_requests: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    prompt_tokens_p95: Tokens | None = None
    output_tokens_p95: Tokens | None = None
    burstiness: Burstiness = 1.0
    prefix_hit_rate: HitRate = 0.0
    routing: Literal["least_loaded", "random"] = "least_loaded"

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        pairs = (
            ("prompt_tokens", self.prompt_tokens, self.prompt_tokens_p95),
            ("output_tokens", self.output_tokens, self.output_tokens_p95),
        )
        faults = [
            (f"{name}_p95", f"{p95:g} is below {name} {median:g}, its p50; swap or mend them")
            for name, median, p95 in pairs
            if p95 is not None and p95 < median
        ]
        if faults:
            raise KeyFaultsError(*faults)
        return self


FURTHER = tuple(name for name in ArrivingPoint.model_fields if name not in Point.model_fields)
"""Columns that only a simulation reads."""


def parse_point(values: Mapping[str, str]) -> Point:
    """Return the point of a CSV row (raises InputError)."""
    return parse_as(Point, values)


def parse_as(form: type[P], values: Mapping[str, str]) -> P:
    """Return the point of a CSV row in some form.

    Args:
        form: What is read.
        values: Cells by column name; blank = not given, unknown columns are ignored.

    Raises:
        InputError: With every fault of the row.
    """
    stated = {key: value.strip() for key, value in values.items() if value.strip()}
    given = {COLUMN_SYNONYMS[key]: stated[key] for key in COLUMN_SYNONYMS if key in stated} | stated
    if "kind" in given:
        given["kind"] = KIND_SYNONYMS.get(given["kind"], given["kind"])
    return load(Document("point", given, {}), form)
