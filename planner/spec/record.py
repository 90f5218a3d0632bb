"""``plan.json``: everything a plan rests on, found, and answers; renders without a model or price.

Numbers have 6 significant digits; None stands for "does not apply" or "without bound". The record
holds no wall clock, so the same inputs, seed and versions give the same bytes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from planner.spec.base import Count, Name, NonNegative, Positive, Share, Spec
from planner.spec.calibration import Calibration
from planner.spec.efficiency import Evidence
from planner.spec.money import Draw, Energy, Money
from planner.spec.offer import Offer
from planner.spec.trace import TraceSummary
from planner.spec.verification import Simulated, Verification

Whole = Annotated[int, Field(ge=0)]
LossGrade = Literal["native", "measured", "good", "fair", "thin", "none"]
Reason = Literal["unvalidated evidence", "flagged price", "beyond the gates"]
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


class Inputs(Spec):
    """What the plan was asked.

    Attributes:
        slo: The whole of slo.yaml, by its own keys, defaults filled in.
        catalog_digest: SHA-256 over the catalog's files and price files.
        space: The whole search space, by its own keys.
        calibration: The calibration file that was applied; None = none.
        seed: Seed of the search.
        as_of: Date that prices are judged by, YYYY-MM-DD.
        trace: The trace whose figures stand in `slo`; None = slo.yaml named none.
    """

    slo: dict[str, Any]
    catalog_digest: Name
    space: dict[str, Any]
    calibration: Calibration | None = None
    seed: int
    as_of: Name
    trace: TraceSummary | None = None


class Hardware(Spec):
    """A hardware class.

    Attributes:
        id: Readable key, as ``h100-sxm x8 nvlink 50``.
        accelerator: Catalog id.
        name: Vendor's name of the accelerator.
        gpus_per_instance: GPUs that one instance holds.
        link: Link between them.
        link_domain: GPUs that reach each other over it.
        link_gb_per_s, internode_gb_per_s: One-way rates per GPU [1e9 B/s]; 0 = unknown.
        memory_gib: Memory of one GPU as the driver reports it [GiB].
        assumed: Catalog figures of the accelerator that are guesses.
        draw: Power of a GPU; None = unknown.
    """

    id: Name
    accelerator: Name
    name: Name
    gpus_per_instance: Count
    link: Name
    link_domain: Count
    link_gb_per_s: NonNegative
    internode_gb_per_s: NonNegative
    memory_gib: Positive
    assumed: tuple[Name, ...] = ()
    draw: Draw | None = None


class Margin(Spec):
    """Factors on predictions for one engine generation, at the confidence that slo.yaml asks.

    Attributes:
        generation: Engine generation.
        ttft, tpot, e2e: Quantile of measured / predicted at that confidence, at least 1.
        evidence: How well the generation is known on this accelerator.
    """

    generation: Name
    ttft: Positive
    tpot: Positive
    e2e: Positive
    evidence: Evidence


class Rows(Spec):
    """Deployments as a struct of columns: row i of every column is the same deployment.

    Attributes:
        engine, generation, weights, kv: Ids.
        tp, pp, dp: Tensor, pipeline, attention data parallel degree of a replica.
        speculation: Method id, or ``off``.
        draft_tokens: Draft tokens per verification.
        accept_first, accept_decay: Acceptance of draft token i: first * decay^(i-1).
        max_num_seqs, token_budget: Limits of a step, per dp rank.
        replicas, instances, gpus: Copies of the model; whole instances and GPUs bought.
        ttft_p50_ms ... e2e_p95_ms: Predicted latencies [ms], without margin; None = without
            bound (overload), or offline.
        further_ms: The same for other targets of slo.yaml, by their key (``itl_p99_ms``).
        output_tokens_per_s: Output at the rate that is sized for, over all replicas.
        capacity_tokens_per_s: Output at full utilization.
        utilization: Rate / capacity; offline: run / deadline.
        wait_probability: Share of requests that wait for a slot or for KV memory.
        slots: Sequences that one dp rank holds at once.
        run_hours: Offline: length of the run [h].
        loss_objective: Quality loss rounded up to half a point [%], as compared.
        loss_median, loss_p90: Quality loss, middle and pessimistic end of its evidence [%].
        power_w: Rated power of the GPUs bought [W]; None = unknown.
    """

    engine: tuple[Name, ...]
    generation: tuple[Name, ...]
    weights: tuple[Name, ...]
    kv: tuple[Name, ...]
    tp: tuple[Count, ...]
    pp: tuple[Count, ...]
    dp: tuple[Count, ...]
    speculation: tuple[Name, ...]
    draft_tokens: tuple[Whole, ...]
    accept_first: tuple[float, ...]
    accept_decay: tuple[float, ...]
    max_num_seqs: tuple[Count, ...]
    token_budget: tuple[Count, ...]
    replicas: tuple[Count, ...]
    instances: tuple[Count, ...]
    gpus: tuple[Count, ...]
    ttft_p50_ms: tuple[float | None, ...]
    ttft_p95_ms: tuple[float | None, ...]
    tpot_p50_ms: tuple[float | None, ...]
    tpot_p95_ms: tuple[float | None, ...]
    e2e_p50_ms: tuple[float | None, ...]
    e2e_p95_ms: tuple[float | None, ...]
    further_ms: dict[Name, tuple[float | None, ...]]
    output_tokens_per_s: tuple[float, ...]
    capacity_tokens_per_s: tuple[float, ...]
    utilization: tuple[float, ...]
    wait_probability: tuple[float | None, ...]
    slots: tuple[float, ...]
    run_hours: tuple[float | None, ...]
    loss_objective: tuple[float, ...]
    loss_median: tuple[float, ...]
    loss_p90: tuple[float, ...]
    power_w: tuple[float | None, ...]


class ClassArchive(Spec):
    """Best deployments of one hardware class, free of prices.

    Attributes:
        hardware: The class.
        margins: Factors for each engine generation in the rows.
        rows: Non-dominated rows on (instances, TTFT p95, TPOT p95, loss); offline on
            (instance-hours, run, loss).
        simulated: Rows that a simulation has checked; what it says takes the place of the
            formula where limits are judged, not where options are compared.
    """

    hardware: Hardware
    margins: tuple[Margin, ...]
    rows: Rows
    simulated: tuple[Simulated, ...] = ()


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
        ttft, tpot, e2e: Latencies; None offline.
        bound_tpot_ms: TPOT at the speed of light (all efficiencies 1) at the option's own batch.
        targets: Every target of slo.yaml.
        utilization, wait_probability, slots: As in Rows.
        rate_per_s: Rate sized for [1/s]; offline: mean rate of the run.
        output_tokens_per_s, capacity_tokens_per_s: As in Rows.
        run_hours: Offline: length of the run.
        memory: Break-down per GPU.
        money: Cost.
        quality: Loss.
        power_w: Rated power of the GPUs bought [W].
        energy: Power and energy, servers included; None = unknown.
        evidence: How well this engine generation is known on this accelerator.
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
    ttft: Latency | None
    tpot: Latency | None
    e2e: Latency | None
    bound_tpot_ms: Positive
    targets: tuple[TargetResult, ...]
    utilization: NonNegative
    wait_probability: Share | None
    slots: NonNegative
    rate_per_s: Positive
    output_tokens_per_s: Positive
    capacity_tokens_per_s: Positive
    run_hours: Positive | None
    memory: MemoryUse
    money: Money
    quality: QualityLoss
    power_w: Positive | None
    energy: Energy | None = None
    evidence: Evidence
    flags: tuple[Reason, ...]
    binding: Binding


MissKind = Literal["nearest", "within the purchase limits", "keeps the targets"]


class Miss(Spec):
    """A deployment that comes nearest to the targets, where none meets them.

    Attributes:
        kind: What it is nearest of: of all, of what quota, budget and power allow, or of what
            keeps the targets but not those.
        option: The deployment.
        excess: How far it is from meeting everything: the largest value / limit.
        misses: Limits that it breaks, in words with numbers (``TTFT p95 1310 ms, target 800``).
        would_do: Changes each of which would make it work, as a person would write them
            (``ttft_p95_ms: 1310``, ``rate_per_s: 7.9``, ``3 replicas more``).
    """

    kind: MissKind = "nearest"
    option: Option
    excess: Positive
    misses: tuple[str, ...]
    would_do: tuple[str, ...]


class Relaxation(Spec):
    """One limit of slo.yaml, moved as little as makes the plan work; all others stay.

    Attributes:
        limit: Its key in slo.yaml, with dots.
        asked: Its value there.
        needed: The value that works, rounded to where it still does; None = none does.
        option: What would be bought then; None = nothing.
    """

    limit: Name
    asked: NonNegative
    needed: NonNegative | None
    option: Option | None


class SearchReport(Spec):
    """How the archive was found.

    Attributes:
        mode: ``search``: seeds, Optuna, polish; ``enumeration``: every candidate was scored.
        shapes: Shapes that the space holds after support and memory were masked.
        candidates: Deployments that those shapes stand for.
        scored: Deployments that the open-loop formula was asked for.
        trials: Trials of the Optuna study.
        proven: Every deployment not scored was shown, by its own bound, to be dominated or out
            of reach of the limits.
        missed: Points of the archive that the search had missed and the proof has added; None =
            no proof was asked for.
        simulated: Deployments that a second search, around the front, found to hold by simulation.
        hypervolume: Of the front, in log units of its own box.
        stopped: Why the search ended: ``fixed point``, ``trials``, ``time limit``, ``interrupted``.
    """

    mode: Literal["search", "enumeration"]
    shapes: Whole
    candidates: Whole
    scored: Whole
    trials: Whole
    proven: bool
    missed: Whole | None = None
    simulated: Whole = 0
    hypervolume: NonNegative
    stopped: Literal["fixed point", "trials", "time limit", "interrupted"]


class PlanRecord(Spec):
    """The plan.

    Attributes:
        schema_version: Version of this layout.
        planner_version: Version of the program.
        inputs: What was asked.
        offers: Price rows of the classes searched, which the purchase terms allow.
        archive: Per hardware class.
        options: The front, cheapest first: meets every limit, rests on evidence and clean prices
            (unless slo.yaml allows others), and nothing is at least as good in every objective.
        picks: Pick -> option id: cheapest, balanced, lowest_ttft, lowest_tpot, best_quality.
        shown: Ids of at most a dozen further options worth showing, thinned.
        untrusted: Options that would cost less than the cheapest pick, or stand alone, but rest
            on unvalidated evidence, a flagged price, or lie beyond the gates; ``flags`` says why.
        misses: Nearest misses; only where ``options`` is empty.
        relaxations: What each limit alone would have to be; only where ``options`` is empty.
        obstacle: Why no deployment exists at all; empty = some do.
        assumptions: What the plan takes for granted, in sentences.
        search: How it was found.
        verification: Options that a simulation has checked, in that order; those that are not
            on the front did not hold, or were sized anew.
    """

    schema_version: Literal[1] = 1
    planner_version: Name
    inputs: Inputs
    offers: tuple[Offer, ...]
    archive: tuple[ClassArchive, ...]
    options: tuple[Option, ...]
    picks: dict[Name, Name]
    shown: tuple[Name, ...]
    untrusted: tuple[Option, ...]
    misses: tuple[Miss, ...]
    relaxations: tuple[Relaxation, ...] = ()
    obstacle: str = ""
    assumptions: tuple[str, ...]
    search: SearchReport
    verification: tuple[Verification, ...] = ()
