"""Which combinations can run at all, and why the others cannot."""

from __future__ import annotations

from dataclasses import dataclass

from planner.candidates.efficiency import Stack
from planner.candidates.hardware import HardwareClass
from planner.candidates.weights import BASE_FORMAT, runs_natively
from planner.catalog import version_numbers
from planner.spec.accelerator import Accelerator
from planner.spec.architecture import Architecture
from planner.spec.precision import KvFormat, WeightFormat
from planner.spec.speculation import SpeculationMethod


@dataclass(frozen=True)
class Layout:
    """Parallel degrees of a replica; ep = GPUs over which experts spread (1 or tp * dp)."""

    tp: int
    pp: int
    dp: int
    ep: int = 1


def weights_fault(stack: Stack, accelerator: Accelerator, fmt: WeightFormat) -> str:
    """Why the engine cannot serve this weight format there; empty = it can."""
    offered = stack.generation.weights.get(accelerator.vendor)
    if offered is None:
        return f"{stack.generation.id} does not run on {accelerator.vendor} accelerators"
    if fmt.id not in offered:
        return f"{stack.generation.id} has no {fmt.id} weights on {accelerator.vendor}"
    allowed = stack.generation.weight_only_fallback.get(accelerator.vendor, ())
    fallback = fmt.weight_only_fallback and fmt.id in allowed
    if not (
        runs_natively(accelerator, fmt) or fmt.weight_only or fallback or fmt.id == BASE_FORMAT
    ):
        return f"{accelerator.id} has no {fmt.id} matrix instructions, and no weight-only kernel"
    return ""


def kv_fault(stack: Stack, accelerator: Accelerator, kv: KvFormat) -> str:
    """Why the engine cannot hold its KV cache in this format there; empty = it can."""
    if kv.id not in stack.generation.kv.get(accelerator.vendor, ()):
        return f"{stack.generation.id} has no {kv.id} KV cache on {accelerator.vendor}"
    return ""


def speculation_fault(
    stack: Stack,
    accelerator: Accelerator,
    architecture: Architecture,
    method: SpeculationMethod | None,
    *,
    asked: bool = False,
) -> str:
    """Why the method is not available; empty = it is. `asked`: slo.yaml names the method."""
    if method is None:
        return ""
    if method.id not in stack.generation.speculation.get(accelerator.vendor, ()):
        return f"{stack.generation.id} has no {method.id} speculation on {accelerator.vendor}"
    rules = {
        "always": True,
        "mtp-layers": architecture.mtp_layers > 0,
        "public-head": method.id in architecture.heads_public or asked,
        "asked": asked,
    }
    if not rules[method.available]:
        return f"{architecture.name} has no {method.id} head; name the method to offer it"
    return ""


def query_heads(architecture: Architecture) -> int:
    """Smallest number of query heads of any attention layer; 0 = none states heads."""
    heads = [
        group.attention.heads
        for group in architecture.layers
        if group.attention is not None and group.attention.kind in ("full", "mla")
    ]
    return min(heads, default=0)


def layout_fault(
    stack: Stack, hardware: HardwareClass, architecture: Architecture, layout: Layout
) -> str:
    """Why the parallel degrees cannot run; empty = they can."""
    heads = query_heads(architecture)
    layers = sum(group.count for group in architecture.layers)
    generation = stack.generation
    rules = (
        (heads % layout.tp > 0, f"tp {layout.tp} does not divide {heads} attention heads"),
        (layout.pp > layers, f"pp {layout.pp} is more than the {layers} layers"),
        (
            layout.pp > 1 and not generation.pipeline_parallel,
            f"{generation.id} has no pipeline parallelism",
        ),
        (
            layout.dp > 1 and not generation.attention_data_parallel,
            f"{generation.id} has no attention data parallelism",
        ),
        (
            layout.ep not in (1, layout.tp * layout.dp),
            f"ep {layout.ep} must be 1 or tp * dp = {layout.tp * layout.dp}",
        ),
        (
            layout.tp > hardware.node_gpus and hardware.internode_gb_per_s <= 0,
            f"tp {layout.tp} spans servers whose network is not known",
        ),
    )
    return next((reason for broken, reason in rules if broken), "")


def together_fault(stack: Stack, layout: Layout, method: SpeculationMethod | None) -> str:
    """Why the engine cannot run these features together; empty = it can, or does not say."""
    runtime = stack.generation.runtime
    if runtime is None:
        return ""
    features = {
        name
        for name, used in (
            ("tensor", layout.tp > 1), ("pipeline", layout.pp > 1), ("data", layout.dp > 1),
        )
        if used
    }  # fmt: skip
    if method is not None:
        features |= {"speculation", method.id}
    version = stack.version or version_numbers(runtime.version)
    return runtime.exclusion(frozenset(features), version)
