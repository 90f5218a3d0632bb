"""How bursts of arrivals reach one server, and how much of a burst falls into a given time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from planner.model.arrays import Floats, Indices

LEAST_AT_RANDOM = 0.5
"""Two servers at random make clockwork arrivals that irregular, but only half of them come to each:
nobody waits longer for it. So a single one is taken to see no smoother ones."""

NUMBERS = np.geomspace(0.02, 20.0, 61)
"""Mean numbers of requests at a server by which what they meet is tabulated."""
LOG_NUMBERS = np.log(NUMBERS)
SHARING = (128, 64, 32, 24, 16, 12, 10, 8, 7, 6, 5, 4, 3.5, 3, 2.5, 2, 1.8, 1.6, 1.4, 1.2, 1.1, 1)
SPREADS = np.array([0.0, *(1.0 / servers for servers in SHARING)])
"""Variance over mean of these numbers: one over the servers that share them."""
CLOCKED = 0.25
"""Power of burstiness / servers that the share of requests by the clock goes with."""
VARIED = 0.25
"""Squared CV of outputs from which on requests that came together end apart."""


def _random(burstiness: float, servers: Floats) -> Floats:
    return np.maximum(1.0 + (burstiness - 1.0) / servers, LEAST_AT_RANDOM)


def _in_turn(burstiness: float, servers: Floats) -> Floats:
    return burstiness / servers


ROUTINGS: dict[str, Callable[[float, Floats], Floats]] = {
    "random": _random,
    "round_robin": _in_turn,
    # The shortest queue spreads a burst at least as evenly as taking turns.
    "least_loaded": _in_turn,
}
"""Routing -> squared CV of the gaps at one of `servers` servers."""


def split_burstiness(burstiness: float, servers: Floats, routing: str) -> Floats:
    """Squared coefficient of variation of the gaps between arrivals at one server, (n,).

    At random, at least LEAST_AT_RANDOM.

    Args:
        burstiness: That of all arrivals.
        servers: Servers that share them, (n,).
        routing: random, round_robin or least_loaded.

    Source:
        Thinning of a renewal process (random), sums of gaps (in turn): W. Whitt, "The queueing
        network analyzer", Bell Syst. Tech. J. 62(9), 1983, section IV.
    """
    return ROUTINGS[routing](burstiness, servers)


def burst_size(burstiness: Floats, expected: Floats) -> Floats:
    """Mean size of a burst as seen within a time in which `expected` requests arrive, (n,).

    Over a long time a renewal process looks like bursts of (c + 1) / 2 requests that come
    together, c its squared coefficient of variation; over a short one only part of a burst has
    come. At most 1 where c <= 1 (Poisson and smoother).

    Args:
        burstiness: Squared CV of the gaps c, (n,).
        expected: Rate times the time, (n,).

    Source:
        The renewal function m of gamma gaps: (m(t) - rate t) / ((c - 1) / 2) is
        1 - exp(-2.41 c^-0.35 y^(0.68 c^-0.3)), y = rate t; our fit for c in 2 to 9, error below
        0.07, planner/model/README.md#queueing.
    """
    extra = np.maximum(burstiness - 1.0, 0.0)
    if not extra.any():
        return np.ones_like(expected)
    c = 1.0 + extra
    arrived = -np.expm1(-2.41 * c**-0.35 * np.maximum(expected, 1e-12) ** (0.68 * c**-0.3))
    result: Floats = 1.0 + 0.5 * extra * arrived
    return result


def timed_share(burstiness: float, outputs_cv2: float, servers: Floats, routing: str) -> Floats:
    """Share of the requests that reach a server by the clock; of the others as many a step, (n,).

    The least loaded server is one where a request has just ended, and as many end in a long step
    as in a short one. So a server that prompts slow down is avoided; the more so the less the
    load of the whole fleet moves meanwhile, which takes new requests to all of them. Where outputs
    are of one length, those that came together end together, and the next come together again.

    Args:
        burstiness: Squared CV of the gaps between all arrivals.
        outputs_cv2: Squared CV of the steps that requests decode for.
        servers: Servers that share them, (n,).
        routing: random, round_robin or least_loaded.

    Source:
        The form follows the spread of counts, the power our simulator (fleets of 2 to 32):
        planner/model/README.md#queueing.
    """
    if routing != "least_loaded":
        return np.ones_like(servers)
    avoided = 1.0 - np.minimum(max(burstiness, 1.0) / servers, 1.0) ** CLOCKED
    share: Floats = 1.0 - avoided * min(outputs_cv2 / VARIED, 1.0)
    return share


def number_spread(burstiness: float, peakedness: float, servers: Floats, routing: str) -> Floats:
    """Variance over mean of the number of requests at one server, none of which waits, (n,).

    Args:
        burstiness: Squared CV of the gaps between all arrivals.
        peakedness: Of the time that a request stays: how far bursts show in that number.
        servers: Servers that share them, (n,).
        routing: random, round_robin or least_loaded. The shortest queue shares the number of all
            evenly, whatever makes it vary; the others share arrivals only.

    Source:
        A. E. Eckberg, Proc. ITC 10, 1983.
    """
    if routing == "least_loaded":
        return (1.0 + (burstiness - 1.0) * peakedness) / servers
    return 1.0 + (split_burstiness(burstiness, servers, routing) - 1.0) * peakedness


def met_share(number: Floats, spread: Floats, routing: str) -> Floats:
    """Of the other requests' prompts, the share that a request meets at its server, (n,).

    Of n requests at a server each sees n - 1: on average as many as there are for Poisson arrivals,
    which see time averages, and fewer the less the number varies. Arrivals in turn: number +
    spread - 1, of numbers below one as of one. The shortest queue shares the number of all evenly,
    so that with less than one each nobody meets another, but when more than usual are there.

    Args:
        number: Mean number of requests, (n,).
        spread: Its variance over its mean, (n,).
        routing: random, round_robin or least_loaded.
    """
    if routing == "least_loaded":
        return _evenly_met(number, spread)
    fewer = np.maximum(1.0 - spread, 0.0)
    result: Floats = np.maximum(1.0 - fewer / np.maximum(number, 1.0), 0.0)
    return result


def _evenly_met(number: Floats, spread: Floats) -> Floats:
    """Return ``met_share`` where the number of all is shared evenly, (n,)."""
    table = _evenly_met_table()
    column, right = _between(LOG_NUMBERS, np.log(np.maximum(number, NUMBERS[0])))
    row, up = _between(SPREADS, spread)
    lower, upper = (
        (1.0 - right) * table[at, column] + right * table[at, column + 1] for at in (row, row + 1)
    )
    inside = (1.0 - up) * lower + up * upper
    # Far beyond one each it hardly matters that numbers are whole.
    beyond = 1.0 - np.maximum(1.0 - spread, 0.0) / np.maximum(number, 1.0)
    result: Floats = np.maximum(inside, np.where(number > NUMBERS[-1], beyond, 0.0))
    return result


def _between(grid: Floats, at: Floats) -> tuple[Indices, Floats]:
    """Return the place in a rising grid before each value, and the share of the way to the next."""
    place = np.clip(np.searchsorted(grid, at, side="right") - 1, 0, len(grid) - 2)
    way = np.clip((at - grid[place]) / (grid[place + 1] - grid[place]), 0.0, 1.0)
    return place, way


@cache
def _evenly_met_table() -> Floats:
    return np.array([[pairs_met(number, spread) for number in NUMBERS] for spread in SPREADS])


def pairs_met(number: float, spread: float) -> float:
    """Return how many others a request has at its server, over their mean number.

    The number of all is Poisson; a server has one of the two whole numbers next to the mean.

    Args:
        number: Mean number of requests at a server.
        spread: One over the servers that share a Poisson number, or what their number varies by.

    Source:
        Little's law for pairs: E[n (n - 1)] / E[n]^2, as of the shortest queue: derivation in
        planner/model/README.md#queueing.
    """
    if spread <= 0.0:
        whole = np.floor(number)
        return float((whole * (whole - 1.0) + 2.0 * whole * (number - whole)) / number**2)
    servers, total = 1.0 / spread, number / spread
    count = np.arange(np.ceil(total + 10.0 * np.sqrt(total) + 20.0))
    chance = np.exp(count * np.log(total) - total - np.cumsum(np.log(np.maximum(count, 1.0))))
    each = count / servers
    whole = np.floor(each + 1e-12)
    pairs = whole * (whole - 1.0) + 2.0 * whole * (each - whole)
    return float((chance * pairs).sum() / number**2)
