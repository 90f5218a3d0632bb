"""Sheets ``Decision``, what to sign, and ``Assumptions``, what it rests on."""

from __future__ import annotations

from collections.abc import Callable

from planner.report import words
from planner.report.pack import Pack
from planner.report.statements import statements
from planner.report.xlsx_book import Book, Formula, Value, cell
from planner.report.xlsx_options import COLUMNS, INDEX, Places, title_of
from planner.spec.money import OwnedParts
from planner.spec.option import Option
from planner.spec.record import PlanRecord

LABEL, FIRST = 0, 1


def _seen(option: Option) -> str:
    row = option.money.price
    flag = f"; {row.flag.upper()}" if row.flag else ""
    return f"{row.seen} ({row.seen_basis}){flag}"


def _targets(option: Option) -> str:
    lines = []
    for target in option.targets:
        upper = "no bound" if target.upper is None else words.number(target.upper)
        state = "holds" if target.holds else "MISSED"
        lines.append(f"{target.key}: {upper} of {words.number(target.limit, 6)}, {state}")
    return "\n".join(lines) or "-"


def _text(key: str) -> Callable[[Option], Value]:
    column = COLUMNS[INDEX[key] - 1]
    return column.value


GROUPS: tuple[tuple[str, tuple[tuple[str, str | Callable[[Option], Value]], ...]], ...] = (
    ("What to buy", (
        ("Option", "id"), ("Hardware", "buy"), ("Provider", "provider"), ("Instance type", "sku"),
        ("Region", "region"), ("Term", "term"), ("Instances", "instances"), ("GPUs", "gpus"),
    )),
    ("What it costs", (
        ("USD per instance-hour", "price"), ("Price seen", _seen), ("USD per hour", "hour"),
        ("USD per month (730 h)", "month"), ("USD per year (8,760 h)", "year"),
        ("USD per month (730 h), invoiced", "invoiced_month"),
        ("USD per year (8,760 h), invoiced", "invoiced_year"),
        ("Due at once [USD]", "due"), ("Bound for, in all [USD]", "committed"),
        ("Shortest lease [h]", "lease"), ("Fewest instances sold", "least"),
        ("Quota [instances]", "most"),
        ("USD per Mtok output, mean rate", "mtok"), ("USD per Mtok, prompt + output", "mtok_total"),
        ("USD per Mtok output, full load", "mtok_full"), ("USD for the whole run", "job"),
        ("USD per Mtok output, autoscaled", "scaled"), ("Autoscaled, what", "scaled_fleet"),
        ("Mean utilization", "mean_use"),
        *((f"Owned: {name} [USD/h]", f"owned_{name}") for name in OwnedParts.model_fields),
    )),
    ("What it draws", (
        ("Mean draw, servers [kW]", "mean_kw"), ("Rated power, servers [kW]", "rated_kw"),
        ("kWh per Mtok output", "kwh"), ("g CO2e per Mtok output", "carbon"),
    )),
    ("What it runs", (
        ("Engine", "engine"), ("Weights", "weights"), ("KV cache", "kv"), ("Replicas", "layout"),
        ("Batch limit [sequences]", "max_num_seqs"), ("Token budget", "token_budget"),
        ("Speculation", "speculation"),
    )),
    ("What users get", (
        ("TTFT p95 [ms]", "ttft_p95_ms"), ("TPOT p95 [ms]", "tpot_p95_ms"),
        ("E2E p95 [ms]", "e2e_p95_ms"), ("Targets, with margin", _targets),
        ("Quality loss", words.quality),
    )),
    ("What it rests on", (
        ("Speed evidence", "evidence"), ("Limit that binds", "binding"), ("Cautions", "flags"),
    )),
)  # fmt: skip
LIVE_KEYS = frozenset(column.key for column in COLUMNS if column.formula)


def decision_sheet(book: Book, pack: Pack, places: Places) -> None:
    """Fill ``Decision``: what was asked, the picks side by side, and a check at today's prices."""
    sheet, record = book.sheet("Decision"), pack.record
    row = _head(book, record)
    picked = pack.picked()
    if not picked:
        _no_pick(book, row, record)
        return
    book.header("Decision", row, ["", *(", ".join(titles) for titles in picked.values())])
    sheet.freeze_panes(row + 1, 1)
    row += 1
    options = [pack.option(identity) for identity in picked]
    for title, lines in GROUPS:
        shown = [(label, what) for label, what in lines if _applies(what, options)]
        for column in range(len(options) + 1):
            book.put("Decision", (row, column), title if column == 0 else None, style="group")
        row += 1
        for label, what in shown:
            named = title_of(what, label, options) if isinstance(what, str) else label
            book.put("Decision", (row, LABEL), named, style="bold")
            for column, option in enumerate(options, start=FIRST):
                value, kind = _shown(what, option, places)
                book.put("Decision", (row, column), value, kind, "fact")
            row += 1
    _check(book, row + 1, options, places)


def _head(book: Book, record: PlanRecord) -> int:
    book.put("Decision", (0, 0), "Deployment decision", style="title")
    book.sheet("Decision").set_row(0, 26)
    lines = [*words.asked(record), f"Prices as of {record.inputs.as_of}. {words.found(record)}."]
    for number, line in enumerate(lines, start=1):
        book.put("Decision", (number, 0), line, style="plain")
    return len(lines) + 2


def _applies(what: str | Callable[[Option], Value], options: list[Option]) -> bool:
    get = _text(what) if isinstance(what, str) else what
    return any(get(option) not in (None, "") for option in options)


def _shown(
    what: str | Callable[[Option], Value], option: Option, places: Places
) -> tuple[Value | Formula, str]:
    """Return a cell's content: amounts point at ``Options``, so that they follow the prices."""
    if callable(what):
        return what(option), "text"
    column = COLUMNS[INDEX[what] - 1]
    value = column.value(option)
    if what in LIVE_KEYS and value is not None:
        return Formula(f"={places.cells[option.id][what]}", value), column.kind
    return value, column.kind


def _check(book: Book, row: int, options: list[Option], places: Places) -> None:
    """Write which option of the front is cheapest at the prices that now stand in ``Prices``."""
    from xlsxwriter.utility import xl_range_abs

    column, ids = INDEX["mtok"], INDEX["id"]
    prices = f"Options!{xl_range_abs(places.first, column, places.last, column)}"
    names = f"Options!{xl_range_abs(places.first, ids, places.last, ids)}"
    cheapest = min(options, key=lambda option: option.money.usd_per_mtok_output)
    least = f"MATCH(MIN({prices}),{prices},0)"
    book.put("Decision", (row, LABEL), "At the prices now in this workbook", style="group")
    book.put("Decision", (row, FIRST), None, style="group")
    book.put("Decision", (row + 1, LABEL), "Cheapest option of the front", style="bold")
    book.put("Decision", (row + 1, FIRST), Formula(f"=INDEX({names},{least})", cheapest.id))
    book.put("Decision", (row + 2, LABEL), "Still the pick above?", style="bold")
    same = f'=IF({cell("Decision", row + 1, FIRST)}="{cheapest.id}","yes","no: run plan reprice")'
    book.put("Decision", (row + 2, FIRST), Formula(same, "yes"))


def _no_pick(book: Book, row: int, record: PlanRecord) -> None:
    book.put("Decision", (row, LABEL), words.nothing(record), style="bold")
    for number, miss in enumerate(record.misses, start=row + 1):
        near = f"{words.parallelism(miss.option)} on {words.hardware(miss.option)}"
        told = f"misses {'; '.join(miss.misses)}. Would do: {', or '.join(miss.would_do) or '-'}"
        book.put("Decision", (number, LABEL), near)
        book.put("Decision", (number, FIRST), told)
    further = words.alone(record)
    further += [record.obstacle] if record.obstacle else []
    for number, text in enumerate(further, start=row + 1 + len(record.misses)):
        book.put("Decision", (number, LABEL), text)


def assumptions_sheet(book: Book, pack: Pack) -> None:
    """Fill ``Assumptions``: what the plan takes for granted, and where its figures come from."""
    sheet = book.sheet("Assumptions")
    book.header("Assumptions", 0, ["Subject", "What", "Statement"])
    for row, texts in enumerate(dict.fromkeys(statements(pack)), start=1):
        for column, text in enumerate(texts):
            book.put("Assumptions", (row, column), text)
    sheet.freeze_panes(1, 0)
    sheet.repeat_rows(0)
