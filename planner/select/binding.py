"""The limit that binds an option, and what runs out there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Candidates, Columns, Floats, Parameters
from planner.model.forward import communication, decode_step, micro_batch
from planner.model.queueing.state import HIGHEST_WAIT_PROBABILITY
from planner.model.terms import terms
from planner.pareto import rounded
from planner.select.answers import Priced
from planner.spec.option import Binding, Resource

LARGE = 0.35
"""Share of a decode step from which the link, or launching, is what holds it up."""
TIGHT = 0.95
"""Share from which a limit on money, quality or quota is taken to bind: one can be near it by
accident, since formats and instances come in steps."""
BOUGHT: dict[str, Resource] = {
    "max_loss_percent": "quality",
    "budget_usd_per_hour": "money",
    "max_gpus": "quota",
    "quota_instances": "quota",
    "max_power_kw": "power",
    "deadline_hours": "time",
}


@dataclass(frozen=True)
class StepShares(Columns):
    """Shares of a decode step that communication and launch overhead take, (n,)."""

    link: Floats
    launch: Floats


def step_shares(c: Candidates, p: Parameters, batch: Floats, context: Floats) -> StepShares:
    """Return what a decode step is spent on besides reading and computing, (n,)."""
    t = terms(c, p)
    step = decode_step(t, p, batch, context) * t.accepted
    tokens = micro_batch(t, batch) * (1.0 + t.draft_tokens)
    link = communication(t, tokens)
    return StepShares(link / step, t.launch / step)


def binding(answer: Priced, row: int, shares: StepShares, at: int, memory_bound: bool) -> Binding:
    """Return the limit of which a row uses the largest share.

    Args:
        answer: Priced rows.
        row: Which of them.
        shares: Step shares of some rows.
        at: The row's place among those.
        memory_bound: Whether memory, not the batch limit, bounds the resident sequences.
    """
    uses = {name: float(values[row]) for name, values in answer.uses.items()}
    bought = {name for name in BOUGHT if name != "deadline_hours" and uses.get(name, 1.0) < TIGHT}
    tight = [name for name in uses if name not in bought] or list(uses)
    limit = max(tight, key=lambda name: uses[name])
    wait = float(np.nan_to_num(answer.answers.columns["wait_probability"][row]))
    resource = _resource(limit, wait, shares, at, memory_bound)
    use = min(uses[limit], 1e9)
    return Binding(limit=limit, use=float(rounded(use)), resource=resource)


def _resource(limit: str, wait: float, shares: StepShares, at: int, memory_bound: bool) -> Resource:
    if limit in BOUGHT:
        return BOUGHT[limit]
    if limit == "headroom":
        return "memory" if memory_bound else "batch"
    if limit.startswith("ttft"):
        return "queue" if wait > HIGHEST_WAIT_PROBABILITY else "prefill"
    if shares.link[at] > LARGE:
        return "link"
    return "launch" if shares.launch[at] > LARGE else "decode"
