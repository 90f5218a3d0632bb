"""A portfolio as text: a table for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Protocol

from planner.counting import counted
from planner.report import price_words, words
from planner.report.csv_text import inert
from planner.report.text_table import aligned
from planner.spec.portfolio import Choice, Part, Planned, PortfolioRecord

HEADER = ("plan", "model", "load", "deployment", "where", "$/h", "$/Mtok out", "TTFT p95 [ms]",
          "TPOT p95 [ms]", "loss [%]")  # fmt: skip
COLUMNS = (
    "plan", "model", "load", "options", "share", "kinds", "option", "accelerator", "instances",
    "gpus", "provider", "region", "instance_type", "term", "engine", "weights", "kv", "tp", "pp",
    "dp", "replicas", "usd_per_hour", "usd_per_mtok_output", "ttft_p95_ms", "tpot_p95_ms",
    "quality_loss_percent", "evidence", "due_at_once_usd", "bound_usd", "needs", "why", "would_do",
    "file",
)  # fmt: skip
WIDEST = 40
"""Characters of a load in the table."""


class Renderer(Protocol):
    """Portfolio -> text."""

    def __call__(self, record: PortfolioRecord) -> str:
        """Return the text."""


def table(record: PortfolioRecord) -> str:
    """Return what a person reads: the choice for each plan, the limits, and what is left out."""
    served = [plan for plan in record.plans if plan.chosen is not None]
    lines = [line for plan in served for line in _lines(plan)]
    parts = [aligned(HEADER, lines)] if lines else []
    parts.append("\n".join(_totals(record)) + "\n")
    if record.uses:
        rows = [(use.limit, use.used, use.most) for use in record.uses]
        parts.append(aligned(("shared limit", "used", "most"), rows))
    parts += ["\n".join(_left_out(plan)) + "\n" for plan in record.plans if plan.chosen is None]
    fleets = [line for plan in record.plans for line in _fleets(plan)]
    if fleets:
        parts.append("\n".join(["Fleets that cost less than any one deployment:", *fleets]) + "\n")
    notes = [*(note for plan in served for note in _binding(plan)), *record.assumptions]
    parts.append("".join(f"- {note}\n" for note in notes))
    return "\n".join(parts)


def _lines(plan: Planned) -> list[list[str | float | None]]:
    """Return a line for each deployment of a plan; totals stand in the first."""
    choice = plan.chosen
    assert choice is not None
    load = plan.load if len(plan.load) <= WIDEST else f"{plan.load[: WIDEST - 3]}..."
    lines: list[list[str | float | None]] = []
    for number, part in enumerate(choice.parts):
        names = ("", "", "") if number else (plan.name, plan.model, load)
        option = part.option
        lines.append(
            [
                *names,
                _deployment(part),
                words.instance(option),
                option.money.usd_per_hour,
                option.money.usd_per_mtok_output,
                option.ttft.p95_ms if option.ttft else None,
                option.tpot.p95_ms if option.tpot else None,
                option.quality.median,
            ]
        )
    return lines


def _binding(plan: Planned) -> Iterator[str]:
    """Yield what the prices of a plan's deployments bind to, and what these need to be deployed."""
    for part in plan.chosen.parts if plan.chosen is not None else ():
        name = f"{plan.name}, {who}" if (who := _who(part)) else plan.name
        terms = [f"{title.lower()} {text}" for title, text in price_words.lease(part.option)]
        if terms:
            yield f"{name}: {'; '.join(terms)}."
        if part.needs:
            yield f"To deploy {name}: {part.needs}."


def _who(part: Part) -> str:
    """Return which requests a deployment serves; empty = all."""
    if part.kinds:
        return ", ".join(part.kinds)
    return "" if part.share == 1.0 else words.percent(part.share)


def _deployment(part: Part) -> str:
    option = part.option
    who = f"{who}: " if (who := _who(part)) else ""
    return f"{who}{words.hardware_id(option)}, {words.parallelism(option)}, {option.weights}"


def _totals(record: PortfolioRecord) -> list[str]:
    count = len(record.plans)
    lines = [
        f"{record.served} of {counted(count, 'plan')} served with {counted(record.gpus, 'GPU')} for"
        f" {words.money(record.usd_per_hour)}/h"
    ]
    if record.mean_usd_per_hour != record.usd_per_hour:
        lines.append(f"on average {words.money(record.mean_usd_per_hour)}/h (batch jobs end)")
    if record.served:
        known = f"{_proof(record)} by the formula, {_verified(record)}"
        lines.append(f"cost for these limits: {known}")
    return lines


def _proof(record: PortfolioRecord) -> str:
    """Return what is known of the least cost."""
    if not record.exact:
        return f"at least {words.money(record.bound_mean_usd_per_hour)}"
    proven = all(plan.proven for plan in record.plans)
    return "proven the least" if proven else "the least of what was found"


def _verified(record: PortfolioRecord) -> str:
    """Return how many of the chosen deployments a simulation has checked."""
    parts = [part for plan in record.plans if plan.chosen for part in plan.chosen.parts]
    held = sum(part.simulated for part in parts)
    if not held:
        return "not verified by simulation"
    return f"{held} of {counted(len(parts), 'deployment')} verified by simulation"


def _left_out(plan: Planned) -> list[str]:
    return [
        f"{plan.name} ({plan.model}) is not served: {plan.why}",
        f"  would do: {', or '.join(plan.would_do) or 'nothing that was tried'}",
    ]


def _fleets(plan: Planned) -> list[str]:
    return [
        f"  {plan.name}: {words.money(fleet.usd_per_hour)}/h, {_fleet(fleet)}"
        for fleet in plan.fleets
    ]


def _fleet(choice: Choice) -> str:
    parts = " + ".join(_deployment(part) for part in choice.parts)
    return (
        f"{parts}; TTFT p95 <= {words.milliseconds(choice.ttft_p95_ms)},"
        f" TPOT p95 <= {words.milliseconds(choice.tpot_p95_ms)}"
    )


def as_json(record: PortfolioRecord) -> str:
    """Return the combined record: the same bytes for the same record."""
    return json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


def as_csv(record: PortfolioRecord) -> str:
    """Return a row for each deployment; a plan that is not served has one without."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for plan in record.plans:
        parts = plan.chosen.parts if plan.chosen is not None else (None,)
        for part in parts:
            cells = _cells(plan, part)
            writer.writerow([inert(cells.get(name)) for name in COLUMNS])
    return out.getvalue()


def _cells(plan: Planned, part: Part | None) -> dict[str, str | float | int | None]:
    cells: dict[str, str | float | int | None] = {
        "plan": plan.name,
        "model": plan.model,
        "load": plan.load,
        "options": plan.options,
        "why": plan.why,
        "would_do": "; or ".join(plan.would_do),
        "file": plan.file,
    }
    if part is None:
        return cells
    option = part.option
    cells |= {name: getattr(option, name) for name in COLUMNS if hasattr(option, name)}
    return cells | {
        "share": part.share,
        "kinds": ", ".join(part.kinds),
        "option": option.id,
        "instance_type": option.money.price.instance_type,
        "term": option.money.price.term,
        "usd_per_hour": option.money.usd_per_hour,
        "usd_per_mtok_output": option.money.usd_per_mtok_output,
        "due_at_once_usd": option.money.due_at_once_usd,
        "bound_usd": option.money.bound_usd,
        "needs": part.needs,
        "ttft_p95_ms": option.ttft.p95_ms if option.ttft else None,
        "tpot_p95_ms": option.tpot.p95_ms if option.tpot else None,
        "quality_loss_percent": option.quality.median,
    }


FORMATS: Mapping[str, Renderer] = {"table": table, "json": as_json, "csv": as_csv}
"""Formats of stdout."""
