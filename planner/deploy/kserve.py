"""KServe: an LLMInferenceService.

Source: kserve/kserve docs/samples/llmisvc and config/llmisvcconfig (templates start vLLM with
``parallelism`` and the words of VLLM_ADDITIONAL_ARGS), API v1alpha2, retrieved 2026-11-29.
"""

from __future__ import annotations

from typing import Any

from planner.deploy.deployment import Deployment
from planner.deploy.kubernetes import GPU_RESOURCES
from planner.deploy.text import flag_words, header, labels, plan_annotations, shell_join
from planner.deploy.vllm import settings
from planner.errors import InputError
from planner.files import dump_yaml

OWN_FLAGS = ("host", "port", "revision", "pipeline_parallel", "data_parallel", "expert_parallel")
"""Set by KServe itself, from ``parallelism`` and the model's address."""


def render(d: Deployment) -> dict[str, str]:
    """Return the LLMInferenceService.

    Raises:
        InputError: No container image is known for the accelerator.
    """
    if not d.image:
        reason = f"no container image of vLLM is known for {d.option.accelerator}"
        raise InputError(d.option.id, [f"{reason}; export to vllm instead"])
    containers = {"containers": [_container(d)]}
    spec: dict[str, Any] = {
        "model": {"uri": _uri(d), "name": d.slo.model},
        "replicas": d.replicas,
        "parallelism": _parallelism(d),
        "router": {"route": {}, "gateway": {}, "scheduler": {}},
        "template": containers,
    }
    if d.nodes > 1:
        spec["worker"] = containers
    service = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": d.name, "labels": labels(d), "annotations": plan_annotations(d)},
        "spec": spec,
    }
    return {f"{d.name}.yaml": dump_yaml(service, comment=header(d))}


def _uri(d: Deployment) -> str:
    """Return where KServe loads a model from: the hub, unless it is a folder."""
    if d.model.startswith("/"):
        return f"file://{d.model}"
    return f"hf://{d.model}" + (f":{d.revision}" if d.revision else "")


def _parallelism(d: Deployment) -> dict[str, Any]:
    o = d.option
    data = {"data": o.dp, "dataLocal": o.dp // d.nodes, "expert": d.experts} if o.dp > 1 else {}
    return {"tensor": o.tp, **({"pipeline": o.pp} if o.pp > 1 else {}), **data}


def _container(d: Deployment) -> dict[str, Any]:
    own = {d.flags[name] for name in OWN_FLAGS}
    words = flag_words({flag: v for flag, v in settings(d).items() if flag not in own})
    gpus = {GPU_RESOURCES[d.vendor]: d.gpus_per_node}
    return {
        "name": "main",
        "image": d.image,
        "env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": shell_join(words)}],
        "resources": {"limits": gpus, "requests": dict(gpus)},
    }
