"""A DynamoGraphDeploymentRequest -> the part of an slo.yaml that it gives.

Source:
    ai-dynamo/dynamo, deploy/operator/api/v1beta1/dynamographdeploymentrequest_types.go: keys and
    defaults. ITL there is AIPerf's, (request latency - TTFT) / (output tokens - 1) of a request,
    which is our TPOT (ai-dynamo/aiperf, docs). Retrieved 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.files import Document
from planner.importers.draft import Draft, Foreign, Given
from planner.importers.slo_words import Values, engine, limit, rounded

DEFAULTS: Mapping[str, int] = {"isl": 4000, "osl": 1000, "ttft": 2000, "itl": 30}
"""What Dynamo takes where a request does not say."""

Place = tuple[str, ...]
WORKLOAD: Place = ("spec", "workload")
SLA: Place = ("spec", "sla")
OLD: Place = ("spec", "profilingConfig", "config", "sla")
"""Where v1alpha1 has both."""


def read_dgdr(document: Document, entry: str) -> Draft:
    """Read a request, v1beta1 or v1alpha1.

    Raises:
        InputError: A value is no number above 0.
    """
    del entry
    foreign = Foreign(document)
    for key in ("apiVersion", "kind", "metadata", "status"):
        foreign.skip(key)
    workload, sla = (OLD, OLD) if foreign.block(*OLD) else (WORKLOAD, SLA)
    values: Values = {}
    if model := foreign.text("spec", "model"):
        values["model"] = Given(model)
    values |= engine(foreign, "spec", "backend")
    values["traffic.prompt_tokens"] = Given(*_or_default(foreign, workload, "isl"))
    values["traffic.output_tokens"] = Given(*_or_default(foreign, workload, "osl"))
    values |= _targets(foreign, sla)
    values |= _rate(foreign, workload, values)
    if sku := foreign.text("spec", "hardware", "gpuSku"):
        values["purchase.accelerators"] = Given((sku,), "gpuSku")
    most = foreign.positive("spec", "hardware", "totalGpus")
    if most is not None:
        values["purchase.max_gpus"] = Given(most, "totalGpus")
    return Draft("Dynamo DGDR", values, foreign.left_out())


def _or_default(foreign: Foreign, place: Place, key: str) -> tuple[float, str]:
    value = foreign.positive(*place, key)
    if value is None:
        return DEFAULTS[key], f"{key} is not given: Dynamo's default"
    return value, key


def _targets(foreign: Foreign, place: Place) -> Values:
    """A target on the whole replaces the two others."""
    whole = foreign.positive(*place, "e2eLatency")
    if whole is not None:
        return limit("e2e", whole, "e2eLatency")
    first, each = _or_default(foreign, place, "ttft"), _or_default(foreign, place, "itl")
    return limit("ttft", *first) | limit("tpot", each[0], f"{each[1]}, a mean per request there")


def _rate(foreign: Foreign, place: Place, values: Values) -> Values:
    """Little's law turns a concurrency into a rate: in flight = rate x time in the system."""
    rate = foreign.positive(*place, "requestRate")
    in_flight = foreign.positive(*place, "concurrency")
    if rate is not None:
        return {"traffic.rate_per_s": Given(rate, "requestRate")}
    if in_flight is None:
        return {}
    given = {key: value.value for key, value in values.items()}
    time = given.get("slo.e2e_p95_ms")
    if not isinstance(time, int | float):
        first, each, tokens = (
            float(str(given[key]))
            for key in ("slo.ttft_p95_ms", "slo.tpot_p95_ms", "traffic.output_tokens")
        )
        time = first + (tokens - 1) * each
    comment = f"concurrency {in_flight:g} / {time / 1000:g} s, the time that the targets allow"
    return {"traffic.rate_per_s": Given(rounded(in_flight / (time / 1000)), comment)}
