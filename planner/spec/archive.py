"""The best deployments of each hardware class, free of prices, as ``plan.json`` holds them."""

from __future__ import annotations

from collections.abc import Iterator

from planner.spec.base import Count, Name, NonNegative, Positive, Share, Spec, Whole
from planner.spec.efficiency import Evidence
from planner.spec.money import Draw
from planner.spec.verification import Simulated


class Hardware(Spec):
    """A hardware class.

    Attributes:
        id: Readable key, as ``h100-sxm x8 nvlink 50``.
        accelerator: Catalog id.
        name: Vendor's name of the accelerator.
        gpus_per_instance: GPUs that one instance holds.
        link: Link between them.
        link_domain: GPUs that reach each other over it.
        link_gb_per_s, internode_gb_per_s: One-way rates per GPU [1e9 B/s]; a network of 0 is
            unknown.
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
    link_gb_per_s: Positive
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
        loss_p90: Quality loss, pessimistic end of its evidence [%].
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
    accept_first: tuple[Share, ...]
    accept_decay: tuple[Positive, ...]
    max_num_seqs: tuple[Count, ...]
    token_budget: tuple[Count, ...]
    replicas: tuple[Count, ...]
    instances: tuple[Count, ...]
    gpus: tuple[Count, ...]
    ttft_p50_ms: tuple[Positive | None, ...]
    ttft_p95_ms: tuple[Positive | None, ...]
    tpot_p50_ms: tuple[Positive | None, ...]
    tpot_p95_ms: tuple[Positive | None, ...]
    e2e_p50_ms: tuple[Positive | None, ...]
    e2e_p95_ms: tuple[Positive | None, ...]
    further_ms: dict[Name, tuple[Positive | None, ...]]
    output_tokens_per_s: tuple[Positive, ...]
    capacity_tokens_per_s: tuple[Positive, ...]
    utilization: tuple[NonNegative, ...]
    wait_probability: tuple[Share | None, ...]
    slots: tuple[NonNegative, ...]
    run_hours: tuple[Positive | None, ...]
    loss_objective: tuple[NonNegative, ...]
    loss_p90: tuple[float, ...]
    power_w: tuple[Positive | None, ...]


class ClassArchive(Spec):
    """Best deployments of one hardware class, free of prices.

    Attributes:
        hardware: The class.
        margins: Factors for each engine generation in the rows.
        rows: Rows of each engine that no other of it dominates on (instances, TTFT p95, TPOT p95,
            loss); offline on (instance-hours, run, loss).
        simulated: Rows that a simulation has checked; what it says takes the place of the
            formula where limits are judged, not where options are compared.
    """

    hardware: Hardware
    margins: tuple[Margin, ...]
    rows: Rows
    simulated: tuple[Simulated, ...] = ()

    def simulated_seen(self, row: int) -> dict[str, float | None]:
        """Return the simulated percentiles of a row [ms], by target key; empty = none are known."""
        return {key: ms for entry in self._of(row) for key, ms in entry.seen_ms.items()}

    def simulated_upper(self, row: int) -> dict[str, float | None]:
        """Return what a simulation said of a row [ms], by target key; empty = none did."""
        return {key: ms for entry in self._of(row) for key, ms in entry.upper_ms.items()}

    def _of(self, row: int) -> Iterator[Simulated]:
        return (entry for entry in self.simulated if entry.row == row)
