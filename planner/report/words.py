"""Words and numbers as reports show them; every report uses the same."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from decimal import Decimal
from math import isnan
from typing import Any

from planner.counting import counted, request_rate
from planner.model.queueing.state import (
    FEWEST_SLOTS,
    HIGHEST_UTILIZATION,
    HIGHEST_WAIT_PROBABILITY,
)
from planner.spec.money import Energy
from planner.spec.option import GATED, Option
from planner.spec.record import PlanRecord, Relaxation
from planner.units import SECONDS_PER_HOUR

SHORT_HOURS = 0.1
"""Times below are told in minutes or seconds."""
CENT = 0.01
ALL = 0.995
"""Share that is told as all."""

PICK_TITLES: Mapping[str, str] = {
    "cheapest": "Cheapest",
    "balanced": "Balanced",
    "lowest_ttft": "Lowest TTFT",
    "lowest_tpot": "Lowest TPOT",
    "best_quality": "Best quality",
}
EVIDENCE_WORDS: Mapping[str, str] = {
    "validated": "validated",
    "wide": "wide interval",
    "unvalidated": "UNVALIDATED",
}
TERM_WORDS: Mapping[str, str] = {
    "on_demand": "on demand",
    "spot": "spot",
    "reserved_1y": "reserved 1 y",
    "reserved_3y": "reserved 3 y",
    "prepaid": "prepaid",
    "owned": "owned",
}


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits, no exponent; a dash where there is none."""
    if value is None or isnan(value):
        return "-"
    if value == 0:
        return "0"
    magnitude = len(str(int(abs(value))))
    if magnitude >= digits:
        return f"{value:,.0f}"
    shown = f"{float(f'{value:.{digits}g}'):,.10g}"
    return f"{Decimal(shown):f}" if "e" in shown else shown


def count(value: int, noun: str) -> str:
    """Return a count, its thousands parted, with its noun."""
    return counted(value, noun, shown=f"{value:,}")


def money(value: float | None) -> str:
    """Return an amount in USD with cents; below one dollar with three digits."""
    if value is None:
        return "-"
    return f"${value:,.2f}" if value >= 1 else f"${value:.3f}"


def duration(hours: float | None) -> str:
    """Return a time in hours; below 0.1 h in minutes, below one minute in seconds."""
    if hours is None:
        return "-"
    unit, size = time_unit(hours)
    return f"{number(hours * size)} {unit}"


def time_unit(hours: float) -> tuple[str, float]:
    """Return the unit that suits a time, and how many of it an hour has."""
    if hours >= SHORT_HOURS:
        return "h", 1.0
    return ("min", 60.0) if hours * 60.0 >= 1.0 else ("s", SECONDS_PER_HOUR)


def run(option: Option) -> str:
    """Return what the whole of an offline run costs, and how long it takes."""
    cost = option.money.usd_per_job
    least = cost is not None and cost < CENT
    told = f"{'< $0.01' if least else money(cost)} in {duration(option.run_hours)}"
    if option.money.price.interruption_share:
        # The hours that do no work are among those of the run.
        told += f" at {money(option.money.invoiced_usd_per_hour)}/h invoiced"
    lease = option.money.price.lease
    if lease is not None and option.lease_outlasts_run:
        told += f", but {money(option.money.bound_usd)} due for {lease.hours:,.6g} h of lease"
    return told


def milliseconds(value: float | None) -> str:
    """Return a latency in ms, in seconds from 10 s on."""
    if value is None:
        return "no bound"
    return f"{number(value / 1000)} s" if value >= 10_000 else f"{number(value)} ms"


def percent(share: float | None) -> str:
    """Return a share as a percentage."""
    return "-" if share is None else f"{share * 100:.0f} %"


def use(option: Option) -> str:
    """Return the share of the capacity that is used in the busy hour, offline of the deadline."""
    of = "" if option.run_hours is None else " of the deadline"
    return f"{percent(option.utilization)}{of}"


def hardware(option: Option) -> str:
    """Return what is bought, as ``2 x 8 H100 SXM5 80GB``."""
    per_instance = option.gpus // option.instances
    gpus = f"{per_instance} " if per_instance > 1 else ""
    return f"{option.instances} x {gpus}{option.accelerator_name}"


def hardware_id(option: Option) -> str:
    """Return what is bought with the catalog's short name, as ``2 x 8 h100-sxm``."""
    per_instance = option.gpus // option.instances
    gpus = f"{per_instance} " if per_instance > 1 else ""
    return f"{option.instances} x {gpus}{option.accelerator}"


def instance(option: Option) -> str:
    """Return where it is bought."""
    price = option.money.price
    return f"{price.provider} {price.instance_type}, {price.region}"


def parallelism(option: Option) -> str:
    """Return replicas and parallel degrees, as ``3 x TP4 PP2 DP2``, and GPUs that stand idle."""
    parts = [f"TP{option.tp}"]
    parts += [f"PP{option.pp}"] if option.pp > 1 else []
    parts += [f"DP{option.dp}"] if option.dp > 1 else []
    spare = f" + {option.spare_replicas} spare" if option.spare_replicas else ""
    used = (option.replicas + option.spare_replicas) * option.gpus_per_replica
    idle = f", {counted(option.gpus - used, 'GPU')} idle" if option.gpus > used else ""
    return f"{option.replicas} x {' '.join(parts)}{spare}{idle}"


def batch_limit(option: Option, noun: str) -> str:
    """Return the limits of a step; the noun is what sequences are called."""
    tokens = counted(option.token_budget, "token")
    return f"{counted(option.max_num_seqs, noun)}, {tokens}"


def speculation(option: Option) -> str:
    """Return method and draft tokens."""
    if option.speculation == "off":
        return "off"
    return f"{option.speculation} {option.draft_tokens}"


def engine(option: Option) -> str:
    """Return engine and generation."""
    return option.engine if option.generation == option.engine else option.generation


def price(option: Option) -> str:
    """Return term, age and mark of the price row."""
    row = option.money.price
    flag = f", {row.flag.upper()}" if row.flag else ""
    return f"{TERM_WORDS[row.term]}, seen {row.seen}{flag}"


def invoiced(option: Option) -> str:
    """Return what the invoice says of an hour, and the share that does no work; empty = all do."""
    share = option.money.price.interruption_share
    if not share:
        return ""
    return f"{money(option.money.invoiced_usd_per_hour)} invoiced, {percent(share)} does no work"


def autoscaled(option: Option) -> str:
    """Return the price of a fleet that follows the load profile, and what that fleet is."""
    scaled = option.money.autoscaled
    if scaled is None:
        return "-"
    return f"{money(scaled.usd_per_mtok_output)} for {autoscaled_fleet(option)}"


def autoscaled_fleet(option: Option) -> str:
    """Return what a fleet that follows the load is; its latencies are not those of the option."""
    scaled = option.money.autoscaled
    if scaled is None:
        return ""
    low, high = min(scaled.replicas_by_hour), max(scaled.replicas_by_hour)
    if low == high == option.replicas:
        return f"the same fleet, {counted(high, 'replica')} at every hour"
    span = f"{low}" if low == high else f"{low} to {high}"
    replicas = counted(high, "replica", shown=span)
    return f"another fleet: {replicas}, sized by the hour by the formula"


def energy(value: Energy) -> str:
    """Return mean draw, energy and, where asked for, carbon."""
    carbon = value.g_co2e_per_mtok_output
    told = f"{number(value.mean_kw)} kW, {number(value.kwh_per_mtok_output)} kWh per Mtok output"
    return told if carbon is None else f"{told}, {number(carbon)} g CO2e"


def quality(option: Option) -> str:
    """Return quality loss with its pessimistic end and grade."""
    q = option.quality
    if q.grade == "native":
        return "none (as released)"
    return f"{q.median:.1f} % (p90 {q.p90:.1f} %, {q.grade})"


def limit(option: Option) -> str:
    """Return the limit that binds; of the headroom, what share of the capacity it is.

    Once a simulation has checked an option, it may use all of its capacity.
    """
    b = option.binding
    if b.limit != "headroom" or not b.use:
        return b.limit
    room = option.utilization / b.use
    return "capacity" if room > ALL else f"headroom {percent(room)}"


def binding(option: Option) -> str:
    """Return the limit that binds, and what runs out there."""
    b = option.binding
    return f"{limit(option)}, {percent(b.use)} used ({b.resource})"


def relaxation(one: Relaxation) -> str:
    """Return what a limit would have to be, and what that would buy."""
    option, cost = one.option, one.option.money
    return (
        f"{one.limit}: {number(one.needed, 6)} instead of {number(one.asked, 6)} buys"
        f" {parallelism(option)} on {hardware(option)}, {money(cost.usd_per_hour)}/h,"
        f" {money(cost.usd_per_mtok_output)} per Mtok output"
    )


def alone(record: PlanRecord) -> list[str]:
    """Return a heading, and what moving one limit of an unmet plan alone would buy, in lines."""
    if record.relaxations:
        offline = record.inputs.slo["traffic"].get("offline")
        by = "" if offline else ", by the formula (a simulation may refuse it)"
        told = f"One limit alone, all others as asked{by}:"
        return [told, *(relaxation(one) for one in record.relaxations)]
    if record.misses and not any(miss.would_do for miss in record.misses):
        return ["No limit moved alone makes the plan work."]
    return []


def lengths(value: object) -> str:
    """Return a length distribution of slo.yaml in words."""
    if isinstance(value, Mapping) and "shares" in value:
        shares = [float(share) for share in value["shares"]]
        at = {key: shares[int(rank * len(shares))] for key, rank in (("p50", 0.5), ("p95", 0.95))}
        value = {**at, "mean": sum(shares) / len(shares)}
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {number(part, 6)}" for key, part in value.items())
    return f"{number(float(str(value)), 6)} each"


def cautions(option: Option) -> str:
    """Return why picks may not rest on an option; beyond the gates, with what lies beyond them."""
    return ", ".join(
        f"{flag} ({_gates(option)})" if flag == GATED else flag for flag in option.flags
    )


def _gates(o: Option) -> str:
    waiting = number(100.0 * (o.wait_probability or 0.0))
    return (
        f"{percent(o.utilization)} use, {waiting} % wait for a slot, {number(o.slots)} slots;"
        f" the formula is trusted up to {percent(HIGHEST_UTILIZATION)},"
        f" {percent(HIGHEST_WAIT_PROBABILITY)} and from {FEWEST_SLOTS:g} on"
    )


def asked(record: PlanRecord) -> list[str]:
    """Return what was asked, in lines."""
    slo = record.inputs.slo
    traffic = slo["traffic"]
    offline = traffic.get("offline")
    load = (
        f"{count(offline['requests'], 'request')} within {number(offline['deadline_hours'])} h"
        f" with {confidence(record)} confidence"
        if offline
        else f"{request_rate(number(traffic['rate_per_s']))}{_on_average(record)}"
    )
    lines = [f"{slo['model']}, {slo['task']}, {load}"]
    if record.inputs.trace is not None:
        trace = record.inputs.trace
        lines.append(
            f"trace {trace.file}: {count(trace.requests, 'request')} in"
            f" {number(trace.duration_s)} s, {number(trace.mean_rate_per_s)}/s on average"
        )
    for kind in traffic.get("classes") or (traffic,):
        who = f"{kind['name']}, {percent(kind['share'])}: " if "share" in kind else ""
        lines.append(
            f"{who}prompt {lengths(kind['prompt_tokens'])};"
            f" output {lengths(kind['output_tokens'])} tokens"
        )
    unusual = ", ".join((*_unusual(traffic), *_routing(slo)))
    return [*lines, *([unusual] if unusual else []), *_targets(record)]


def _unusual(traffic: Mapping[str, Any]) -> Iterator[str]:
    """Yield what else of the traffic moves the answer, where it was stated."""
    if traffic.get("prefix_hit_rate"):
        yield f"{percent(traffic['prefix_hit_rate'])} of each prompt cached"
    if traffic.get("burstiness", 1.0) != 1.0:
        yield f"burstiness {number(traffic['burstiness'])} (squared CV of the gaps)"
    if traffic.get("max_context_tokens"):
        yield f"at most {number(traffic['max_context_tokens'], 6)} tokens a request"


def _routing(slo: Mapping[str, Any]) -> Iterator[str]:
    """Yield how requests are spread over replicas, where the least loaded does not get the next."""
    if slo.get("routing") == "random":
        yield "each request to a replica at random"


def _targets(record: PlanRecord) -> Iterator[str]:
    """Yield the targets in lines: one a class of requests where any class has its own."""
    slo = record.inputs.slo
    common, classes = _limits(slo), slo["traffic"].get("classes") or ()
    sure = f"each with {confidence(record)} confidence"
    if any(map(_limits, classes)):
        yield f"targets, {sure}:"
        for kind in classes:
            yield f"  {kind['name']}: {_limits(kind) or common or 'none'}"
    elif common:
        yield f"targets: {common}, {sure}"


def _limits(block: Mapping[str, Any]) -> str:
    """Return the limits of slo.yaml, or of one class in it; empty = it sets none."""
    return ", ".join(
        f"{key} <= {number(value, 6)}"
        for key, value in block.get("slo", {}).items()
        if key.endswith("_ms") and value
    )


def _on_average(record: PlanRecord) -> str:
    """Return the mean rate in words, where costs rest on another rate than the one sized for."""
    traffic, trace = record.inputs.slo["traffic"], record.inputs.trace
    rate, mean = traffic["rate_per_s"], traffic.get("mean_rate_per_s")
    if profile := traffic.get("load_profile"):
        mean = rate * sum(profile) / (len(profile) * max(profile))
    if mean is None or mean == rate:
        return ""
    busiest = f"{number(trace.window_s)} s" if trace and trace.window_s else "hour"
    return f" in the busiest {busiest}, {number(mean)} on average (which costs rest on)"


def confidence(record: PlanRecord) -> str:
    """Return how likely each target is to hold, as a plan was asked."""
    return percent(record.inputs.slo["slo"].get("confidence", 0.8))


def nothing(record: PlanRecord) -> str:
    """Return that no option was found, and whether the search had come to its end."""
    s = record.search
    whole = s.proven or s.stopped == "fixed point"
    seen = f"({s.candidates:,} considered)" if whole else "so far: the search was cut short"
    return f"No candidate meets every target {seen}."


def found(record: PlanRecord) -> str:
    """Return how the front was found."""
    s = record.search
    exact = f"the formula's front is {'proven' if s.proven else 'not proven'} exact"
    if s.missed:
        exact += f"; the search had missed {count(s.missed, 'point')}, which the proof has added"
    if s.simulated:
        exact += f"; by simulation, {count(s.simulated, 'deployment')} around the front held"
    ended = s.stopped if s.stopped == "interrupted" else f"stopped at {s.stopped}"
    return (
        f"{count(len(record.options), 'option')} on the front, from {count(s.shapes, 'shape')}"
        f" ({count(s.candidates, 'candidate')}, {s.scored:,} scored, {count(s.trials, 'trial')});"
        f" {exact}, {ended}"
    )


def price_age(record: PlanRecord, today: datetime.date) -> str:
    """Return the day that prices are judged by, and when those of the picks were seen."""
    as_of = record.inputs.as_of
    days = (today - datetime.date.fromisoformat(as_of)).days
    said = f"prices judged as of {as_of}" + (f", {counted(days, 'day')} ago" if days > 0 else "")
    picked = set(record.picks.values())
    seen = sorted({o.money.price.seen for o in record.options if o.id in picked})
    if not seen:
        return said
    span = seen[0] if len(seen) == 1 else f"{seen[0]} to {seen[-1]}"
    return f"{said}; those of the picks were seen {span}: ask for a quote before you buy"
