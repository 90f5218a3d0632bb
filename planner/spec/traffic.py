"""The load that a plan is for: arrivals, lengths, cache hits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, PrivateAttr, model_validator

from planner.spec.base import Count, Many, NonNegative, Positive, Spec
from planner.spec.lengths import MAX_TOKENS, Lengths
from planner.spec.load import KeyFaultsError
from planner.spec.names import Text
from planner.spec.targets import Targets
from planner.units import SECONDS_PER_HOUR

LEAST_RATE = 1e-6
"""Lowest rate that can be planned for, one request in eleven days [1/s]."""
Burstiness = Annotated[float, Field(ge=0, le=1000)]
HitRate = Annotated[float, Field(ge=0, lt=1)]
_Profile = Annotated[Many[NonNegative], Field(min_length=24, max_length=24)]


class Offline(Spec):
    """A batch job: only its end matters.

    Attributes:
        requests: Requests to serve.
        deadline_hours: Hours within which all must be done [h].
    """

    requests: Count
    deadline_hours: Positive


class TrafficClass(Spec):
    """One kind of request among several.

    Attributes:
        name: For reports.
        share: Share of the requests; the shares of all classes add up to 1.
        prompt_tokens, output_tokens: Lengths [tokens].
        slo: Targets of this class; empty = those of the whole file. The confidence is always that
            of the whole file.
    """

    name: Text
    share: Annotated[float, Field(gt=0, le=1)]
    prompt_tokens: Lengths
    output_tokens: Lengths
    slo: Targets = Targets()


class Traffic(Spec):
    """Arrivals and lengths. Exactly one of rate_per_s, offline and trace says how many requests.

    Attributes:
        rate_per_s: Requests per second in the hour that is sized for [1/s].
        offline: A batch job instead.
        trace: File of recorded requests instead; it may hold the lengths too.
        classes: Kinds of requests, each a share of rate_per_s, instead of one pair of lengths.
        mean_rate_per_s: Average rate, which the cost per token rests on [1/s].
        load_profile: Load of the 24 hours of a day relative to each other; the highest is
            rate_per_s. Another way to give the mean rate.
        prompt_tokens, output_tokens: Lengths [tokens].
        burstiness: Squared coefficient of variation of the gaps between arrivals; 1 = Poisson.
        prefix_hit_rate: Share of prompt tokens that the prefix cache serves.
        max_context_tokens: Longest prompt + output to accept [tokens]; None = p99 of both.
    """

    rate_per_s: Annotated[float, Field(gt=0, le=1e6)] | None = None
    offline: Offline | None = None
    trace: Text | None = None
    classes: Annotated[Many[TrafficClass], Field(min_length=1, max_length=100)] | None = None
    mean_rate_per_s: Positive | None = None
    load_profile: _Profile | None = None
    prompt_tokens: Lengths | None = None
    output_tokens: Lengths | None = None
    burstiness: Burstiness = 1.0
    prefix_hit_rate: HitRate = 0.0
    max_context_tokens: Annotated[int, Field(ge=2, le=MAX_TOKENS)] | None = None
    _model_context: int | None = PrivateAttr(None)

    @property
    def longest(self) -> int | None:
        """Most tokens of prompt and output together: longer requests are cut; None = any."""
        limits = [x for x in (self.max_context_tokens, self._model_context) if x is not None]
        return min(limits, default=None)

    def within(self, model_context: int) -> Self:
        """Return the traffic of a model that takes no more than this [tokens]."""
        copied = self.model_copy()
        copied._model_context = model_context
        return copied

    @property
    def average_rate_per_s(self) -> float | None:
        """Average rate that tokens are paid for [1/s]; None if only the trace knows it."""
        if self.offline is not None:
            return self.offline.requests / (self.offline.deadline_hours * SECONDS_PER_HOUR)
        if self.mean_rate_per_s is not None:
            return self.mean_rate_per_s
        if self.load_profile is not None and self.rate_per_s is not None:
            return self.rate_per_s * sum(self.load_profile) / (24 * max(self.load_profile))
        return self.rate_per_s

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        faults = [*self._arrival_faults(), *self._length_faults()]
        if faults:
            raise KeyFaultsError(*faults)
        return self

    def _arrival_faults(self) -> Iterator[tuple[str, str]]:
        ways = ("rate_per_s", "offline", "trace")
        given = [way for way in ways if getattr(self, way) is not None]
        if not given:
            yield "rate_per_s", f"no load; add one of {', '.join(ways)}"
        for way in given[1:]:
            yield way, f"stands beside {given[0]}; keep one of {', '.join(ways)}"
        rate, mean = self.rate_per_s, self.mean_rate_per_s
        for key, value in (("rate_per_s", rate), ("mean_rate_per_s", mean)):
            if value is not None and value < LEAST_RATE:
                yield key, f"{value:g} must be at least {LEAST_RATE:g}; costs are per token served"
        for key in ("classes", "mean_rate_per_s", "load_profile", "burstiness"):
            # A stored plan states every default.
            stated = getattr(self, key) != Traffic.model_fields[key].default
            if given and rate is None and stated:
                yield key, f"goes with rate_per_s, not with {given[0]}; remove it"
        if mean is not None and self.load_profile is not None:
            yield "load_profile", "also gives the mean rate; keep it or mean_rate_per_s"
        if rate is not None and mean is not None and mean > rate:
            yield (
                "mean_rate_per_s",
                f"{mean:g} is above rate_per_s {rate:g}; size for the busy hour",
            )
        if self.load_profile is not None and not any(self.load_profile):
            yield "load_profile", "every hour is 0; give the load of each hour"
        shares = sum(kind.share for kind in self.classes or ())
        names = [kind.name for kind in self.classes or ()]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield "classes", f"two are named '{name}'; name each differently"
        if self.classes is not None and abs(shares - 1) > 1e-3:
            yield "classes", f"the shares add up to {shares:g}; make them 1"

    def _length_faults(self) -> Iterator[tuple[str, str]]:
        lengths = {"prompt_tokens": self.prompt_tokens, "output_tokens": self.output_tokens}
        for key, length in lengths.items():
            if self.classes is not None and length is not None:
                yield key, "every class has its own; remove this one"
            if self.classes is None and self.trace is None and length is None:
                yield key, "missing; add a number of tokens, {p50, p95} or {mean, cv}"
        medians = [length.median for length in lengths.values() if length is not None]
        limit = self.max_context_tokens
        if limit is not None and sum(medians) > limit:
            yield (
                "max_context_tokens",
                f"{limit} is below the median prompt and output together "
                f"({sum(medians):.0f}); raise it",
            )
