"""SGLang: the ``sglang.launch_server`` command."""

from __future__ import annotations

from planner.deploy.deployment import Deployment
from planner.deploy.node import Node, server_scripts
from planner.deploy.text import flag_words, header, script

RENDEZVOUS_PORT = 20000


def settings(d: Deployment) -> dict[str, object]:
    """Return flag -> value of one replica.

    Its tensor-parallel size counts the GPUs of all dp ranks, and with attention data parallelism
    its limits are those of all ranks together.
    """
    o, flags = d.option, d.flags
    return {
        flags["model"]: d.model,
        flags["revision"]: d.revision or None,
        flags["host"]: "0.0.0.0",
        flags["port"]: d.runtime.port,
        flags["tensor_parallel"]: o.tp * o.dp,
        flags["pipeline_parallel"]: o.pp if o.pp > 1 else None,
        flags["data_parallel"]: o.dp if o.dp > 1 else None,
        flags["attention_data_parallel"]: o.dp > 1,
        flags["expert_parallel"]: o.tp * o.dp if o.dp > 1 and d.experts else None,
        flags["quantization"]: d.quantization or None,
        flags["kv_cache_dtype"]: d.kv,
        flags["max_model_len"]: d.context,
        flags["max_num_seqs"]: o.max_num_seqs * o.dp,
        flags["token_budget"]: o.token_budget * o.dp,
        flags["memory_fraction"]: d.memory_fraction,
        **d.speculator,
    }


def command(d: Deployment, node: Node | None = None) -> list[str]:
    """Return the command of a replica, or of one of its servers."""
    spread: dict[str, object] = {}
    if node is not None:
        spread = {
            d.flags["nodes"]: d.nodes,
            d.flags["node_rank"]: node.rank_word,
            d.flags["leader"]: node.leader_word(RENDEZVOUS_PORT),
        }
    return [*d.runtime.command, *flag_words(settings(d) | spread)]


def render(d: Deployment) -> dict[str, str]:
    """Return the script that starts a replica."""
    if d.nodes > 1:
        return server_scripts(d, command)
    return {f"{d.name}.sh": script(command(d), header(d))}
