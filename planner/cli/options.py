"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.commands.arguments import SEED

AsOf = Annotated[str | None, typer.Option(help="Judge prices by this date, YYYY-MM-DD.")]
CatalogFolder = Annotated[Path | None, typer.Option(help="Catalog folder, whole, to use instead.")]
CalibrationFile = Annotated[
    Path | None, typer.Option(help="Factors of `plan calibrate` to apply to predictions.")
]
OptionName = Annotated[str, typer.Option(help="Option id, or a pick such as cheapest.")]
PlanFile = Annotated[Path, typer.Argument(help="plan.json")]
PriceFiles = Annotated[
    list[Path] | None, typer.Option(help="Price files that add to or replace catalog prices.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No remarks on stderr.")]
ResultFiles = Annotated[list[Path], typer.Argument(help="Benchmark result files.")]
Seed = Annotated[int, typer.Option(min=SEED.least, max=SEED.most, help="Seed of every search.")]
TableOut = Annotated[Path, typer.Option(help="CSV to write; - is stdout.")]
TextOut = Annotated[Path, typer.Option(help="File to write; - is stdout.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Time each stage, on stderr.")]
