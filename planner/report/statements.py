"""Sentences of a pack: what the plan rests on, and how firm its picks are."""

from __future__ import annotations

from collections.abc import Iterator

from planner.counting import counted, request_rate
from planner.report import words
from planner.report.pack import Pack
from planner.select.firmness import Firmness, PickFirmness
from planner.spec.accelerator import rests_on
from planner.spec.option import Option
from planner.spec.record import PlanRecord
from planner.spec.verification import Verification

WHOLE_PERCENT = 0.01
"""Changes of a price below it are told with more digits: +0.04 % is not none."""
FLIPS = 3
"""Changes of the cheapest option with the rate that are told."""


def statements(pack: Pack) -> Iterator[tuple[str, str, str]]:
    """Yield (subject, what, statement) of everything that the plan rests on."""
    record = pack.record
    for text in record.assumptions:
        yield "assumption", "", text
    inputs = record.inputs
    yield "inputs", "catalog", f"SHA-256 {inputs.catalog_digest}"
    yield "inputs", "prices judged by", inputs.as_of
    yield "inputs", "seed, planner version", f"{inputs.seed}, {record.planner_version}"
    yield "search", "", words.found(record)
    yield from _money(record)
    for check in record.verification:
        yield "simulation", check.option, _checked(check)
    confidence = inputs.slo.get("slo", {}).get("confidence", 0.8)
    listed = {(option.hardware, option.generation) for option in pack.listed()}
    for archive in record.archive:
        hardware = archive.hardware
        for margin in archive.margins:
            if (hardware.id, margin.generation) in listed:
                factors = f"TTFT x {margin.ttft:.3g}, TPOT x {margin.tpot:.3g}"
                yield (
                    "speed",
                    f"{margin.generation} on {hardware.name}",
                    f"{words.EVIDENCE_WORDS[margin.evidence]}; margins at {confidence:.0%}"
                    f" confidence: {factors}, E2E x {margin.e2e:.3g}",
                )
        formats = {o.weights for o in pack.listed() if o.hardware == hardware.id}
        for figure in hardware.assumed:
            if any(rests_on(figure, weights) for weights in formats):
                yield "hardware", hardware.name, f"{figure} is assumed, not measured or published"
    seen = {(o.weights, o.kv, o.quality.basis, o.quality.grade) for o in pack.listed()}
    for weights, kv, basis, grade in sorted(seen):
        yield "quality", f"{weights} weights, {kv} KV cache", f"{grade}: {basis}"


def _money(record: PlanRecord) -> Iterator[tuple[str, str, str]]:
    if not any(option.run_hours is not None for option in record.options):
        yield "money", "month and year", "730 and 8,760 hours, paid for in full, whole instances"
    if any(option.money.price.interruption_share for option in record.options):
        yield (
            "money",
            "spot allowance",
            "hours that interruptions make useless are paid for too, so an hour of work costs more"
            " than an hour on the invoice: price / (1 - share); prices of a row and what is called"
            " invoiced are without it",
        )


def _checked(check: Verification) -> str:
    """Return what a simulation said of an option, in a sentence."""
    missed = "holds the targets with no number of replicas that was tried"
    state = "holds every target" if check.holds else missed
    seen = [
        f"{c.key} {words.number(c.simulated_ms)} (formula {words.number(c.formula_ms)})"
        for c in check.latencies
        if "_p95_" in c.key
    ]
    return f"{', '.join(check.picks)}: {state}; {'; '.join(seen)}"


def _share(change: float) -> str:
    return f"{change:+.0%}" if abs(change) >= WHOLE_PERCENT else f"{change:+.2%}"


def _cost(option: Option) -> str:
    hour = f"{words.money(option.money.usd_per_hour)}/h"
    return hour if option.money.usd_per_job is None else words.run(option)


def firm_words(firmness: Firmness, pick: PickFirmness) -> Iterator[str]:
    """Yield, in sentences, where a pick stops being the choice."""
    flip = pick.flip
    if flip is not None:
        other = flip.replacement
        yield (
            f"From {words.money(flip.usd_per_instance_hour)} per instance-hour on"
            f" ({_share(flip.change)}), {words.hardware(other)}, {words.instance(other)},"
            f" at {_cost(other)} takes its place."
        )
    if pick.highest_rate is not None:
        yield f"It keeps its limits up to {request_rate(words.number(pick.highest_rate))}."
    if pick.fewer_rate is not None:
        yield f"Up to {request_rate(words.number(pick.fewer_rate))}, one instance less would do."
    for even in pick.break_evens:
        yield (
            f"{words.TERM_WORDS[even.committed.term].capitalize()} from {even.committed.provider}"
            f" pays from {even.share_of_hours:.0%} of all hours on."
        )
        if even.base_replicas is not None:
            base = counted(even.base_replicas, "replica")
            yield f"A base of {base} of a fleet that follows its load runs that long."
    for change in firmness.rate_flips[:FLIPS]:
        yield (
            f"From {request_rate(words.number(change.rate_per_s))} on, {change.option} is the"
            " cheapest option of the front that keeps its limits."
        )
