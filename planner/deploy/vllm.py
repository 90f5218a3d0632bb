"""vLLM: the ``vllm serve`` command, and the same as a file for ``--config``."""

from __future__ import annotations

import json

from planner.deploy.deployment import Deployment
from planner.deploy.node import Node, server_scripts
from planner.deploy.text import Shell, flag_words, header, script
from planner.errors import InputError
from planner.files import dump_yaml


def settings(d: Deployment) -> dict[str, object]:
    """Return flag -> value of one replica on one server; limits are per dp rank."""
    o, flags = d.option, d.flags
    return {
        flags["revision"]: d.revision or None,
        flags["host"]: "0.0.0.0",
        flags["port"]: d.runtime.port,
        flags["tensor_parallel"]: o.tp,
        flags["pipeline_parallel"]: o.pp if o.pp > 1 else None,
        flags["data_parallel"]: o.dp if o.dp > 1 else None,
        flags["expert_parallel"]: o.dp > 1 and d.experts,
        flags["quantization"]: d.quantization or None,
        flags["kv_cache_dtype"]: d.kv,
        flags["max_model_len"]: d.context,
        flags["max_num_seqs"]: o.max_num_seqs,
        flags["token_budget"]: o.token_budget,
        flags["memory_fraction"]: d.memory_fraction,
        flags["speculative"]: json.dumps(d.speculator) if d.speculator else None,
    }


def command(d: Deployment, node: Node | None = None) -> list[str]:
    """Return the command of a replica, or of one of its servers.

    Raises:
        InputError: The replica does not divide over its servers.
    """
    spread = _spread(d, node) if node is not None else {}
    return [*d.runtime.command, d.model, *flag_words(settings(d) | spread)]


def _spread(d: Deployment, node: Node) -> dict[str, object]:
    """Return the flags of a server in a replica over several."""
    o, flags = d.option, d.flags
    if o.dp == 1:
        return {
            flags["nodes"]: d.nodes,
            flags["node_rank"]: node.rank_word,
            flags["leader"]: node.leader_word(),
            flags["headless"]: node.worker,
        }
    if o.dp % d.nodes:
        reason = (
            f"{o.dp} dp ranks do not divide over the {d.nodes} servers of a replica; vLLM cannot "
            "spread one rank of several over servers"
        )
        raise InputError(o.id, [reason])
    local = o.dp // d.nodes
    return {
        flags["data_parallel_local"]: local,
        flags["data_parallel_address"]: node.leader_word(),
        flags["data_parallel_start"]: (
            Shell(f"$(( {node.rank} * {local} ))") if node.worker else None
        ),
        flags["headless"]: node.worker,
    }


def render(d: Deployment) -> dict[str, str]:
    """Return the script that starts a replica, and a config file that says the same."""
    if d.nodes > 1:
        return server_scripts(d, command)
    comment = header(d)
    keys = {flag.removeprefix("--"): value for flag, value in settings(d).items()}
    kept = {key: value for key, value in keys.items() if value is not None and value is not False}
    use = f"{comment}\nUse: vllm serve {d.model} --config {d.name}.yaml"
    return {
        f"{d.name}.sh": script(command(d), comment),
        f"{d.name}.yaml": dump_yaml(kept, comment=use),
    }
