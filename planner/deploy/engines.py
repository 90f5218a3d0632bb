"""How each engine's command is made, for the targets that start any engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from planner.deploy import sglang, tensorrt_llm, vllm
from planner.deploy.deployment import Deployment
from planner.deploy.node import Command


def _no_files(d: Deployment) -> dict[str, str]:
    del d
    return {}


def _trtllm_files(d: Deployment) -> dict[str, str]:
    return {tensorrt_llm.file_name(d): tensorrt_llm.config(d)}


@dataclass(frozen=True)
class Starter:
    """An engine.

    Attributes:
        command: Its command.
        files: Files that the command reads, by name; they lie in ``folder``.
        folder: Where the command looks for them.
    """

    command: Command
    files: Callable[[Deployment], dict[str, str]] = field(default=_no_files)
    folder: str = tensorrt_llm.FOLDER


STARTERS: Mapping[str, Starter] = {
    "vllm": Starter(vllm.command),
    "sglang": Starter(sglang.command),
    "tensorrt-llm": Starter(tensorrt_llm.command, _trtllm_files),
}
"""By engine id."""
