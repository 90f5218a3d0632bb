"""Replicas over several servers: what each server runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.deploy.deployment import Deployment
from planner.deploy.text import Shell, header, script


@dataclass(frozen=True)
class Node:
    """One server of a replica; the words are what the target's shell calls them.

    Attributes:
        rank: Variable with the number of the server, 0 = leader.
        leader: Variable with the address of the leader.
        worker: Whether this is the command of the other servers.
    """

    rank: str
    leader: str
    worker: bool

    @property
    def rank_word(self) -> Shell:
        """The number of the server, as a word of a command."""
        return Shell(f"${{{self.rank}}}")

    def leader_word(self, port: int | None = None) -> Shell:
        """Return the address of the leader, as a word of a command."""
        return Shell(f"${{{self.leader}}}" + (f":{port}" if port is not None else ""))


Command = Callable[[Deployment, Node | None], list[str]]
"""Deployment and server (None = a replica on one server) -> the engine's command."""


def server_scripts(d: Deployment, command: Command) -> dict[str, str]:
    """Return the scripts of the leader and of the other servers of a replica."""
    setup = [
        f': "${{LEADER:?address of the first of the {d.nodes} servers}}"',
        f': "${{RANK:?number of this server, 0 to {d.nodes - 1}}}"',
    ]
    return {
        f"{d.name}-{part}.sh": script(command(d, Node("RANK", "LEADER", worker)), header(d), setup)
        for part, worker in (("leader", False), ("worker", True))
    }
