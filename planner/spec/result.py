"""What a benchmark run measured, whatever tool wrote it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.base import Count, Name, NonNegative, Positive, Share, Spec

Tool = Literal["vllm-bench", "sglang-bench", "guidellm", "inference-perf", "llm-d-report"]
LatencyMetric = Literal["ttft", "tpot", "itl", "e2e"]
Load = Literal["closed_loop", "open_loop", "offline_batch"]


class Statistics(Spec):
    """One latency metric of a run [ms].

    Attributes:
        mean: Mean over requests (ITL: over gaps); None = not in the file.
        percentiles: Value by percentile in percent (50, 99.9); those that the file holds.
    """

    mean: NonNegative | None = None
    percentiles: dict[Annotated[float, Field(gt=0, lt=100)], NonNegative] = Field(
        default_factory=dict
    )


class Result(Spec):
    """One run of a benchmark tool against a whole deployment.

    TPOT is (E2E - TTFT) / (output tokens - 1), per request, in every result: a tool that counts
    it in another way has been converted, and ``notes`` say so.

    Attributes:
        tool: What wrote the file.
        file: Name of the file.
        place: Which run inside the file (``line 3``, ``benchmarks[1]``); empty = the only one.
        model: Model as the tool names it; empty = not in the file.
        load: closed_loop: a fixed number in flight; open_loop: arrivals at a rate;
            offline_batch: all at once.
        concurrency: Requests in flight at most; None = no limit.
        rate_per_s: Arrival rate asked for; None = not asked, or not in the file.
        achieved_per_s: Requests completed per second.
        requests, failed: Requests that succeeded and that did not.
        prompt_tokens, output_tokens: Mean lengths [tokens].
        ttft, tpot, itl, e2e: Latencies; None = not measured.
        output_tokens_per_s: Output of the whole deployment.
        speculated: Whether the server drafted tokens; None = the file does not say.
        notes: What was converted or is missing.
    """

    tool: Tool
    file: Name
    place: str = ""
    model: str = ""
    load: Load
    concurrency: Positive | None = None
    rate_per_s: Positive | None = None
    achieved_per_s: Positive | None = None
    requests: Count
    failed: Annotated[int, Field(ge=0)] = 0
    prompt_tokens: Positive
    output_tokens: Positive
    ttft: Statistics | None = None
    tpot: Statistics | None = None
    itl: Statistics | None = None
    e2e: Statistics | None = None
    output_tokens_per_s: Positive | None = None
    speculated: bool | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """File and place, for messages."""
        return f"{self.file} {self.place}".strip()

    @property
    def failed_share(self) -> Share:
        """Share of all requests that failed."""
        return self.failed / (self.requests + self.failed)

    def statistics(self, metric: str) -> Statistics | None:
        """Return the latency metric of a name (ttft, tpot, itl, e2e)."""
        found: Statistics | None = getattr(self, metric)
        return found


class Unusable(Spec):
    """A run in a result file that cannot be used, and why."""

    place: str
    reasons: tuple[Name, ...]


class ResultFile(Spec):
    """Everything a result file holds.

    Attributes:
        results: Runs that can be used, in the order of the file; at least one.
        unusable: The others.
    """

    results: Annotated[tuple[Result, ...], Field(min_length=1)]
    unusable: tuple[Unusable, ...] = ()
