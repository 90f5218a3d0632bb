"""Result files of benchmark tools -> :class:`planner.spec.result.Result`; told by content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import Fault, InputError
from planner.files import parse_yaml
from planner.files.disk import read_text
from planner.importers.benchmarks_entry import Entry
from planner.importers.benchmarks_guidellm import read_guidellm
from planner.importers.benchmarks_inference_perf import read_inference_perf
from planner.importers.benchmarks_llmd import read_llmd
from planner.importers.benchmarks_vllm import read_sglang, read_vllm
from planner.spec.result import Result, ResultFile, Tool, Unusable

RESULT_BYTES = 512_000_000
"""Result files that keep every request are large."""
_NOT_FINITE = re.compile(r"(?m)(:[ \t]+|^[ \t]*-[ \t]+)[-+]?\.(?:inf|nan)[ \t]*$", re.IGNORECASE)

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Format:
    """A tool's result file.

    Attributes:
        tool: Name of it.
        holds: Whether a mapping is such a file.
        runs: The runs in it, with their places.
        read: Run -> result; faults are left in the entry.
    """

    tool: Tool
    holds: Callable[[Data], bool]
    runs: Callable[[Data, str], Iterator[Entry]]
    read: Callable[[Entry, str], Result]


def _whole(data: Data, place: str) -> Iterator[Entry]:
    yield Entry(data, place)


def _benchmarks(data: Data, place: str) -> Iterator[Entry]:
    """Yield each benchmark of a GuideLLM report; what only the report knows goes along."""
    for number, run in enumerate(data["benchmarks"]):
        where = f"{place} benchmarks[{number}]".strip()
        own = run if isinstance(run, Mapping) else {}
        yield Entry({"args": data.get("args"), **own}, where)


def _has(*keys: str) -> Callable[[Data], bool]:
    return lambda data: all(key in data for key in keys)


def _is_llmd(data: Data) -> bool:
    return "scenario" in data and "request_performance" in (data.get("results") or {})


FORMATS = (
    Format(
        "guidellm", lambda d: isinstance(d.get("benchmarks"), tuple), _benchmarks, read_guidellm
    ),
    Format("inference-perf", _has("successes", "load_summary"), _whole, read_inference_perf),
    Format("llm-d-report", _is_llmd, _whole, read_llmd),
    Format("sglang-bench", _has("completed", "mean_e2e_latency_ms"), _whole, read_sglang),
    Format("vllm-bench", _has("completed", "total_input_tokens"), _whole, read_vllm),
)
"""In the order in which a file is tried."""


def read_results(path: Path) -> ResultFile:
    """Read a result file.

    Args:
        path: JSON, JSON lines or YAML of any tool in FORMATS.

    Raises:
        InputError: The file cannot be read, is of no known tool, or no run of it can be used;
            with every reason.
    """
    source = str(path)
    results: list[Result] = []
    unusable: list[Unusable] = []
    for data, place in _documents(path):
        known = next((form for form in FORMATS if form.holds(data)), None)
        if known is None:
            unusable.append(Unusable(place=place, reasons=(_unknown(data),)))
            continue
        for entry in known.runs(data, place):
            result = known.read(entry, path.name)
            if entry.faults:
                unusable.append(Unusable(place=entry.place, reasons=tuple(entry.faults)))
            else:
                results.append(result)
    if not results:
        faults = [Fault(bad.place, "", reason) for bad in unusable for reason in bad.reasons]
        raise InputError(source, faults or ["holds no run; is the benchmark finished?"])
    return ResultFile(results=tuple(results), unusable=tuple(unusable))


def _unknown(data: Data) -> str:
    tools = ", ".join(form.tool for form in FORMATS)
    if "metrics" in data and "scenario" in data:
        return "an llm-d benchmark report before 0.2; write it again with a newer llm-d-benchmark"
    return f"not a result file of {tools}; name the file that the tool wrote"


def _documents(path: Path) -> list[tuple[Data, str]]:
    """Return the mappings of a file and where each stands: one, or one a line or list entry."""
    text, source = read_text(path, RESULT_BYTES), str(path)
    if path.suffix.casefold() in (".yaml", ".yml"):
        data = parse_yaml(_NOT_FINITE.sub(r"\1null", text), source).data
        return _mappings(data, source)
    try:
        return _mappings(_tuples(json.loads(text)), source)
    except (json.JSONDecodeError, RecursionError):
        return _lines(text, source)


def _lines(text: str, source: str) -> list[tuple[Data, str]]:
    found: list[tuple[Data, str]] = []
    faults: list[Fault] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            data = _tuples(json.loads(line))
        except (json.JSONDecodeError, RecursionError):
            faults.append(Fault(f"line {number}", "", "not JSON; is the file whole?"))
            continue
        found += [(entry, f"line {number}") for entry, _ in _mappings(data, source)]
    if faults and not found:
        raise InputError(source, ["neither JSON, JSON lines nor YAML; is the file whole?"])
    if faults:
        raise InputError(source, faults)
    return found


def _mappings(data: Any, source: str) -> list[tuple[Data, str]]:
    if isinstance(data, Mapping):
        return [(data, "")]
    if isinstance(data, tuple) and all(isinstance(entry, Mapping) for entry in data):
        return [(entry, f"[{number}]") for number, entry in enumerate(data)]
    raise InputError(source, ["holds no run of a benchmark; name the file that the tool wrote"])


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    return value
