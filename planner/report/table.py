"""A plan for a terminal: picks side by side, then the thinned front, then what to know."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from planner.counting import counted
from planner.report import price_words, words
from planner.report.plot import front_plot
from planner.spec.option import Interval, Latency, Option
from planner.spec.record import Miss, PlanRecord

Line = tuple[str, Callable[[Option], str]]

SIMULATED = "simulated_ms"
"""Field of a check with what was simulated."""
LABEL_WIDTH = 16


def render(record: PlanRecord, *, width: int = 120, color: bool = False) -> str:
    """Return the plan as text.

    Args:
        record: The plan.
        width: Columns of the terminal.
        color: Whether to use ANSI colours.
    """
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, no_color=not color, highlight=False
    )
    for line in words.asked(record):
        console.print(escape(line), style="bold" if color else None)
    console.print()
    if record.options:
        _picks(console, record)
        _plot(console, record)
        _others(console, record)
    else:
        _misses(console, record)
    _untrusted(console, record)
    _notes(console, record)
    return out.getvalue()


def _cell(text: str) -> str:
    return escape(text)


def _latency(pick: Callable[[Option], Latency | None]) -> Callable[[Option], str]:
    def text(option: Option) -> str:
        value = pick(option)
        if value is None:
            return "-"
        return f"{words.milliseconds(value.p50_ms)} / {words.milliseconds(value.p95_ms)}"

    return text


def _targets(option: Option, ok: str = "ok") -> str:
    lines = []
    for target in option.targets:
        mark = ok if target.holds else "MISSED"
        upper = "no bound" if target.upper is None else words.number(target.upper)
        lines.append(f"{target.key} {upper} of {words.number(target.limit, 6)} {mark}")
    return "\n".join(lines) or "-"


def _per_hour(option: Option) -> str:
    return f"{words.money(option.money.usd_per_hour)}\n{words.invoiced(option)}".rstrip()


PICK_LINES: tuple[Line, ...] = (
    ("id", lambda o: o.id),
    ("buy", words.hardware),
    ("from", words.instance),
    ("price", words.price),
    ("USD per hour", _per_hour),
    ("$/Mtok output", lambda o: words.money(o.money.usd_per_mtok_output)),
    ("  all tokens", lambda o: words.money(o.money.usd_per_mtok_total)),
    ("  at full load", lambda o: words.money(o.money.usd_per_mtok_full)),
    ("engine", words.engine),
    ("weights / KV", lambda o: f"{o.weights} / {o.kv}"),
    ("replicas", words.parallelism),
    ("batch limit", lambda o: words.batch_limit(o, "seq")),
    ("speculation", words.speculation),
)
AFTER_MONEY = 1 + [label for label, _ in PICK_LINES].index("  at full load")
AFTER_PRICE = 1 + [label for label, _ in PICK_LINES].index("price")
AFTER_HOUR = 1 + [label for label, _ in PICK_LINES].index("USD per hour")
LISTED_LINES: tuple[Line, ...] = (("  listed", lambda o: price_words.foreign(o.money.price)),)
LEASE_LINES: tuple[Line, ...] = (
    ("  due at once", price_words.due_at_once),
    ("  bound for", price_words.bound_for),
    ("  instances", price_words.instances_sold),
)
"""Only where a pick has such terms."""
SCALED_LINES: tuple[Line, ...] = (("  autoscaled", words.autoscaled),)


def _intervals(option: Option) -> str:
    found = option.intervals
    if found is None:
        return "-"
    run = found.run_hours
    named = (
        ("TTFT p95", found.ttft_p95_ms, ("ms", 1.0)),
        ("TPOT p95", found.tpot_p95_ms, ("ms", 1.0)),
        ("run", run, words.time_unit((run.high or run.low) if run else 0.0)),
    )
    lines = [
        f"{name} {_ends(x, words.number, size)} {unit}"
        for name, x, (unit, size) in named
        if x is not None
    ]
    if found.usd_per_mtok_full is not None:
        lines += [f"{_ends(found.usd_per_mtok_full, words.money)} / Mtok", "at full load"]
    return "\n".join(lines)


def _ends(found: Interval, text: Callable[[float], str], size: float = 1.0) -> str:
    high = "no bound" if found.high is None else text(found.high * size)
    return f"{text(found.low * size)}-{high}"


ONLINE_LINES: tuple[Line, ...] = (
    ("TTFT p50 / p95", _latency(lambda o: o.ttft)),
    ("TPOT p50 / p95", _latency(lambda o: o.tpot)),
    ("E2E p50 / p95", _latency(lambda o: o.e2e)),
    ("80 % interval", _intervals),
    ("TPOT bound", lambda o: words.milliseconds(o.bound_tpot_ms)),
)
OFFLINE_LINES: tuple[Line, ...] = (("the whole run", words.run), ("80 % interval", _intervals))
LAST_LINES: tuple[Line, ...] = (
    ("output tokens/s", lambda o: words.number(o.output_tokens_per_s)),
    ("utilization", words.use),
    ("quality loss", words.quality),
    ("evidence", lambda o: words.EVIDENCE_WORDS[o.evidence]),
    ("limit that binds", words.binding),
)


def _lines(record: PlanRecord) -> tuple[Line, ...]:
    offline = any(option.run_hours is not None for option in record.options)
    return (
        *PICK_LINES[:AFTER_PRICE],
        *_told(record, LISTED_LINES),
        *PICK_LINES[AFTER_PRICE:AFTER_HOUR],
        *_told(record, LEASE_LINES),
        *PICK_LINES[AFTER_HOUR:AFTER_MONEY],
        *(SCALED_LINES if _scaled(record) else ()),
        *PICK_LINES[AFTER_MONEY:],
        *(OFFLINE_LINES if offline else (*ONLINE_LINES, *_simulated(record))),
        _sure(record),
        *LAST_LINES,
    )


def _scaled(record: PlanRecord) -> bool:
    return any(option.money.autoscaled is not None for option in record.options)


def _told(record: PlanRecord, lines: Sequence[Line]) -> list[Line]:
    """Return the lines that have something to say of any pick, a dash for the others."""
    picked = _picked(record)
    return [
        (label, lambda option, text=text: text(option) or "-")  # type: ignore[misc]
        for label, text in lines
        if any(map(text, picked))
    ]


def _picked(record: PlanRecord) -> list[Option]:
    return [option for option in record.options if option.id in record.picks.values()]


def _sure(record: PlanRecord) -> Line:
    """Return the line of the targets with margin; it follows what the margin is put on."""
    label = f"{words.confidence(record)} confidence"
    picked = _picked(record)
    # On two lines: one would widen the column.
    first = "simulated, with\n" if all(map(record.simulated, picked)) else ""

    def targets(option: Option) -> str:
        unchecked = any(archive.simulated for archive in record.archive)
        unchecked &= not record.simulated(option)
        return _targets(option, "ok by formula" if unchecked else "ok")

    return f"{first}{label}", targets


def _simulated(record: PlanRecord) -> tuple[Line, ...]:
    """Return the lines of what simulations said; none where nothing was simulated."""
    if not record.verification:
        return ()
    # A check tells what it saw of the size that it chose; of the formula's, the upper ends alone.
    checks = {check.checked: check for check in record.verification}
    chosen = {check.option: check for check in record.verification}
    archives = {archive.hardware.id: archive for archive in record.archive}

    def latency(metric: str, field: str) -> Callable[[Option], str]:
        def text(option: Option) -> str:
            check, first = chosen.get(option.id), ""
            if check is not None:
                seen = {entry.key: getattr(entry, field) for entry in check.latencies}
            elif field != SIMULATED:
                return "-"
            elif option.id in checks:
                seen = archives[option.hardware].simulated_upper(option.archive_row)
                first = "up to "
            else:
                return "-"
            keys = [f"{metric}_p{share}_ms" for share in (50, 95)]
            if keys[0] not in seen:
                return "-"
            return first + " / ".join(words.milliseconds(seen.get(key)) for key in keys)

        return text

    def tried(option: Option) -> str:
        check = chosen.get(option.id, checks.get(option.id))
        if check is None:
            return "-"
        marks = (f"{trial.replicas} {'ok' if trial.holds else 'no'}" for trial in check.trials)
        return ", ".join(marks)

    metrics = (("TTFT", "ttft"), ("TPOT", "tpot"), ("E2E", "e2e"))
    trace = record.inputs.trace
    shown = [(SIMULATED, "simulated" if trace is None else "replayed")]
    if trace is not None and trace.window_s:
        shown.insert(0, ("windows_ms", "by windows"))
    lines = [
        (f"{title} {how}", latency(metric, field))
        for title, metric in metrics
        for field, how in shown
    ]
    return (*lines, ("replicas tried", tried))


def _picks(console: Console, record: PlanRecord) -> None:
    by_id = {option.id: option for option in record.options}
    titles: dict[str, list[str]] = {}
    for pick, identity in record.picks.items():
        titles.setdefault(identity, []).append(words.PICK_TITLES.get(pick, pick))
    shown = [by_id[identity] for identity in titles]
    per_block = max((console.width - LABEL_WIDTH) // 26, 1)
    for start in range(0, len(shown), per_block):
        block = shown[start : start + per_block]
        table = Table(title="Picks" if start == 0 else None, title_justify="left", pad_edge=False)
        table.add_column("", no_wrap=True)
        for option in block:
            table.add_column(", ".join(titles[option.id]), overflow="fold")
        for label, text in _lines(record):
            table.add_row(label, *(_cell(text(option)) for option in block))
        console.print(table)


def _percentiles(pick: Callable[[Option], Latency | None]) -> Callable[[Option], str]:
    def text(option: Option) -> str:
        value = pick(option)
        if value is None:
            return "-"
        return f"{words.number(value.p50_ms)}\n{words.number(value.p95_ms)}"

    return text


OTHER_COLUMNS: tuple[Line, ...] = (
    ("id\nevidence", lambda o: f"{o.id}\n{o.evidence}"),
    ("buy\nfrom", lambda o: f"{words.hardware_id(o)}\n{o.provider} {o.region}"),
    ("engine\nweights/KV", lambda o: f"{o.engine}\n{o.weights}/{o.kv}"),
    ("replicas\nbatch", lambda o: f"{words.parallelism(o)}\n{counted(o.max_num_seqs, 'seq')}"),
    ("spec.\nloss", lambda o: f"{words.speculation(o)}\n{o.quality.median:.1f} %"),
    ("$/Mtok\n$/h", lambda o: f"{_mtok(o)}\n{words.money(o.money.usd_per_hour)}"),
    ("seen\nload", lambda o: f"{o.money.price.seen}\n{words.percent(o.utilization)}"),
    ("TTFT ms\np50, p95", _percentiles(lambda o: o.ttft)),
    ("TPOT ms\np50, p95", _percentiles(lambda o: o.tpot)),
    ("E2E ms\np50, p95", _percentiles(lambda o: o.e2e)),
    ("limit\nuse", lambda o: f"{words.limit(o)}\n{words.percent(o.binding.use)}"),
)


DROPPED = ("limit\nuse", "E2E ms\np50, p95", "spec.\nloss", "seen\nload", "engine\nweights/KV")
"""Columns that a narrow terminal does without, the first first: half a column misleads."""


def _mtok(option: Option) -> str:
    return words.money(option.money.usd_per_mtok_output)


def _table(console: Console, title: str, options: Sequence[Option]) -> None:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    table.padding = 0
    columns = _fitting(options, console.width)
    for header, _ in columns:
        table.add_column(header, overflow="fold")
    for option in options:
        table.add_row(*(_cell(text(option)) for _, text in columns))
    console.print(table)


def _fitting(options: Sequence[Option], width: int) -> list[Line]:
    """Return the columns that fit without a broken line, as far as any may be left out."""
    columns = list(OTHER_COLUMNS)
    for header in DROPPED:
        needed = sum(_width(column, options) for column in columns) + len(columns) - 1
        if needed <= width:
            break
        columns = [column for column in columns if column[0] != header]
    return columns


def _width(column: Line, options: Sequence[Option]) -> int:
    header, text = column
    return max(cell_len(line) for t in (header, *map(text, options)) for line in t.split("\n"))


def _plot(console: Console, record: PlanRecord) -> None:
    lines = front_plot(record, console.width)
    if lines:
        console.print()
    for line in lines:
        console.print(escape(line), soft_wrap=True)


def _others(console: Console, record: PlanRecord) -> None:
    picked = set(record.picks.values())
    shown = [o for o in record.options if o.id in record.shown and o.id not in picked]
    if shown:
        rest = len(record.options) - len(picked)
        console.print()
        _table(console, f"Others on the front ({len(shown)} of {rest})", shown)


def _untrusted(console: Console, record: PlanRecord) -> None:
    if not record.untrusted:
        return
    console.print()
    console.print(
        "Cheaper or better in some way, but not picked, for the reason that ends the line:"
    )
    for option in record.untrusted:
        text = (
            f"  {option.id}  {words.hardware(option)}, {words.instance(option)},"
            f" {words.engine(option)} {option.weights}, {words.parallelism(option)}:"
            f" {words.money(option.money.usd_per_mtok_output)} per Mtok,"
            f" {words.money(option.money.usd_per_hour)}/h; {words.cautions(option)}"
        )
        console.print(escape(text), soft_wrap=True)


def _misses(console: Console, record: PlanRecord) -> None:
    console.print(words.nothing(record))
    lines = [line for miss in record.misses for line in _miss_lines(miss)]
    if record.obstacle:
        lines += ["", f"  {record.obstacle}"]
    alone = words.alone(record)
    lines += ["", *alone[:1], *(f"  {text}" for text in alone[1:])] if alone else []
    for line in lines:
        console.print(escape(line), soft_wrap=True)


MISS_TITLES = {
    "nearest": "nearest:",
    "within the purchase limits": "nearest of what may be bought:",
    "keeps the targets": "nearest that keeps the targets:",
}


def _miss_lines(miss: Miss) -> list[str]:
    option = miss.option
    near = (
        f"{words.parallelism(option)} on {words.hardware(option)}, {words.engine(option)},"
        f" {option.weights}, {words.instance(option)}, {words.money(option.money.usd_per_hour)}/h"
    )
    return [
        "",
        f"  {MISS_TITLES[miss.kind]} {near}",
        f"  misses:   {'; '.join(miss.misses)}",
        f"  binds:    {words.binding(option)}",
        f"  would do: {', or '.join(miss.would_do) or 'nothing that was tried'}",
    ]


def _notes(console: Console, record: PlanRecord) -> None:
    console.print()
    console.print(escape(words.found(record)), soft_wrap=True)
    for note in record.assumptions:
        console.print(escape(f"- {note}"), soft_wrap=True)
