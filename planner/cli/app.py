"""The command line: one function a command."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

import typer

from planner import __version__
from planner.cli.examples import epilog
from planner.cli.options import (
    AsOf,
    CalibrationFile,
    CatalogFolder,
    PriceFiles,
    Quiet,
    Seed,
    TableOut,
    TextOut,
    Verbose,
)
from planner.cli.output import (
    Stages,
    progress,
    put,
    save,
    save_points,
    say,
    terminal_width,
    use_color,
)
from planner.cli.portfolio import portfolio_command
from planner.cli.prices import prices_app
from planner.cli.results import calibrate_command, export_command, verify_command
from planner.cli.stored import (
    diff_command,
    explain_command,
    report_command,
    reprice_command,
    simulate_command,
)
from planner.commands.arguments import JOBS, TIME_LIMIT, TRIALS
from planner.counting import counted
from planner.errors import InputError, suggestion

NO_OPTION = 3

app = typer.Typer(
    help="Which LLM-inference deployment to buy, what it costs, and whether it holds its targets.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SloFile = Annotated[Path | None, typer.Option("--slo", help="What you need: slo.yaml.")]
OutFile = Annotated[Path | None, typer.Option(help="Write the plan record (plan.json) here.")]
FormatName = Annotated[str, typer.Option("--format", help="stdout: table, json or csv.")]
ReportFile = Annotated[
    Path | None, typer.Option(help="Write a report: .xlsx, .html or .csv, by the suffix.")
]
NoVerify = Annotated[bool, typer.Option("--no-verify", help="Do not simulate the picks.")]
Prove = Annotated[
    bool, typer.Option("--prove", help="Prove the formula's front exact, however long.")
]
SpaceName = Annotated[str, typer.Option(help="Search space: a name or a YAML file.")]
Trials = Annotated[
    int | None, typer.Option(min=TRIALS.least, max=TRIALS.most, help="Stop after this many trials.")
]
Storage = Annotated[
    str | None,
    typer.Option(
        help="Keep the search's study here and take it up again: a journal file or an Optuna URL, "
        "as sqlite:///study.db or postgresql://user@host/base."
    ),
]
ScoreBy = Annotated[
    Literal["formula", "simulate"],
    typer.Option(help="simulate: search again around the front, scored by simulation."),
]
Jobs = Annotated[
    int, typer.Option(min=JOBS.least, help="Processes that simulate, for --score simulate.")
]
TimeLimit = Annotated[
    float | None, typer.Option(min=TIME_LIMIT.least, help="Stop after so many seconds.")
]


def _version(value: bool) -> None:
    if not value:
        return
    from planner.catalog import load_catalog

    catalog = load_catalog()
    days = (datetime.date.today() - datetime.date.fromisoformat(catalog.newest_seen)).days
    put(
        f"plan {__version__}, catalog {catalog.digest[:12]},"
        f" newest price {catalog.newest_seen} ({counted(days, 'day')} old)"
    )
    raise typer.Exit


@app.callback(invoke_without_command=True, epilog=epilog(""))
def plan_command(
    context: typer.Context,
    slo: SloFile = None,
    out: OutFile = None,
    format_name: FormatName = "table",
    space: SpaceName = "default",
    prices: PriceFiles = None,
    calibration: CalibrationFile = None,
    catalog: CatalogFolder = None,
    report: ReportFile = None,
    no_verify: NoVerify = False,
    prove: Prove = False,
    seed: Seed = 0,
    trials: Trials = None,
    time_limit: TimeLimit = None,
    as_of: AsOf = None,
    storage: Storage = None,
    score: ScoreBy = "formula",
    jobs: Jobs = 1,
    quiet: Quiet = False,
    verbose: Verbose = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show versions.")
    ] = False,
) -> None:
    """Find the Pareto-optimal deployments for an slo.yaml, by cost per million tokens.

    Exit code 0: done; 2: wrong input; 3: nothing meets the targets; 130: Ctrl-C, after which
    the best found so far is shown; 1: our own fault.
    """
    if context.invoked_subcommand is not None:
        if slo is not None:
            raise InputError("--slo", ["does not go with a command; use one of them"])
        return
    if slo is None:
        raise InputError("--slo", ["missing; name the slo.yaml, or run `plan init`"])
    stages = Stages("starting", verbose=verbose)
    from planner.commands.plan import plan
    from planner.commands.report import write_report
    from planner.report import FORMATS
    from planner.report.price_words import expired
    from planner.report.words import price_age
    from planner.select.selection import UNKEPT

    _check_format(format_name, FORMATS)
    named = (Path(name) for name in (space, storage) if name)
    _check_places(out, report, (slo, *(prices or ()), calibration, *named))
    stages.enter("reading slo.yaml and catalog")
    with progress(quiet=quiet, stages=stages) as show:
        record = plan(
            slo,
            catalog=catalog,
            prices=tuple(prices or ()),
            calibration=calibration,
            space=space,
            seed=seed,
            trials=trials,
            time_limit=time_limit,
            prove=True if prove else None,
            verify=not no_verify,
            as_of=as_of,
            storage=storage,
            score=score,
            jobs=jobs,
            progress=show,
        )
    stages.enter("writing")
    if out is not None:
        save(out, FORMATS["json"](record))
    if report is not None:
        for note in write_report(record, report, catalog=catalog, folder=slo.parent):
            say(note)
    put(FORMATS[format_name](record, width=terminal_width(), color=use_color()))
    if not quiet:
        for note in record.assumptions:
            if note.startswith(UNKEPT):
                say(note)
        today = datetime.date.today()
        for line in (price_age(record, today), *expired(record, today)):
            say(line)
    stages.end()
    if not record.options:
        raise typer.Exit(NO_OPTION)


def _check_places(out: Path | None, report: Path | None, inputs: tuple[Path | None, ...]) -> None:
    from planner.commands.report import check_report
    from planner.files import check_writable

    if report is not None:
        check_report(report)
    for file in (out, report):
        check_writable(file, inputs)


def _check_format(name: str, known: Collection[str]) -> None:
    if name not in known:
        hint = suggestion(name, known) or f"; known are {', '.join(known)}"
        raise InputError("--format", [f"'{name}' is unknown{hint}"])


@app.command("init", epilog=epilog("init"))
def init_command(
    out: TextOut = Path("-"),
    model: Annotated[str | None, typer.Option(help="Model to fill in.")] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="SLO file of another tool: llm-d-planner, Dynamo DGDR, inference-perf, "
            "WVA service classes, AISimulate, vLLM goodput.",
        ),
    ] = None,
    metrics: Annotated[
        list[Path] | None,
        typer.Option(
            "--from-metrics",
            metavar="<path>",
            help="What GET /metrics of a running vLLM answers; twice: an earlier and a later one.",
        ),
    ] = None,
    entry: Annotated[str, typer.Option(help="Which use case, class or model of the file.")] = "",
    window: Annotated[
        float | None, typer.Option(help="Seconds that the metrics cover, if they do not say.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a commented slo.yaml to start from; what a file says is filled in."""
    from planner.commands.init import start

    made = start(
        model=model, source=source, metrics=tuple(metrics or ()), entry=entry, window_s=window
    )
    save(out, made.text)
    if not quiet:
        for remark in made.remarks:
            say(remark)


@app.command("score", epilog=epilog("score"))
def score_command(
    file: Annotated[Path, typer.Argument(help="CSV of points, or deployments as YAML or JSON.")],
    out: TableOut = Path("-"),
    prices: PriceFiles = None,
    calibration: CalibrationFile = None,
    catalog: CatalogFolder = None,
) -> None:
    """Score given deployments, no search: memory, latency, throughput, bound, evidence."""
    from planner.commands.score import score
    from planner.files import check_writable

    check_writable(out, (file, *(prices or ()), calibration))
    save_points(
        out, score(file, catalog=catalog, prices=tuple(prices or ()), calibration=calibration)
    )


@app.command("schema", epilog=epilog("schema"))
def schema_command(
    name: Annotated[
        str, typer.Argument(help="File kind, as slo; without one they are listed.")
    ] = "",
) -> None:
    """Print the JSON Schema of a file that is read or written."""
    from planner.commands.schema import names, schema

    put(schema(name) if name else "\n".join(names()))


app.command("explain", epilog=epilog("explain"))(explain_command)
app.command("report", epilog=epilog("report"))(report_command)
app.command("simulate", epilog=epilog("simulate"))(simulate_command)
app.command("reprice", epilog=epilog("reprice"))(reprice_command)
app.command("diff", epilog=epilog("diff"))(diff_command)
app.command("portfolio", epilog=epilog("portfolio"))(portfolio_command)
app.command("calibrate", epilog=epilog("calibrate"))(calibrate_command)
app.command("verify", epilog=epilog("verify"))(verify_command)
app.command("export", epilog=epilog("export"))(export_command)
app.add_typer(prices_app, name="prices")
