"""Which fitted values are free, and putting others in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.spec.efficiency import Efficiency, Fitted

Place = tuple[str, ...]
"""Where a value stands: table, entry ..., key. Accelerator entries are named by their number."""


@dataclass(frozen=True)
class Free:
    """A value that a fit may move.

    Attributes:
        place: Where it stands in ``efficiency.yaml``.
        low, high: Bounds, in the unit of the key; low above 0.
        neutral: Value where the rows left cannot identify it; None = what holds in general: the
            mean of the current engines, the global value, the NVLink's.
    """

    place: Place
    low: float
    high: float
    neutral: float | None = None


def free(path: str, low: float, high: float, neutral: float | None = None) -> Free:
    """Return a free value by its path with dots, as ``parameters.gemm_efficiency``."""
    return Free(tuple(path.split(".")), low, high, neutral)


GLOBALS = (
    free("parameters.hbm_efficiency", 0.5, 0.92),
    free("parameters.kv_read_efficiency", 0.1, 1.0),
    free("parameters.gemm_efficiency", 0.2, 0.9),
    free("parameters.softmax_slots", 0.1, 10.0),
    free("parameters.block_fp8_promotion", 0.02, 5.0, neutral=5.0),
    free("parameters.weight_only_expert_read", 0.1, 1.0, neutral=1.0),
    free("parameters.special_layer_s", 1e-6, 2e-4, neutral=1e-6),
    free("parameters.block_fp8_layer_s", 1e-6, 2e-4, neutral=1e-6),
    free("parameters.indexer_layer_s", 1e-6, 3e-4, neutral=1e-6),
    free("parameters.expert_activation_passes", 0.1, 20.0),
    free("parameters.expert_popularity", 0.3, 100.0, neutral=100.0),
    free("parameters.sequence_s", 1e-7, 2e-4),
    free("parameters.unshared_prefill", 0.005, 1.2),
    free("parameters.first_token_steps", 0.05, 10.0),
    free("parameters.prefill_layer_s", 1e-6, 2e-3),
    free("parameters.prefill_special_s", 1e-6, 5e-3, neutral=1e-6),
    free("parameters.cohort_prompts", 1.0, 16.0, neutral=2.0),
    free("parameters.frontend_request_s", 1e-5, 0.05),
    free("parameters.frontend_token_s", 1e-8, 5e-5),
)
"""One value for all candidates, fitted on the rows of the core file."""

CURRENT = (
    free("generations.vllm-v1.launch_s", 1e-6, 1e-4),
    free("generations.vllm-v1.sequence_factor", 0.01, 10.0, neutral=1.0),
    free("generations.vllm-v1.special_factor", 0.01, 2.0, neutral=1.0),
    free("generations.vllm-v1.prefill_factor", 0.01, 2.0, neutral=1.0),
    free("generations.sglang.launch_s", 1e-6, 1e-4),
    free("generations.trtllm-1.launch_s", 1e-6, 1e-4),
    free("generations.trtllm-1.sequence_factor", 0.01, 10.0, neutral=1.0),
    free("generations.trtllm-1.cohort_factor", 0.2, 5.0, neutral=1.0),
    free("generations.trtllm-1.weight_only_layer_s", 1e-6, 2e-4, neutral=1e-6),
    free("links.nvlink.share", 0.05, 0.95),
)
"""Current engines and NVLink, fitted on the rows of the core file."""

OTHERS = (
    free("parameters.weight_only_dense_read", 0.3, 1.0, neutral=1.0),
    free("generations.trtllm-cpp.launch_s", 1e-6, 1e-3),
    free("generations.trtllm-cpp.sequence_factor", 0.01, 30.0, neutral=1.0),
    free("generations.vllm-v0.launch_s", 1e-6, 1e-3),
    free("generations.vllm-v0.sequence_factor", 0.01, 30.0, neutral=1.0),
    free("generations.vllm-2023.launch_s", 1e-6, 1e-3),
    free("generations.vllm-2023.sequence_factor", 0.01, 30.0, neutral=1.0),
    free("generations.tgi.launch_s", 1e-6, 1e-3),
    free("generations.deepspeed-mii.launch_s", 1e-6, 1e-3),
    free("accelerators.0.hbm_efficiency", 0.3, 0.95),
    free("accelerators.1.hbm_efficiency", 0.3, 0.95),
    free("accelerators.1.gemm_efficiency", 0.02, 0.9),
    free("accelerators.2.gemm_efficiency", 0.02, 0.9),
    free("accelerators.2.launch_factor", 0.5, 5.0, neutral=1.0),
    free("accelerators.3.hbm_efficiency", 0.3, 0.95),
    free("accelerators.3.gemm_efficiency", 0.02, 0.9),
    free("accelerators.4.gemm_efficiency", 0.02, 0.9),
    free("accelerators.5.hbm_efficiency", 0.3, 0.95),
    free("links.pcie_p2p.share", 0.05, 0.95),
    free("links.pcie_host.share", 0.02, 0.95),
    free("links.pcie_p2p.latency_s", 1e-6, 2e-4),
    free("links.mesh.share", 0.05, 0.95),
)
"""Past engines, other accelerators and links, fitted on the other rows with the rest held."""

TIES: Mapping[Place, tuple[Place, ...]] = {
    ("links", "pcie_p2p", "latency_s"): (("links", "pcie_host", "latency_s"),),
    ("generations", "trtllm-cpp", "launch_s"): (("generations", "turbomind", "launch_s"),),
    ("generations", "trtllm-cpp", "sequence_factor"): (
        ("generations", "turbomind", "sequence_factor"),
    ),
    ("accelerators", "2", "launch_factor"): (("accelerators", "3", "launch_factor"),),
    ("generations", "vllm-v1", "special_factor"): (
        ("generations", "vllm-v0", "special_factor"),
        ("generations", "vllm-2023", "special_factor"),
    ),
    ("generations", "trtllm-1", "cohort_factor"): (
        ("generations", "trtllm-cpp", "cohort_factor"),
        ("generations", "turbomind", "cohort_factor"),
    ),
    ("generations", "trtllm-1", "weight_only_layer_s"): (
        ("generations", "trtllm-cpp", "weight_only_layer_s"),
        ("generations", "turbomind", "weight_only_layer_s"),
    ),
}
"""Values that move with a free one."""


def read(efficiency: Efficiency, place: Place) -> float:
    """Return the value at a place."""
    return _entry(efficiency, place).value


def _entry(efficiency: Efficiency, place: Place) -> Fitted:
    table, *path = place
    if table == "parameters":
        return efficiency.parameters[path[0]]
    if table == "generations":
        return efficiency.generations[path[0]][path[1]]
    if table == "accelerators":
        return efficiency.accelerators[int(path[0])].parameters[path[1]]
    link = efficiency.links[path[0]]
    return link.share if path[1] == "share" else link.latency_s


def with_values(
    efficiency: Efficiency, places: Sequence[Place], values: Sequence[float]
) -> Efficiency:
    """Return the efficiencies with these values, and those tied to them, replaced."""
    new: dict[Place, float] = {}
    for place, value in zip(places, values, strict=True):
        for tied in (place, *TIES.get(place, ())):
            new[tied] = float(value)
    parameters = dict(efficiency.parameters)
    generations = {name: dict(entries) for name, entries in efficiency.generations.items()}
    accelerators = [dict(entry.parameters) for entry in efficiency.accelerators]
    links = dict(efficiency.links)
    for place, value in new.items():
        table, *path = place
        moved = _entry(efficiency, place).model_copy(update={"value": value})
        if table == "parameters":
            parameters[path[0]] = moved
        elif table == "generations":
            generations[path[0]][path[1]] = moved
        elif table == "accelerators":
            accelerators[int(path[0])][path[1]] = moved
        else:
            links[path[0]] = links[path[0]].model_copy(update={path[1]: moved})
    return efficiency.model_copy(
        update={
            "parameters": parameters,
            "generations": generations,
            "accelerators": tuple(
                entry.model_copy(update={"parameters": own})
                for entry, own in zip(efficiency.accelerators, accelerators, strict=True)
            ),
            "links": links,
        }
    )


def neutral(efficiency: Efficiency, free: Free) -> float:
    """Return the value of a place that the rows left cannot identify."""
    if free.neutral is not None:
        return free.neutral
    table, *path = free.place
    if table == "generations":
        found = [
            read(efficiency, other.place)
            for other in CURRENT
            if other.place[-1] == path[-1] and other.place[1] != path[0]
        ]
        return sum(found) / len(found)
    if table == "accelerators":
        return efficiency.parameters[path[-1]].value
    if table == "links":
        return read(efficiency, ("links", "nvlink", path[-1]))
    return read(efficiency, free.place)
