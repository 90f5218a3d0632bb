"""What the limits on purchases allow, where nothing that they allow carries the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.demand import job_load, sized_rate, slo_mixture
from planner.candidates.quality import QualityCase
from planner.cost import Quotes
from planner.cost_owned import W_PER_KW
from planner.counting import request_rate
from planner.model.arrays import Floats, Indices
from planner.model.batching import offline_batch
from planner.model.queueing import capacity
from planner.select.answers import Priced, answers, priced
from planner.select.deploy import Scene
from planner.select.misses import PURCHASE, miss
from planner.select.named import Named, number, placed
from planner.select.options import Shop, options
from planner.spec.archive import ClassArchive
from planner.spec.option import Option
from planner.spec.purchase import Purchase
from planner.spec.record import Miss
from planner.spec.slo import Slo

SAFE = 1.0 - 1e-6
"""Share of the capacity within the headroom that is asked for: one step of rounding below it."""


def within_limits(
    scene: Scene, slo: Slo, case: QualityCase, shop: Shop, every: Priced
) -> Miss | None:
    """Return the deployment that carries most of the load within quota, budget and power.

    Args:
        scene: Catalog, model, archive.
        slo: What was asked; nothing in the archive keeps its limits on purchases.
        case: What the quality loss depends on.
        shop: Prices.
        every: Priced rows.

    Returns:
        It, at the rate that it carries, offline with the time that it takes; None = no such
        limits, or not one replica of anything can be bought.
    """
    if not any(name in every.uses for name in PURCHASE):
        return None
    fleets = [_most(archive, shop.quotes, slo.purchase) for archive in scene.archives]
    replicas = np.concatenate([np.zeros(0), *fleets])
    rows = np.flatnonzero(replicas >= 1.0)
    if not len(rows):
        return None
    if slo.traffic.offline is not None:
        return _soonest(scene, slo, case, shop, every, (rows, replicas[rows]))
    found = every.answers
    c = scene.candidates(found.place[rows], found.row[rows])
    each = capacity(c, scene.parameters, slo_mixture(slo).whole)
    carried = each * replicas[rows] * slo.headroom
    trusted = ~found.unvalidated[rows] | slo.purchase.allow_unvalidated
    best = int(np.lexsort((-carried, ~trusted))[0])
    place, row = int(found.place[rows[best]]), int(found.row[rows[best]])
    rate = float(carried[best]) * SAFE
    if rate >= sized_rate(slo):
        return None
    return _miss(scene, slo, case, shop, (place, row, int(replicas[rows[best]]), rate))


def _soonest(
    scene: Scene,
    slo: Slo,
    case: QualityCase,
    shop: Shop,
    every: Priced,
    fleets: tuple[Indices, Floats],
) -> Miss | None:
    """Return the fleet that ends the offline work soonest; None = it meets the deadline.

    Args:
        scene, slo, case, shop, every: As in ``within_limits``.
        fleets: Rows, and the most replicas of each.
    """
    found, (rows, replicas) = every.answers, fleets
    c = scene.candidates(found.place[rows], found.row[rows])
    sized = replace(c, layout=replace(c.layout, replicas=replicas))
    run = offline_batch(sized, scene.parameters, job_load(slo, len(rows))).run
    margin = found.columns["run_upper_hours"][rows] / found.columns["run_hours"][rows]
    trusted = ~found.unvalidated[rows] | slo.purchase.allow_unvalidated
    best = int(np.lexsort((run * margin, ~trusted))[0])
    place, row = int(found.place[rows[best]]), int(found.row[rows[best]])
    made = _alone(scene, slo, case, shop, (place, row, int(replicas[best])))
    if made is None or made.priced.uses["deadline_hours"][0] <= 1.0:
        return None
    near = miss(made.scene, slo, made.priced, 0, made.option, "within the purchase limits")
    return near.model_copy(update={"option": made.option.model_copy(update={"archive_row": row})})


def _most(archive: ClassArchive, quotes: Mapping[str, Quotes], purchase: Purchase) -> Floats:
    """Return the most replicas of each row that may be bought, spares aside, (n,)."""
    hardware, rows = archive.hardware, archive.rows
    per_instance = hardware.gpus_per_instance
    size = np.array(rows.tp) * np.array(rows.pp) * np.array(rows.dp)
    known = quotes.get(hardware.id, Quotes((), ()))
    rated = np.inf if hardware.draw is None else hardware.draw.rated_w * per_instance / W_PER_KW
    instances = 0.0
    for offer, price in zip(known.offers, known.prices, strict=True):
        most = np.floor(
            min(
                (purchase.max_gpus or np.inf) / per_instance,
                (purchase.budget_usd_per_hour or np.inf) / price,
                (purchase.max_power_kw or np.inf) / rated if purchase.max_power_kw else np.inf,
                offer.quota_instances or np.inf,
            )
        )
        if most >= offer.minimum_instances:
            instances = max(instances, most)
    inside = per_instance // size
    fleet = np.where(inside >= 1, instances * inside, instances // np.ceil(size / per_instance))
    result: Floats = fleet - purchase.spare_replicas
    return result


@dataclass(frozen=True)
class _Made:
    """A deployment on its own: its scene, its price, and its option."""

    scene: Scene
    priced: Priced
    option: Option


def _alone(
    scene: Scene, slo: Slo, case: QualityCase, shop: Shop, chosen: tuple[int, int, int]
) -> _Made | None:
    """Return a row of an archive with other replicas under the load of slo.yaml."""
    place, row, replicas = chosen
    archive = scene.archives[place]
    made = placed(scene, slo, case, named(archive, row, replicas), [archive.hardware])
    if not made.archives:
        return None
    alone = replace(scene, archives=made.archives)
    every = priced(answers(made.archives), made.archives, shop.quotes, slo)
    (option,) = options(alone, shop, slo, case, (every, np.zeros(1, dtype=np.intp)))
    return _Made(alone, every, option)


def _miss(
    scene: Scene, slo: Slo, case: QualityCase, shop: Shop, chosen: tuple[int, int, int, float]
) -> Miss | None:
    place, row, replicas, rate = chosen
    asked = with_rate(slo, rate)
    made = _alone(scene, asked, case, shop, (place, row, replicas))
    if made is None:
        return None
    near = miss(made.scene, asked, made.priced, 0, made.option, "within the purchase limits")
    wanted = sized_rate(slo)
    lower = f"rate_per_s: {_text(rate)}"
    further = [text for text in near.would_do if text.startswith("rate_per_s")]
    relaxed = [f"{lower} with {text}" for text in near.would_do if " more" not in text]
    kept = [text for text in relaxed if not text.startswith(f"{lower} with rate_per_s")]
    # The archive holds the same deployment with the replicas that the load needs.
    shown = made.option.model_copy(update={"archive_row": row})
    return near.model_copy(
        update={
            "option": shown,
            "excess": max(near.excess, number(wanted / rate)),
            "misses": (f"rate {request_rate(_text(rate))}, asked {wanted:g}", *near.misses),
            "would_do": (*(kept if near.misses else [lower]), *further),
        }
    )


def _text(rate: float) -> str:
    """Return a rate with three digits, rounded down."""
    step = 10.0 ** (np.floor(np.log10(rate)) - 2)
    return f"{np.floor(rate / step) * step:.10g}"


def with_rate(slo: Slo, rate: float) -> Slo:
    """Return what is asked at another rate, the mean rate in proportion."""
    traffic = slo.traffic
    mean = traffic.mean_rate_per_s
    share = rate / sized_rate(slo)
    update = {"rate_per_s": rate, "mean_rate_per_s": None if mean is None else mean * share}
    return slo.model_copy(update={"traffic": traffic.model_copy(update=update)})


def named(archive: ClassArchive, row: int, replicas: int) -> Named:
    """Return a row of an archive as a deployment with its names, and other replicas."""
    names: Sequence[str] = (
        *("engine", "generation", "weights", "kv", "speculation", "tp", "pp", "dp"),
        *("draft_tokens", "max_num_seqs", "token_budget"),
    )
    rows = archive.rows
    return Named(
        name="",
        acceptance=(rows.accept_first[row], rows.accept_decay[row]),
        replicas=replicas,
        **{name: getattr(rows, name)[row] for name in names},
    )
