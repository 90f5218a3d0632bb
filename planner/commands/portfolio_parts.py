"""Parts of a plan's traffic: what each of two deployments of a fleet is sized for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from planner.candidates.demand import Kind, kinds
from planner.search.fleet import part_burstiness
from planner.spec.slo import Slo

SHARES = (0.25, 0.5)
"""Shares of the first of two deployments; the other has the rest."""
MOST_KINDS = 4
"""Kinds of request up to which every division of them between two deployments is tried."""


@dataclass(frozen=True)
class Part:
    """A part of the traffic: a share of all requests, or all requests of some kinds.

    Attributes:
        share: Share of the requests.
        kinds: Kinds of request; empty = all alike.
    """

    share: float = 1.0
    kinds: tuple[str, ...] = ()


WHOLE = Part()


def part_slo(slo: Slo, part: Part) -> Slo:
    """Return slo.yaml for a part of its traffic, without the limits that hold for the whole."""
    if part == WHOLE:
        return slo
    traffic, rate, mean = slo.traffic, slo.traffic.rate_per_s, slo.traffic.mean_rate_per_s
    changes: dict[str, object] = {
        "rate_per_s": None if rate is None else rate * part.share,
        "mean_rate_per_s": None if mean is None else mean * part.share,
        "burstiness": part_burstiness(traffic.burstiness, part.share),
    }
    if part.kinds:
        changes["classes"] = tuple(
            one.model_copy(update={"share": one.share / part.share})
            for one in traffic.classes or ()
            if one.name in part.kinds
        )
    purchase = slo.purchase.model_copy(update={"max_gpus": None, "budget_usd_per_hour": None})
    quality = slo.quality.model_copy(update={"max_loss_percent": None})
    return slo.model_copy(
        update={
            "traffic": traffic.model_copy(update=changes),
            "purchase": purchase,
            "quality": quality,
        }
    )


def splits(slo: Slo) -> tuple[tuple[Part, Part], ...]:
    """Return the ways to divide traffic between two deployments: by share, then by kind.

    A batch job is not divided.
    """
    if slo.traffic.rate_per_s is None:
        return ()
    by_share = tuple((Part(share), Part(1.0 - share)) for share in SHARES)
    first, *others = kinds(slo)
    if not 1 <= len(others) < MOST_KINDS:
        return by_share
    by_kind = tuple(
        (_of_kinds((first, *chosen)), _of_kinds([k for k in others if k not in chosen]))
        for count in range(len(others))
        for chosen in combinations(others, count)
    )
    return by_share + by_kind


def _of_kinds(some: list[Kind] | tuple[Kind, ...]) -> Part:
    return Part(sum(kind.share for kind in some), tuple(kind.name for kind in some))
