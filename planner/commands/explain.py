"""Every number of one option: its formula, its inputs, its source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from planner.counting import counted, request_rate
from planner.errors import InputError, suggestion
from planner.report.price_words import foreign
from planner.report.words import EVIDENCE_WORDS, limit
from planner.spec.accelerator import rests_on
from planner.spec.archive import ClassArchive, Margin
from planner.spec.explanation import Explanation, Item, Section
from planner.spec.money import Energy
from planner.spec.option import Latency, Option
from planner.spec.record import PlanRecord
from planner.spec.record_file import read_record

INTERVAL_TITLES = {"usd_per_mtok_full": "USD per million output tokens at full utilization"}
MODEL_NOTES = "planner/model/README.md"


def explain(file: Path, option: str = "cheapest") -> Explanation:
    """Explain one option of a stored plan.

    Args:
        file: ``plan.json``.
        option: Option id, or the name of a pick.

    Raises:
        InputError: The file is no plan, or has no such option.
    """
    record = read_record(file)
    chosen = find_option(record, option, str(file))
    archive = next(entry for entry in record.archive if entry.hardware.id == chosen.hardware)
    margin = next(m for m in archive.margins if m.generation == chosen.generation)
    sections = (
        Section("money", tuple(_money(chosen))),
        *_energy_section(chosen),
        Section("load", tuple(_load(record, chosen))),
        Section("latency", tuple(_latency(record, chosen, archive, margin))),
        Section("memory of the fullest GPU", tuple(_memory(chosen))),
        Section("quality", tuple(_quality(chosen))),
        Section("evidence", tuple(_evidence(chosen, archive, margin))),
    )
    return Explanation(chosen, sections)


def find_option(record: PlanRecord, name: str, source: str) -> Option:
    """Return the option of an id or pick.

    Raises:
        InputError: There is none; names the nearest.
    """
    identity = record.picks.get(name, name)
    near = [miss.option for miss in record.misses]
    near += [one.option for one in record.relaxations]
    options = [*record.options, *record.untrusted, *near]
    for option in options:
        if option.id == identity:
            return option
    known = [*record.picks, *(option.id for option in options)]
    hint = suggestion(name, known) or f"; {_choices(record)}"
    raise InputError(source, [f"has no option '{name}'{hint}"])


def _choices(record: PlanRecord) -> str:
    if record.picks:
        return f"picks are {', '.join(record.picks)}"
    near = ", ".join(miss.option.id for miss in record.misses) or "none"
    return f"nothing meets every target of this plan; the nearest are {near}"


def _n(value: float | None, unit: str = "") -> str:
    if value is None:
        return "-"
    text = f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    return f"{text} {unit}".strip()


def _money(o: Option) -> Iterator[Item]:
    m, p = o.money, o.money.price
    place = f"{p.provider} {p.instance_type} {p.region} {p.term}"
    row = f"{place}, seen {p.seen} ({p.seen_basis}): {p.source}"
    idle, each = p.interruption_share, _n(p.usd_per_instance_hour)
    quoted = _n(p.quoted_usd_per_hour, "USD per instance-hour")
    yield Item("price", quoted, "", row)
    if idle:
        formula = f"{_n(p.quoted_usd_per_hour)} / (1 - {idle:g} that interruptions cost)"
        yield Item("price of an hour that does its work", f"{each} USD", formula, "terms.yaml")
    if p.exchange is not None:
        source = f"{p.exchange.source}, {p.exchange.date}; currencies.yaml"
        yield Item("price as listed", foreign(p), "", source)
    yield Item(
        "instances",
        _n(o.instances),
        f"{counted(o.replicas + o.spare_replicas, 'replica')} of"
        f" {counted(o.gpus_per_replica, 'GPU')},"
        f" {counted(o.gpus // o.instances, 'GPU')} per instance, whole instances",
    )
    yield Item(
        "cost",
        _n(m.usd_per_hour, "USD/h"),
        f"{o.instances} x {each}",
    )
    if idle:
        yield Item(
            "cost on the invoice",
            _n(m.invoiced_usd_per_hour, "USD/h"),
            f"{_n(m.usd_per_hour)} x (1 - {_n(idle)}): an hour that does its work costs more than"
            " an hour on the invoice",
        )
    yield from _lease(o)
    yield from _owned(o)
    mean = o.capacity_tokens_per_s * m.mean_utilization
    yield Item(
        "per million output tokens",
        _n(m.usd_per_mtok_output, "USD"),
        f"{_n(m.usd_per_hour)} / ({_n(mean)} output tokens/s at the mean rate x 3600 / 1e6)",
    )
    yield Item(
        "at full utilization",
        _n(m.usd_per_mtok_full, "USD"),
        f"{_n(m.usd_per_hour)} / ({_n(o.capacity_tokens_per_s)} output tokens/s x 3600 / 1e6)",
    )
    yield Item("per million tokens, prompt and output", _n(m.usd_per_mtok_total, "USD"))
    if m.usd_per_job is not None:
        yield Item(
            "the whole run",
            _n(m.usd_per_job, "USD"),
            f"{_n(o.run_hours)} h x {_n(m.invoiced_usd_per_hour)}",
        )


def _lease(o: Option) -> Iterator[Item]:
    """Yield what the price row binds to, as far as it does."""
    lease, hour = o.money.price.lease, _n(o.money.invoiced_usd_per_hour)
    if lease is None:
        return
    if o.money.bound_usd is not None:
        formula = f"{_n(lease.hours)} h of the shortest lease x {hour}"
        yield Item("bound for", _n(o.money.bound_usd, "USD"), formula)
    if o.money.due_at_once_usd is not None:
        formula = f"{_n(o.money.bound_usd)} x {_n(lease.upfront_share)} paid at the start"
        yield Item("due at once", _n(o.money.due_at_once_usd, "USD"), formula)
    elif lease.upfront_share:
        yield Item("due at once", f"{lease.upfront_share:.0%} of the lease, of no stated length")
    if lease.minimum_instances > 1:
        yield Item("fewest instances that are sold", _n(lease.minimum_instances))
    if lease.quota_instances is not None:
        yield Item("quota", counted(lease.quota_instances, "instance"))


PARTS = {
    "capital": "purchase price less residual over the lifetime, with the cost of capital",
    "maintenance": "share of the purchase price a year",
    "energy": "mean draw x PUE x USD/kWh",
    "space": "rated power x USD per kW and month, power included",
    "staff": "USD a year and GPU",
}
"""Part of the price of owned hardware -> how it comes about."""


def _owned(o: Option) -> Iterator[Item]:
    if o.money.owned is None:
        return
    for name, formula in PARTS.items():
        value = getattr(o.money.owned, name)
        if value:
            yield Item(f"of which {name}", _n(value, "USD/h"), formula, "slo.yaml, purchase.owned")


def _energy_section(o: Option) -> Iterator[Section]:
    if o.energy is not None:
        yield Section("energy", tuple(_energy(o, o.energy)))


def _energy(o: Option, e: Energy) -> Iterator[Item]:
    source = "accelerator's file, tdp_w; terms.yaml, power"
    yield Item("mean draw", _n(e.mean_kw, "kW"), f"{counted(o.gpus, 'GPU')} and servers", source)
    yield Item("rated power", _n(e.rated_kw, "kW"), "for breakers and racks", source)
    tokens = o.capacity_tokens_per_s * o.money.mean_utilization
    yield Item(
        "per million output tokens",
        _n(e.kwh_per_mtok_output, "kWh"),
        f"{_n(e.mean_kw)} kW x PUE {_n(e.pue)} / ({_n(tokens)} output tokens/s at the mean rate"
        " x 3600 / 1e6)",
    )
    if e.g_co2e_per_mtok_output is not None:
        carbon = _n(e.g_co2e_per_mtok_output, "g CO2e")
        yield Item("carbon per million output tokens", carbon, "", "slo.yaml, carbon_g_per_kwh")


def _load(record: PlanRecord, o: Option) -> Iterator[Item]:
    share = f"{_n(o.output_tokens_per_s)} / {_n(o.capacity_tokens_per_s)}"
    traffic = record.inputs.slo.get("traffic", {})
    offline = traffic.get("offline")
    if offline is None or o.run_hours is None:
        yield Item("rate sized for", request_rate(_n(o.rate_per_s)), *_rate_source(record))
    else:
        requests, deadline = f"{offline['requests']:,}", _n(offline["deadline_hours"], "h")
        yield Item("requests", requests, "", "slo.yaml, offline")
        yield Item("deadline", deadline, "", "slo.yaml, offline")
        run = _n(o.run_hours, "h")
        yield Item(
            "mean rate of the run", request_rate(_n(o.rate_per_s)), f"{requests} requests / {run}"
        )
        share = f"{run} / {deadline}: the whole run / deadline"
    yield Item("output", _n(o.output_tokens_per_s, "tokens/s"), "rate x mean output length")
    yield Item("capacity", _n(o.capacity_tokens_per_s, "tokens/s"), "", f"{MODEL_NOTES}, queueing")
    yield Item("utilization", _n(o.utilization), share)
    yield Item("sequences that a rank holds", _n(o.slots))
    yield Item("chance to wait for a slot or memory", _n(o.wait_probability))
    yield Item("limit that binds", f"{limit(o)}, {_n(o.binding.use)} used", "", o.binding.resource)


def _rate_source(record: PlanRecord) -> tuple[str, str]:
    """Return how the rate sized for comes about, and where it stands."""
    trace = record.inputs.trace
    if trace is None:
        return "", "slo.yaml"
    if trace.window_s is None:
        return "that of the whole trace", trace.file
    busiest = _n(trace.window_s, "s")
    return f"requests of mean lengths that bring the tokens of its busiest {busiest}", trace.file


def _latency(
    record: PlanRecord, o: Option, archive: ClassArchive, margin: Margin
) -> Iterator[Item]:
    confidence = record.inputs.slo.get("slo", {}).get("confidence", 0.8)
    parts: tuple[tuple[str, Latency | None, float], ...] = (
        ("TTFT", o.ttft, margin.ttft),
        ("TPOT", o.tpot, margin.tpot),
        ("E2E", o.e2e, margin.e2e),
    )
    simulated = archive.simulated_upper(o.archive_row)
    end = _simulated_how(record)
    for name, latency, factor in parts:
        if latency is None:
            continue
        upper = simulated.get(f"{name.lower()}_p95_ms")
        yield Item(f"{name} p50", _n(latency.p50_ms, "ms"), "", f"{MODEL_NOTES}, queueing")
        yield Item(f"{name} p95", _n(latency.p95_ms, "ms"), "", f"{MODEL_NOTES}, queueing")
        if upper is not None:
            yield Item(f"{name} p95 simulated", _n(upper, "ms"), end, "the plan's simulation")
        yield Item(
            f"{name} p95 with margin",
            _n(latency.p95_upper_ms, "ms"),
            f"{_n(upper or latency.p95_ms)} {'simulated ' if upper else ''}x {_n(factor)}:"
            f" measured / predicted at {confidence:.0%}",
            "efficiency.yaml, errors",
        )
    if o.run_hours is not None:
        lost = o.money.price.interruption_share
        work = f"{_n(o.run_hours * (1.0 - lost))} h of work / (1 - {_n(lost)})" if lost else ""
        yield Item("the whole run", _n(o.run_hours, "h"), work, f"{MODEL_NOTES}, batches")
        yield Item(
            "the whole run with margin",
            _n(o.run_hours * margin.e2e, "h"),
            f"{_n(o.run_hours)} x {_n(margin.e2e)}: measured / predicted at {confidence:.0%}",
            "efficiency.yaml, errors",
        )
    yield Item(
        "TPOT bound",
        _n(o.bound_tpot_ms, "ms"),
        "all efficiencies 1, at the option's own batch",
        f"{MODEL_NOTES}, bound",
    )
    for target in o.targets:
        state = "holds" if target.holds else "missed"
        yield Item(target.key, state, f"{_n(target.upper)} against {_n(target.limit)}", "slo.yaml")


def _simulated_how(record: PlanRecord) -> str:
    """Return what a simulated percentile is."""
    trace = record.inputs.trace
    if trace is None:
        return "upper end of its 99 % interval"
    replayed = max((check.requests for check in record.verification), default=trace.requests)
    if replayed < trace.requests:
        return f"replay of the {replayed:,} requests around the busiest minute"
    return "replayed, nothing left to chance"


def _memory(o: Option) -> Iterator[Item]:
    m = o.memory
    yield Item("device", _n(m.device_gib, "GiB"), "as the driver reports it", "accelerator's file")
    yield Item("weights", _n(m.weights_gib, "GiB"), f"{o.weights}, tp {o.tp}, pp {o.pp}")
    yield Item(
        "KV cache",
        _n(m.kv_pool_gib, "GiB"),
        f"{_n(m.device_gib)} - {_n(m.weights_gib)} weights - {_n(m.reserve_gib)} reserved"
        f" - {_n(m.unused_gib)} unused",
        "engine's file, memory",
    )
    yield Item("KV cache per token", _n(m.kv_bytes_per_token, "B"), o.kv)
    yield Item("sequences of the mean workload that fit", _n(m.sequences))


def _quality(o: Option) -> Iterator[Item]:
    q = o.quality
    yield Item(
        "loss", _n(q.median, "%"), f"median, {q.grade}", f"{q.basis}; {counted(q.rows, 'result')}"
    )
    yield Item("loss, pessimistic end", _n(q.p90, "%"), "90 % of the evidence is better")


def _weakest(o: Option, archive: ClassArchive, margin: Margin) -> str:
    """Return what makes the evidence weaker than that of the stack; empty = nothing."""
    if o.evidence == margin.evidence:
        return ""
    if o.evidence == "wide":
        return f"the stack with speculation {o.speculation}, measured on too few stacks"
    if o.pp > 1:
        return "the stack with pipeline stages, never measured"
    across = o.tp * o.dp > archive.hardware.gpus_per_instance
    return "the stack with replicas across servers, never measured" if across else ""


def _acceptance(o: Option) -> Iterator[Item]:
    """Yield how likely drafts are accepted, and what the intervals know of its spread."""
    if o.acceptance is None:
        return
    first, decay = (_n(value) for value in o.acceptance)
    formula, source = f"of draft token i: {first} x {decay}^(i-1)", "speculation.yaml"
    yield Item("draft acceptance", first, formula, source if o.acceptance_range else "")
    if o.acceptance_range is None:
        yield Item("its range", "none known", "taken as exact by intervals and margins")
    else:
        low, high = (_n(end) for end in o.acceptance_range)
        text = "widens the 80 % intervals, not the margins of the targets"
        yield Item("its range", f"{low} to {high}", text, "speculation.yaml, c1_low, c1_high")


def _evidence(o: Option, archive: ClassArchive, margin: Margin) -> Iterator[Item]:
    stack = f"{o.generation} on {o.accelerator}"
    yield Item("speed evidence", EVIDENCE_WORDS[o.evidence], _weakest(o, archive, margin))
    measured = EVIDENCE_WORDS[margin.evidence]
    yield Item("measured on this stack", measured, stack, "efficiency.yaml, errors")
    if o.intervals is not None:
        for name in type(o.intervals).model_fields:
            found = getattr(o.intervals, name)
            if found is not None:
                high = "no bound" if found.high is None else _n(found.high)
                text = f"{_n(found.low)} to {high}"
                title = INTERVAL_TITLES.get(name, name)
                yield Item(f"80 % interval of {title}", text, "", "efficiency.yaml, errors")
    yield from _acceptance(o)
    for figure in filter(lambda key: rests_on(key, o.weights), archive.hardware.assumed):
        yield Item("assumed", figure, "", f"accelerators/{o.accelerator}.yaml")
    for flag in o.flags:
        yield Item("caution", flag)
