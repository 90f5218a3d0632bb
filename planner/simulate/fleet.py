"""A fleet of servers behind a router."""

from __future__ import annotations

from math import inf

import numpy as np

from planner.simulate.arrivals import Arrivals
from planner.simulate.deployment import Deployment
from planner.simulate.run import Run, Window, collect
from planner.simulate.server import Book, Server


def simulate(
    deployment: Deployment,
    arrivals: Arrivals,
    *,
    seed: int = 0,
    warm_up: float = 0.15,
    cool_down: float = 0.03,
) -> Run:
    """Simulate every step of a fleet until the last request is done.

    Args:
        deployment: Step times and limits.
        arrivals: Requests.
        seed: Of random routing; the rest is deterministic.
        warm_up, cool_down: Shares of the requests, first and last, that percentiles leave out:
            the fleet is not in its steady state. 0 for a replay or a finite benchmark run.

    Returns:
        What happened. The same arguments give the same bytes.
    """
    book = Book(arrivals.prompt.tolist(), arrivals.output.tolist())
    servers = [Server(deployment, book) for _ in range(deployment.servers)]
    times = arrivals.time.tolist()
    if deployment.routing == "least_loaded" and len(servers) > 1:
        _least_loaded(servers, times)
    else:
        _preassigned(servers, times, _assignment(deployment, len(times), seed))
    return collect(deployment, arrivals, book, servers, Window(warm_up, cool_down))


def _assignment(deployment: Deployment, requests: int, seed: int) -> list[int]:
    servers = deployment.servers
    if deployment.routing == "random":
        drawn: list[int] = np.random.default_rng(seed).integers(0, servers, requests).tolist()
        return drawn
    return [request % servers for request in range(requests)]


def _preassigned(servers: list[Server], times: list[float], chosen: list[int]) -> None:
    """Run servers that do not depend on each other, one request after the other."""
    for request, (now, number) in enumerate(zip(times, chosen, strict=True)):
        server = servers[number]
        while server.until < now:
            server.advance()
        server.enqueue(request, now)
    _drain(servers)


def _least_loaded(servers: list[Server], times: list[float]) -> None:
    """Send each request to the server with the fewest requests queued and running."""
    until = [inf] * len(servers)
    loads = [0] * len(servers)
    for request, now in enumerate(times):
        soonest = min(until)
        while soonest < now:
            number = until.index(soonest)
            server = servers[number]
            server.advance()
            until[number] = server.until
            loads[number] = server.load
            soonest = min(until)
        number = loads.index(min(loads))
        server = servers[number]
        server.enqueue(request, now)
        until[number] = server.until
        loads[number] = server.load
    _drain(servers)


def _drain(servers: list[Server]) -> None:
    for server in servers:
        while server.until < inf:
            server.advance()
