"""Many plans under shared limits: the limits as people write them, and the combined record."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.spec.base import Many, Name, NonNegative, Positive, Share, Spec, Text, Whole
from planner.spec.calibration import Calibration
from planner.spec.load import KeyFaultsError
from planner.spec.option import Option


class Quota(Spec):
    """Most GPUs of one kind that all plans together may buy.

    Attributes:
        accelerator, provider, region: What it counts; empty = any.
        instance_type, term: The same, finer.
        gpus: Most GPUs.
    """

    accelerator: str = ""
    provider: str = ""
    region: str = ""
    instance_type: str = ""
    term: str = ""
    gpus: Whole

    @property
    def names(self) -> tuple[str, str, str, str, str]:
        """What it counts; two quotas of the same names contradict each other."""
        return (self.accelerator, self.provider, self.region, self.instance_type, self.term)

    @model_validator(mode="after")
    def _counts_something(self) -> Self:
        if not any(self.names):
            message = "counts every GPU; write max_gpus instead, or name an accelerator"
            raise KeyFaultsError(("gpus", message))
        return self

    def counts(self, *have: str) -> bool:
        """Return whether it counts GPUs with these names, in the order of `names`."""
        pairs = zip(self.names, have, strict=True)
        return all(not want or want.casefold() == name.casefold() for want, name in pairs)


class Limits(Spec):
    """What all plans of a portfolio share (``--quota FILE``); nothing given = no limit.

    Attributes:
        max_gpus: Most GPUs of all plans together.
        budget_usd_per_hour: Most money of all plans together [USD/h].
        quotas: Most GPUs per accelerator, provider, region, or any of them together.
    """

    max_gpus: Whole | None = None
    budget_usd_per_hour: Positive | None = None
    quotas: Many[Quota] = ()

    @model_validator(mode="after")
    def _no_kind_twice(self) -> Self:
        named = [tuple(name.casefold() for name in quota.names) for quota in self.quotas]
        if len(set(named)) < len(named):
            raise KeyFaultsError(("quotas", "the same GPUs are limited twice; keep one"))
        return self


class Part(Spec):
    """One deployment of a choice.

    Attributes:
        share: Share of the requests that it serves.
        kinds: Kinds of request that it serves; empty = all alike.
        option: The deployment, sized for that share.
        simulated: Whether a simulation has checked that it meets its targets.
        needs: What must be had to deploy it, in words; empty = nothing.
    """

    share: Share
    kinds: tuple[Text, ...] = ()
    option: Option
    simulated: bool = False
    needs: str = ""


class Choice(Spec):
    """One way to serve a plan: one deployment, or a fleet of two.

    Attributes:
        parts: The deployments; their shares add up to 1.
        gpus: GPUs bought.
        usd_per_hour: What they cost together while they run [USD/h].
        mean_usd_per_hour: The same over the time that is asked for: offline, a run that takes
            half of its deadline costs half [USD/h]. This is what a portfolio saves on.
        usd_per_mtok_output: Per million output tokens at the mean rate.
        ttft_p95_ms, tpot_p95_ms: Of the slower part: that of all requests is no higher; None
            offline.
        quality_loss_percent: Mean over the requests of the middle of the evidence [%].
        quality_loss_p90_percent: Mean over the requests of its pessimistic end [%].
    """

    parts: Annotated[tuple[Part, ...], Field(min_length=1, max_length=2)]
    gpus: Whole
    usd_per_hour: Positive
    mean_usd_per_hour: Positive
    usd_per_mtok_output: Positive
    ttft_p95_ms: Positive | None
    tpot_p95_ms: Positive | None
    quality_loss_percent: float
    quality_loss_p90_percent: float


class Outline(Spec):
    """What a portfolio keeps of one finished plan; the plan itself is in its own file.

    Attributes:
        name: From the name of its slo.yaml.
        key: Digest of everything that the plan and its choices rest on.
        model: As slo.yaml names it.
        load: In words.
        options: Options on the plan's own front.
        proven: Whether that front, by the formula, is proven exact.
        choices: Ways to serve it, none of which another beats in cost and in every shared limit.
        fleets: Fleets of two deployments that cost less than every single one; of those, the
            ones that nothing beats in cost, latencies and quality, cheapest first.
        misses: Where it has no option: what the nearest deployments break.
        would_do: Changes that would make one of those work.
    """

    name: Name
    key: Name
    model: Text
    load: Text
    options: Whole
    proven: bool
    choices: tuple[Choice, ...]
    fleets: tuple[Choice, ...] = ()
    misses: tuple[str, ...] = ()
    would_do: tuple[str, ...] = ()


class Planned(Spec):
    """One plan of a portfolio.

    Attributes:
        name, model, load, options, proven, fleets: As in Outline.
        file: Its plan.json, from the folder of the portfolio; empty = not kept.
        chosen: How it is served; None = it is not.
        alone_usd_per_hour: What it would cost if it shared nothing [USD/h]; None = nothing meets
            its targets.
        why: Why it is not served; empty = it is.
        would_do: What would serve it, as a person would do it.
    """

    name: Name
    model: Text
    load: Text
    file: str
    options: Whole
    proven: bool
    chosen: Choice | None
    alone_usd_per_hour: Positive | None
    fleets: tuple[Choice, ...] = ()
    why: str = ""
    would_do: tuple[str, ...] = ()


class LimitUse(Spec):
    """One shared limit: what it allows and what the chosen deployments take."""

    limit: Text
    most: NonNegative
    used: NonNegative


class PortfolioRecord(Spec):
    """The combined record.

    Attributes:
        schema_version, planner_version: Of this layout, and of the program.
        catalog_digest, space, calibration, seed, as_of: What all plans were asked with.
        limits: Shared limits.
        plans: In the order of the files.
        served: Plans that are served.
        usd_per_hour: What all chosen deployments cost while they run [USD/h].
        mean_usd_per_hour: The same over the time that is asked for; what is minimised.
        bound_mean_usd_per_hour: What no choice that serves as many plans can cost less than.
        gpus: GPUs of all chosen deployments.
        exact: Whether it is proven that none of the choices found serves more plans, nor as many
            for less, by the formula's figures.
        uses: Every shared limit.
        assumptions: What the portfolio takes for granted, in sentences.
    """

    schema_version: Literal[1] = 1
    planner_version: Name
    catalog_digest: Name
    space: Name
    calibration: Calibration | None = None
    seed: int
    as_of: Name
    limits: Limits
    plans: tuple[Planned, ...]
    served: Whole
    usd_per_hour: NonNegative
    mean_usd_per_hour: NonNegative
    bound_mean_usd_per_hour: NonNegative
    gpus: Whole
    exact: bool
    uses: tuple[LimitUse, ...]
    assumptions: tuple[str, ...]
