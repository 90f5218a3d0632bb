"""What the range of the drafts' acceptance in the catalog does to the figures of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose

import numpy as np

from planner.candidates.acceptance import acceptance
from planner.candidates.demand import job_load, sized_rate, slo_mixture
from planner.model.arrays import Candidates, Floats
from planner.model.batching import offline_batch
from planner.model.queueing import percentile, steady_state
from planner.select.deploy import OFF, Scene
from planner.spec.efficiency import Metric
from planner.spec.slo import Slo

Range = tuple[float, float]
Moves = Mapping[Metric, Range]
"""By metric: its figure at the ends of a range / the figure as predicted, the lower first."""
STEADY: Moves = {}
"""Nothing moves: no draft tokens, or no range of their acceptance is known."""
SAME_DIGITS = 1e-4
"""Relative difference of an acceptance that a record's rounding explains."""


def acceptance_range(scene: Scene, slo: Slo, place: int, row: int) -> Range | None:
    """Return the ends of the evidence for the first draft token's acceptance.

    None = the row drafts nothing, or its acceptance is not the catalog's: what slo.yaml or a
    named deployment states comes without a range.
    """
    name = scene.value(place, row, "speculation")
    own = {scene.catalog.speculation_method(key).id for key in slo.speculation.acceptance}
    if name == OFF or name in own:
        return None
    known = acceptance(scene.catalog.speculation_method(name), slo.task, scene.architecture)
    first, decay = (scene.value(place, row, key) for key in ("accept_first", "accept_decay"))
    same = isclose(first, known.c1, rel_tol=SAME_DIGITS) and isclose(
        decay, known.d, rel_tol=SAME_DIGITS
    )
    return (known.c1_low, known.c1_high) if same else None


def moves(scene: Scene, slo: Slo, c: Candidates, ranges: Sequence[Range | None]) -> list[Moves]:
    """Return how far each option's figures move over the range of its acceptance.

    Args:
        scene: For the fitted values.
        slo: The load.
        c: The options, (n,).
        ranges: Ends of the acceptance of the first draft token of each; None = none is known.
    """
    found: list[Moves] = [STEADY] * len(ranges)
    at = [i for i, ends in enumerate(ranges) if ends is not None]
    if not at:
        return found
    drafting = c.take(np.array(at, dtype=np.intp))
    ends = np.array([ranges[i] for i in at], dtype=float)
    planned, slow, fast = (
        _figures(scene, slo, one)
        for one in (drafting, _accepting(drafting, ends[:, 0]), _accepting(drafting, ends[:, 1]))
    )
    for number, i in enumerate(at):
        found[i] = {
            metric: _around(float(slow[metric][number]), float(fast[metric][number]), float(base))
            for metric, base in ((metric, values[number]) for metric, values in planned.items())
        }
    return found


def _accepting(c: Candidates, first: Floats) -> Candidates:
    return replace(c, layout=replace(c.layout, accept_first=first))


def _figures(scene: Scene, slo: Slo, c: Candidates) -> dict[Metric, Floats]:
    """Return what the formula says, by the metric whose measured error it takes, (n,)."""
    if slo.traffic.offline is not None:
        batch = offline_batch(c, scene.parameters, job_load(slo, len(c)))
        return {"time": batch.run, "throughput": batch.output_rate}
    w, rate = slo_mixture(slo).whole, np.full(len(c), sized_rate(slo))
    state = steady_state(c, scene.parameters, w, rate, routing=slo.routing)
    return {
        "ttft": percentile(state, w, "ttft", 0.95),
        "tpot": percentile(state, w, "tpot", 0.95),
        "throughput": state.capacity,
    }


def _around(one: float, other: float, planned: float) -> Range:
    """Return the ends as shares of what is planned, which lies between them."""
    if not np.isfinite(planned) or planned <= 0.0:
        return 1.0, 1.0
    low, high = sorted((one / planned, other / planned))
    return min(low, 1.0), max(high, 1.0)
