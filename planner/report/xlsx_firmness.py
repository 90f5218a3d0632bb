"""Sheet ``Sensitivity``: how firm the picks are, and break-evens that a buyer fills in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.report import words
from planner.report.pack import Pack
from planner.report.statements import FLIPS
from planner.report.xlsx_book import Book, Formula, Value, cell
from planner.report.xlsx_options import PER_MTOK, Places
from planner.select.firmness import Effect, Firmness, PickFirmness
from planner.spec.option import Option
from planner.units import HOURS_PER_MONTH

SHEET = "Sensitivity"


def firmness_sheet(book: Book, pack: Pack, places: Places) -> None:
    """Fill ``Sensitivity``."""
    book.put(SHEET, (0, 0), "How firm the choice is", style="title")
    book.sheet(SHEET).set_row(0, 26)
    for row, note in enumerate(pack.notes, start=1):
        book.put(SHEET, (row, 0), note, style="note")
    row = 2 + len(pack.notes)
    options = [pack.option(identity) for identity in pack.picked()]
    if options:
        row = _break_even(book, row, options, places)
    if pack.firmness is None:
        return
    titles = pack.picked()
    for pick in pack.firmness.picks:
        title = f"{', '.join(titles[pick.option])}: {pick.option}"
        row = _tornado(book, row, title, pick)
    names = {identity: ", ".join(texts) for identity, texts in titles.items()}
    offline = any(option.run_hours is not None for option in options)
    _ranking(book, row, pack.firmness, names, offline=offline)


def _line(
    book: Book, row: int, values: Sequence[tuple[Value | Formula, str]], style: str = "cell"
) -> None:
    for column, (value, kind) in enumerate(values):
        book.put(SHEET, (row, column), value, kind, "bold" if column == 0 else style)


def _effect(effect: Effect) -> tuple[tuple[Value, str], ...]:
    use: Value = "no bound" if effect.use is None else effect.use
    return (effect.usd_per_mtok_output, "usd_mtok"), (use, "share")


def _tornado(book: Book, row: int, title: str, pick: PickFirmness) -> int:
    heads = ("changes", "lower", "USD/Mtok", "limit used", "higher", "USD/Mtok", "limit used")
    book.header(SHEET, row, [title, *heads[1:]])
    _line(book, row + 1, (("as planned", "text"), ("", "text"), *_effect(pick.now)))
    row += 2
    for bar in pick.bars:
        low, high = (bar.low_label, "text"), (bar.high_label, "text")
        _line(book, row, ((bar.driver, "text"), low, *_effect(bar.low), high, *_effect(bar.high)))
        row += 1
    return row + 1


def _ranking(
    book: Book, row: int, firmness: Firmness, names: Mapping[str, str], *, offline: bool
) -> None:
    heads = ["Price at which the pick is beaten", "USD per instance-hour", "change", "by"]
    book.header(SHEET, row, heads)
    row += 1
    for pick in firmness.picks:
        flip = pick.flip
        told: tuple[tuple[Value, str], ...] = (("nothing could take its place", "text"),)
        if flip is not None:
            other = flip.replacement
            told = (
                (flip.usd_per_instance_hour, "usd"),
                (flip.change, "share"),
                (f"{words.hardware(other)}, {words.instance(other)}", "text"),
            )
        _line(book, row, ((names[pick.option], "text"), *told))
        row += 1
    row = _rates(book, row + 1, firmness, names)
    _regrets(book, row + 1, firmness, names, offline=offline)


def _rates(book: Book, row: int, firmness: Firmness, names: Mapping[str, str]) -> int:
    heads = ["Rates [requests/s]", "one instance less up to", "keeps its limits up to"]
    book.header(SHEET, row, heads)
    row += 1
    for pick in firmness.picks:
        cells = ((pick.fewer_rate, "number"), (pick.highest_rate, "number"))
        _line(book, row, ((names[pick.option], "text"), *cells))
        row += 1
    for flip in firmness.rate_flips[:FLIPS]:
        told = ("cheapest of the front from this rate on", "text")
        _line(book, row, ((flip.option, "text"), (flip.rate_per_s, "number"), told))
        row += 1
    return row


def _regrets(
    book: Book, row: int, firmness: Firmness, names: Mapping[str, str], *, offline: bool
) -> None:
    scenarios = [regret.scenario for regret in firmness.picks[0].regrets] if firmness.picks else []
    head = f"Regret [{'USD for the run' if offline else 'USD/h'}] if"
    book.header(SHEET, row, [head, *(names[pick.option] for pick in firmness.picks)])
    for number, scenario in enumerate(scenarios):
        cells: list[tuple[Value, str]] = [(scenario, "text")]
        for pick in firmness.picks:
            regret = pick.regrets[number]
            missed: Value = "breaks a limit"
            cells.append((regret.usd_per_hour if regret.holds else missed, "usd"))
        _line(book, row + 1 + number, cells)


def _break_even(book: Book, row: int, options: Sequence[Option], places: Places) -> int:
    """Write break-evens against prices that the buyer types in."""
    book.header(SHEET, row, ["Break-even, type in the blue cells", *(o.id for o in options)])
    labels = (
        "API price, USD per Mtok output",
        "  output tokens/s from which it pays",
        "  as share of capacity",
        "Committed USD per instance-hour",
        "  hours a month from which it pays",
    )
    for number, label in enumerate(labels, start=row + 1):
        book.put(SHEET, (number, 0), label, style="bold")
    for column, option in enumerate(options, start=1):
        at = places.cells[option.id]
        api, tokens = (cell(SHEET, row + n, column) for n in (1, 2))
        committed = cell(SHEET, row + 4, column)
        book.put(SHEET, (row + 1, column), None, "usd_mtok", "input")
        book.put(SHEET, (row + 2, column), _if(api, f"{at['hour']}/({api}*{PER_MTOK})"), "one")
        book.put(SHEET, (row + 3, column), _if(api, f"{tokens}/{at['capacity']}"), "share")
        book.put(SHEET, (row + 4, column), None, "usd", "input")
        hours = f"{HOURS_PER_MONTH:.0f}*{committed}*{at['instances']}/{at['hour']}"
        book.put(SHEET, (row + 5, column), _if(committed, hours), "one")
    return row + 7


def _if(given: str, formula: str) -> Formula:
    """Return a formula that stays blank until its input is given."""
    return Formula(f'=IF({given}="","",{formula})', "")
