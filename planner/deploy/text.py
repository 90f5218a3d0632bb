"""Pieces that files of several targets share: shell words, headers, labels."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from planner.counting import counted, request_rate
from planner.deploy.deployment import Deployment

ANNOTATION = "slo-planner/"
"""Prefix of our annotation keys."""


class Shell(str):
    """A shell expression (``$RANK``): not to be quoted."""

    __slots__ = ()


def shell_join(words: Iterable[str]) -> str:
    """Return words as a shell command; only :class:`Shell` words are expanded."""
    return " ".join(word if isinstance(word, Shell) else shlex.quote(word) for word in words)


def script(words: Sequence[str], comment: str, setup: Sequence[str] = ()) -> str:
    """Return a shell script that becomes the command, one flag a line.

    Args:
        words: The command.
        comment: Lines for the top.
        setup: Lines before the command.
    """
    lines: list[str] = []
    for word in words:
        text = shell_join([word])
        if not lines or (word.startswith("-") and not _number(word)):
            lines.append(text)
        else:
            lines[-1] += f" {text}"
    head = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    first = "\n".join([*setup, ""]) if setup else ""
    return f"#!/bin/sh\n{head}set -eu\n{first}exec " + " \\\n  ".join(lines) + "\n"


def _number(word: str) -> bool:
    return re.fullmatch(r"-\d+(\.\d+)?", word) is not None


def header(d: Deployment) -> str:
    """Return what a reader of an exported file should know, as lines."""
    o = d.option
    price = o.money.price
    spare = f" and {o.spare_replicas} spare" if o.spare_replicas else ""
    lines = [
        f"{d.slo.model}: {counted(o.replicas, 'replica')}{spare} of {o.gpus_per_replica} x "
        f"{o.accelerator_name} (tp {o.tp}, pp {o.pp}, dp {o.dp}), {o.weights} weights, "
        f"{o.kv} KV cache.",
        f"{d.engine.name} {d.version}, evidence: {o.evidence}. On {o.instances} x "
        f"{price.provider} {price.instance_type} in {price.region}.",
        f"{_load(d)}: {_predicted(d)}.",
        f"Option {o.id} of plan sha256:{d.digest}, slo-planner {d.record.planner_version}.",
    ]
    return "\n".join([*lines, *(f"NOTE: {note}" for note in d.notes)])


def _load(d: Deployment) -> str:
    offline = d.slo.traffic.offline
    if offline is None:
        return f"At {request_rate(f'{d.option.rate_per_s:g}')}"
    return (
        f"As a batch job of {counted(offline.requests, 'request', shown=f'{offline.requests:,}')}"
    )


def _predicted(d: Deployment) -> str:
    by, margin = "predicted", "with margin"
    if d.record.simulated(d.option):
        by, margin = "predicted by formula", "simulated with margin"
    targets = [
        f"{t.key} {t.predicted:g} {by}, {t.upper:g} {margin}, target {t.limit:g}"
        for t in d.option.targets
        if t.predicted is not None and t.upper is not None
    ]
    return "; ".join(targets) or "no prediction"


def labels(d: Deployment) -> dict[str, str]:
    """Return the labels of Kubernetes objects."""
    return {
        "app.kubernetes.io/name": d.name,
        "app.kubernetes.io/component": "llm-inference",
        "app.kubernetes.io/managed-by": "slo-planner",
    }


def plan_annotations(d: Deployment) -> dict[str, str]:
    """Return the annotations that lead from a running object back to its plan."""
    return {
        f"{ANNOTATION}plan-digest": f"sha256:{d.digest}",
        f"{ANNOTATION}option": d.option.id,
        f"{ANNOTATION}engine": f"{d.engine.id} {d.version}",
        f"{ANNOTATION}catalog-digest": f"sha256:{d.record.inputs.catalog_digest}",
    }


def label_value(text: str) -> str | None:
    """Return a text if Kubernetes takes it as the value of a label, else None."""
    fits = re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", text)
    return text if fits else None


def flag_words(settings: Mapping[str, object]) -> list[str]:
    """Return flags and values as words; True is a bare flag, False and None are left out."""
    words: list[str] = []
    for flag, value in settings.items():
        if value is None or value is False:
            continue
        words.append(flag)
        if value is not True:
            words.append(
                value
                if isinstance(value, str)
                else f"{value:g}"
                if isinstance(value, float)
                else str(value)
            )
    return words
