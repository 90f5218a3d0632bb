"""One deployment that can be bought, as ``plan.json`` holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from planner.spec.base import Count, Name, NonNegative, Positive, Share, Spec, Whole
from planner.spec.efficiency import Evidence
from planner.spec.money import Energy, Money

LossGrade = Literal["native", "measured", "good", "fair", "thin", "none"]

Reason = Literal["unvalidated evidence", "flagged price", "beyond the gates"]
GATED: Reason = "beyond the gates"
"""The formula is not to be trusted with the option; a lower rate or more replicas lift that."""

Resource = Literal[
    "memory",
    "prefill",
    "decode",
    "link",
    "launch",
    "queue",
    "batch",
    "time",
    "money",
    "quality",
    "quota",
    "power",
]


class Latency(Spec):
    """One latency metric of an option [ms].

    Attributes:
        p50_ms, p95_ms: Predicted percentiles.
        p50_upper_ms, p95_upper_ms: The same times the margin for the confidence asked.
    """

    p50_ms: Positive
    p95_ms: Positive
    p50_upper_ms: Positive
    p95_upper_ms: Positive


class TargetResult(Spec):
    """One target of slo.yaml and how an option does against it.

    Attributes:
        key: As in slo.yaml (``ttft_p95_ms``), or ``deadline_hours``.
        limit: The target, in the key's unit.
        predicted, upper: Prediction without and with margin, in the key's unit; None = without
            bound.
        holds: Whether the upper value is within the limit.
    """

    key: Name
    limit: Positive
    predicted: Positive | None
    upper: Positive | None
    holds: bool


class MemoryUse(Spec):
    """Memory of the fullest GPU of a replica [GiB]; the parts add up to device_gib.

    Attributes:
        device_gib: As the driver reports it.
        weights_gib: Weights, draft head included.
        kv_pool_gib: Room for the KV cache.
        reserve_gib: Held back for context, activations, graphs.
        unused_gib: What the engine's memory share leaves alone.
        kv_bytes_per_token: KV cache of one further token [B].
        sequences: Sequences of the mean workload that fit, per dp rank.
    """

    device_gib: Positive
    weights_gib: NonNegative
    kv_pool_gib: NonNegative
    reserve_gib: NonNegative
    unused_gib: float
    kv_bytes_per_token: NonNegative
    sequences: NonNegative


class QualityLoss(Spec):
    """Quality loss against the released checkpoint [%].

    Attributes:
        median, p90: Middle and pessimistic end of the evidence.
        grade: native (nothing lost by definition), measured (by the user), good, fair, thin, none.
        basis, rows: What the evidence is, and how many results.
    """

    median: float
    p90: float
    grade: LossGrade
    basis: str
    rows: Whole


class Binding(Spec):
    """What keeps an option from being cheaper or faster.

    Attributes:
        limit: The tightest limit: a target's key, ``headroom``, ``budget_usd_per_hour`` ...
        use: Share of that limit that is used.
        resource: What runs out there.
    """

    limit: Name
    use: NonNegative
    resource: Resource


class Interval(Spec):
    """Where a figure lies in 80 of 100 cases, by the measured error of the model.

    Attributes:
        low, high: 10 and 90 % ends, in the figure's unit; None = without bound: at the lowest
            acceptance of drafts that the catalog knows the load is beyond the capacity.
    """

    low: Positive
    high: Positive | None


class Intervals(Spec):
    """80 % intervals of an option; None = does not apply.

    Attributes:
        ttft_p95_ms, tpot_p95_ms: Latencies [ms].
        run_hours: Length of an offline run [h].
        capacity_tokens_per_s: Output at full utilization [tokens/s].
        usd_per_mtok_full: Cost per million output tokens at full utilization [USD]. At the mean
            rate the fleet costs what it costs, whatever it could carry beyond. None in plans of
            older versions.
    """

    ttft_p95_ms: Interval | None = None
    tpot_p95_ms: Interval | None = None
    run_hours: Interval | None = None
    capacity_tokens_per_s: Interval
    usd_per_mtok_full: Interval | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_what_older_versions_say(cls, data: Any) -> Any:
        """Drop their interval of the cost at the mean rate, which does not vary."""
        if not isinstance(data, Mapping):
            return data
        return {key: value for key, value in data.items() if key != "usd_per_mtok_output"}


class Option(Spec):
    """One deployment that can be bought, with everything a reader needs.

    Attributes:
        id: ``o-`` and 8 hex digits of the deployment; survives new prices.
        hardware: Hardware class id; accelerator, accelerator_name: its chip.
        archive_row: Row in that class's archive.
        provider, region: Where; the full price row is in ``money``.
        instances, gpus: Whole instances and GPUs bought, spares included.
        gpus_per_replica: tp * pp * dp.
        engine, generation: Engine and engine generation.
        weights, kv: Formats.
        tp, pp, dp, replicas: Layout; replicas that carry load.
        spare_replicas: Replicas bought beyond.
        max_num_seqs, token_budget: Limits of a step, per dp rank.
        speculation, draft_tokens: Method (``off``) and draft tokens.
        acceptance: Chance that the first draft token is accepted, and its decay; None = off.
        acceptance_range: Ends of the catalog's evidence for the first; None = off, not the
            catalog's, or a plan of an older version.
        ttft, tpot, e2e: Latencies; None offline.
        bound_tpot_ms: TPOT at the speed of light (all efficiencies 1) at the option's own batch.
        targets: Every target of slo.yaml.
        utilization, wait_probability, slots: As in Rows.
        rate_per_s: Rate sized for [1/s]; offline: mean rate of the run.
        output_tokens_per_s, capacity_tokens_per_s: As in Rows.
        run_hours: Offline: length of the run, what interruptions add on spot included.
        memory: Break-down per GPU.
        money: Cost.
        quality: Loss.
        power_w: Rated power of the GPUs bought [W].
        energy: Power and energy, servers included; None = unknown.
        evidence: How well this engine generation is known on this accelerator.
        intervals: 80 % intervals, of latencies around what a simulation said of the option, if one
            did, else around the formula; None in plans of older versions.
        flags: Why the option is not picked without asking; empty = trusted.
        binding: Limit that binds.
    """

    id: Annotated[str, Field(pattern=r"^o-[0-9a-f]{8}$")]
    hardware: Name
    accelerator: Name
    accelerator_name: Name
    archive_row: Whole
    provider: Name
    region: Name
    instances: Count
    gpus: Count
    gpus_per_replica: Count
    engine: Name
    generation: Name
    weights: Name
    kv: Name
    tp: Count
    pp: Count
    dp: Count
    replicas: Count
    spare_replicas: Whole
    max_num_seqs: Count
    token_budget: Count
    speculation: Name
    draft_tokens: Whole
    acceptance: tuple[Share, Positive] | None
    acceptance_range: tuple[Share, Share] | None = None
    ttft: Latency | None
    tpot: Latency | None
    e2e: Latency | None
    bound_tpot_ms: Positive
    targets: tuple[TargetResult, ...]
    utilization: NonNegative
    wait_probability: Share | None
    slots: NonNegative
    rate_per_s: Annotated[float, Field(gt=0, le=1e9)]
    output_tokens_per_s: Positive
    capacity_tokens_per_s: Positive
    run_hours: Positive | None
    memory: MemoryUse
    money: Money
    quality: QualityLoss
    power_w: Positive | None
    energy: Energy | None = None
    evidence: Evidence
    intervals: Intervals | None = None
    flags: tuple[Reason, ...]
    binding: Binding

    @property
    def lease_outlasts_run(self) -> bool:
        """Whether offline work ends before the lease that is paid for does."""
        lease = self.money.price.lease
        return self.run_hours is not None and lease is not None and lease.hours > self.run_hours
