"""Which combinations engines run and the conditions of a space allow, whatever memory holds."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from planner.candidates.efficiency import Stack
from planner.candidates.hardware import HardwareClass
from planner.candidates.support import (
    Layout,
    kv_fault,
    layout_fault,
    speculation_fault,
    together_fault,
    weights_fault,
)
from planner.candidates.weights import is_moe
from planner.search.problem import Problem
from planner.spec.accelerator import Accelerator
from planner.spec.architecture import Architecture
from planner.spec.space import Condition

Mask = NDArray[np.bool_]
SERVER_GPUS = 8
"""GPUs of the usual server."""


def allowed(p: Problem) -> Mask:
    """Return the mask over hardware, stack, weights, KV, layout and draft of what may be run."""
    t, architecture = p.tables, p.tables.architectures[0]
    chips = [h.accelerator for h in t.hardware]
    known = {chip.id: chip for chip in chips}
    row = {key: number for number, key in enumerate(known)}
    of = [row[chip.id] for chip in chips]

    def table(count: int, fault: Callable[..., str]) -> Mask:
        made = [
            [[not fault(s, a, i) for i in range(count)] for s in t.stacks] for a in known.values()
        ]
        return np.array(made, dtype=bool)[of]

    weights = table(len(t.weights), lambda s, a, i: weights_fault(s, a, t.weights[i]))
    kv = table(len(t.kv), lambda s, a, i: kv_fault(s, a, t.kv[i]))
    draft = table(
        len(p.drafts),
        lambda s, a, i: _draft_fault(p, s, a, i),
    )
    quality = np.array([[loss.supported for loss in row] for row in p.losses], dtype=bool)
    layout = _layouts(p, architecture)
    together = np.array(
        [
            [[not together_fault(s, x, t.methods[d.method]) for d in p.drafts] for x in p.layouts]
            for s in t.stacks
        ],
        dtype=bool,
    )
    result: Mask = (
        weights[:, :, :, None, None, None]
        & kv[:, :, None, :, None, None]
        & quality[None, None, :, :, None, None]
        & layout[:, :, None, None, :, None]
        & draft[:, :, None, None, None, :]
        & together[None, :, None, None, :, :]
    )
    return result


def _draft_fault(p: Problem, stack: Stack, chip: Accelerator, index: int) -> str:
    method = p.tables.methods[p.drafts[index].method]
    asked = method is not None and method.id in p.asked
    return speculation_fault(
        stack,
        chip,
        p.tables.architectures[0],
        method,
        asked=asked,
    )


def _layouts(p: Problem, architecture: Architecture) -> Mask:
    """Mask (hardware, stack, layout): what engines run and the space's conditions allow."""
    made: dict[Hashable, bool] = {}

    def runs(stack: int, hardware: HardwareClass, layout: Layout) -> bool:
        key = (stack, layout, hardware.node_gpus, hardware.internode_gb_per_s > 0)
        if key not in made:
            fault = layout_fault(p.tables.stacks[stack], hardware, architecture, layout)
            made[key] = not fault
        return made[key]

    rules = [RULES[name] for name in p.conditions if name in RULES]
    return np.array(
        [
            [
                [
                    all(rule(h, architecture, x) for rule in rules) and runs(s, h, x)
                    for x in p.layouts
                ]
                for s in range(len(p.tables.stacks))
            ]
            for h in p.tables.hardware
        ],
        dtype=bool,
    )


Rule = Callable[[HardwareClass, Architecture, Layout], bool]


def is_latent(architecture: Architecture) -> bool:
    """Whether any layer has latent attention (MLA)."""
    return any(g.attention is not None and g.attention.kind == "mla" for g in architecture.layers)


def is_whole_server(hardware: HardwareClass) -> bool:
    """Whether an instance is a whole server, or part of a rack that one link joins."""
    whole = hardware.gpus >= min(SERVER_GPUS, hardware.link_domain)
    return whole or hardware.node_gpus > hardware.gpus


def gpus(layout: Layout) -> int:
    """GPUs of a replica."""
    return layout.tp * layout.pp * layout.dp


RULES: dict[Condition, Rule] = {
    "tp_divides_node": lambda h, _, x: h.gpus % x.tp == 0 or x.tp % h.gpus == 0,
    "tp_within_link_domain": lambda h, _, x: x.tp <= max(h.link_domain, 1),
    "dp_only_moe_or_mla": lambda _, a, x: x.dp == 1 or is_moe(a) or is_latent(a),
    "dp_only_mla": lambda _, a, x: x.dp == 1 or is_latent(a),
    "replica_within_node": lambda h, _, x: gpus(x) <= h.gpus,
    "replica_spans_whole_servers": lambda h, _, x: gpus(x) <= h.gpus or is_whole_server(h),
}
"""The conditions that one hardware class and layout decide; docs in ``spec/space.py``."""
