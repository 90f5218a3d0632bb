"""A fleet that follows the daily load: replicas by hour, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.candidates.demand import sized_rate, slo_mixture, targets
from planner.cost import Quotes, instances_needed, usd_per_mtok
from planner.model.arrays import Candidates, Floats, Indices
from planner.model.profile import hourly_rates, paid_hours
from planner.model.queueing import steady_state, survival
from planner.model.queueing.state import HIGHEST_WAIT_PROBABILITY
from planner.pareto import rounded
from planner.select.answers import Priced
from planner.select.deploy import Scene
from planner.spec.money import Autoscaled
from planner.spec.slo import Slo
from planner.units import MILLI

SCALING_TERMS = ("on_demand", "spot")
"""Terms under which an instance costs nothing while it is off."""
LONGEST_LEASE = 1.0
"""Hours of a smallest lease up to which hourly scaling pays [h]."""
MINUTES_PER_HOUR = 60.0


def autoscaled(
    scene: Scene, slo: Slo, quotes: dict[str, Quotes], chosen: tuple[Priced, Indices]
) -> tuple[Autoscaled | None, ...]:
    """Return what a fleet that follows the load profile costs, one entry a row.

    None where slo.yaml asks for none, or where the row's price does not stop with the instance.

    Args:
        scene: Catalog, model, archive.
        slo: Load profile, boot time, targets.
        quotes: The prices that `chosen` was billed with.
        chosen: Priced rows, and which of them.
    """
    answer, rows = chosen
    profile, scaling = slo.traffic.load_profile, slo.autoscale
    if scaling is None or profile is None or not len(rows):
        return (None,) * len(rows)
    rates = hourly_rates(profile, sized_rate(slo))
    replicas = hourly_replicas(scene, slo, chosen, rates)
    boot = scaling.boot_minutes / MINUTES_PER_HOUR
    return tuple(
        _entry(scene, slo, quotes, (answer, int(row)), counts, boot)
        for row, counts in zip(rows, replicas, strict=True)
    )


def _entry(
    scene: Scene,
    slo: Slo,
    quotes: dict[str, Quotes],
    at: tuple[Priced, int],
    replicas: Indices,
    boot: float,
) -> Autoscaled | None:
    answer, row = at
    found = answer.answers
    place, number = int(found.place[row]), int(found.row[row])
    hardware, columns = scene.archives[place].hardware, scene.archives[place].rows
    bought = quotes[hardware.id]
    offer = bought.offers[int(answer.bill.offer[row])]
    if offer.term not in SCALING_TERMS or offer.minimum_hours > LONGEST_LEASE:
        return None
    size = columns.tp[number] * columns.pp[number] * columns.dp[number]
    counts: Floats = replicas.astype(np.float64) + slo.purchase.spare_replicas
    each = np.full(len(counts), float(size))
    needed = instances_needed(counts, each, hardware.gpus_per_instance)
    needed = np.maximum(needed, float(offer.minimum_instances))
    price = bought.prices[int(answer.bill.offer[row])]
    per_hour = paid_hours(needed, boot) * price / len(counts)
    mean = answer.money["mean_utilization"][row] * found.columns["capacity_tokens_per_s"][row]
    per_mtok = usd_per_mtok(np.array([per_hour]), np.array([mean]))[0]
    return Autoscaled(
        replicas_by_hour=tuple(int(count) for count in replicas),
        usd_per_hour=float(rounded(per_hour)),
        usd_per_mtok_output=float(rounded(per_mtok)),
    )


def hourly_replicas(
    scene: Scene, slo: Slo, chosen: tuple[Priced, Indices], rates: Sequence[float] | Floats
) -> Indices:
    """Return the fewest replicas that hold every target in each hour, (rows, hours).

    An option with more replicas than its targets need, for the sake of speed, does not keep them
    all even in the busiest hour. Where a simulation has sized the fleet, what it said of the
    fleet's latencies and utilization is taken to hold for parts of it, too.
    """
    answer, rows = chosen
    found = answer.answers
    distinct, hour = np.unique(np.asarray(rates), return_inverse=True)
    c = scene.candidates(found.place[rows], found.row[rows])
    count, levels = len(rows), len(distinct)
    row = np.repeat(np.arange(count), levels)
    rate = np.tile(distinct, count)
    most = c.layout.replicas[row].astype(np.intp)
    fewest = np.ones_like(most)
    while (unsure := np.flatnonzero(fewest < most)).size:
        middle = (fewest[unsure] + most[unsure]) // 2
        good = _hold(
            scene, slo, (answer, rows[row[unsure]]), c.take(row[unsure]), middle, rate[unsure]
        )
        most[unsure] = np.where(good, middle, most[unsure])
        fewest[unsure] = np.where(good, fewest[unsure], middle + 1)
    result: Indices = most.reshape(count, levels)[:, hour]
    return result


def _hold(
    scene: Scene,
    slo: Slo,
    chosen: tuple[Priced, Indices],
    c: Candidates,
    replicas: Indices,
    rate: Floats,
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark the fleets that hold every target at a rate, (n,)."""
    answer, rows = chosen
    found, mixed = answer.answers, slo_mixture(slo)
    c = replace(c, layout=replace(c.layout, replicas=replicas.astype(float)))
    state = steady_state(c, scene.parameters, mixed.whole, rate, routing=slo.routing)
    use = np.maximum(slo.headroom, found.columns["utilization"][rows])
    good: np.ndarray[tuple[int], np.dtype[np.bool_]] = state.utilization <= use
    good &= found.simulated[rows] | (state.wait_probability <= HIGHEST_WAIT_PROBABILITY)
    for target in targets(slo):
        w = mixed.parts[max(target.kind, 0)]
        factor = found.upper[target.key][rows] / found.latency[target.key][rows]
        limit = target.limit * MILLI / factor
        over = survival(state, w, target.metric, limit)  # type: ignore[arg-type]
        good &= over <= 1.0 - target.percentile / 100
    return good
