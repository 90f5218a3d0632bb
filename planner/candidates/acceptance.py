"""The catalog's acceptance of draft tokens for a task of slo.yaml."""

from __future__ import annotations

from planner.spec.architecture import Architecture
from planner.spec.speculation import Acceptance, SpeculationMethod

ACCEPTANCE_TASKS = {"code": "coding", "reasoning": "math", "long_context": "rag"}
"""Task of slo.yaml -> task of the acceptance table, where the words differ."""


def acceptance(method: SpeculationMethod, task: str, architecture: Architecture) -> Acceptance:
    """Return the acceptance of a method for a task of slo.yaml.

    Of several tiers, the one that the model's own draft layers were trained for. A task without
    a row takes the row for any task, else the lowest.
    """
    tier = "multi-step" if architecture.mtp_trained_steps else "single-module"
    rows = [row for row in method.acceptance if row.tier in ("", tier)] or list(method.acceptance)
    name = ACCEPTANCE_TASKS.get(task, task)
    exact = [row for row in rows if row.task == name] or [r for r in rows if r.task == "any"]

    def low(row: Acceptance) -> float:
        return row.c1

    return min(exact or rows, key=low)
