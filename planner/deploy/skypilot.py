"""SkyPilot: a task YAML on the planned provider, instance type and region.

Source: docs.skypilot.co reference/yaml-spec and serving/service-yaml-spec; clouds:
skypilot-org/skypilot sky/clouds and skypilot-catalog v8, retrieved 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.deploy.deployment import Deployment
from planner.deploy.engines import STARTERS
from planner.deploy.node import Node
from planner.deploy.text import header, label_value, shell_join
from planner.errors import InputError
from planner.files import dump_yaml

CLOUDS: Mapping[str, str] = {
    "aws": "aws",
    "azure": "azure",
    "cudo": "cudo",
    "digitalocean": "do",
    "gcp": "gcp",
    "hyperstack": "hyperstack",
    "lambda": "lambda",
    "mithril": "mithril",
    "nebius": "nebius",
    "oci": "oci",
    "paperspace": "paperspace",
    "runpod": "runpod",
    "scaleway": "scaleway",
    "vast": "vast",
    "verda": "verda",
}
"""Provider of ours -> cloud of SkyPilot."""
START_SECONDS = 3600
"""Time that a server may take to load its weights."""
DISK_GB = 64
"""Disk beside the weights: image, caches [GB]."""


def render(d: Deployment) -> dict[str, str]:
    """Return the task YAML; with a service block where a replica has its own servers.

    Raises:
        InputError: SkyPilot has no such cloud, or no image is known for the accelerator.
    """
    price = d.option.money.price
    faults = []
    if price.provider not in CLOUDS:
        faults.append(
            f"SkyPilot has no cloud '{price.provider}'; export to {d.engine.id} or kubernetes"
        )
    if not d.image:
        faults.append(f"no container image of {d.engine.name} is known for {d.option.accelerator}")
    if faults:
        raise InputError(d.option.id, faults)
    shared = _replicas_per_instance(d)
    task: dict[str, Any] = {"name": d.name, "resources": _resources(d, shared)}
    if d.nodes > 1 or shared > 1:
        task["num_nodes"] = d.nodes if shared == 1 else d.option.instances
    if shared == 1:
        task["service"] = {
            "readiness_probe": {
                "path": d.runtime.health,
                "initial_delay_seconds": START_SECONDS,
            },
            "replicas": d.replicas,
        }
    task["secrets"] = {"HF_TOKEN": None}
    setup = _setup(d)
    if setup:
        task["setup"] = setup
    task["run"] = _run(d, shared)
    return {f"{d.name}.yaml": dump_yaml(task, comment=f"{header(d)}\n{_use(d, shared)}")}


def _replicas_per_instance(d: Deployment) -> int:
    return max(d.option.gpus // d.option.instances // d.option.gpus_per_replica, 1)


def _use(d: Deployment, shared: int) -> str:
    if shared == 1:
        return f"Use: sky serve up {d.name}.yaml --secret HF_TOKEN"
    last = d.runtime.port + shared - 1
    return (
        f"Use: sky launch {d.name}.yaml --secret HF_TOKEN; every server answers on ports "
        f"{d.runtime.port} to {last}, one replica each: put a least-loaded balancer in front."
    )


def _resources(d: Deployment, shared: int) -> dict[str, Any]:
    price, memory = d.option.money.price, d.option.memory
    weights = memory.weights_gib * d.option.tp * d.option.pp
    first, last = d.runtime.port, d.runtime.port + shared - 1
    resources: dict[str, Any] = {
        "infra": f"{CLOUDS[price.provider]}/{price.region}",
        "instance_type": price.instance_type,
        "use_spot": price.term == "spot",
        "image_id": f"docker:{d.image}",
        "disk_size": round(weights * 1.1 + DISK_GB),
        "ports": first if shared == 1 else f"{first}-{last}",
    }
    option = label_value(d.option.id)
    return resources | ({"labels": {"slo-planner-option": option}} if option else {})


def _setup(d: Deployment) -> str:
    """Return the commands that write the files which the engine reads."""
    files = STARTERS[d.engine.id].files(d)
    parts = [
        f"mkdir -p {STARTERS[d.engine.id].folder}\n"
        f"cat > {STARTERS[d.engine.id].folder}/{name} <<'EOF'\n{text}EOF\n"
        for name, text in files.items()
    ]
    return "".join(parts)


def _run(d: Deployment, shared: int) -> str:
    starter = STARTERS[d.engine.id]
    if d.nodes > 1:
        leader = shell_join(starter.command(d, Node("SKYPILOT_NODE_RANK", "LEADER", worker=False)))
        others = shell_join(starter.command(d, Node("SKYPILOT_NODE_RANK", "LEADER", worker=True)))
        return (
            'LEADER=$(echo "$SKYPILOT_NODE_IPS" | head -n1)\n'
            'if [ "$SKYPILOT_NODE_RANK" = 0 ]; then\n'
            f"  exec {leader}\nfi\nexec {others}\n"
        )
    words = starter.command(d, None)
    if shared == 1:
        return f"exec {shell_join(words)}\n"
    return _several(d, words, shared)


def _several(d: Deployment, words: list[str], shared: int) -> str:
    """Return the commands of several replicas on one server, each on its own GPUs and port."""
    port = words.index(d.flags["port"]) + 1
    size, lines = d.option.gpus_per_replica, []
    for replica in range(shared):
        own = [*words[:port], str(d.runtime.port + replica), *words[port + 1 :]]
        gpus = ",".join(str(gpu) for gpu in range(replica * size, (replica + 1) * size))
        lines.append(f"CUDA_VISIBLE_DEVICES={gpus} {shell_join(own)} &")
    return "\n".join([*lines, "wait", ""])
