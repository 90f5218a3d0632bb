"""Recorded requests: public trace formats, and plain columns."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.counting import counted
from planner.errors import Fault, InputError
from planner.files.disk import read_text

TRACE_BYTES = 500_000_000
MOST_TOKENS = 100_000_000
PARTS = 10
"""Equal parts of a trace between which rate and lengths are compared."""
DRIFT_RATIO = 1.25
DRIFT_NOISE = 4.0
"""How far, in ratio and in multiples of chance, parts must differ to be called a drift."""
LONGEST_S = 366 * 86_400.0
"""Longest trace [s]; longer ones have stamps in another unit, or a stray one."""
SHORT_WINDOW_S, LONG_WINDOW_S = 10.0, 60.0
BURSTY = 4.0
"""Dispersion in such windows [s] from which a Poisson rate is said to mislead."""

_Floats = NDArray[np.float64]
_Tokens = NDArray[np.int64]


@dataclass(frozen=True)
class Trace:
    """Recorded requests in order of arrival.

    Attributes:
        source: The file.
        kind: Which format it was.
        arrival_s: Arrival since the first request [s], (requests,).
        prompt_tokens, output_tokens: Lengths [tokens], at least 1, (requests,).
        changes: What is not as it was recorded, one sentence each.
    """

    source: str
    kind: str
    arrival_s: _Floats
    prompt_tokens: _Tokens
    output_tokens: _Tokens
    changes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.arrival_s)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was changed or should be known, one sentence each."""
        return (*self.changes, *_bursts(self), *drift(self))

    def first(self, count: int | None) -> Trace:
        """Return the first requests, and a note of it; None = all."""
        if count is None or count >= len(self):
            return self
        told = f"Only the first {count:,} of {len(self):,} requests."
        return Trace(
            self.source,
            self.kind,
            self.arrival_s[:count],
            self.prompt_tokens[:count],
            self.output_tokens[:count],
            (*self.changes, told),
        )

    @property
    def rate_per_s(self) -> float:
        """Mean rate [requests/s]; nan for a trace without duration."""
        return (len(self) - 1) / float(self.arrival_s[-1]) if self.arrival_s[-1] > 0 else np.nan

    def dispersion(self, window_s: float) -> float:
        """Variance over mean of the counts in windows (index of dispersion; Poisson: 1).

        Args:
            window_s: Length of a window [s]; 10 and 60 show what bursts and drifts do to a queue.

        Returns:
            The index over all complete windows; nan if there are fewer than two.

        Source:
            D. R. Cox and P. A. W. Lewis, The Statistical Analysis of Series of Events, 1966.
        """
        windows = int(self.arrival_s[-1] // window_s)
        if windows < 2:
            return float("nan")
        edges = window_s * np.arange(windows + 1)
        counts = np.diff(np.searchsorted(self.arrival_s, edges))
        return float(counts.var() / counts.mean())


def read_trace(path: Path) -> Trace:
    """Read a trace; its format is told by its columns.

    Known: Azure LLM inference traces 2023 and 2024 (TIMESTAMP, ContextTokens, GeneratedTokens),
    BurstGPT (Timestamp, Request tokens, Response tokens), Mooncake (JSON lines with timestamp in
    milliseconds, input_length, output_length) and arrival_s, prompt_tokens, output_tokens.

    Args:
        path: The file.

    Returns:
        Requests from time 0 on. Requests without prompt or output are left out; stamps that most
        requests share with others are spread at random, always alike, until the next stamp.

    Raises:
        InputError: The file cannot be read, is of no known format, or has rows at fault.

    Source:
        Formats: Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md and ...2024.md;
        HPMLL/BurstGPT, README.md; kvcache-ai/Mooncake, FAST25-release/traces; retrieved
        2026-11-29.
    """
    source = str(path)
    text = read_text(path, TRACE_BYTES)
    faults: list[Fault] = []
    if text.lstrip().startswith(("{", "[")):
        form, cells = MOONCAKE, _json_cells(source, text, faults)
    else:
        form, cells = _csv_cells(source, text, faults)
    rows = np.array(list(_rows(form, cells, faults)), dtype=np.float64).reshape(-1, 3)
    if faults:
        raise InputError(source, faults)
    if not len(rows):
        raise InputError(source, ["no requests; give at least one row"])
    return _trace(source, form, rows)


@lru_cache(maxsize=4096)
def _whole_seconds(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError(text)
    return int(moment.replace(tzinfo=UTC).timestamp())


def _clock_time(text: str) -> float:
    """Seconds of a stamp with any number of digits; zones must be UTC, as Azure's are."""
    body = text.removesuffix("Z").removesuffix("+00:00")
    whole, _, digits = body.partition(".")
    if digits and not digits.isdecimal():
        raise ValueError(text)
    # Kept from 1970 on, a double resolves 0.2 us; the digits below that do not matter.
    return _whole_seconds(whole) + (float(f"0.{digits}") if digits else 0.0)


def _seconds(text: str) -> float:
    return float(text)


def _milliseconds(text: str) -> float:
    return float(text) / 1000.0


@dataclass(frozen=True)
class Form:
    """A trace format: its name, the columns of time, prompt and output, and how time is read."""

    kind: str
    columns: tuple[str, str, str]
    time: Callable[[str], float]
    stamp: str


AZURE = Form(
    "azure",
    ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    _clock_time,
    "a UTC time; write it as 2023-11-16 18:15:46.6805900",
)
BURSTGPT = Form(
    "burstgpt",
    ("Timestamp", "Request tokens", "Response tokens"),
    _seconds,
    "a number of seconds; mend it",
)
PLAIN = Form(
    "plain",
    ("arrival_s", "prompt_tokens", "output_tokens"),
    _seconds,
    "a number of seconds; mend it",
)
MOONCAKE = Form(
    "mooncake",
    ("timestamp", "input_length", "output_length"),
    _milliseconds,
    "a number of milliseconds; mend it",
)
CSV_FORMS = (AZURE, BURSTGPT, PLAIN)

_Cells = tuple[int, tuple[str, str, str]]


def _csv_cells(source: str, text: str, faults: list[Fault]) -> tuple[Form, Iterator[_Cells]]:
    reader = csv.reader(io.StringIO(text, newline=""))
    header = [name.strip() for name in next((row for row in reader if any(row)), [])]
    names = [name.casefold() for name in header]
    for form in CSV_FORMS:
        wanted = [name.casefold() for name in form.columns]
        if set(wanted) <= set(names):
            return form, _picked(reader, len(header), [names.index(n) for n in wanted], faults)
    known = "; or ".join(f"{form.kind}: {', '.join(form.columns)}" for form in CSV_FORMS)
    message = f"no known trace columns in '{', '.join(header)[:200]}'; give {known}"
    raise InputError(source, [Fault("line 1", "", message)])


def _picked(
    reader: Iterator[list[str]], width: int, columns: list[int], faults: list[Fault]
) -> Iterator[_Cells]:
    time, prompt, output = columns
    try:
        for row in reader:
            line: int = reader.line_num  # type: ignore[attr-defined]
            if len(row) == width:
                yield line, (row[time], row[prompt], row[output])
            elif any(row):
                message = (
                    f"{counted(len(row), 'value')} for {width} columns; give one value per column"
                )
                faults.append(Fault(f"line {line}", "", message))
    except csv.Error as error:
        faults.append(Fault("", "", f"not valid CSV ({error}); mend it"))


def _json_cells(source: str, text: str, faults: list[Fault]) -> Iterator[_Cells]:
    if not any(set(MOONCAKE.columns) & set(row) for row in _json_rows(text)):
        columns = ", ".join(MOONCAKE.columns)
        message = f"no known trace; give JSON lines, each with {columns}, or a CSV"
        raise InputError(source, [Fault("line 1", "", message)])
    return _json_lines(text, faults)


def _json_rows(text: str) -> Iterator[Mapping[str, object]]:
    """Yield the lines that are JSON objects."""
    for row in io.StringIO(text):
        try:
            value = json.loads(row)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, Mapping):
            yield value


def _json_lines(text: str, faults: list[Fault]) -> Iterator[_Cells]:
    time, prompt, output = MOONCAKE.columns
    for line, row in enumerate(io.StringIO(text), start=1):
        if not row.strip():
            continue
        try:
            value = json.loads(row)
        except (ValueError, RecursionError):
            faults.append(Fault(f"line {line}", "", "not a JSON object on one line; mend it"))
            continue
        if not isinstance(value, Mapping):
            faults.append(Fault(f"line {line}", "", "not a JSON object; mend it"))
            continue
        missing = [name for name in MOONCAKE.columns if name not in value]
        faults += [Fault(f"line {line}", name, "missing; add it") for name in missing]
        if not missing:
            yield line, (str(value[time]), str(value[prompt]), str(value[output]))


def _rows(
    form: Form, cells: Iterator[_Cells], faults: list[Fault]
) -> Iterator[tuple[float, float, float]]:
    for line, texts in cells:
        try:
            time, prompt, output = form.time(texts[0].strip()), float(texts[1]), float(texts[2])
            if isfinite(time) and _tokens(prompt) and _tokens(output):
                yield time, prompt, output
                continue
        except (ValueError, OverflowError):
            pass
        faults += _row_faults(form, line, texts)


def _tokens(value: float) -> bool:
    return 0 <= value <= MOST_TOKENS and value == int(value)


def _row_faults(form: Form, line: int, texts: tuple[str, str, str]) -> Iterator[Fault]:
    """Say which cells of a row cannot be used."""
    try:
        good = isfinite(form.time(texts[0].strip()))
    except (ValueError, OverflowError):
        good = False
    if not good:
        yield Fault(f"line {line}", form.columns[0], f"'{texts[0][:40]}' is not {form.stamp}")
    for column, text in zip(form.columns[1:], texts[1:], strict=True):
        try:
            good = _tokens(float(text))
        except ValueError:
            good = False
        if not good:
            message = f"'{text[:40]}' is not a number of tokens; give a whole one, 0 or more"
            yield Fault(f"line {line}", column, message)


def _trace(source: str, form: Form, rows: _Floats) -> Trace:
    notes: list[str] = []
    empty = (rows[:, 1] == 0) | (rows[:, 2] == 0)
    if empty.all():
        raise InputError(source, ["every request has 0 tokens; give prompt and output lengths"])
    if empty.any():
        without = counted(int(empty.sum()), "request")
        notes.append(f"Left out: {without} without prompt or output tokens.")
    rows = rows[~empty]
    if np.any(np.diff(rows[:, 0]) < 0):
        notes.append("Rows were not in order of time and have been sorted.")
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if rows[-1, 0] - rows[0, 0] > LONGEST_S:
        raise InputError(source, [_too_long(form, rows[:, 0])])
    time = rows[:, 0] - rows[0, 0]
    _, place, shared = np.unique(time, return_inverse=True, return_counts=True)
    if len(shared) > 1 and np.mean(shared[place] > 1) > 0.5:
        time, step = _spread(time)
        notes.append(
            f"Most requests share their time stamp with others ({step:g} s apart); they are "
            "spread at random until the next stamp."
        )
    prompt, output = (rows[:, column].astype(np.int64) for column in (1, 2))
    return Trace(source, form.kind, time, prompt, output, tuple(notes))


def _too_long(form: Form, time: _Floats) -> Fault:
    """Say how far apart the requests are, and between which two of them most of that lies."""
    gaps = np.diff(time)
    wide = int(np.argmax(gaps))
    span, gap = ((value / 86_400.0) for value in (time[-1] - time[0], gaps[wide]))
    message = (
        f"{span:,.6g} days from the first request to the last, {gap:,.6g} of them between the"
        f" {wide + 1:,}. and the next in order of time; at most {LONGEST_S / 86_400:.0f} can be"
        f" used; give the stamps as {form.stamp.partition(';')[0]}, without stray ones"
    )
    return Fault("", form.columns[0], message)


def _spread(time: _Floats) -> tuple[_Floats, float]:
    """Spread requests over the time until the next stamp, or the usual one if it is late."""
    stamps = np.unique(time)
    steps = np.append(np.diff(stamps), np.inf)
    usual = float(np.median(steps[:-1]))
    step = np.minimum(steps, usual)[np.searchsorted(stamps, time)]
    shifted = np.sort(time + step * np.random.default_rng(0).random(len(time)))
    return shifted - shifted[0], usual


def _bursts(trace: Trace) -> Iterator[str]:
    """Say that counts of arrivals vary more than a Poisson rate would have them."""
    found = {window: trace.dispersion(window) for window in (SHORT_WINDOW_S, LONG_WINDOW_S)}
    known = {window: value for window, value in found.items() if isfinite(value)}
    if max(known.values(), default=0.0) > BURSTY:
        windows = " and ".join(f"{window:g} s" for window in known)
        times = " and ".join(f"{value:.3g}" for value in known.values())
        yield (
            f"Counts in {windows} windows vary {times} times as much as those of Poisson arrivals."
        )


def drift(trace: Trace) -> Iterator[str]:
    """Say between which values rate and lengths move over the parts of the trace, if they do."""
    if len(trace) < 20 * PARTS or trace.arrival_s[-1] <= 0:
        return
    edges = np.linspace(0.0, trace.arrival_s[-1], PARTS + 1)
    part = np.clip(np.searchsorted(edges, trace.arrival_s, side="right") - 1, 0, PARTS - 1)
    counts = np.bincount(part, minlength=PARTS).astype(np.float64)
    # Bursts alone make counts vary by the dispersion at 10 s.
    chance = np.fmax(trace.dispersion(10.0), 1.0) * counts.mean()
    rates = counts / (edges[1] - edges[0])
    yield from _moved("The rate", "requests/s", rates, counts.var(ddof=1) / chance)
    if counts.min() < 2:
        return
    for name, tokens in (("prompt", trace.prompt_tokens), ("output", trace.output_tokens)):
        means = np.bincount(part, tokens, PARTS) / counts
        within = np.array([tokens[part == number].var() for number in range(PARTS)]) / counts
        chance = max(float(within.mean()), 1e-12)
        yield from _moved(f"The mean {name}", "tokens", means, means.var(ddof=1) / chance)


def _moved(name: str, unit: str, values: _Floats, noise: float) -> Iterator[str]:
    low, high = float(values.min()), float(values.max())
    if noise > DRIFT_NOISE and high > DRIFT_RATIO * max(low, 1e-12):
        digits = 0 if high >= 100 else 2
        yield (
            f"{name} drifts between {low:.{digits}f} and {high:.{digits}f} {unit} over tenths of "
            "the trace."
        )
