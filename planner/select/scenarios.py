"""What becomes of purchases when prices, traffic, lengths or the model turn out differently."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.candidates.demand import job_load, sized_rate, slo_mixture, targets
from planner.candidates.efficiency import error_entry
from planner.candidates.margins import METRICS
from planner.model.arrays import Candidates, Floats, Indices
from planner.model.batching import offline_batch
from planner.model.mixture import Mixture
from planner.model.queueing import OpenLoop, percentile, steady_state
from planner.pareto import rounded_number
from planner.select.answers import MARGIN_OF
from planner.select.deploy import Scene
from planner.select.firmness import Effect
from planner.spec.lengths import Lengths, MomentLengths, QuantileLengths
from planner.spec.option import Option
from planner.spec.slo import Slo
from planner.units import MILLI, SECONDS_PER_HOUR


@dataclass(frozen=True)
class Scenario:
    """What turns out differently; 1 and None = as planned.

    Attributes:
        name: For reports.
        price: Factor on the price of the option's own row.
        traffic: Factor on the rate, busy hour and mean; offline on the requests.
        mean: Factor on the mean rate alone.
        prompt, output: Factors on the lengths.
        error: Quantile of measured / predicted that comes true, 0.1 or 0.9; None = the margins.
    """

    name: str
    price: float = 1.0
    traffic: float = 1.0
    mean: float = 1.0
    prompt: float = 1.0
    output: float = 1.0
    error: float | None = None


def scaled(lengths: Lengths, factor: float) -> Lengths:
    """Return lengths that are so many times as long; none below one token."""
    if isinstance(lengths, QuantileLengths):
        return QuantileLengths(
            p50=max(lengths.p50 * factor, 1.0), p95=max(lengths.p95 * factor, 1.0)
        )
    if isinstance(lengths, MomentLengths):
        return MomentLengths(mean=max(lengths.mean * factor, 1.0), cv=lengths.cv)
    return type(lengths)(shares=tuple(max(value * factor, 1.0) for value in lengths.shares))


def with_lengths(slo: Slo, prompt: float, output: float) -> Slo:
    """Return what is asked with lengths that are so many times as long, of every class."""
    if prompt == output == 1.0:
        return slo
    traffic, changes = slo.traffic, {}
    for key, factor in (("prompt_tokens", prompt), ("output_tokens", output)):
        lengths: Lengths | None = getattr(traffic, key)
        changes[key] = None if lengths is None else scaled(lengths, factor)
    classes = traffic.classes and tuple(
        one.model_copy(
            update={
                "prompt_tokens": scaled(one.prompt_tokens, prompt),
                "output_tokens": scaled(one.output_tokens, output),
            }
        )
        for one in traffic.classes
    )
    return slo.model_copy(
        update={"traffic": traffic.model_copy(update={**changes, "classes": classes})}
    )


@dataclass(frozen=True)
class Subjects:
    """Options that are asked about, (n,), and the model to ask.

    Attributes:
        scene: Catalog, model, archive.
        slo: What was asked.
        options: The options; each rests on a row of the scene's archive.
        simulated: Ids of those that a simulation has checked: the headroom is not for them.
    """

    scene: Scene
    slo: Slo
    options: tuple[Option, ...]
    simulated: frozenset[str] = frozenset()

    @cached_property
    def places(self) -> Indices:
        """Class archive of each option."""
        number = {archive.hardware.id: i for i, archive in enumerate(self.scene.archives)}
        return np.array([number[option.hardware] for option in self.options], dtype=np.intp)

    @cached_property
    def candidates(self) -> Candidates:
        """Columns for the model, (n,)."""
        rows = np.array([option.archive_row for option in self.options], dtype=np.intp)
        return self.scene.candidates(self.places, rows)

    @cached_property
    def headroom(self) -> Floats:
        """Largest utilization that each option is trusted at, (n,)."""
        return np.array(
            [1.0 if o.id in self.simulated else self.slo.headroom for o in self.options]
        )

    def margin(self, key: str) -> Floats:
        """Return upper / predicted of a target, as planned, (n,).

        For options that a simulation has checked it holds what the formula left out as well.
        """
        return np.array([_margin(option, key) for option in self.options])

    def measured(self, metric: str, quantile: float) -> Floats:
        """Return a quantile of measured / predicted over the plan's own margin, (n,)."""
        efficiency, catalog = self.scene.catalog.efficiency, self.scene.catalog
        ratios = []
        for option, place in zip(self.options, self.places, strict=True):
            chip = catalog.accelerators[option.accelerator]
            entry = error_entry(efficiency, option.generation, chip, METRICS[MARGIN_OF[metric]])
            margins = {m.generation: m for m in self.scene.archives[place].margins}
            planned = getattr(margins[option.generation], MARGIN_OF[metric])
            value = entry.q90 if quantile > 0.5 else entry.q10
            ratios.append(value / planned)
        return np.array(ratios)

    def resized(self, replicas: Floats) -> Subjects:
        """Return the same options with other numbers of replicas, for the model alone."""
        other = replace(self)
        layout = replace(self.candidates.layout, replicas=replicas)
        # cached_property keeps its value in the instance's dictionary.
        other.__dict__["candidates"] = replace(self.candidates, layout=layout)
        return other


def _margin(option: Option, key: str) -> float:
    for target in option.targets:
        if target.key == key and target.upper is not None and target.predicted is not None:
            return target.upper / target.predicted
    return 1.0


def effects(subjects: Subjects, scenario: Scenario) -> list[Effect]:
    """Return what becomes of each option in a scenario; what was bought stays as it is."""
    money = [option.money for option in subjects.options]
    hour = np.array([m.usd_per_hour for m in money]) * scenario.price
    mtok = np.array([m.usd_per_mtok_output for m in money]) * scenario.price / scenario.output
    mtok = mtok / (scenario.traffic * scenario.mean)
    if subjects.slo.traffic.offline is None:
        use = limit_use(subjects, scenario, sized_rate(subjects.slo) * scenario.traffic)
    else:
        longer, late = _longer(subjects, scenario), subjects.margin("deadline_hours")
        if scenario.error is not None:
            # The error that comes true takes the place of the margin, and costs its time.
            longer = longer * late * subjects.measured("e2e", scenario.error)
            late = np.ones_like(late)
        hours = np.array([option.run_hours or 0.0 for option in subjects.options]) * longer
        use = hours * late / subjects.slo.traffic.offline.deadline_hours
        # The price is that of an hour that does its work; the run has hours that do none.
        lost = np.array([m.price.interruption_share for m in money])
        hour, mtok = hour * hours * (1.0 - lost), mtok * longer
    return [
        Effect(number(m), number(h), number(u) if np.isfinite(u) else None)
        for m, h, u in zip(mtok, hour, use, strict=True)
    ]


def number(value: float) -> float:
    """Return a number with the digits of the record."""
    return rounded_number(float(value))


def limit_use(subjects: Subjects, scenario: Scenario, rate: Floats | float) -> Floats:
    """Return the largest share of any target or of the headroom that is used, (n,).

    Args:
        subjects: Options of online work.
        scenario: Lengths and errors that come true.
        rate: Requests per second, one for all options or one each.

    Returns:
        Shares with the plan's margins, or with the error that comes true; infinity = overloaded.
    """
    asked = with_lengths(subjects.slo, scenario.prompt, scenario.output)
    mixed = slo_mixture(asked)
    c = subjects.candidates
    rates = np.broadcast_to(np.asarray(rate, dtype=float), (len(c),)).copy()
    state = steady_state(c, subjects.scene.parameters, mixed.whole, rates, routing=asked.routing)
    worst: Floats = state.utilization / subjects.headroom
    for target in targets(asked):
        value = _percentile(state, mixed, target.metric, (target.percentile, target.kind))
        value = value * subjects.margin(target.key)
        if scenario.error is not None:
            value = value * subjects.measured(target.metric, scenario.error)
        worst = np.maximum(worst, value / target.limit)
    return np.where(state.utilization < 1.0, worst, np.inf)


def _percentile(state: OpenLoop, mixed: Mixture, metric: str, which: tuple[int, int]) -> Floats:
    share, kind = which
    w = mixed.parts[max(kind, 0)]
    result: Floats = percentile(state, w, metric, share / 100) / MILLI  # type: ignore[arg-type]
    return result


def _longer(subjects: Subjects, scenario: Scenario) -> Floats:
    """Return how many times as long an offline run is predicted to take as planned, (n,)."""
    asked = with_lengths(subjects.slo, scenario.prompt, scenario.output)
    offline = subjects.slo.traffic.offline
    requests = 0.0 if offline is None else float(offline.requests)
    planned = _run(subjects, subjects.slo, requests)
    return _run(subjects, asked, requests * scenario.traffic) / planned


def _run(subjects: Subjects, slo: Slo, requests: float) -> Floats:
    """Return the length of an offline run [h], (n,)."""
    c = subjects.candidates
    load = job_load(slo, len(c), requests)
    return offline_batch(c, subjects.scene.parameters, load).run / SECONDS_PER_HOUR
