"""What is done with a stored plan: ``report``, ``simulate``, ``reprice``, ``diff``, ``explain``."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import AsOf, CatalogFolder, OptionName, PlanFile, PriceFiles, TextOut
from planner.cli.output import put, save, save_points, say, terminal_width, use_color
from planner.counting import counted
from planner.errors import InputError

MOVED = 4
NO_OPTION = 3
CSV_SUFFIXES = (".csv", ".yaml", ".yml")


def explain_command(
    file: PlanFile,
    option: OptionName = "cheapest",
    deployment: Annotated[
        Path | None, typer.Option(help="Say why this deployment (CSV or YAML) is not on the front.")
    ] = None,
    catalog: CatalogFolder = None,
) -> None:
    """Show every number of one option: formula, inputs, source; or why another is not offered."""
    if deployment is not None:
        from planner.commands.why import why
        from planner.report.why import render as render_why

        put(render_why(why(file, deployment, catalog=catalog)))
        return
    from planner.commands.explain import explain
    from planner.report.explanation import render

    put(render(explain(file, option)))


def report_command(
    file: PlanFile,
    to: Annotated[Path, typer.Option(help="File to write: .xlsx, .html or .csv.")],
    catalog: CatalogFolder = None,
) -> None:
    """Render a stored plan for a person: workbook, page or table."""
    from planner.commands.report import write_report

    for note in write_report(file, to, catalog=catalog):
        say(note)


def simulate_command(
    file: Annotated[Path, typer.Argument(help="plan.json, or a CSV of points with rate_per_s.")],
    option: Annotated[
        str | None, typer.Option(help="Option id, or a pick.", show_default="cheapest")
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="Trace file to replay.")] = None,
    requests: Annotated[
        int | None, typer.Option(min=2, max=10**7, help="Requests of a run.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Runs.")] = 2,
    out: TextOut = Path("-"),
    timeline: Annotated[Path | None, typer.Option(help="Queue and batch over time, CSV.")] = None,
    catalog: CatalogFolder = None,
) -> None:
    """Simulate an option step by step, beside the formula; or points, or a trace."""
    from planner.files import check_writable

    for place in (out, timeline):
        check_writable(place, (file, trace))
    if timeline is not None and timeline == out:
        raise InputError("--timeline", [f"{timeline} is --out, too; name another file"])
    if file.suffix.casefold() in CSV_SUFFIXES:
        for name, given in (("--option", option), ("--trace", trace), ("--timeline", timeline)):
            if given is not None:
                raise InputError(name, ["goes with a plan.json, not with points"])
        from planner.commands.simulate_points import simulate_points

        save_points(out, simulate_points(file, requests=requests, seeds=seeds, catalog=catalog))
        return
    from planner.commands.simulate import simulate
    from planner.report.simulation import percentiles_csv, render, timeline_csv

    found = simulate(
        file,
        option=option or "cheapest",
        trace=trace,
        requests=requests,
        seeds=seeds,
        catalog=catalog,
    )
    if timeline is not None:
        save(timeline, timeline_csv(found))
    save(out, percentiles_csv(found) if out.suffix.casefold() == ".csv" else render(found))


def reprice_command(
    file: PlanFile,
    prices: PriceFiles = None,
    out: Annotated[Path | None, typer.Option(help="Write the repriced plan.json here.")] = None,
    catalog: CatalogFolder = None,
    as_of: AsOf = None,
) -> None:
    """Answer a stored plan at new prices, without a search if its archive is proven exact.

    Exit code 4: a pick moved; 3: nothing meets the targets any more.
    """
    from planner.commands.reprice import UNPROVEN, reprice
    from planner.files import check_writable
    from planner.report import FORMATS
    from planner.report.changes import render
    from planner.report.price_words import expired

    check_writable(out, tuple(prices or ()))
    found = reprice(file, tuple(prices or ()), catalog=catalog, as_of=as_of)
    if out is not None:
        save(out, FORMATS["json"](found.record))
    put(render(found.changes))
    put(FORMATS["table"](found.record, width=terminal_width(), color=use_color()))
    for line in expired(found.record, datetime.date.today()):
        say(line)
    if UNPROVEN in found.record.assumptions:
        say(UNPROVEN)
    for note in found.notes:
        say(note)
    for one in found.unsearched:
        say(
            f"not searched: {one.hardware}, {counted(len(one.offers), 'offer')} from"
            f" ${one.cheapest_usd_per_hour:,.2f}/h; plan again with these prices to include it"
        )
    if not found.record.options:
        raise typer.Exit(NO_OPTION)
    if found.changes.picks:
        raise typer.Exit(MOVED)


def diff_command(
    old: Annotated[Path, typer.Argument(help="plan.json before.")],
    new: Annotated[Path, typer.Argument(help="plan.json after.")],
) -> None:
    """Say what differs between two plans: inputs, prices, front, picks.

    Exit code 4: a pick moved.
    """
    from planner.commands.diff import diff
    from planner.report.changes import render

    changes = diff(old, new)
    put(render(changes))
    if changes.picks:
        raise typer.Exit(MOVED)
