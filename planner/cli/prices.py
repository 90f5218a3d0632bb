"""``plan prices``: import, list, check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.examples import epilog
from planner.cli.options import AsOf, CatalogFolder, PriceFiles, TableOut
from planner.cli.output import save, say
from planner.counting import counted
from planner.errors import InputError

prices_app = typer.Typer(
    help="Price files in; what the prices of a plan rest on.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@prices_app.command("import", epilog=epilog("prices import"))
def import_command(
    kind: Annotated[str, typer.Argument(help="skypilot, gpuhunt, sheet or price-list.")],
    file: Annotated[Path, typer.Argument(help="The price file.")],
    out: TableOut = Path("-"),
    seen: Annotated[str, typer.Option(help="When its prices were seen, if it does not say.")] = "",
    provider: Annotated[str, typer.Option(help="Who sells, if the file does not say.")] = "",
    column: Annotated[
        list[str] | None, typer.Option(help="Sheets: FIELD=COLUMN, or FIELD==VALUE; repeat.")
    ] = None,
    catalog: CatalogFolder = None,
) -> None:
    """Turn a price file into one for --prices; rows not taken are listed on stderr."""
    from planner.commands.prices import import_prices, to_csv

    taken = import_prices(
        kind, file, seen=seen, provider=provider, mapping=_mapping(column or []), catalog=catalog
    )
    for refusal in taken.refused:
        part = "" if refusal.part == "row" else f" ({refusal.part})"
        say(f"{file.name} line {refusal.line}  {refusal.what}{part}: {refusal.detail}")
    save(out, to_csv(taken.offers))
    say(
        f"{counted(taken.rows, 'row')}: {taken.rows_taken} taken, {taken.merged} merged,"
        f" {taken.rows_refused} not taken; {counted(len(taken.offers), 'price')}"
    )


def _mapping(columns: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in columns]
    bad = [field for field, equals, column in pairs if not (field and equals and column)]
    if bad:
        raise InputError("--column", [f"'{field}' must be FIELD=COLUMN" for field in bad])
    return {field: column for field, _, column in pairs}


@prices_app.command("list", epilog=epilog("prices list"))
def list_command(
    accelerator: Annotated[list[str] | None, typer.Option(help="Only these; repeat.")] = None,
    provider: Annotated[list[str] | None, typer.Option(help="Only these; repeat.")] = None,
    region: Annotated[list[str] | None, typer.Option(help="Only these; repeat.")] = None,
    out: TableOut = Path("-"),
    prices: PriceFiles = None,
    catalog: CatalogFolder = None,
    as_of: AsOf = None,
) -> None:
    """List prices as CSV, cheapest per useful GPU-hour first within an accelerator."""
    from planner.commands.prices import PriceFilter, list_prices
    from planner.report.csv_text import values_text

    only = PriceFilter(tuple(provider or ()), tuple(accelerator or ()), tuple(region or ()))
    lines = list_prices(catalog=catalog, prices=tuple(prices or ()), only=only, as_of=as_of or "")
    save(out, values_text(lines))


@prices_app.command("check", epilog=epilog("prices check"))
def check_command(
    out: TableOut = Path("-"),
    prices: PriceFiles = None,
    catalog: CatalogFolder = None,
    as_of: AsOf = None,
) -> None:
    """Check ages, gaps, outliers, flags, and prices that lapse; as CSV."""
    from planner.commands.prices import check_prices
    from planner.report.csv_text import values_text

    report = check_prices(catalog=catalog, prices=tuple(prices or ()), as_of=as_of or "")
    save(out, values_text(report.findings))
    say(
        f"{counted(report.offers, 'price')} as of {report.as_of}; ages {report.newest_days} to"
        f" {counted(report.oldest_days, 'day')}, half are older than {report.median_days};"
        f" {counted(len(report.findings), 'finding')}"
    )
