"""The options of a plan as CSV: one row each, the picks named."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from planner.report import price_words
from planner.spec.money import Lease
from planner.spec.option import Latency, Option
from planner.spec.record import PlanRecord

Value = str | int | float | None
Column = tuple[str, Callable[[Option], Value]]

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text cell that begins so for a formula."""


def inert(value: Value) -> str:
    """Return a cell that no spreadsheet evaluates; numbers stay numbers."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA_STARTS) else value
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _latency(name: str) -> list[Column]:
    def column(field: str) -> Callable[[Option], Value]:
        def get(option: Option) -> Value:
            latency: Latency | None = getattr(option, name)
            return None if latency is None else float(getattr(latency, field))

        return get

    fields = ("p50_ms", "p95_ms", "p50_upper_ms", "p95_upper_ms")
    return [(f"{name}_{field}", column(field)) for field in fields]


def _interval(name: str) -> list[Column]:
    def column(end: str) -> Callable[[Option], Value]:
        def get(option: Option) -> Value:
            found = getattr(option.intervals, name, None)
            return getattr(found, end, None)

        return get

    return [(f"{name}_{end}", column(end)) for end in ("low", "high")]


def _plain(name: str) -> Column:
    return (name, lambda option: getattr(option, name))


def _money(name: str) -> Column:
    return (name, lambda option: getattr(option.money, name))


def _owned(name: str) -> Column:
    """Return a part of the price of owned hardware [USD/h]."""
    return (f"owned_{name}_usd_per_hour", lambda o: getattr(o.money.owned, name, None))


def _energy(name: str) -> Column:
    return (name, lambda o: getattr(o.energy, name, None))


def _lease(name: str) -> Column:
    return (f"lease_{name}", lambda option: getattr(option.money.price.lease, name, None))


def _price(name: str) -> Column:
    return (f"price_{name}", lambda option: getattr(option.money.price, name))


COLUMNS: tuple[Column, ...] = (
    _plain("id"),
    *(_plain(name) for name in ("accelerator", "accelerator_name", "instances", "gpus")),
    *(_plain(name) for name in ("provider", "region")),
    *(_price(name) for name in ("instance_type", "term")),
    ("price_usd_per_instance_hour", lambda o: o.money.price.quoted_usd_per_hour),
    ("price_spot_allowance_share", lambda o: o.money.price.interruption_share or None),
    *(_price(name) for name in ("seen", "flag")),
    *(_price(name) for name in ("source", "currency", "list_price_per_hour")),
    _price("contracted_price_per_hour"),
    ("price_exchange_usd", lambda o: getattr(o.money.price.exchange, "usd", None)),
    ("price_exchange", lambda o: price_words.exchange(o.money.price) or None),
    *(_money(name) for name in ("usd_per_hour", "usd_per_mtok_output", "usd_per_mtok_total")),
    *(_money(name) for name in ("usd_per_mtok_full", "mean_utilization", "usd_per_job")),
    _money("invoiced_usd_per_hour"),
    *(_money(name) for name in ("due_at_once_usd", "bound_usd")),
    *(_lease(name) for name in Lease.model_fields),
    *(_plain(name) for name in ("engine", "generation", "weights", "kv", "tp", "pp", "dp")),
    *(_plain(name) for name in ("replicas", "spare_replicas", "max_num_seqs", "token_budget")),
    *(_plain(name) for name in ("speculation", "draft_tokens")),
    *_latency("ttft"),
    *_latency("tpot"),
    *_latency("e2e"),
    *_interval("ttft_p95_ms"),
    *_interval("tpot_p95_ms"),
    *_interval("run_hours"),
    *_interval("capacity_tokens_per_s"),
    *_interval("usd_per_mtok_full"),
    *(_plain(name) for name in ("bound_tpot_ms", "utilization", "wait_probability")),
    *(_plain(name) for name in ("rate_per_s", "output_tokens_per_s", "capacity_tokens_per_s")),
    ("quality_loss_percent", lambda o: o.quality.median),
    ("quality_loss_p90_percent", lambda o: o.quality.p90),
    ("quality_grade", lambda o: o.quality.grade),
    *(_owned(name) for name in ("capital", "maintenance", "energy", "space", "staff")),
    *(_energy(name) for name in ("mean_kw", "rated_kw", "kwh_per_mtok_output")),
    _energy("g_co2e_per_mtok_output"),
    *(_plain(name) for name in ("power_w", "evidence")),
    ("flags", lambda o: "; ".join(o.flags)),
    ("binding_limit", lambda o: o.binding.limit),
    ("binding_resource", lambda o: o.binding.resource),
)


def render(record: PlanRecord, *, width: int = 0, color: bool = False) -> str:
    """Return CSV text: ``picks``, COLUMNS, then what simulations said; no width, no colour."""
    del width, color
    picks: dict[str, list[str]] = {}
    for pick, identity in record.picks.items():
        picks.setdefault(identity, []).append(pick)
    columns = (*COLUMNS, *_simulated(record))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["picks", *(name for name, _ in columns)])
    for option in record.options:
        chosen = "; ".join(picks.get(option.id, ()))
        writer.writerow([chosen, *(inert(get(option)) for _, get in columns)])
    return out.getvalue()


def _simulated(record: PlanRecord) -> Iterator[Column]:
    """Yield what upper latencies come from, and the percentiles of simulated options [ms]."""
    checks = {check.option: check for check in record.verification}

    def source(option: Option) -> str:
        if option.run_hours is not None:
            return ""
        return "simulation" if record.simulated(option) else "formula"

    def column(key: str) -> Callable[[Option], Value]:
        def get(option: Option) -> Value:
            latencies = checks[option.id].latencies if option.id in checks else ()
            return next((entry.simulated_ms for entry in latencies if entry.key == key), None)

        return get

    yield "upper_ms_from", source
    for percentile in ("ttft_p50", "ttft_p95", "tpot_p50", "tpot_p95", "e2e_p50", "e2e_p95"):
        yield f"{percentile}_simulated_ms", column(f"{percentile}_ms")


def table_text(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts as CSV; text that a spreadsheet would evaluate is made inert."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([inert(name) for name in columns])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(text: str) -> str:
    """Return a cell as it is if it is a number, else inert."""
    try:
        float(text)
    except ValueError:
        return inert(text)
    return text


def values_text(records: Sequence[Any]) -> str:
    """Return frozen dataclasses of one kind as CSV, a field a column; nothing for no records."""
    if not records:
        return ""
    names = [field.name for field in fields(records[0])]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([inert(getattr(record, name)) for name in names] for record in records)
    return out.getvalue()
