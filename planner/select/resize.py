"""One deployment in several sizes: which replicas to try, and what each size would be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil

import numpy as np

from planner.candidates.demand import (
    EVERY,
    Target,
    metric_of,
    sized_rate,
    slo_mixture,
    targets,
    trusted_share,
)
from planner.candidates.trace_load import trace_windows
from planner.cost import Bill, Quotes, cheapest, instances_needed
from planner.cost_owned import W_PER_KW
from planner.importers.traces import Trace
from planner.model.arrays import Candidates, Floats
from planner.model.mixture import Mixture
from planner.model.queueing import OpenLoop, percentile, steady_state
from planner.model.windows import Window, WindowStates, window_percentile, window_states
from planner.model.workload import Workload
from planner.pareto import rounded
from planner.select.answers import MARGIN_OF, STANDARD, Mask
from planner.select.deploy import Scene
from planner.select.verification import (
    Effort,
    Observation,
    Replay,
    Requests,
    Seen,
    Wanted,
    in_seconds,
    observe,
)
from planner.simulate import Deployment, deployment
from planner.spec.archive import ClassArchive, Margin
from planner.spec.slo import Slo
from planner.spec.verification import Trial
from planner.units import MILLI

HIGHEST_UTILIZATION = 0.98
"""Fleets that would be busier, if steps take what they may at that confidence, are not tried."""
ROUNDING = 1e-5
"""Replicas by which a figure of six digits may miss a whole number."""
MORE = 1.5
"""Up to so many times the formula's replicas are tried."""


@dataclass(frozen=True)
class Desk:
    """What all checks of a plan share.

    Attributes:
        scene: Catalog, model, and the archive to begin with.
        quotes: All prices by hardware class id.
        slo: Targets and limits.
        batch_limits: Batch limits to choose from, rising.
        seed: Of the plan.
        trace: Replayed instead of drawing requests; None = there is none.
    """

    scene: Scene
    quotes: Mapping[str, Quotes]
    slo: Slo
    batch_limits: tuple[int, ...]
    seed: int = 0
    trace: Trace | None = None

    @cached_property
    def mixture(self) -> Mixture:
        """Statistics of the load."""
        return slo_mixture(self.slo)

    @property
    def workload(self) -> Workload:
        """Statistics of all requests together."""
        return self.mixture.whole

    @cached_property
    def trusted_share(self) -> float:
        """Share of the capacity that the formula may be trusted with."""
        return trusted_share(self.slo)

    @cached_property
    def requests(self) -> Requests | Replay:
        """Requests to simulate."""
        if self.trace is not None:
            return Replay(self.slo, self.trace, self.seed)
        return Requests(self.slo, self.seed)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """Windows of the trace; empty without one."""
        hit = self.slo.traffic.prefix_hit_rate
        return () if self.trace is None else trace_windows(self.trace, prefix_hit=hit)


@dataclass
class Sized:
    """One deployment and the sizes of it that have been tried.

    Attributes:
        place, row: Class archive and row that the formula had sized.
        names: Picks that it is a candidate for.
    """

    desk: Desk
    scene: Scene
    place: int
    row: int
    names: tuple[str, ...]
    trials: list[Trial] = field(default_factory=list)
    observed: dict[int, Observation] = field(default_factory=dict)
    states: dict[int, OpenLoop] = field(default_factory=dict)
    over_windows: dict[int, WindowStates] = field(default_factory=dict)

    def value(self, name: str) -> int:
        """Return a number of the archive's row."""
        return int(self.scene.value(self.place, self.row, name))

    @property
    def archive(self) -> ClassArchive:
        """The class archive."""
        return self.scene.archives[self.place]

    @property
    def size(self) -> int:
        """GPUs of a replica."""
        return self.value("tp") * self.value("pp") * self.value("dp")

    @cached_property
    def candidate(self) -> Candidates:
        """Columns of the row."""
        at = np.array([self.place], dtype=np.intp), np.array([self.row], dtype=np.intp)
        return self.scene.candidates(*at)

    @cached_property
    def wanted(self) -> tuple[Wanted, ...]:
        """Percentiles that are recorded or limited."""
        margin = margin_of(self.archive, self.row)
        limits = {target.key: target for target in targets(self.desk.slo)}
        return tuple(
            wanted_of(key, limits.get(key), getattr(margin, MARGIN_OF[metric_of(key)]))
            for key in dict.fromkeys((*STANDARD, *limits))
        )

    def limit(self, replicas: int) -> int:
        """Return the batch limit for a number of replicas: it grows as they get fewer."""
        now, had = self.value("max_num_seqs"), self.value("replicas")
        if replicas >= had:
            return now
        enough = [x for x in self.desk.batch_limits if x >= now * had / replicas]
        return max(now, min(enough, default=max(self.desk.batch_limits, default=now)))

    def resized(self, replicas: int) -> Candidates:
        """Return the columns with another number of replicas."""
        layout = replace(
            self.candidate.layout,
            replicas=np.array([float(replicas)]),
            max_sequences=np.array([float(self.limit(replicas))]),
        )
        return replace(self.candidate, layout=layout)

    def state(self, replicas: int) -> OpenLoop:
        """Return the formula's steady state of a number of replicas."""
        if replicas not in self.states:
            slo, rate = self.desk.slo, np.array([sized_rate(self.desk.slo)])
            c, p = self.resized(replicas), self.scene.parameters
            found = steady_state(c, p, self.desk.workload, rate, routing=slo.routing)
            self.states[replicas] = found
        return self.states[replicas]

    def levels(self, below: float = np.inf) -> list[int]:
        """Return the numbers of replicas worth trying, rising: each costs more than the last.

        Args:
            below: Price that other numbers than the row's must not reach [USD/h].
        """
        step = max(self.archive.hardware.gpus_per_instance // self.size, 1)
        spare, now = self.desk.slo.purchase.spare_replicas, self.value("replicas")
        most = -(-(int(now * MORE) + 2 + spare) // step) * step - spare
        every = range(fewest_stable(self.archive, self.row, self.desk.trusted_share), most + 1)
        full = [n for n in every if (n + spare) % step == 0 or n == now]
        bill = self.bill(full)
        good = self._affordable(bill) & (bill.usd_per_hour < below)
        return [n for n, kept in zip(full, good.tolist(), strict=True) if kept or n == now]

    def cheaper(self, usd_per_hour: float) -> int:
        """Return the most replicas worth trying that cost less than that [USD/h]; 0 = none do."""
        levels = self.levels()
        costs = self.bill(levels).usd_per_hour.tolist()
        found = [n for n, cost in zip(levels, costs, strict=True) if cost < usd_per_hour]
        return max(found, default=0)

    def bill(self, counts: Sequence[int]) -> Bill:
        """Return the cheapest purchase for each of these numbers of replicas."""
        sizes = np.full(len(counts), float(self.size))
        return purchase_of(self.desk, self.archive, np.array(counts, dtype=float), sizes)

    def _affordable(self, bill: Bill) -> Mask:
        purchase, hardware = self.desk.slo.purchase, self.archive.hardware
        within = bill.usd_per_hour <= (purchase.budget_usd_per_hour or np.inf)
        within &= bill.quota_use <= 1.0
        gpus = bill.instances * hardware.gpus_per_instance
        result: Mask = within & (gpus <= (purchase.max_gpus or np.inf))
        if purchase.max_power_kw is not None:
            rated_kw = np.inf if hardware.draw is None else hardware.draw.rated_w / W_PER_KW
            result &= gpus * rated_kw <= purchase.max_power_kw
        return result

    def try_(self, replicas: int) -> bool:
        """Simulate a number of replicas, once."""
        if replicas not in self.observed:
            observation = self._observe(replicas)
            self.observed[replicas] = observation
            self.trials.append(
                Trial(replicas=replicas, max_num_seqs=self.limit(replicas), holds=observation.holds)
            )
        return self.observed[replicas].holds

    def _observe(self, replicas: int) -> Observation:
        desk, state = self.desk, self.state(replicas)
        fleet: Deployment = deployment(
            self.resized(replicas),
            self.scene.parameters,
            desk.workload,
            routing=desk.slo.routing,
        )
        held = 1.3 * float(state.batch[0]) + 1.0
        in_flight = held * fleet.servers
        return observe(fleet, desk.requests, self.wanted, in_flight, Effort(probe=True))


def purchase_of(desk: Desk, archive: ClassArchive, replicas: Floats, sizes: Floats) -> Bill:
    """Return the cheapest purchase of deployments on a hardware class.

    Args:
        desk: Prices, and what may be bought.
        archive: The class.
        replicas: Copies of the model that carry load, (n,).
        sizes: GPUs of a replica, (n,).
    """
    purchase, hardware = desk.slo.purchase, archive.hardware
    bought = replicas + purchase.spare_replicas
    instances = instances_needed(bought, sizes, hardware.gpus_per_instance)
    quotes = desk.quotes.get(hardware.id, Quotes((), ()))
    return cheapest(quotes if purchase.allow_flagged_prices else quotes.clean(), instances)


def margin_of(archive: ClassArchive, row: int) -> Margin:
    """Return the factors for the model's own error that hold for a row."""
    return next(m for m in archive.margins if m.generation == archive.rows.generation[row])


def fewest_stable(archive: ClassArchive, row: int, trusted: float) -> int:
    """Return the fewest replicas worth a simulation, at most those that headroom asks.

    A simulation has the model's own step times, and factors on its percentiles say nothing of a
    fleet that is overloaded if steps take longer: so the load must be below capacity then, too. But
    what the formula may be trusted with is worth it, whatever headroom slo.yaml asks.

    Args:
        archive, row: A deployment.
        trusted: Share of the capacity that the formula may be trusted with.
    """
    replicas, busy = archive.rows.replicas[row], archive.rows.utilization[row]
    use = min(busy * margin_of(archive, row).e2e / HIGHEST_UTILIZATION, busy / trusted)
    return min(max(ceil(replicas * use - ROUNDING), 1), replicas)


def wanted_of(key: str, target: Target | None, margin: float) -> Wanted:
    """Return a percentile that simulations are asked for.

    Args:
        key: As in slo.yaml.
        target: The target of that key; None = it has no limit.
        margin: Factor on the simulated value for the model's own error.
    """
    metric, share, _ = key.rpartition(".")[-1].split("_")
    limit = np.inf if target is None else in_seconds(target.limit, margin)
    kind = EVERY if target is None else target.kind
    return Wanted(key, metric, int(share[1:]) / 100, limit, kind)  # type: ignore[arg-type]


def fewest(levels: Sequence[int], start: int, holds: Callable[[int], bool], *, down: bool) -> int:
    """Return the fewest replicas that hold, by galloping up or bisecting down; 0 = none.

    Args:
        levels: Numbers to choose from, rising; `start` is one of them.
        start: Where to begin.
        holds: Whether a number of replicas holds; once it does, all larger ones are taken to.
        down: Whether fewer than `start` may be tried.
    """
    first = levels.index(start)
    low, high = (-1 if down else first - 1), first
    step = 1
    while not holds(levels[high]):
        low = high
        if high == len(levels) - 1:
            return 0
        high, step = min(high + step, len(levels) - 1), 2 * step
    while high - low > 1:
        middle = (low + high + 1) // 2
        low, high = (low, middle) if holds(levels[middle]) else (middle, high)
    return levels[high]


def finite(value: float) -> float | None:
    """Return a latency as the record holds it [ms]; None = without bound."""
    return float(rounded(value)) if np.isfinite(value) and value > 0 else None


def upper_ms(seen: Mapping[str, Seen]) -> dict[str, float | None]:
    """Return upper ends of simulated percentiles as the record holds them [ms], by target key.

    Without those that no request has: the formula alone speaks of them.
    """
    return {key: finite(found.upper / MILLI) for key, found in seen.items() if not found.empty}


def seen_ms(seen: Mapping[str, Seen]) -> dict[str, float | None]:
    """Return the simulated percentiles as ``upper_ms`` returns their upper ends [ms]."""
    return {key: finite(found.value / MILLI) for key, found in seen.items() if not found.empty}


def formula(sized: Sized, replicas: int, want: Wanted) -> float:
    """Return a percentile of a number of replicas by the closed formula [ms]."""
    state = sized.state(replicas)
    mixed = sized.desk.mixture
    seen_by = mixed.whole if want.kind == EVERY else mixed.parts[want.kind]
    found = percentile(state, seen_by, want.metric, want.share)
    return float(found[0]) / MILLI


def by_windows(sized: Sized, replicas: int, want: Wanted) -> float | None:
    """Return a percentile by the formula over the windows of the trace [ms]."""
    desk = sized.desk
    if not desk.windows:
        return None
    if replicas not in sized.over_windows:
        c, p = sized.resized(replicas), sized.scene.parameters
        sized.over_windows[replicas] = window_states(c, p, desk.windows, routing=desk.slo.routing)
    found = window_percentile(sized.over_windows[replicas], want.metric, want.share)
    return finite(float(found[0]) / MILLI)


def extended(sized: Sized, replicas: int) -> object:
    """Return the rows of the archive and one more: the same deployment with other replicas."""
    rows, hardware = sized.archive.rows, sized.archive.hardware
    state, w = sized.state(replicas), sized.desk.workload
    size = np.array([float(sized.size)])
    bought = np.array([float(replicas + sized.desk.slo.purchase.spare_replicas)])
    instances = int(instances_needed(bought, size, hardware.gpus_per_instance)[0])
    gpus, had = instances * hardware.gpus_per_instance, rows.gpus[sized.row]
    power = rows.power_w[sized.row]
    latency = {want.key: finite(formula(sized, replicas, want)) for want in sized.wanted}
    new = {
        "replicas": replicas,
        "max_num_seqs": sized.limit(replicas),
        "instances": instances,
        "gpus": gpus,
        **{key: latency[key] for key in STANDARD},
        "output_tokens_per_s": float(rounded(state.output_rate[0])),
        "capacity_tokens_per_s": float(rounded(state.capacity[0] * w.output_mean)),
        "utilization": float(rounded(state.utilization[0])),
        "wait_probability": float(rounded(state.wait_probability[0])),
        "slots": float(rounded(state.slots[0])),
        "power_w": None if power is None else float(rounded(power * gpus / had)),
    }
    columns = {
        name: (*getattr(rows, name), new.get(name, getattr(rows, name)[sized.row]))
        for name in type(rows).model_fields
        if name != "further_ms"
    }
    further = {key: (*values, latency[key]) for key, values in rows.further_ms.items()}
    return rows.model_copy(update={**columns, "further_ms": further})
