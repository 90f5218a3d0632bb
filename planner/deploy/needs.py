"""What an option needs that does not come with the engine that predictions rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.catalog import Catalog, version_numbers
from planner.spec.engine import Engine
from planner.spec.option import Option
from planner.spec.runtime import Runtime

BASE_FORMATS = ("bf16", "fp16")
"""Checkpoints that an engine may quantize as it loads them."""
HEAD = "$head"
"""Stands for the draft head or model among the settings of a speculation method."""
TO_DEPLOY = "To deploy "
"""How sentences on the picks begin."""


@dataclass(frozen=True)
class Needs:
    """What an option needs.

    Attributes:
        version: Release to deploy: the pinned one, or a later one that a format or method needs.
        newer: Whether it is later than the pinned one, which predictions rest on.
        checkpoint: Whether somebody must supply weights in the option's format: they are neither
            released so, nor quantized as the engine loads them.
        quantization: Value of the flag that quantizes a wider checkpoint as it is loaded; empty =
            weights stay as they are.
        head: Whether somebody must supply a draft head or model.
    """

    version: str
    newer: bool
    checkpoint: bool
    quantization: str
    head: bool


def needs(runtime: Runtime, option: Option, native: str) -> Needs:
    """Return what an option needs.

    Args:
        runtime: How its engine is started.
        option: The option.
        native: Format of the released checkpoint; empty = unknown.
    """
    speculator = runtime.speculation.get(option.speculation)
    wanted = (runtime.kv.get(option.kv), speculator)
    later = [one.since for one in wanted if one is not None and one.since is not None]
    version = max((runtime.version, *later), key=version_numbers)
    wider = native in BASE_FORMATS and option.weights != native
    quantization = runtime.online_weights.get(option.weights, "") if wider else ""
    return Needs(
        version=version,
        newer=version != runtime.version,
        checkpoint=option.weights != native and not quantization,
        quantization=quantization,
        head=speculator is not None and HEAD in speculator.settings.values(),
    )


def picks_need(
    catalog: Catalog, native: str, options: Sequence[Option], picks: Mapping[str, str]
) -> Iterator[str]:
    """Yield what must be had to deploy the picks of a plan, in sentences; none = nothing.

    Args:
        catalog: Engines.
        native: Format of the released checkpoint.
        options: Options of the plan.
        picks: Pick -> option id.
    """
    by_id = {option.id: option for option in options}
    named: dict[str, list[str]] = {}
    for pick, identity in picks.items():
        text = option_needs(catalog, native, by_id[identity])
        if text:
            named.setdefault(text, []).append(pick)
    for text, names in named.items():
        yield f"{TO_DEPLOY}{', '.join(names)}: {text}."


def option_needs(catalog: Catalog, native: str, option: Option) -> str:
    """Return what must be had to deploy an option, as the rest of a sentence; empty = nothing."""
    return "; ".join(_parts(catalog.engine(option.engine), option, native))


def _parts(engine: Engine, option: Option, native: str) -> Iterator[str]:
    generation = next((g for g in engine.generations if g.id == option.generation), None)
    if generation is None or generation.runtime is None:
        return
    found = needs(generation.runtime, option, native)
    if found.newer:
        pinned = generation.runtime.version
        yield f"needs {engine.name} {found.version}, predictions rest on {pinned} and earlier"
    if found.checkpoint:
        yield f"supply a checkpoint with {option.weights} weights, the release is {native}"
    if found.head:
        yield f"supply the draft head or model of {option.speculation}"
