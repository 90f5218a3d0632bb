"""TensorRT-LLM: the ``trtllm-serve`` command and the YAML file that it reads."""

from __future__ import annotations

from planner.deploy.deployment import Deployment
from planner.deploy.node import Node
from planner.deploy.text import flag_words, header, script
from planner.files import dump_yaml

FOLDER = "/config"
"""Where containers find the file."""


def settings(d: Deployment, folder: str) -> dict[str, object]:
    """Return flag -> value of one replica; with attention dp every GPU is a rank."""
    o, flags = d.option, d.flags
    return {
        flags["revision"]: d.revision or None,
        flags["host"]: "0.0.0.0",
        flags["port"]: d.runtime.port,
        flags["tensor_parallel"]: o.tp * o.dp,
        flags["pipeline_parallel"]: o.pp if o.pp > 1 else None,
        flags["expert_parallel"]: o.tp * o.dp if o.dp > 1 and d.experts else None,
        flags["max_num_seqs"]: o.max_num_seqs,
        flags["token_budget"]: o.token_budget,
        flags["max_model_len"]: d.context,
        flags["memory_fraction"]: d.memory_fraction,
        flags["config_file"]: f"{folder}/{file_name(d)}",
    }


def file_name(d: Deployment) -> str:
    """Return the name of the YAML file."""
    return f"{d.name}.yaml"


def config(d: Deployment) -> str:
    """Return the YAML file: what has no flag on the command line."""
    flags = d.flags
    data: dict[str, object] = {flags["chunked_prefill"]: True}
    section, key = flags["kv_cache_dtype"].split(".")
    data[section] = {key: d.kv}
    if d.option.dp > 1:
        data[flags["data_parallel"]] = True
    if d.speculator:
        data[flags["speculative"]] = dict(d.speculator)
    return dump_yaml(data, comment=header(d))


def command(d: Deployment, node: Node | None = None, folder: str = FOLDER) -> list[str]:
    """Return the command of a replica; it never spans servers."""
    del node
    return [*d.runtime.command, d.model, *flag_words(settings(d, folder))]


def render(d: Deployment) -> dict[str, str]:
    """Return the script that starts a replica, and its YAML file."""
    return {
        f"{d.name}.sh": script(command(d, folder="."), header(d)),
        file_name(d): config(d),
    }
