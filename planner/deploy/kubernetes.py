"""Kubernetes: a Deployment, or a LeaderWorkerSet for replicas over several servers, and a Service.

Sources: Kubernetes API apps/v1 and v1; kubernetes-sigs/lws docs/examples/leaderworkerset/basic,
retrieved 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.deploy.deployment import Deployment
from planner.deploy.engines import STARTERS
from planner.deploy.node import Node
from planner.deploy.text import header, label_value, labels, plan_annotations, shell_join
from planner.errors import InputError
from planner.files import dump_yaml

GPU_RESOURCES: Mapping[str, str] = {
    "nvidia": "nvidia.com/gpu",
    "amd": "amd.com/gpu",
    "intel": "habana.ai/gaudi",
    "google": "google.com/tpu",
    "aws": "aws.amazon.com/neuron",
}
"""Vendor -> extended resource of its device plugin."""
LWS = "leaderworkerset.sigs.k8s.io"
RANK, LEADER = "LWS_WORKER_INDEX", "LWS_LEADER_ADDRESS"
"""Variables that LeaderWorkerSet gives to every pod."""
START_MINUTES = 60
"""Time that a server may take to load its weights."""

Yaml = dict[str, Any]


def render(d: Deployment) -> dict[str, str]:
    """Return one manifest with every object.

    Raises:
        InputError: No container image is known for the accelerator.
    """
    return {f"{d.name}.yaml": _documents([*_config(d), _workload(d), _service(d)], header(d))}


def _documents(objects: Sequence[Yaml], comment: str) -> str:
    first, *rest = objects
    return "---\n".join([dump_yaml(first, comment=comment), *(dump_yaml(one) for one in rest)])


def _metadata(d: Deployment) -> Yaml:
    return {"name": d.name, "labels": labels(d), "annotations": plan_annotations(d)}


def _config(d: Deployment) -> list[Yaml]:
    """Return the ConfigMap of the files that the engine reads, if there are any."""
    files = STARTERS[d.engine.id].files(d)
    if not files:
        return []
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(d), "data": files}]


def _workload(d: Deployment) -> Yaml:
    if d.nodes == 1:
        selector = {"app.kubernetes.io/name": d.name}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": _metadata(d),
            "spec": {
                "replicas": d.replicas,
                # A rolling update would need GPUs beyond those bought.
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": selector},
                "template": pod(d, None),
            },
        }
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": _metadata(d),
        "spec": {
            "replicas": d.replicas,
            "leaderWorkerTemplate": {
                "size": d.nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": pod(d, Node(RANK, LEADER, worker=False)),
                "workerTemplate": pod(d, Node(RANK, LEADER, worker=True)),
            },
        },
    }


def pod(d: Deployment, node: Node | None) -> Yaml:
    """Return the pod template of a replica, or of one of its servers."""
    if not d.image:
        reason = f"no container image of {d.engine.name} is known for {d.option.accelerator}"
        raise InputError(d.option.id, [f"{reason}; export to {d.engine.id} instead"])
    worker = node is not None and node.worker
    role = {"role": "worker" if worker else "leader"} if node is not None else {}
    spec: Yaml = {"containers": [_container(d, node)], "volumes": _volumes(d)}
    instance = label_value(d.option.money.price.instance_type)
    if instance is not None:
        spec = {"nodeSelector": {"node.kubernetes.io/instance-type": instance}, **spec}
    return {
        "metadata": {"labels": labels(d) | role, "annotations": plan_annotations(d)},
        "spec": spec,
    }


def _container(d: Deployment, node: Node | None) -> Yaml:
    words = STARTERS[d.engine.id].command(d, node)
    command = words if node is None else ["/bin/sh", "-c", f"exec {shell_join(words)}"]
    gpus = {GPU_RESOURCES[d.vendor]: d.gpus_per_node}
    container: Yaml = {
        "name": "server",
        "image": d.image,
        "command": command,
        "env": [
            {
                "name": "HF_TOKEN",
                "valueFrom": {
                    "secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}
                },
            }
        ],
        "resources": {"limits": gpus, "requests": dict(gpus)},
        "volumeMounts": _mounts(d),
    }
    if node is None or not node.worker:
        container |= {"ports": [{"name": "http", "containerPort": d.runtime.port}], **_probes(d)}
    return container


def _probes(d: Deployment) -> Yaml:
    asked = {"httpGet": {"path": d.runtime.health, "port": "http"}, "periodSeconds": 10}
    return {
        "startupProbe": asked | {"failureThreshold": START_MINUTES * 6},
        "readinessProbe": asked | {"failureThreshold": 3},
    }


def _mounts(d: Deployment) -> list[Yaml]:
    starter = STARTERS[d.engine.id]
    shared = [{"name": "shm", "mountPath": "/dev/shm"}]
    return [*shared, *({"name": "config", "mountPath": starter.folder} for _ in starter.files(d))]


def _volumes(d: Deployment) -> list[Yaml]:
    shared: list[Yaml] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    files = STARTERS[d.engine.id].files(d)
    return [*shared, *({"name": "config", "configMap": {"name": d.name}} for _ in files)]


def _service(d: Deployment) -> Yaml:
    selector = {"app.kubernetes.io/name": d.name}
    if d.nodes > 1:
        selector = {f"{LWS}/name": d.name, "role": "leader"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(d),
        "spec": {
            "selector": selector,
            "ports": [{"name": "http", "port": d.runtime.port, "targetPort": "http"}],
        },
    }
