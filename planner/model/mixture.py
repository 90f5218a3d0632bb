"""Several kinds of requests on the same servers: one workload, and the view of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.model.arrays import Floats, Indices
from planner.model.workload import Workload

NODES = ("prompt", "prompt_weighted", "output", "output_spread", "prompt_at_output")
MOMENTS = (
    "prompt_mean",
    "prompt_square",
    "output_mean",
    "steps_mean",
    "steps_square",
)


@dataclass(frozen=True)
class Mixture:
    """Kinds of requests that share servers.

    Attributes:
        whole: All requests together: what the servers see.
        parts: Each kind alone, for latencies: ``survival(state of whole, parts[k], ...)`` is that
            of kind k. Its nodes are those of `whole`, weighted by the kind alone.
    """

    whole: Workload
    parts: tuple[Workload, ...]


def mixture(kinds: Sequence[Workload], shares: Sequence[float]) -> Mixture:
    """Return the workload of several kinds of requests.

    Args:
        kinds: Statistics of each kind; burstiness and prefix hits are those of the first.
        shares: Share of the requests of each kind; they add up to 1.

    Returns:
        The mixture. Nodes are kept apart, so that every kind's lengths are met exactly; moments
        are those of the mixture. One kind alone is returned as it is.

    Source: our derivation: moments of a mixture are the means of its parts' moments.
    """
    if len(kinds) == 1:
        return Mixture(kinds[0], (kinds[0],))
    share = np.array(shares) / np.sum(shares)
    weights = [s * kind.weight for s, kind in zip(share, kinds, strict=True)]
    joined: dict[str, Any] = {name: _joined(kinds, name) for name in NODES}
    joined |= _moments(kinds, share, weights)
    whole = replace(kinds[0], weight=np.concatenate(weights), **joined)
    parts = tuple(
        replace(
            whole,
            weight=np.concatenate(
                [kind.weight * (other == number) for other, kind in enumerate(kinds)]
            ),
            prompt_mean=kinds[number].prompt_mean,
        )
        for number in range(len(kinds))
    )
    return Mixture(whole, parts)


def _joined(kinds: Sequence[Workload], name: str) -> Floats:
    return np.concatenate([getattr(kind, name) for kind in kinds])


def prompt_nodes_from(w: Workload, share: float) -> Indices:
    """Return the nodes of the longest prompts, from the one that holds this rank on.

    Shortest first; nodes of a mixture lie in any order. Their weights add up to 1 - share at least.
    """
    order = np.argsort(w.prompt[:, 0], kind="stable").astype(np.intp)
    ranks = np.cumsum(w.weight[order, 0])
    return order[min(int(np.searchsorted(ranks, share - 1e-9)), len(order) - 1) :]


def _moments(
    kinds: Sequence[Workload], share: Floats, weights: Sequence[Floats]
) -> dict[str, float]:
    def mean(values: Sequence[float]) -> float:
        return float((share * np.array(values)).sum())

    found = {name: mean([getattr(kind, name) for kind in kinds]) for name in MOMENTS}
    steps = max(found["steps_mean"], 1e-9)
    # A sequence counts by the steps for which it is resident; without steps, by its requests.
    counts = [kind.steps_mean if found["steps_mean"] > 0 else 1.0 for kind in kinds]
    by_steps = steps if found["steps_mean"] > 0 else 1.0
    for name in ("context", "context_end"):
        values = [getattr(kind, name) * n for kind, n in zip(kinds, counts, strict=True)]
        found[name] = mean(values) / by_steps
    squares = [
        (kind.context_cv2 + 1.0) * kind.context**2 * n
        for kind, n in zip(kinds, counts, strict=True)
    ]
    found["context_cv2"] = max(mean(squares) / by_steps / found["context"] ** 2 - 1.0, 0.0)
    if found["steps_mean"] > 0:
        found["steps_cv2"] = max(found["steps_square"] / steps**2 - 1.0, 0.0)
        found["peakedness"] = _smaller_of_two(kinds, share, weights) / steps
    return found


def _smaller_of_two(kinds: Sequence[Workload], share: Floats, weights: Sequence[Floats]) -> float:
    """Return E[min(d, d')] of two requests: by nodes where they are of different kinds."""
    total = 0.0
    for i, one in enumerate(kinds):
        total += share[i] ** 2 * one.peakedness * one.steps_mean
        for j, other in enumerate(kinds):
            if i != j:
                least = np.minimum(one.output - 1.0, (other.output - 1.0).T)
                total += float((weights[i] * weights[j].T * least).sum())
    return total
