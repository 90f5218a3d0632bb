"""Requests to simulate: when they arrive and how long they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Floats

Lengths = NDArray[np.int64]


@dataclass(frozen=True)
class Arrivals:
    """Requests in order of arrival.

    Attributes:
        time: Arrival [s], not falling, (requests,).
        prompt, output: Lengths [tokens], at least 1, (requests,).
    """

    time: Floats
    prompt: Lengths
    output: Lengths

    def __post_init__(self) -> None:
        """Raise ValueError unless the three columns are of one length, in order, positive."""
        if not len(self.time) == len(self.prompt) == len(self.output):
            raise ValueError("arrivals need one time, prompt and output a request")
        if np.any(np.diff(self.time) < 0):
            raise ValueError("arrivals must be in order of time")
        if len(self.time) and min(self.prompt.min(), self.output.min()) < 1:
            raise ValueError("prompts and outputs have at least one token")

    def __len__(self) -> int:
        return len(self.time)

    @property
    def rate(self) -> float:
        """Requests per second between the first and the last arrival."""
        span = float(self.time[-1] - self.time[0]) if len(self) > 1 else 0.0
        return (len(self) - 1) / span if span > 0 else np.inf


def random_arrivals(
    rate: float,
    requests: int,
    prompt: Callable[[float], float],
    output: Callable[[float], float],
    *,
    burstiness: float = 1.0,
    seed: int = 0,
) -> Arrivals:
    """Draw requests with independent gamma gaps and independent lengths.

    Times, prompts and outputs have random streams of their own: with the same seed another rate
    gives the same requests, only closer together.

    Args:
        rate: Requests per second.
        requests: How many.
        prompt, output: Quantile functions, rank in (0, 1) -> length [tokens].
        burstiness: Squared coefficient of variation of the gaps: 1 = Poisson, 0 = constant.
        seed: Of the random numbers.

    Returns:
        Requests; lengths are rounded to whole tokens.
    """
    streams = [np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(3)]
    gaps = np.ones(requests)
    if burstiness > 0:
        gaps = streams[0].gamma(1.0 / burstiness, burstiness, requests)
    return Arrivals(
        np.cumsum(gaps) / rate,
        _draw(prompt, streams[1], requests),
        _draw(output, streams[2], requests),
    )


def sampled_arrivals(
    rate: float,
    requests: int,
    lengths: tuple[Lengths, Lengths],
    *,
    burstiness: float = 1.0,
    seed: int = 0,
) -> Arrivals:
    """Draw requests whose lengths are resampled in pairs from given ones.

    Args:
        rate: Requests per second.
        requests: How many.
        lengths: Prompts and outputs [tokens], row i of both one request.
        burstiness: As in ``random_arrivals``.
        seed: Of the random numbers.

    Returns:
        Requests.
    """
    plain = random_arrivals(
        rate, requests, lambda _: 1.0, lambda _: 1.0, burstiness=burstiness, seed=seed
    )
    rows = np.random.default_rng([seed, 1]).integers(0, len(lengths[0]), requests)
    prompt, output = (np.asarray(part, dtype=np.int64)[rows] for part in lengths)
    return Arrivals(plain.time, prompt, output)


def _draw(
    quantile: Callable[[float], float], stream: np.random.Generator, requests: int
) -> Lengths:
    # Ranks of exactly 0 have no finite quantile.
    ranks = np.clip(stream.random(requests), 1e-12, None)
    values = np.array([quantile(rank) for rank in ranks.tolist()], dtype=np.float64)
    return np.maximum(np.rint(values), 1.0).astype(np.int64)
