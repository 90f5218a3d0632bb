"""How bursts of arrivals reach one server, and how much of a burst falls into a given time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.model.arrays import Floats

LEAST_AT_RANDOM = 0.5
"""Two servers at random make clockwork arrivals that irregular, but only half of them come to each:
nobody waits longer for it. So a single one is taken to see no smoother ones."""

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


def met_share(number: Floats, spread: Floats) -> Floats:
    """Of the other requests' prompts, the share that a request meets at its server, (n,).

    Of n requests at a server each sees n - 1: on average number + spread - 1, which is the number
    for Poisson arrivals (they see time averages), and one less where the number hardly varies.
    With less than one on average, a number that hardly varies is 0 or 1, and nobody meets another.

    Args:
        number: Mean number of requests, (n,).
        spread: Its variance over its mean, (n,).
    """
    fewer = np.maximum(1.0 - spread, 0.0)
    result: Floats = np.maximum(1.0 - fewer / np.maximum(number, 1.0), 0.0)
    return result
