"""A commented slo.yaml to start from, with what other tools' files and running engines say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.candidates.models import architecture_of
from planner.catalog import load_catalog
from planner.errors import InputError
from planner.files import parse_yaml
from planner.importers.draft import Given
from planner.importers.slo_files import read_slo_file
from planner.importers.vllm_metrics import read_metrics
from planner.spec.load import load
from planner.spec.slo import Slo

DEFAULT_MODEL = "meta-llama/Llama-3.3-70B-Instruct"
COMMENT_COLUMN = 42
CHIPS = "purchase.accelerators"
TARGETS = "slo."

HEADER = """\
# What you need. `plan --slo slo.yaml` answers what to buy. Every key and what it means:
# `plan schema slo`, a JSON Schema, by which editors complete and check this file, too.
"""


@dataclass(frozen=True)
class Entry:
    """A line of the file.

    Attributes:
        key: Dotted key.
        value: What it shows where nobody gives one.
        comment: What the key means.
        role: ``required`` = always there, marked as assumed where a file does not give it;
            ``usual`` = always there; ``example`` = there unless a file is read, then a comment;
            ``hint`` = a comment unless given.
    """

    key: str
    value: object
    comment: str = ""
    role: str = "usual"


ENTRIES: tuple[Entry, ...] = (
    Entry("model", DEFAULT_MODEL, "known name, config.json, folder, or hub:org/name", "required"),
    Entry("task", "chat", "chat, rag, summarization, reasoning, code, long_context"),
    Entry("traffic.rate_per_s", 12, "requests per second in the hour you size for", "required"),
    Entry(
        "traffic.mean_rate_per_s", 7, "what you pay for on average (default: rate_per_s)", "example"
    ),
    Entry(
        "traffic.prompt_tokens",
        {"p50": 900, "p95": 3200},
        "log-normal; also {mean, cv}; a number is constant",
        "required",
    ),
    Entry("traffic.output_tokens", {"p50": 250, "p95": 700}, "", "required"),
    Entry(
        "traffic.burstiness", 1.0, "squared CV of the gaps between arrivals; 1 = Poisson", "hint"
    ),
    Entry(
        "traffic.prefix_hit_rate", 0.3, "share of prompt tokens from the prefix cache", "hint"
    ),
    Entry("traffic.max_context_tokens", 32768, "longest prompt + output to accept", "hint"),
    Entry("slo.ttft_p95_ms", 800, "any of ttft, tpot, itl, e2e x p50, p90, p95, p99", "required"),
    Entry("slo.tpot_p95_ms", 40, "", "required"),
    Entry("slo.confidence", 0.8, "each target holds with this chance, given our measured error"),
    Entry("quality.max_loss_percent", 3.0, "against the released checkpoint, pessimistic end"),
    Entry(
        "purchase.terms", ("on_demand",), "on_demand, spot, reserved_1y, reserved_3y, owned"
    ),
    Entry("purchase.providers", ("aws", "lambda"), "also: regions, accelerators", "hint"),
    Entry("purchase.max_gpus", 64, "", "hint"),
    Entry("purchase.budget_usd_per_hour", 200, "", "hint"),
    Entry("engines", ("vllm",), "default: vllm, sglang and tensorrt-llm", "hint"),
)  # fmt: skip


@dataclass(frozen=True)
class Started:
    """A file to start from.

    Attributes:
        text: The file.
        remarks: What a person should look at, in sentences; the file holds them too.
    """

    text: str
    remarks: tuple[str, ...]


def init(
    *,
    model: str | None = None,
    source: Path | None = None,
    metrics: Sequence[Path] = (),
    entry: str = "",
    window_s: float | None = None,
) -> str:
    """Return the text of an slo.yaml that plans as it is; see :func:`start`."""
    made = start(model=model, source=source, metrics=metrics, entry=entry, window_s=window_s)
    return made.text


def start(
    *,
    model: str | None = None,
    source: Path | None = None,
    metrics: Sequence[Path] = (),
    entry: str = "",
    window_s: float | None = None,
) -> Started:
    """Return an slo.yaml to start from, and what to look at in it.

    Args:
        model: Model to fill in: a known name, a config path or ``hub:org/name``.
        source: SLO file of another tool.
        metrics: One or two text dumps of the metrics of a running vLLM; they win over `source`.
        entry: Which entry, where a file holds several.
        window_s: Seconds that the dumps cover [s]; None = from the dumps.

    Raises:
        InputError: A file cannot be used, or the model that was asked for is unknown.
    """
    drafts = [] if source is None else [read_slo_file(source, entry)]
    drafts += [read_metrics(metrics, window_s, entry)] if metrics else []
    values: dict[str, Given] = {}
    for draft in drafts:
        values |= draft.values
    if model is not None:
        architecture_of(model)
        values["model"] = Given(model)
    if not drafts:
        return Started(_text(values, HEADER, ""), ())
    read = [path.name for path in (*([source] if source else []), *metrics)]
    names = _one_line(" and ".join(read))
    values, refused = _known_chips(values)
    remarks = tuple(
        map(
            _one_line,
            (
                *_assumed(values, names),
                *(note for draft in drafts for note in draft.notes),
                *_unknown_model(values, model),
                *(f"Left out: {item}" for draft in drafts for item in draft.left_out),
                *(f"Left out: {item}" for item in refused),
            ),
        )
    )
    origin = f"# From {names} ({', '.join(draft.origin for draft in drafts)}).\n"
    notes = "".join(f"# {remark}\n" for remark in remarks)
    text = _text(values, HEADER + origin + notes, names)
    load(parse_yaml(text, f"{names}, as slo.yaml"), Slo)
    return Started(text, remarks)


def _known_chips(values: dict[str, Given]) -> tuple[dict[str, Given], tuple[str, ...]]:
    """Return the values with accelerators by catalog id, and those that are unknown."""
    given = values.get(CHIPS)
    if given is None or not isinstance(given.value, tuple):
        return values, ()
    catalog = load_catalog()
    known: list[str] = []
    unknown: list[str] = []
    for name in given.value:
        try:
            known.append(catalog.accelerator(str(name)).id)
        except InputError as error:
            unknown.append(f"accelerator {error.faults[0].message}")
    rest = {key: value for key, value in values.items() if key != CHIPS}
    return (rest | {CHIPS: Given(tuple(known), given.comment)} if known else rest), tuple(unknown)


def _unknown_model(values: Mapping[str, Given], asked: str | None) -> Iterator[str]:
    if asked is not None or "model" not in values:
        return
    try:
        architecture_of(str(values["model"].value))
    except InputError as error:
        yield f"Mend before planning: {error.faults[0].message}."


def _assumed(values: Mapping[str, Given], names: str) -> Iterator[str]:
    missing = [entry.key for entry in ENTRIES if _is_assumed(entry, values)]
    if missing:
        yield f"Assumed, for {names} does not say: {', '.join(missing)}."


def _is_assumed(entry: Entry, values: Mapping[str, Given]) -> bool:
    """Whether a required value is the template's; one target is enough."""
    if entry.role != "required" or entry.key in values:
        return False
    return not (entry.key.startswith(TARGETS) and any(key.startswith(TARGETS) for key in values))


def _text(values: Mapping[str, Given], header: str, names: str) -> str:
    """Return the file; `names` = files that were read, empty = none."""
    known = [entry.key for entry in ENTRIES]
    others = [Entry(key, "") for key in values if key not in known]
    lines: list[str] = []
    for block in dict.fromkeys(entry.key.split(".")[0] for entry in ENTRIES):
        entries = [entry for entry in (*others, *ENTRIES) if entry.key.split(".")[0] == block]
        held = [line for entry in entries for line in _line(entry, values, names)]
        nested = "." in entries[0].key
        if nested:
            lines += ["", f"{block}:"]
        elif block == "engines":
            lines += [""]
        lines += held
    return header + "\n".join(lines) + "\n"


def _line(entry: Entry, values: Mapping[str, Given], names: str) -> Iterable[str]:
    given = values.get(entry.key)
    block, _, key = entry.key.rpartition(".")
    indent = "  " if block else ""
    if given is not None:
        return [_laid_out(f"{indent}{key}: {flow(given.value)}", given.comment or entry.comment)]
    if names and entry.role == "required":
        if not _is_assumed(entry, values):
            return []
        comment = f"ASSUMED, not in {names}; {entry.comment}".removesuffix("; ")
        return [_laid_out(f"{indent}{key}: {flow(entry.value)}", comment)]
    hidden = entry.role == "hint" or (names and entry.role == "example")
    mark = "# " if hidden else ""
    return [_laid_out(f"{indent}{mark}{key}: {flow(entry.value)}", entry.comment)]


def _laid_out(line: str, comment: str) -> str:
    return f"{line:<{COMMENT_COLUMN}} # {comment}" if comment else line


def _one_line(text: str) -> str:
    return text if text.isprintable() else ascii(text)


def flow(value: object) -> str:
    """Return a value as YAML on one line.

    >>> flow({"p50": 900, "p95": 3200.5}), flow(("h100-sxm",)), flow("yes: no")
    ('{p50: 900, p95: 3200.5}', '[h100-sxm]', '"yes: no"')
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, str):
        plain = re.fullmatch(r"[A-Za-z][\w./-]*", value) and parse_yaml(value, "").data == value
        return value if plain else json.dumps(value, ensure_ascii=False)
    return str(value)
