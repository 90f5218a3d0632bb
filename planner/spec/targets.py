"""Latency targets: metric x percentile, in milliseconds."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from planner.spec.base import Spec
from planner.spec.load import KeyFaultsError

Milliseconds = Annotated[float, Field(gt=0, le=1e9)]

METRICS = ("ttft", "tpot", "itl", "e2e")
PERCENTILES = (50, 90, 95, 99)


class Targets(Spec):
    """The ``slo`` block: upper limits [ms], each None if there is none.

    TTFT = time to first token; TPOT = (E2E - TTFT) / (output tokens - 1), per request;
    ITL = gap between two tokens; E2E = arrival to last token.

    Attributes:
        ttft_p50_ms, ttft_p90_ms, ttft_p95_ms, ttft_p99_ms: Most time to the first token [ms].
        tpot_p50_ms, tpot_p90_ms, tpot_p95_ms, tpot_p99_ms: Most time per further token [ms].
        itl_p50_ms, itl_p90_ms, itl_p95_ms, itl_p99_ms: Longest gap between two tokens [ms].
        e2e_p50_ms, e2e_p90_ms, e2e_p95_ms, e2e_p99_ms: Most time from arrival to last token [ms].
        confidence: One-sided, per target: prediction x that quantile of measured / predicted
            must stay within the limit; 0.5 = no margin. Of offline work: the length of the run.
    """

    ttft_p50_ms: Milliseconds | None = None
    ttft_p90_ms: Milliseconds | None = None
    ttft_p95_ms: Milliseconds | None = None
    ttft_p99_ms: Milliseconds | None = None
    tpot_p50_ms: Milliseconds | None = None
    tpot_p90_ms: Milliseconds | None = None
    tpot_p95_ms: Milliseconds | None = None
    tpot_p99_ms: Milliseconds | None = None
    itl_p50_ms: Milliseconds | None = None
    itl_p90_ms: Milliseconds | None = None
    itl_p95_ms: Milliseconds | None = None
    itl_p99_ms: Milliseconds | None = None
    e2e_p50_ms: Milliseconds | None = None
    e2e_p90_ms: Milliseconds | None = None
    e2e_p95_ms: Milliseconds | None = None
    e2e_p99_ms: Milliseconds | None = None
    confidence: Annotated[float, Field(ge=0.5, le=0.99)] = 0.8

    def items(self) -> tuple[tuple[str, int, float], ...]:
        """Return (metric, percentile, limit [ms]) of every target that is set."""
        limits = (
            (metric, percentile, getattr(self, f"{metric}_p{percentile}_ms"))
            for metric in METRICS
            for percentile in PERCENTILES
        )
        return tuple(target for target in limits if target[2] is not None)

    @model_validator(mode="after")
    def _percentiles_in_order(self) -> Self:
        targets = self.items()
        faults = [
            (
                f"{metric}_p{high}_ms",
                f"{limit:g} is below {metric}_p{low}_ms {lower:g}, which then never binds; "
                "swap or mend them",
            )
            for (name, low, lower), (metric, high, limit) in pairwise(targets)
            if name == metric and limit < lower
        ]
        if faults:
            raise KeyFaultsError(*faults)
        return self
