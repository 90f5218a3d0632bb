"""``plan portfolio``: many slo.yaml files under shared limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import AsOf, CalibrationFile, CatalogFolder, PriceFiles, Quiet, Seed
from planner.cli.output import progress, put, save
from planner.commands.arguments import JOBS
from planner.errors import InputError, suggestion

NOT_ALL = 3
"""Exit code where a plan is not served."""

SloFiles = Annotated[list[Path], typer.Argument(help="slo.yaml files.")]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder: the combined record (portfolio.json) and every plan, where a rerun finds "
        "them; or a .json file: the combined record alone."
    ),
]
QuotaFile = Annotated[
    Path | None, typer.Option("--quota", help="YAML: max_gpus, budget_usd_per_hour, quotas.")
]
MaxGpus = Annotated[int | None, typer.Option(min=1, help="Most GPUs of all plans together.")]
Budget = Annotated[float | None, typer.Option(min=0.01, help="Most USD/h of all plans together.")]
Jobs = Annotated[int | None, typer.Option(min=JOBS.least, help="Processes; default: one a core.")]
Cluster = Annotated[str, typer.Option(help="Dask scheduler to use, as tcp://host:8786.")]
Fleets = Annotated[bool, typer.Option("--fleets", help="Split traffic over two deployments too.")]
Verify = Annotated[bool, typer.Option("--verify", help="Check every plan's picks by simulation.")]
Prove = Annotated[
    bool, typer.Option("--prove", help="Prove the formula's fronts exact, however long.")
]
FormatName = Annotated[str, typer.Option("--format", help="stdout: table, json or csv.")]


def portfolio_command(
    slos: SloFiles,
    out: Out = None,
    quota: QuotaFile = None,
    max_gpus: MaxGpus = None,
    budget: Budget = None,
    jobs: Jobs = None,
    cluster: Cluster = "",
    fleets: Fleets = False,
    verify: Verify = False,
    prove: Prove = False,
    space: Annotated[str, typer.Option(help="Search space: a name or a YAML file.")] = "default",
    seed: Seed = 0,
    format_name: FormatName = "table",
    prices: PriceFiles = None,
    calibration: CalibrationFile = None,
    catalog: CatalogFolder = None,
    as_of: AsOf = None,
    quiet: Quiet = False,
) -> None:
    """Plan many models, SLOs and regions at once, under shared quotas and a shared budget.

    Each workload is searched once. As many plans as possible are served, for the least money.

    Exit code 3: a plan is not served; the table says which, and what would serve it.
    """
    from planner.commands.portfolio import portfolio, read_limits
    from planner.files import check_writable
    from planner.report.portfolio import FORMATS, as_json

    if format_name not in FORMATS:
        hint = suggestion(format_name, FORMATS) or f"; known are {', '.join(FORMATS)}"
        raise InputError("--format", [f"'{format_name}' is unknown{hint}"])
    if cluster and jobs is not None:
        raise InputError("--jobs", ["does not go with --cluster, which has its own workers"])
    alone = out is not None and out.suffix == ".json"
    folder = None if alone else out
    inputs = (*slos, Path(space), *(prices or ()), quota, calibration)
    check_writable(out if alone else None, inputs)
    with progress(quiet=quiet) as show:
        record = portfolio(
            slos,
            read_limits(quota, max_gpus, budget),
            folder=folder,
            catalog=catalog,
            prices=tuple(prices or ()),
            calibration=calibration,
            space=space,
            seed=seed,
            prove=True if prove else None,
            as_of=as_of,
            fleets=fleets,
            verify=verify,
            jobs=jobs or os.cpu_count() or 1,
            cluster=cluster,
            progress=show,
        )
    if out is not None:
        save(out if alone else out / "portfolio.json", as_json(record))
    put(FORMATS[format_name](record))
    if record.served < len(record.plans):
        raise typer.Exit(NOT_ALL)
