"""Own benchmark results in, a calibration file out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planner.catalog import load_catalog
from planner.commands.deployments import deployment_of, option_point
from planner.errors import Fault, InputError
from planner.files import dump_yaml
from planner.importers.benchmarks import read_results
from planner.measured.calibrate import Measured, under_load
from planner.measured.calibrate import calibrate as fit_factors
from planner.spec.calibration import Calibration, Rejection


def calibrate(
    results: Sequence[Path],
    *,
    date: str,
    deployment: Path | None = None,
    plan: Path | None = None,
    option: str = "cheapest",
    catalog: Path | None = None,
) -> Calibration:
    """Fit factors from benchmark results.

    Args:
        results: Result files of vLLM bench, SGLang bench, GuideLLM, inference-perf or llm-d.
        date: When the runs were made, YYYY-MM-DD.
        deployment: What was measured, as ``plan score`` reads it; one row for all results, or
            one row each with a column ``result``.
        plan, option: Instead of it: a stored plan and the id or pick of the option measured.
        catalog: Catalog folder; None = the one that comes with the program.

    Raises:
        InputError: A file cannot be read, it is not clear what was measured, or no two runs of
            one model, accelerator, engine and weight format can be used.
    """
    if (deployment is None) == (plan is None):
        raise InputError(
            "--deployment",
            ["say what was measured: --deployment FILE, or --plan PLAN with --option ID"],
        )
    loaded = load_catalog(catalog)
    if plan is not None:
        points = dict.fromkeys(results, option_point(plan, option))
    elif deployment is not None:
        points = deployment_of(deployment, results)
    runs: list[Measured] = []
    unusable: list[Rejection] = []
    for path in results:
        file = read_results(path)
        runs += [Measured(under_load(points[path], run), run) for run in file.results]
        unusable += [
            Rejection(source=f"{path.name} {bad.place}".strip(), reason="; ".join(bad.reasons))
            for bad in file.unusable
        ]
    found = fit_factors(loaded, runs, date)
    rejected = (*unusable, *found.rejected)
    if not found.entries:
        raise InputError(
            "calibrate", [Fault(bad.source, "", f"not used: {bad.reason}") for bad in rejected]
        )
    return found.model_copy(update={"rejected": rejected})


def calibration_text(calibration: Calibration) -> str:
    """Return the calibration file."""
    comment = (
        "Factors on predicted TTFT and TPOT from own benchmark runs; for `plan --calibration`."
    )
    return dump_yaml(calibration.model_dump(mode="json", exclude_none=True), comment=comment)
