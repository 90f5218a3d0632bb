"""A simulation as text for people, and its timeline as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import TYPE_CHECKING

from planner.counting import counted, request_rate
from planner.report import words
from planner.report.csv_text import table_text
from planner.report.text_table import aligned

if TYPE_CHECKING:
    from planner.commands.simulate import Simulation
    from planner.model.arrays import Floats
    from planner.simulate import Level

METRIC_WORDS = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "E2E", "itl": "ITL"}
HEADER = ("", "formula", "simulated", "lowest run", "highest run")
WINDOWS_HEADER = ("", "formula", "by windows", "simulated", "lowest run", "highest run")
TIMELINE = (
    "time_s",
    "queue",
    "queue_max",
    "batch",
    "batch_max",
    "in_flight",
    "in_flight_max",
)
TIMELINE_HEADER = ("until s", "queue", "at most", "batch of the fleet", "at most")
LINE_COLUMNS = (
    "metric",
    "percentile",
    "formula_ms",
    "windows_ms",
    "simulated_ms",
    "low_ms",
    "high_ms",
)


def render(found: Simulation) -> str:
    """Return percentiles beside the formula, targets, goodput, and queue and batch over time."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Simulation) -> Iterator[str]:
    o = found.option
    yield f"{o.id}  {words.hardware(o)}, {words.engine(o)}, {words.parallelism(o)}"
    runs, requests = counted(found.seeds, "run"), words.count(found.requests, "request")
    yield (f"{runs} of {requests}, {found.source} arrivals at {words.number(found.rate_per_s)}/s")
    yield ""
    yield aligned(*_percentiles(found)).rstrip("\n")
    yield ""
    for limit in found.limits:
        mark = "holds" if limit.holds else "MISSED"
        simulated = words.milliseconds(limit.simulated_ms)
        yield f"{limit.key} {simulated} of {words.number(limit.limit_ms, 6)} ms: {mark}"
    if found.limits:
        yield "(without the margin for the model's own error that a plan puts on)"
        yield _goodput(found)
    else:
        yield "no limit applies"
    yield (
        f"{words.number(found.output_tokens_per_s)} output tokens/s, servers at work"
        f" {words.percent(found.utilization)} of the time (an option's utilization is the share of"
        f" its capacity), {words.number(found.batch)} sequences decoding per server"
    )
    rejected = counted(found.rejected, "request")
    yield f"preempted {counted(found.preemptions, 'time')}, {rejected} rejected"
    yield ""
    time = found.timeline
    columns = (time.time, *_both(time.queue), *_both(time.batch))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    shown = [[words.number(value) for value in row] for row in rows]
    yield aligned(TIMELINE_HEADER, shown).rstrip("\n")
    yield from (f"note: {note}" for note in found.notes)


def _goodput(found: Simulation) -> str:
    of_tokens = [limit.key for limit in found.limits if "itl_p" in limit.key]
    if len(of_tokens) == len(found.limits):
        return "no goodput: limits on ITL are on tokens, not on requests"
    left = f" ({', '.join(of_tokens)}: on tokens, not counted)" if of_tokens else ""
    return (
        f"goodput {request_rate(words.number(found.goodput_per_s))}:"
        f" {found.attainment:.1%} of the requests meet every limit that is theirs{left}"
    )


def _percentiles(found: Simulation) -> tuple[tuple[str, ...], list[list[str]]]:
    by_windows = not all(isnan(line.windows) for line in found.lines)
    rows = []
    for line in found.lines:
        values = [line.formula, line.windows, line.simulated, line.low, line.high]
        # Nobody has it, whatever the formula says: TPOT of outputs of one token.
        texts = ["-" if isnan(line.simulated) else _time(value) for value in values]
        if not by_windows:
            del texts[1]
        rows.append([f"{METRIC_WORDS[line.metric]} p{round(line.share * 100)}", *texts])
    return (WINDOWS_HEADER if by_windows else HEADER), rows


def _time(seconds: float) -> str:
    if isnan(seconds):
        return "-"
    return "no bound" if seconds == float("inf") else words.milliseconds(seconds * 1e3)


def timeline_csv(found: Simulation) -> str:
    """Return mean and peak of queue, batch and requests in flight by interval, as CSV."""
    time = found.timeline
    columns = (time.time, *_both(time.queue), *_both(time.batch), *_both(time.in_flight))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return table_text(TIMELINE, ([f"{value:.6g}" for value in row] for row in rows))


def _both(level: Level) -> tuple[Floats, Floats]:
    return level.mean, level.largest


def percentiles_csv(found: Simulation) -> str:
    """Return the percentiles by formula and simulation as CSV; blank = does not apply."""
    rows = (
        [
            line.metric,
            f"{line.share * 100:g}",
            *(
                "" if isnan(value) else f"{value * 1e3:.6g}"
                for value in (line.formula, line.windows, line.simulated, line.low, line.high)
            ),
        ]
        for line in found.lines
    )
    return table_text(LINE_COLUMNS, rows)
