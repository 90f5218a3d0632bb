"""What a checkpoint is on an accelerator: bytes and compute rate of each weight group."""

from __future__ import annotations

from planner.spec.accelerator import Accelerator
from planner.spec.architecture import Architecture, Checkpoint
from planner.spec.precision import WeightFormat
from planner.units import TERA

BASE_FORMAT = "bf16"
BASE_BYTES = 2.0
"""Groups that a checkpoint does not quantize stay BF16."""


def is_moe(architecture: Architecture) -> bool:
    """Whether any layer routes tokens to experts."""
    return any(group.ffn is not None and group.ffn.kind == "moe" for group in architecture.layers)


def checkpoint(architecture: Architecture, fmt: WeightFormat) -> Checkpoint:
    """Return which groups a checkpoint of this format quantizes, and how."""
    known = architecture.checkpoints.get(fmt.id)
    if known is not None:
        return known
    groups = fmt.default_groups_moe if is_moe(architecture) else fmt.default_groups_dense
    return Checkpoint(groups=groups)


def runs_natively(accelerator: Accelerator, fmt: WeightFormat) -> bool:
    """Whether the format has its own matrix instructions on the accelerator."""
    return not fmt.weight_only and fmt.id in accelerator.peak_tflops


def weight_row(
    architecture: Architecture, fmt: WeightFormat, accelerator: Accelerator
) -> dict[str, float]:
    """Return one row of WeightFigures (SI units)."""
    released = checkpoint(architecture, fmt)
    native = runs_natively(accelerator, fmt)
    base_peak = accelerator.peak_tflops[BASE_FORMAT] * TERA
    peak = accelerator.peak_tflops[fmt.id] * TERA if native else base_peak
    row = {"head_bytes": BASE_BYTES}
    for group, field in (("attention", "attention"), ("dense", "dense"), ("experts", "expert")):
        quantized = group in released.groups
        stored = released.bytes_per_parameter or fmt.bytes_per_parameter
        row[f"{field}_bytes"] = stored if quantized else BASE_BYTES
        row[f"{field}_peak"] = peak if quantized else base_peak
    dequantised = fmt.id != BASE_FORMAT and not native
    row["block_scaled"] = float(released.scaling == "block-dynamic")
    row["weight_only_experts"] = float(
        dequantised and "experts" in released.groups and fmt.bytes_per_parameter < 1
    )
    row["weight_only_dense"] = float(dequantised and "dense" in released.groups)
    return row
