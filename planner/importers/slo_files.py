"""SLO files of other tools -> the part of an slo.yaml that they give.

What a file is, is told from its content. Limits without a percentile are read as p95; units are
converted to ms. What has no counterpart is named, never dropped in silence.

Source:
    llm-d-incubation/llm-d-planner, data/configuration/slo_templates.json;
    llm-d-incubation/workload-variant-autoscaler, configmap-serviceclass.yaml;
    vllm-project/vllm, ``vllm bench serve --goodput``. Retrieved 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.errors import InputError
from planner.files import Document, parse_yaml, read_json, read_yaml
from planner.importers.draft import Draft, Foreign, Given, shown
from planner.importers.slo_dynamo import read_dgdr
from planner.importers.slo_inference_perf import read_inference_perf
from planner.importers.slo_words import Values, chosen, limits

TASK_WORDS: tuple[tuple[str, str], ...] = (
    ("code", "code"),
    ("summar", "summarization"),
    ("rag", "rag"),
    ("research", "long_context"),
    ("reason", "reasoning"),
    ("chat", "chat"),
)
"""Word in the name of a use case -> task; the first that is found counts."""
_TARGET = re.compile(r"(ttft|tpot|itl|e2e)_p(50|90|95|99)_ms")


def read_slo_file(path: Path, entry: str = "") -> Draft:
    """Read another tool's SLO file.

    Args:
        path: The file, JSON or YAML.
        entry: Which use case or service class, where it holds several.

    Raises:
        InputError: The file cannot be read, is of no known kind, or holds several entries of
            which none was named.
    """
    document = read_json(path) if path.suffix.casefold() == ".json" else read_yaml(path)
    data = document.data if isinstance(document.data, Mapping) else {}
    for kind in KINDS:
        if kind.is_one(data):
            return kind.read(document, entry)
    if {"model", "traffic"} <= set(data):
        raise InputError(str(path), ["is an slo.yaml already; plan with it: plan --slo FILE"])
    known = "; ".join(kind.name for kind in KINDS)
    raise InputError(str(path), [f"is no SLO file that is known; known are: {known}"])


def _read_template(document: Document, entry: str) -> Draft:
    """Read ``slo_templates.json`` of llm-d-planner, or one use case of it."""
    cases = Foreign(document).block("use_cases")
    places = {name: ("use_cases", name) for name in cases}
    root = chosen(document.source, "use case", places, entry) if cases else ()
    foreign = Foreign(document, root)
    name = root[-1] if root else foreign.text("use_case")
    for key in ("use_case", "description", "rationale"):
        foreign.skip(key)
    values: Values = {}
    task = next((task for word, task in TASK_WORDS if word in name.casefold()), None)
    if task is not None:
        values["task"] = Given(task, f"from the name, {shown(name)}")
    for key in ("prompt_tokens", "output_tokens"):
        length = foreign.positive("traffic_profile", key)
        if length is not None:
            values[f"traffic.{key}"] = Given(length, "the file gives one length: constant")
    for key in filter(_TARGET.fullmatch, foreign.block("slo_targets")):
        found = foreign.positive("slo_targets", key)
        if found is not None:
            values[f"slo.{key}"] = Given(found, key)
    return Draft("llm-d-planner template", values, foreign.left_out())


def _read_service_classes(document: Document, entry: str) -> Draft:
    """Read service classes of the workload variant autoscaler: a ConfigMap, or one file of it."""
    entries: dict[str, tuple[Document, int]] = {}
    for part in _class_files(document):
        foreign = Foreign(part)
        name = foreign.text("name") or "class"
        for number in range(foreign.items("data")):
            entries[f"{name}/{foreign.text('data', number, 'model')}"] = (part, number)
    part, number = chosen(document.source, "service class", entries, _full_name(entries, entry))
    foreign = Foreign(part, ("data", number))
    values: Values = {}
    if model := foreign.text("model"):
        values["model"] = Given(model)
    values |= limits(foreign, {"slo-ttft": "ttft", "slo-tpot": "tpot"})
    left = foreign.left_out()
    priority = Foreign(part).get("priority")
    if priority is not None:
        left = (*left, f"priority: {shown(priority)}")
    return Draft("service class of the workload variant autoscaler", values, left)


def _full_name(entries: Mapping[str, object], entry: str) -> str:
    """Return the class and model that a class or a model alone stands for."""
    word = entry.casefold()
    meant = [name for name in entries if word in name.casefold().split("/", 1)]
    return meant[0] if len(meant) == 1 else entry


def _class_files(document: Document) -> tuple[Document, ...]:
    foreign = Foreign(document)
    if foreign.text("kind") != "ConfigMap":
        return (document,)
    return tuple(
        parse_yaml(text, f"{document.source}, data.{name}")
        for name, text in foreign.block("data").items()
        if isinstance(text, str) and text.strip()
    )


def _read_aisimulate(document: Document, entry: str) -> Draft:
    """Read limits and hardware of an AISimulate experiment."""
    del entry
    foreign = Foreign(document)
    metrics = {"ttft_ms": "ttft", "itl_ms": "itl", "e2e_ms": "e2e"}
    values = limits(foreign, metrics, "evaluation", "sla")
    chips = tuple(foreign.block("optimization", "hardware"))
    if chips:
        foreign.skip("optimization", "hardware")
        values["purchase.accelerators"] = Given(chips, "optimization.hardware")
    most = foreign.positive("optimization", "constraints", "max_candidate_gpus")
    if most is not None:
        values["purchase.max_gpus"] = Given(most, "max_candidate_gpus")
    return Draft("AISimulate experiment", values, foreign.left_out())


def _read_goodput(document: Document, entry: str) -> Draft:
    """Read the goodput limits of vLLM's benchmark [ms]."""
    del entry
    foreign = Foreign(document)
    values = limits(foreign, {"ttft": "ttft", "tpot": "tpot", "e2el": "e2e"})
    return Draft("goodput limits of vLLM", values, foreign.left_out())


def _has(data: Mapping[str, object], *path: str) -> bool:
    value: object = data
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value is not None


def _is_service_class(data: Mapping[str, object]) -> bool:
    held = data.get("data")
    if data.get("kind") == "ConfigMap":
        texts = held.values() if isinstance(held, Mapping) else ()
        return any(isinstance(text, str) and "slo-t" in text for text in texts)
    return isinstance(held, tuple) and any(
        isinstance(item, Mapping) and {"slo-ttft", "slo-tpot"} & set(item) for item in held
    )


def _is_inference_perf(data: Mapping[str, object]) -> bool:
    constraints = ("goodput", "constraints")
    if _has(data, *constraints) or _has(data, "report", *constraints):
        return True
    return _has(data, "load", "stages") and _has(data, "server")


@dataclass(frozen=True)
class Kind:
    """A foreign format: its name, how it is told, how it is read."""

    name: str
    is_one: Callable[[Mapping[str, object]], bool]
    read: Callable[[Document, str], Draft]


KINDS: tuple[Kind, ...] = (
    Kind(
        "slo_templates.json of llm-d-planner",
        lambda data: _has(data, "use_cases") or _has(data, "slo_targets"),
        _read_template,
    ),
    Kind(
        "DynamoGraphDeploymentRequest",
        lambda data: data.get("kind") == "DynamoGraphDeploymentRequest",
        read_dgdr,
    ),
    Kind("configuration of inference-perf", _is_inference_perf, read_inference_perf),
    Kind(
        "service classes of the workload variant autoscaler",
        _is_service_class,
        _read_service_classes,
    ),
    Kind("AISimulate experiment", lambda data: _has(data, "evaluation", "sla"), _read_aisimulate),
    Kind(
        "goodput limits of vLLM",
        lambda data: bool(data) and set(data) <= {"ttft", "tpot", "e2el"},
        _read_goodput,
    ),
)
