"""An option -> files that start or check it: one module and one row here for each target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.deploy import benchmarks, kserve, kubernetes, sglang, skypilot, tensorrt_llm, vllm
from planner.deploy.container import in_container
from planner.deploy.deployment import Chosen, Deployment, deployment
from planner.errors import InputError, suggestion

Render = Callable[[Deployment], dict[str, str]]
"""Deployment -> text by file name."""


@dataclass(frozen=True)
class Target:
    """Something to export to.

    Attributes:
        render: Writes the files.
        about: What they are, for help texts.
        engine: Engine that it is for; empty = any.
        container: Whether the engine runs in a stock image.
    """

    render: Render
    about: str
    engine: str = ""
    container: bool = False


TARGETS: Mapping[str, Target] = {
    "vllm": Target(vllm.render, "vllm serve: script and config file", "vllm"),
    "sglang": Target(sglang.render, "sglang.launch_server: script", "sglang"),
    "tensorrt-llm": Target(
        tensorrt_llm.render, "trtllm-serve: script and YAML file", "tensorrt-llm"
    ),
    "kubernetes": Target(
        kubernetes.render, "Deployment or LeaderWorkerSet, and Service", container=True
    ),
    "kserve": Target(kserve.render, "KServe LLMInferenceService", "vllm", container=True),
    "skypilot": Target(skypilot.render, "SkyPilot task on the planned instances", container=True),
    "guidellm": Target(benchmarks.guidellm, "GuideLLM run that checks the option"),
    "vllm-bench": Target(benchmarks.vllm_bench, "vllm bench run that checks the option"),
    "inference-perf": Target(
        benchmarks.inference_perf, "inference-perf configuration that checks the option"
    ),
    "vllm-sweep": Target(benchmarks.vllm_sweep, "vLLM parameter sweep around the option", "vllm"),
}
"""By name on the command line."""


def fitted(deployed: Deployment, target: str) -> Deployment:
    """Return a deployment as the target finds it: folders of weights where containers have them."""
    runs_in_one = target in TARGETS and TARGETS[target].container
    return in_container(deployed) if runs_in_one else deployed


def render(deployed: Deployment, target: str) -> dict[str, str]:
    """Return the files of a target by name.

    Raises:
        InputError: There is no such target, or it cannot express the option.
    """
    if target not in TARGETS:
        hint = suggestion(target, TARGETS) or f"; known are {', '.join(TARGETS)}"
        raise InputError("--to", [f"unknown target '{target}'{hint}"])
    needed = TARGETS[target].engine
    if needed and needed != deployed.engine.id:
        raise InputError(
            deployed.option.id,
            [f"runs on {deployed.engine.name}, not {needed}; export to {deployed.engine.id}"],
        )
    return TARGETS[target].render(deployed)


__all__ = ["TARGETS", "Chosen", "Deployment", "Target", "deployment", "fitted", "render"]
