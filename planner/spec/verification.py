"""What a simulation said of the options that a plan picks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.spec.base import Count, Name, NonNegative, Positive, Spec

Milliseconds = Positive | None


class Simulated(Spec):
    """A row of a class archive that a simulation has checked.

    Attributes:
        row: The row.
        upper_ms: Simulated percentile by target key, at the upper end of its confidence interval
            [ms]; without the margin for the model's own error. None = without bound;
            no entry = no request has one.
        seen_ms: The simulated percentile itself [ms]; empty in plans of older versions.
    """

    row: Annotated[int, Field(ge=0)]
    upper_ms: dict[Name, Milliseconds]
    seen_ms: dict[Name, Milliseconds] = Field(default_factory=dict)


class Compared(Spec):
    """A percentile by formula and by simulation.

    Attributes:
        key: As in slo.yaml (``ttft_p95_ms``).
        formula_ms: By the closed formula; None = without bound.
        windows_ms: By the formula over the windows of a trace; None = no trace, or no bound.
        simulated_ms: Over the requests of all seeds; None = without bound.
        upper_ms: Upper end of the confidence interval of the simulated percentile.
    """

    key: Name
    formula_ms: Milliseconds
    windows_ms: Milliseconds = None
    simulated_ms: Milliseconds
    upper_ms: Milliseconds


class Trial(Spec):
    """A number of replicas that was simulated.

    Attributes:
        replicas: Replicas that carry the load.
        max_num_seqs: Their batch limit.
        holds: Whether every target holds with its margin.
    """

    replicas: Count
    max_num_seqs: Count
    holds: bool


class Verification(Spec):
    """One option, checked by simulation and sized by it.

    Attributes:
        picks: Picks that the option was a candidate for.
        checked: Id of the option that the formula had sized.
        option: Id of the option as sized by simulation; the same where the size did not change.
        holds: Whether some number of replicas that was tried, within quota, budget and the price of
            what is known to hold, meets every target.
        trials: Replicas tried, in that order.
        latencies: p50 and p95 of TTFT, TPOT and E2E, and every target, of ``option``;
            without those that no request has, as TPOT of outputs of one token.
        utilization: Share of the time that a server is busy.
        seeds: Seeds of the runs; the same requests for every option. A trace is replayed once.
        requests: Requests of each run.
        replicas_simulated: Replicas in the simulation; fewer than the option's for large fleets,
            at the same rate for each, which can only lengthen waits.
    """

    picks: tuple[Name, ...]
    checked: Name
    option: Name
    holds: bool
    trials: tuple[Trial, ...]
    latencies: tuple[Compared, ...]
    utilization: NonNegative
    seeds: tuple[int, ...]
    requests: Count
    replicas_simulated: Count

    @property
    def held(self) -> frozenset[str]:
        """Ids of the options that hold: as sized by simulation, and as the formula had sized it.

        The size of the formula is the first that is tried, or has more replicas than the first.
        """
        first = {self.checked for trial in self.trials[:1] if trial.holds}
        return frozenset(first | ({self.option} if self.holds else set()))
