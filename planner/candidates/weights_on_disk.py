"""The weights that a model folder holds, against what its architecture says."""

from __future__ import annotations

from dataclasses import replace

from planner.candidates.figures import ParameterCounts, parameter_counts
from planner.candidates.models import Model
from planner.candidates.weights import BASE_BYTES, checkpoint
from planner.importers.safetensors import WeightFiles
from planner.spec.architecture import Architecture
from planner.spec.precision import Precisions, WeightFormat
from planner.units import GIB

CLOSE = 0.01
"""Sizes that differ by less than this share agree."""
SCALES = 0.10
"""A quantized format whose bytes per parameter differ by up to this share stores other scales."""
WIDE = "F32"
"""Number format of checkpoints that engines load at half the size."""


def with_weights_on_disk(model: Model, precisions: Precisions) -> Model:
    """Return the model with a note on the size of its weight files, if it has any.

    Where the release is quantized and its files differ a little, their bytes per parameter are
    taken over: block scales differ between releases. Engines do not load MTP layers unless they
    draft, so those of a model that has some may be the difference, and nothing is taken over.
    """
    files, architecture = model.weights, model.architecture
    native = architecture.native_format.casefold()
    fmt = next((f for f in precisions.weights if native in (f.id, *f.aliases)), None)
    if files is None or fmt is None:
        return model
    expected = expected_bytes(architecture, fmt)
    found = _stored_bytes(files)
    off = found / expected - 1.0
    said = f"Weights on disk {found / GIB:.2f} GiB ({files.origin})"
    if abs(off) <= CLOSE:
        return _noted(model, f"{said}, as the architecture says.")
    said += f"; the architecture says {expected / GIB:.2f} GiB ({off:+.1%})"
    scaled = _with_own_scales(architecture, fmt, found)
    if scaled is not None:
        noted = _noted(model, f"{said}: memory uses the size on disk.")
        return replace(noted, architecture=scaled)
    reason = "MTP layers are stored too" if architecture.mtp_layers and off > 0 else ""
    return _noted(model, f"{said}: {reason or 'check that config and weights belong together'}.")


def expected_bytes(architecture: Architecture, fmt: WeightFormat) -> float:
    """Return the size of a checkpoint in a format [B], by the architecture."""
    counts = parameter_counts(architecture)
    quantized = _quantized(architecture, fmt, counts)
    own = checkpoint(architecture, fmt).bytes_per_parameter or fmt.bytes_per_parameter
    return quantized * own + (_stored(architecture, counts) - quantized) * BASE_BYTES


def _with_own_scales(
    architecture: Architecture, fmt: WeightFormat, found: float
) -> Architecture | None:
    """Return the architecture with the bytes per parameter of the files; None if that is no fit."""
    counts = parameter_counts(architecture)
    quantized = _quantized(architecture, fmt, counts)
    if not quantized or architecture.mtp_layers or fmt.bytes_per_parameter >= BASE_BYTES:
        return None
    own = (found - (_stored(architecture, counts) - quantized) * BASE_BYTES) / quantized
    if abs(own / fmt.bytes_per_parameter - 1.0) > SCALES:
        return None
    changed = checkpoint(architecture, fmt).model_copy(update={"bytes_per_parameter": own})
    checkpoints = {**architecture.checkpoints, fmt.id: changed}
    return architecture.model_copy(update={"checkpoints": checkpoints})


def _quantized(architecture: Architecture, fmt: WeightFormat, counts: ParameterCounts) -> float:
    groups = {"attention": counts.attention, "dense": counts.dense, "experts": counts.routed}
    return sum(groups[name] for name in checkpoint(architecture, fmt).groups)


def _stored(architecture: Architecture, counts: ParameterCounts) -> float:
    return counts.total + architecture.uncounted_parameters


def _stored_bytes(files: WeightFiles) -> float:
    """Size of the tensors as engines hold them: 32-bit numbers become 16-bit ones."""
    wide = files.by_format.get(WIDE, 0.0)
    return files.size - wide / 2 if wide > files.size / 2 else files.size


def _noted(model: Model, note: str) -> Model:
    return replace(model, notes=(*model.notes, note))
