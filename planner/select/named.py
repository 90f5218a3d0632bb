"""A deployment that a person names, as archive rows: one for each class that it could run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.demand import job_load, sized_rate, slo_mixture, targets
from planner.candidates.margins import margin
from planner.candidates.quality import QualityCase, quality_loss
from planner.cost import instances_needed, replicas_that_fill
from planner.model.arrays import Candidates, Floats
from planner.model.batching import Batch, offline_batch
from planner.model.memory import kv_pool_bytes, weight_bytes
from planner.model.queueing import capacity, percentile, steady_state
from planner.pareto import rounded_number
from planner.select.answers import STANDARD
from planner.select.deploy import Scene
from planner.spec.archive import ClassArchive, Hardware, Rows
from planner.spec.slo import Slo
from planner.units import GIB, MILLI, SECONDS_PER_HOUR

PLACEHOLDER = 1.0


@dataclass(frozen=True)
class Named:
    """A deployment with its names resolved.

    Attributes:
        name: For reports.
        engine, generation, weights, kv, speculation: Ids; speculation may be ``off``.
        tp, pp, dp: Parallel degrees.
        draft_tokens: Draft tokens per verification.
        acceptance: c1 and d of the drafts.
        max_num_seqs, token_budget: Limits of a step, per dp rank.
        replicas: As given; None = as many as the load needs within the headroom.
    """

    name: str
    engine: str
    generation: str
    weights: str
    kv: str
    speculation: str
    tp: int
    pp: int
    dp: int
    draft_tokens: int
    acceptance: tuple[float, float]
    max_num_seqs: int
    token_budget: int
    replicas: int | None


@dataclass(frozen=True)
class Placed:
    """A named deployment on every class that could hold it.

    Attributes:
        archives: One class archive each, with this deployment alone.
        shortage: Why it fits on none, in words; empty if it fits somewhere.
    """

    archives: tuple[ClassArchive, ...]
    shortage: str


def placed(
    scene: Scene, slo: Slo, case: QualityCase, named: Named, classes: Sequence[Hardware]
) -> Placed:
    """Return a deployment as archive rows under the load that is asked.

    Args:
        scene: Catalog and model.
        slo: What is asked.
        case: What the quality loss depends on.
        named: The deployment.
        classes: Hardware classes with its accelerator; at least one.
    """
    one = np.ones(len(classes))
    bare = [
        _archive(scene, slo, hardware, _rows(slo, case, scene, named, hardware, {}))
        for hardware in classes
    ]
    alone = replace(scene, archives=tuple(bare))
    c = alone.candidates(np.arange(len(bare)), np.zeros(len(bare), dtype=np.intp))
    slots = _slots(scene, slo, c)
    if not (slots >= 1.0).any():
        return Placed((), _shortage(c))
    replicas = one * named.replicas if named.replicas else _replicas(alone, slo, c, classes)
    layout = replace(c.layout, replicas=replicas)
    figures = _figures(scene, slo, replace(c, layout=layout)) | {"replicas": replicas}
    archives = tuple(
        _archive(
            scene, slo, hardware,
            _rows(slo, case, scene, named, hardware, {k: float(v[i]) for k, v in figures.items()}),
        )
        for i, hardware in enumerate(classes)
        if slots[i] >= 1.0
    )  # fmt: skip
    return Placed(archives, "")


def _archive(scene: Scene, slo: Slo, hardware: Hardware, rows: Rows) -> ClassArchive:
    chip = scene.catalog.accelerators[hardware.accelerator]
    efficiency, confidence = scene.catalog.efficiency, slo.targets.confidence
    known = margin(efficiency, rows.generation[0], chip, confidence)
    return ClassArchive(hardware=hardware, margins=(known,), rows=rows)


def _slots(scene: Scene, slo: Slo, c: Candidates) -> Floats:
    """Return the sequences that one dp rank holds, (n,)."""
    if slo.traffic.offline is not None:
        return _batch(scene, slo, c).fits
    rate = np.full(len(c), sized_rate(slo))
    return steady_state(c, scene.parameters, slo_mixture(slo).whole, rate).slots


def _shortage(c: Candidates) -> str:
    """Return how far memory falls short on the class where it falls least, in words."""
    pool = kv_pool_bytes(c) / GIB
    best = int(np.argmax(pool))
    held, device = float(weight_bytes(c)[best]) / GIB, float(c.chip.memory[best]) / GIB
    return (
        f"weights take {held:.3g} of {device:.3g} GiB a GPU and leave {max(pool[best], 0):.3g} GiB"
        " for the KV cache, less than one request of the mean length needs"
    )


def _replicas(scene: Scene, slo: Slo, c: Candidates, classes: Sequence[Hardware]) -> Floats:
    """Return the fewest replicas that carry the load within the headroom, (n,).

    Offline: that meet the deadline with the margin of the one generation of the scene's archives.
    Either way with as many more as the instances hold that are paid for.
    """
    if slo.traffic.offline is not None:
        margins = np.array([archive.margins[0].e2e for archive in scene.archives])
        hours = _batch(scene, slo, c).run / SECONDS_PER_HOUR * margins
        need = hours / slo.traffic.offline.deadline_hours
    else:
        each = capacity(c, scene.parameters, slo_mixture(slo).whole)
        need = sized_rate(slo) / np.maximum(each * slo.headroom, 1e-12)
    fewest = np.maximum(np.ceil(np.minimum(need, 1e6) - 1e-9), 1.0)
    size = c.layout.tp * c.layout.pp * c.layout.dp
    instance = np.array([hardware.gpus_per_instance for hardware in classes])
    return replicas_that_fill(fewest, size, instance, slo.purchase.spare_replicas)


def _figures(scene: Scene, slo: Slo, c: Candidates) -> dict[str, Floats]:
    """Return the columns of Rows that the model knows, (n,)."""
    if slo.traffic.offline is not None:
        batch = _batch(scene, slo, c)
        hours = batch.run / SECONDS_PER_HOUR
        return {
            "output_tokens_per_s": batch.output_rate,
            "capacity_tokens_per_s": batch.output_rate,
            "utilization": hours / slo.traffic.offline.deadline_hours,
            "slots": np.minimum(batch.fits, c.layout.max_sequences),
            "run_hours": hours,
        }
    mixed, rate = slo_mixture(slo), np.full(len(c), sized_rate(slo))
    state = steady_state(c, scene.parameters, mixed.whole, rate, routing=slo.routing)
    wanted = {key: (*_metric(key), mixed.whole) for key in STANDARD}
    wanted |= {
        t.key: (t.metric, t.percentile / 100, mixed.parts[max(t.kind, 0)]) for t in targets(slo)
    }
    return {
        "output_tokens_per_s": state.output_rate,
        "capacity_tokens_per_s": state.capacity * mixed.whole.output_mean,
        "utilization": state.utilization,
        "slots": state.slots,
        "wait_probability": state.wait_probability,
    } | {
        key: percentile(state, seen, metric, share) / MILLI  # type: ignore[arg-type]
        for key, (metric, share, seen) in wanted.items()
    }


def _metric(key: str) -> tuple[str, float]:
    metric, share, _ = key.split("_")
    return metric, int(share[1:]) / 100


def _batch(scene: Scene, slo: Slo, c: Candidates) -> Batch:
    return offline_batch(c, scene.parameters, job_load(slo, len(c)))


def _rows(
    slo: Slo,
    case: QualityCase,
    scene: Scene,
    named: Named,
    hardware: Hardware,
    figures: dict[str, float],
) -> Rows:
    """Return a deployment as the only row; figures that are not known yet are placeholders."""
    catalog = scene.catalog
    loss = quality_loss(catalog.weight_format(named.weights), catalog.kv_format(named.kv), case)
    replicas = figures.get("replicas", 1.0)
    bought = np.array([replicas + slo.purchase.spare_replicas])
    size = np.array([float(named.tp * named.pp * named.dp)])
    instances = int(instances_needed(bought, size, hardware.gpus_per_instance)[0])
    gpus = instances * hardware.gpus_per_instance
    watts = catalog.accelerators[hardware.accelerator].tdp_w
    names = ("engine", "generation", "weights", "kv", "tp", "pp", "dp", "speculation")
    numbers = ("draft_tokens", "max_num_seqs", "token_budget")
    known = {name: getattr(named, name) for name in (*names, *numbers)} | {
        "accept_first": named.acceptance[0],
        "accept_decay": named.acceptance[1],
        "replicas": int(replicas),
        "instances": instances,
        "gpus": gpus,
        "loss_objective": number(loss.objective),
        "loss_p90": number(loss.p90),
        "power_w": None if watts is None else number(gpus * watts),
    }
    kinds = [t.key for t in targets(slo) if t.key not in Rows.model_fields]
    further: dict[str, tuple[float | None, ...]] = {
        key: (_finite(figures.get(key)),) for key in kinds
    }
    seen = {
        key: _finite(figures.get(key)) for key in (*STANDARD, "wait_probability", "run_hours")
    } | {
        key: number(figures.get(key, PLACEHOLDER))
        for key in ("output_tokens_per_s", "capacity_tokens_per_s", "utilization", "slots")
    }
    return Rows(**{key: (value,) for key, value in (known | seen).items()}, further_ms=further)


def number(value: float) -> float:
    """Return a number with the digits of the record."""
    return rounded_number(float(value))


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else number(value)
