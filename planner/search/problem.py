"""What a search is asked: the choices, the demand, and how far candidates may reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.candidates.choices import Tables
from planner.candidates.quality import Loss
from planner.candidates.support import Layout
from planner.model.arrays import Floats, Indices, Parameters
from planner.model.workload import Workload
from planner.spec.space import Condition


@dataclass(frozen=True)
class Draft:
    """A speculation choice.

    Attributes:
        method: Index into ``Tables.methods``; 0 = off.
        tokens: Draft tokens per verification.
        first, decay: Acceptance of draft token i is first * decay^(i-1).
    """

    method: int = 0
    tokens: int = 0
    first: float = 0.0
    decay: float = 1.0


@dataclass(frozen=True)
class Job:
    """Offline work.

    Attributes:
        requests: Requests to serve.
        deadline: Time for all of them [s].
        margins: What the length of a run is multiplied by to hold with the confidence asked,
            (hardware, stack).
        lost: Largest share of the time that does no work on what may be bought: where machines
            are interrupted, some deployments need more replicas.
    """

    requests: float
    deadline: float
    margins: Floats
    lost: float = 0.0


@dataclass(frozen=True)
class Demand:
    """The load.

    Attributes:
        workload: Lengths and arrivals.
        parts: The same as each kind of request sees it; empty = there is one kind.
        rate: Requests per second that is sized for; offline: the mean rate of the deadline.
        longest: Tokens of the longest sequence that must fit in memory.
        headroom: Largest utilization.
        routing: How requests are spread over replicas.
        job: Offline work instead of arrivals.
    """

    workload: Workload
    rate: float
    longest: float
    headroom: float
    routing: str = "least_loaded"
    job: Job | None = None
    parts: tuple[Workload, ...] = ()

    def seen_by(self, kind: int) -> Workload:
        """Return the workload as a kind of request sees it; below 0 = all requests together."""
        return self.parts[kind] if kind >= 0 else self.workload


@dataclass(frozen=True)
class Inner:
    """Choices that are solved exactly for every shape.

    Attributes:
        batch_limits: Sequences in flight per dp rank, rising.
        token_budgets: Tokens of a step per dp rank, rising.
        spread: Factors on the fewest replicas that carry the load.
        max_replicas: Most replicas.
    """

    batch_limits: Floats
    token_budgets: Floats
    spread: Floats
    max_replicas: float


@dataclass(frozen=True)
class Reach:
    """Largest values worth knowing; a candidate beyond one of them is not kept.

    Attributes:
        ttft, tpot: p95 [s].
        run: Offline run [s].
        loss: Pessimistic quality loss [%].
        gpus: GPUs bought.
    """

    ttft: float = np.inf
    tpot: float = np.inf
    run: float = np.inf
    loss: float = np.inf
    gpus: float = np.inf


@dataclass(frozen=True)
class Problem:
    """Everything that a search needs to know; no price among it.

    Attributes:
        tables: Specs that choices point into; one architecture.
        parameters: Fitted values of all candidates.
        losses: Quality loss by weight format and KV format (indices of ``tables``).
        layouts: Parallel degrees to try.
        drafts: Speculation choices to try.
        asked: Ids of the methods that slo.yaml names.
        inner: Choices inside a shape.
        conditions: Rules that leave out shapes nobody would run.
        demand: The load.
        spare: Replicas bought beyond those that carry load.
        reach: Largest values worth knowing.
    """

    tables: Tables
    parameters: Parameters
    losses: tuple[tuple[Loss, ...], ...]
    layouts: tuple[Layout, ...]
    drafts: tuple[Draft, ...]
    asked: frozenset[str]
    inner: Inner
    conditions: tuple[Condition, ...]
    demand: Demand
    spare: int = 0
    reach: Reach = Reach()

    def accelerators(self) -> Indices:
        """Return the number of the accelerator of each hardware class, (hardware,)."""
        numbers: dict[str, int] = {}
        chips = [hardware.accelerator.id for hardware in self.tables.hardware]
        return np.array([numbers.setdefault(chip, len(numbers)) for chip in chips], dtype=np.intp)
