"""Benchmark results in, deploy files out: ``calibrate``, ``verify``, ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import CatalogFolder, OptionName, PlanFile, ResultFiles, TextOut
from planner.cli.output import put, save, say

MISSED = 4
CHECK_FIELDS = (
    "key", "limit", "predicted", "upper", "simulated", "measured", "measured_as", "verdict",
    "reason",
)  # fmt: skip


def calibrate_command(
    results: ResultFiles,
    date: Annotated[str, typer.Option(help="When the runs were made, YYYY-MM-DD.")],
    deployment: Annotated[
        Path | None, typer.Option(help="What was measured: CSV or YAML as in plan score.")
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="Or the plan that was measured ...")] = None,
    option: OptionName = "cheapest",
    out: TextOut = Path("-"),
    catalog: CatalogFolder = None,
) -> None:
    """Fit factors from your own benchmark results, for --calibration.

    Reads result files of vLLM bench, SGLang bench, GuideLLM, inference-perf and llm-d.
    """
    from planner.commands.calibrate import calibrate, calibration_text
    from planner.files import check_writable

    check_writable(out, (*results, deployment, plan))
    found = calibrate(
        results, date=date, deployment=deployment, plan=plan, option=option, catalog=catalog
    )
    for rejection in found.rejected:
        say(f"not used: {rejection.source}: {rejection.reason}")
    save(out, calibration_text(found))


def verify_command(
    plan: PlanFile,
    results: ResultFiles,
    option: OptionName = "cheapest",
    replicas: Annotated[int | None, typer.Option(help="Replicas that the runs went to.")] = None,
) -> None:
    """Judge an option by benchmark results: predicted, simulated, measured, verdict.

    Exit code 4: a target was missed.
    """
    from planner.commands.verify import verify
    from planner.report.text_table import aligned

    checked = verify(plan, results, option=option, replicas=replicas)
    for run in checked:
        put(f"{run.option}, {run.result.name}:")
        rows = [[getattr(check, name) for name in CHECK_FIELDS] for check in run.checks]
        put(aligned(CHECK_FIELDS, rows))
        for note in run.notes:
            put(f"note: {note}")
    if any(run.holds is False for run in checked):
        raise typer.Exit(MISSED)


def export_command(
    plan: PlanFile,
    to: Annotated[str, typer.Option(help="Target: vllm, sglang, tensorrt-llm, kubernetes ...")],
    option: OptionName = "cheapest",
    folder: Annotated[Path, typer.Option(help="Folder to write to; - is stdout.")] = Path("-"),
    checkpoint: Annotated[str, typer.Option(help="Weights to serve, if not the model's own.")] = "",
    head: Annotated[str, typer.Option(help="Draft head or draft model.")] = "",
    catalog: CatalogFolder = None,
) -> None:
    """Write an option down for an engine, a cluster or a benchmark."""
    from planner.commands.export import export
    from planner.files import make_folder

    exported = export(plan, option, to, checkpoint=checkpoint, head=head, catalog=catalog)
    for name, text in exported.files.items():
        if str(folder) == "-":
            put(f"# {name}" if len(exported.files) > 1 else "")
            put(text)
        else:
            save(make_folder(folder) / name, text)
    for note in exported.notes:
        say(f"note: {note}")
