"""A configuration of inference-perf -> the part of an slo.yaml that it gives.

Source:
    kubernetes-sigs/inference-perf, docs/goodput.md (constraints, in seconds) and docs/config.md.
    Retrieved 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.files import Document
from planner.importers.draft import Draft, Foreign, Given, shown
from planner.importers.slo_words import Values, engine, limit, rounded
from planner.units import MILLI

CONSTRAINTS: Mapping[str, str] = {
    "ttft": "ttft",
    "tpot": "tpot",
    "itl": "itl",
    "request_latency": "e2e",
}
"""Constraint -> our metric; ``ntpot`` has no counterpart."""
BLOCKS = (("report", "goodput", "constraints"), ("goodput", "constraints"))

Length = tuple[float, float]
"""Mean and standard deviation [tokens]."""


def read_inference_perf(document: Document, entry: str) -> Draft:
    """Read constraints, SLO headers, lengths, stages and server.

    Raises:
        InputError: A value is no number above 0.
    """
    del entry
    foreign = Foreign(document)
    values: Values = {}
    if model := foreign.text("server", "model_name"):
        values["model"] = Given(model)
    values |= engine(foreign, "server", "type")
    values |= _stages(foreign) | _lengths(foreign) | _headers(foreign)
    for block in BLOCKS:
        for name, metric in CONSTRAINTS.items():
            found = foreign.positive(*block, name)
            if found is not None:
                values |= limit(metric, found / MILLI, f"{name}: {found:g} s")
    return Draft("inference-perf configuration", values, foreign.left_out())


def _headers(foreign: Foreign) -> Values:
    factor = 1000 if foreign.text("api", "slo_unit") == "s" else 1
    values: Values = {}
    for metric in ("ttft", "tpot"):
        header = foreign.text("api", f"slo_{metric}_header") or f"x-slo-{metric}-ms"
        found = foreign.positive("api", "headers", header)
        if found is not None:
            values |= limit(metric, found * factor, f"header {shown(header)}")
    return values


def _stages(foreign: Foreign) -> Values:
    count = foreign.items("load", "stages")
    found = [foreign.positive("load", "stages", number, "rate") for number in range(count)]
    rates = [rate for rate in found if rate is not None]
    if not rates:
        return {}
    comment = f"the highest of {len(rates)} stages" if len(rates) > 1 else "of the only stage"
    return {"traffic.rate_per_s": Given(max(rates), comment)}


def _lengths(foreign: Foreign) -> Values:
    prompt = _spread(foreign, "data", "input_distribution")
    output = _spread(foreign, "data", "output_distribution")
    values: Values = {}
    group = ("data", "shared_prefix")
    if foreign.block(*group):
        shared = foreign.positive(*group, "system_prompt_len") or 0.0
        own = _spread(foreign, *group, "question_distribution") or _fixed(
            foreign, *group, "question_len"
        )
        output = _spread(foreign, *group, "output_distribution") or _fixed(
            foreign, *group, "output_len"
        )
        prompt = own and (own[0] + shared, own[1])
        if prompt and shared:
            comment = f"the shared {shared:g} tokens of a mean prompt of {prompt[0]:g}"
            values["traffic.prefix_hit_rate"] = Given(rounded(shared / prompt[0]), comment)
    for key, length in (("prompt_tokens", prompt), ("output_tokens", output)):
        if length is not None:
            values[f"traffic.{key}"] = Given(_distribution(*length), "mean and spread of the data")
    return values


def _spread(foreign: Foreign, *path: str) -> Length | None:
    mean = foreign.positive(*path, "mean")
    if mean is None:
        return None
    deviation = foreign.positive(*path, "std_dev") if foreign.get(*path, "std_dev") else None
    return mean, deviation or 0.0


def _fixed(foreign: Foreign, *path: str) -> Length | None:
    mean = foreign.positive(*path)
    return None if mean is None else (mean, 0.0)


def _distribution(mean: float, deviation: float) -> object:
    return {"mean": mean, "cv": rounded(deviation / mean)} if deviation else mean
