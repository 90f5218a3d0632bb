"""An option with everything that starting it takes, worked out once for all targets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planner.catalog import Catalog, version_numbers
from planner.catalog.models import full_name
from planner.deploy.folders import is_folder, model_folder
from planner.deploy.needs import HEAD, Needs, needs
from planner.errors import Fault, InputError
from planner.importers.hub import PREFIX, name_on_hub, revision_on_hub
from planner.spec.architecture import Architecture, MoeFfn
from planner.spec.engine import Engine
from planner.spec.option import MemoryUse, Option
from planner.spec.record import PlanRecord
from planner.spec.record_file import asked_slo
from planner.spec.runtime import Runtime, Speculator
from planner.spec.slo import Slo

OFF = "off"
MOST_MEMORY = 0.98
"""No engine starts with all of a GPU's memory."""


@dataclass(frozen=True)
class Chosen:
    """What the user adds to an option.

    Attributes:
        checkpoint: Hub name or folder of the weights to serve; empty = worked out.
        head: Hub name or folder of the draft head or model; empty = a placeholder.
    """

    checkpoint: str = ""
    head: str = ""


@dataclass(frozen=True)
class Deployment:
    """An option, ready to be written down for some target.

    Attributes:
        record, option, slo: What the plan says.
        digest: SHA-256 of the stored plan.
        engine: Engine entry; runtime: how its generation is started.
        version: Release to deploy: the pinned one, or a later one that a format needs.
        vendor: Of the accelerator.
        image: Container image; empty = none is known for this accelerator.
        model: What the engine loads.
        revision: Its revision on the hub, where the plan recorded one; empty = the newest.
        quantization: Value of the quantization flag; empty = as the checkpoint is.
        speculator: Settings of the speculation method by key; empty = off.
        nodes: Servers that one replica spans.
        gpus_per_node: GPUs of a replica on each of them.
        experts: Whether the model routes to experts.
        context: Longest prompt + output [tokens]; None = the model's own.
        memory_fraction: As this engine counts it.
        notes: What a person should know before starting it.
    """

    record: PlanRecord
    option: Option
    slo: Slo
    digest: str
    engine: Engine
    runtime: Runtime
    version: str
    vendor: str
    image: str
    model: str
    revision: str
    quantization: str
    speculator: Mapping[str, str | int | float | bool]
    nodes: int
    gpus_per_node: int
    experts: bool
    context: int | None
    memory_fraction: float
    notes: tuple[str, ...]

    @property
    def flags(self) -> Mapping[str, str]:
        """Names of the flags of this release."""
        return self.runtime.flag_names(version_numbers(self.version))

    @property
    def kv(self) -> str:
        """Value of the cache format's flag."""
        return self.runtime.kv[self.option.kv].value

    @property
    def replicas(self) -> int:
        """Replicas to start, spares included."""
        return self.option.replicas + self.option.spare_replicas

    @property
    def name(self) -> str:
        """A name by the rules of DNS-1035: letters, digits and hyphens, at most 50."""
        stem = self.slo.model.rstrip("/").removesuffix("/config.json").rsplit("/", 1)[-1]
        clean = re.sub(r"[^a-z0-9]+", "-", stem.casefold()).strip("-") or "model"
        if not clean[0].isalpha():
            clean = f"m-{clean}"
        return f"{clean[:39].strip('-')}-{self.option.id}"


def deployment(
    record: PlanRecord,
    option: Option,
    catalog: Catalog,
    architecture: Architecture | None,
    digest: str,
    chosen: Chosen,
) -> Deployment:
    """Work out how an option is started.

    Args:
        record: The plan.
        option: One of its options.
        catalog: Engines and accelerators.
        architecture: The model; None = unknown, then ``chosen`` must name a checkpoint.
        digest: SHA-256 of the stored plan.
        chosen: What the user adds.

    Raises:
        InputError: With every reason why the engine cannot run the option.
    """
    engine = catalog.engine(option.engine)
    generation = next((g for g in engine.generations if g.id == option.generation), None)
    runtime = generation.runtime if generation is not None else None
    if runtime is None:
        raise InputError(
            option.id, [f"{option.engine} {option.generation} is scored only, never deployed"]
        )
    nodes = _nodes(record, option)
    found = needs(runtime, option, architecture.native_format if architecture else "")
    faults = [Fault("", "", reason) for reason in _reasons(runtime, option, nodes, found.version)]
    if architecture is None and not chosen.checkpoint:
        faults.append(Fault("", "model", "the plan's model is not known here; name a checkpoint"))
    if faults:
        raise InputError(option.id, faults)
    slo = asked_slo(record)
    vendor = catalog.accelerator(option.accelerator).vendor
    image = runtime.images.get(option.accelerator) or runtime.images.get(vendor) or ""
    model = chosen.checkpoint or _model(option, slo.model, architecture, found)
    revision = revision_on_hub(slo.model) if model == name_on_hub(slo.model) else ""
    return Deployment(
        record=record,
        option=option,
        slo=slo,
        digest=digest,
        engine=engine,
        runtime=runtime,
        version=found.version,
        vendor=vendor,
        image=image.format(version=found.version),
        model=model,
        revision=revision,
        quantization="" if chosen.checkpoint else found.quantization,
        speculator=_settings(runtime.speculation.get(option.speculation), option, chosen),
        nodes=nodes,
        gpus_per_node=option.gpus_per_replica // nodes,
        experts=_has_experts(architecture, option),
        context=_context(slo, architecture),
        memory_fraction=_memory_fraction(runtime, option.memory),
        notes=(
            *_notes(runtime, option, found, model, chosen),
            *_newest(model, revision, chosen),
        ),
    )


def _nodes(record: PlanRecord, option: Option) -> int:
    hardware = next(
        entry.hardware for entry in record.archive if entry.hardware.id == option.hardware
    )
    return math.ceil(option.gpus_per_replica / hardware.gpus_per_instance)


def _reasons(runtime: Runtime, option: Option, nodes: int, version: str) -> Iterator[str]:
    """Yield why the engine cannot run an option."""
    features = {
        "tensor": option.tp > 1,
        "pipeline": option.pp > 1,
        "data": option.dp > 1,
        "speculation": option.speculation != OFF,
        option.speculation: True,
    }
    has = frozenset(name for name, present in features.items() if present)
    if excluded := runtime.exclusion(has, version_numbers(version)):
        yield excluded
    if option.kv not in runtime.kv:
        yield f"{option.generation} has no spelling for a {option.kv} KV cache"
    if option.speculation != OFF and option.speculation not in runtime.speculation:
        yield f"{option.generation} has no settings for {option.speculation} speculation"
    if nodes > 1 and runtime.one_server:
        yield f"a replica spans {nodes} servers: {runtime.one_server}"
    if option.gpus_per_replica % nodes:
        yield f"{option.gpus_per_replica} GPUs a replica do not divide over {nodes} servers"


def _model(option: Option, model: str, architecture: Architecture | None, found: Needs) -> str:
    """Return what the engine loads where nobody names a checkpoint."""
    source = model if architecture is None else _source(model, architecture)
    if found.checkpoint:
        return f"CHECKPOINT-{option.weights}-OF-{source.rsplit('/', 1)[-1]}"
    return source


def _source(model: str, architecture: Architecture) -> str:
    """Return the released weights: their name on the hub as far as it is known, or a folder."""
    if model.startswith(PREFIX):
        return name_on_hub(model)
    return model_folder(model) or full_name(model, architecture) or model


def _settings(
    speculator: Speculator | None, option: Option, chosen: Chosen
) -> dict[str, str | int | float | bool]:
    if speculator is None:
        return {}
    values: dict[str, str | int] = {
        "$drafts": option.draft_tokens,
        "$drafts_and_bonus": option.draft_tokens + 1,
        HEAD: chosen.head or f"HEAD-{option.speculation}",
    }
    return {
        key: values.get(value, value) if isinstance(value, str) else value
        for key, value in speculator.settings.items()
    }


def _has_experts(architecture: Architecture | None, option: Option) -> bool:
    """Return whether the model has experts; an unknown one does if its attention is split."""
    if architecture is None:
        return option.dp > 1
    return any(isinstance(group.ffn, MoeFfn) for group in architecture.layers)


def _context(slo: Slo, architecture: Architecture | None) -> int | None:
    """Return the longest prompt + output to accept.

    As asked; else the p99 of the prompt and that of the output, of the longest class.
    """
    traffic = slo.traffic
    if traffic.max_context_tokens is not None:
        return traffic.max_context_tokens
    pairs = [(kind.prompt_tokens, kind.output_tokens) for kind in traffic.classes or ()]
    if traffic.prompt_tokens is not None and traffic.output_tokens is not None:
        pairs.append((traffic.prompt_tokens, traffic.output_tokens))
    if not pairs:
        return None
    longest = math.ceil(
        max(prompt.quantile(0.99) + output.quantile(0.99) for prompt, output in pairs)
    )
    return longest if architecture is None else min(longest, architecture.max_context_tokens)


def _memory_fraction(runtime: Runtime, memory: MemoryUse) -> float:
    parts = {
        "weights": memory.weights_gib,
        "kv_pool": memory.kv_pool_gib,
        "reserve": memory.reserve_gib,
        "unused": max(memory.unused_gib, 0.0),
    }
    share = runtime.memory_share
    ratio = sum(parts[part] for part in share.covers) / sum(parts[part] for part in share.of)
    return min(math.floor(ratio * 1000) / 1000, MOST_MEMORY)


def _notes(
    runtime: Runtime, option: Option, found: Needs, model: str, chosen: Chosen
) -> Iterator[str]:
    if found.newer:
        yield (
            f"Release {found.version}: the option needs it; predictions rest on {runtime.version}"
            " and earlier, so check this option before relying on it."
        )
    if found.checkpoint and not chosen.checkpoint:
        yield (
            f"Replace {model} by a checkpoint with {option.weights} weights (or export again with "
            "its name)."
        )
    if found.head and not chosen.head:
        yield f"Replace HEAD-{option.speculation} by the draft head or model (or export again)."
    if option.evidence != "validated":
        yield f"Predictions for this engine on this accelerator are {option.evidence}."


def _newest(model: str, revision: str, chosen: Chosen) -> Iterator[str]:
    """Yield that nothing pins the weights, where a hub is asked for them."""
    if revision or model.startswith("CHECKPOINT-") or is_folder(model):
        return
    if "/" not in model:
        yield (
            f"No organisation of {model} is known: name it in full (or export again with"
            " --checkpoint org/name, or the path of its folder)."
        )
    pin = "" if chosen.checkpoint else f"; to pin one, plan with `model: hub:{model}@COMMIT`"
    yield f"No revision of {model} is recorded, so the newest is loaded{pin}."
