"""What options are compared on: one row an objective, smaller is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.candidates.demand import decodes
from planner.model.arrays import Floats
from planner.pareto import rounded
from planner.select.answers import Priced
from planner.spec.slo import Objective as Name
from planner.spec.slo import Slo


@dataclass(frozen=True)
class Objective:
    """An objective of slo.yaml: its name and its value for every row, (n,)."""

    name: str
    value: Callable[[Priced], Floats]


def _latency(name: str) -> Objective:
    return Objective(name, lambda p: p.answers.latency[name])


def _money(name: str) -> Objective:
    return Objective(name, lambda p: p.money[name])


def _power(priced: Priced) -> Floats:
    """Rated power; unknown counts as endless, so that it never looks good."""
    return np.nan_to_num(priced.answers.columns["power_w"], nan=np.inf)


MONEY: tuple[Name, ...] = ("usd_per_mtok_output", "usd_per_mtok_total")
OBJECTIVES = (
    *(_money(name) for name in MONEY),
    *(_latency(f"ttft_p{share}_ms") for share in (50, 95)),
    *(_latency(f"tpot_p{share}_ms") for share in (50, 95)),
    _latency("e2e_p95_ms"),
    Objective("quality_loss_percent", lambda p: p.answers.columns["loss_objective"]),
    Objective("gpus", lambda p: p.answers.columns["gpus"]),
    Objective("power_w", _power),
    Objective("kwh_per_mtok_output", lambda p: p.power["kwh_per_mtok_output"]),
)
BY_NAME = {objective.name: objective for objective in OBJECTIVES}
OFFLINE = (
    *("usd_per_mtok_output", "usd_per_mtok_total", "quality_loss_percent"),
    *("gpus", "power_w", "kwh_per_mtok_output"),
)
"""Objectives that mean something for offline work."""


def chosen(slo: Slo) -> tuple[Objective, ...]:
    """Return the objectives of slo.yaml that mean something, and always the cost.

    Latencies mean nothing to offline work, TPOT nothing where no request has a second token.
    """
    left = OFFLINE if slo.traffic.offline is not None else tuple(BY_NAME)
    gaps = decodes(slo)
    names = [n for n in slo.objectives if n in left and (gaps or not n.startswith("tpot"))]
    if not any(name in MONEY for name in names):
        names.append(MONEY[0])
    return tuple(BY_NAME[name] for name in names)


def points(priced: Priced, objectives: Sequence[Objective]) -> Floats:
    """Return the objectives of every row, rounded as they are recorded, (n, m)."""
    return rounded(np.column_stack([objective.value(priced) for objective in objectives]))
