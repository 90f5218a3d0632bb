"""The outlines of all plans and the shared limits -> one way for each, and the combined record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.catalog import Catalog
from planner.errors import Fault, InputError, suggestion
from planner.model.arrays import Floats
from planner.pareto import rounded
from planner.search.portfolio import UNSERVED, Chosen, choose
from planner.search.portfolio import Menu as Ways
from planner.spec.option import Option
from planner.spec.portfolio import (
    Choice,
    Limits,
    LimitUse,
    Outline,
    Part,
    Planned,
    PortfolioRecord,
    Quota,
)

BY_FORMULA = "Costs, and what is proven of them, are the formula's"
SLOWER_PART = (
    "Latencies of a fleet are those of its slower part; over all requests they are no higher."
)
HOURLY = "Limits hold for the hour that plans are sized for; batch jobs count while they run."
UNPROVEN = "Some fronts are not proven exact: a way that costs less may have been missed."
NAMED = 3
"""Plans named before a sentence that is true of their deployments; the rest are counted."""


@dataclass(frozen=True)
class Shared:
    """Shared limits with the names of the catalog.

    Attributes:
        limits: As given.
        counted: Quotas: the given ones, then those that offers state for the buyer.
    """

    limits: Limits
    counted: tuple[Quota, ...]

    def most(self) -> Floats:
        """Return what each limit allows: USD/h, GPUs, quotas; infinity = anything."""
        budget, gpus = self.limits.budget_usd_per_hour, self.limits.max_gpus
        given = [np.inf if limit is None else limit for limit in (budget, gpus)]
        return np.array([*given, *(quota.gpus for quota in self.counted)], dtype=float)

    def uses(self, choice: Choice) -> Floats:
        """Return what a choice takes of each limit."""
        bought = [(_names(part.option), part.option.gpus) for part in choice.parts]
        quotas = (
            sum(gpus for names, gpus in bought if quota.counts(*names)) for quota in self.counted
        )
        return np.array([choice.usd_per_hour, choice.gpus, *quotas], dtype=float)

    def words(self) -> list[str]:
        """Return what each limit counts, in words."""
        return ["USD/h", "GPUs", *(_counted(quota) for quota in self.counted)]


def _names(option: Option) -> tuple[str, str, str, str, str]:
    price = option.money.price
    return (
        option.accelerator,
        option.provider,
        option.region,
        price.instance_type,
        price.term,
    )


def _counted(quota: Quota) -> str:
    accelerator, provider, region, instance, term = quota.names
    what = " ".join(part for part in (instance, accelerator, term.replace("_", " ")) if part)
    where = " ".join(part for part in (provider, region) if part)
    return " at ".join(part for part in (f"{what} GPUs".strip(), where) if part)


def shared_limits(limits: Limits, catalog: Catalog) -> Shared:
    """Return the limits with the names of the catalog, and what its offers limit by themselves.

    Raises:
        InputError: A quota names what no offer has.
    """
    faults = [
        fault for n, quota in enumerate(limits.quotas) for fault in _faults(n, quota, catalog)
    ]
    if faults:
        raise InputError("quotas", faults)
    given = [
        quota.model_copy(update={"accelerator": catalog.accelerator(quota.accelerator).id})
        if quota.accelerator
        else quota
        for quota in limits.quotas
    ]
    stated = [
        Quota(
            accelerator=offer.accelerator,
            provider=offer.provider,
            region=offer.region,
            instance_type=offer.instance_type,
            term=offer.term,
            gpus=offer.quota_instances * offer.gpus,
        )
        for offer in catalog.offers
        if offer.quota_instances is not None
    ]
    return Shared(limits, (*given, *stated))


def _faults(number: int, quota: Quota, catalog: Catalog) -> Iterator[Fault]:
    if quota.accelerator:
        try:
            catalog.accelerator(quota.accelerator)
        except InputError as error:
            yield from (
                Fault("", f"quotas[{number}].accelerator", fault.message) for fault in error.faults
            )
    for key in ("provider", "region", "instance_type", "term"):
        name, known = getattr(quota, key), {getattr(offer, key) for offer in catalog.offers}
        if name and name.casefold() not in {one.casefold() for one in known}:
            hint = suggestion(name, known) or "; see `plan prices list`"
            yield Fault("", f"quotas[{number}].{key}", f"no offer has '{name}'{hint}")


def combined(
    outlines: Sequence[tuple[Outline, str]],
    shared: Shared,
    header: dict[str, Any],
    assumed: Callable[[int, Choice], Iterable[str]],
) -> PortfolioRecord:
    """Return the record of one way for each plan, at the least cost of all together.

    Args:
        outlines: Of each plan, with its file.
        shared: Limits.
        header: Further fields of the record.
        assumed: What a way to serve the plan of this number rests on, in sentences.
    """
    most = shared.most()
    uses = [[shared.uses(choice) for choice in outline.choices] for outline, _ in outlines]
    menus = [_ways(outline, used, most) for (outline, _), used in zip(outlines, uses, strict=True)]
    chosen = choose(menus, most)
    used = sum(
        (uses[plan][row] for plan, row in enumerate(chosen.rows) if row != UNSERVED),
        np.zeros(len(most)),
    )
    plans = tuple(
        _planned(outline, file, row, _Room(shared, most, used))
        for (outline, file), row in zip(outlines, chosen.rows, strict=True)
    )
    taken = [plan.chosen for plan in plans if plan.chosen is not None]
    limits = zip(shared.words(), most, used, strict=True)
    return PortfolioRecord(
        **header,
        limits=shared.limits,
        plans=plans,
        served=len(taken),
        usd_per_hour=_short(sum(choice.usd_per_hour for choice in taken)),
        mean_usd_per_hour=_short(chosen.cost),
        bound_mean_usd_per_hour=_short(chosen.bound),
        gpus=sum(choice.gpus for choice in taken),
        exact=chosen.exact,
        uses=tuple(
            LimitUse(limit=word, most=float(limit), used=_short(amount))
            for word, limit, amount in limits
            if np.isfinite(limit)
        ),
        assumptions=(
            *_assumptions(plans, chosen),
            *_of_deployments(
                (plan.name, assumed(number, plan.chosen))
                for number, plan in enumerate(plans)
                if plan.chosen is not None
            ),
        ),
    )


def _ways(outline: Outline, uses: Sequence[Floats], most: Floats) -> Ways:
    cost = np.array([choice.mean_usd_per_hour for choice in outline.choices])
    return Ways(cost, np.array(uses).reshape(len(cost), len(most)))


@dataclass(frozen=True)
class _Room:
    """Shared limits, what each allows, and what the chosen ways take of it."""

    shared: Shared
    most: Floats
    used: Floats

    def over(self, choice: Choice) -> Floats:
        """Return what a choice needs of each limit beyond what is left of it."""
        lacks: Floats = np.maximum(self.shared.uses(choice) - (self.most - self.used), 0.0)
        return lacks

    def alone(self, choice: Choice) -> bool:
        """Return whether a choice keeps the limits if nothing else is served."""
        return bool((self.shared.uses(choice) <= self.most).all())


def _planned(outline: Outline, file: str, row: int, room: _Room) -> Planned:
    costs = [choice.mean_usd_per_hour for choice in outline.choices]
    why, would_do = ("", ()) if row != UNSERVED else _unserved(outline, room)
    return Planned(
        name=outline.name,
        model=outline.model,
        load=outline.load,
        file=file,
        options=outline.options,
        proven=outline.proven,
        chosen=None if row == UNSERVED else outline.choices[row],
        alone_usd_per_hour=min(costs, default=None),
        fleets=_fleets(outline, room),
        why=why,
        would_do=would_do,
    )


def _fleets(outline: Outline, room: _Room) -> tuple[Choice, ...]:
    """Return the fleets that keep the limits and cost less than every single deployment that does.

    The cheapest first.
    """
    able = [choice for choice in (*outline.choices, *outline.fleets) if room.alone(choice)]
    single = [choice.mean_usd_per_hour for choice in able if len(choice.parts) == 1]
    best = min(single, default=np.inf)
    fleets = [c for c in able if len(c.parts) > 1 and c.mean_usd_per_hour < best]
    distinct = {choice.model_dump_json(): choice for choice in fleets}
    return tuple(sorted(distinct.values(), key=lambda choice: choice.mean_usd_per_hour))


def _unserved(outline: Outline, room: _Room) -> tuple[str, tuple[str, ...]]:
    """Return why a plan is not served, and what would serve it."""
    if not outline.choices:
        why = "; ".join(outline.misses) or "nothing for sale meets its targets"
        return f"no deployment meets its targets: {why}", outline.would_do
    lacks = [room.over(choice) for choice in outline.choices]
    base = np.maximum(np.where(np.isfinite(room.most), room.most, 1.0), 1.0)
    nearest = min(range(len(lacks)), key=lambda i: (float((lacks[i] / base).max()), i))
    wants = [
        f"{_lacking(_amount(lack), word)} more"
        for lack, word in zip(lacks[nearest], room.shared.words(), strict=True)
        if lack > 0
    ]
    return "the shared limits leave no room for it", (" and ".join(wants),)


def _lacking(amount: str, word: str) -> str:
    """Return an amount of what a limit counts: 1 GPU, 2 a2 GPUs at gcp."""
    return f"{amount} {word.replace('GPUs', 'GPU', 1) if amount == '1' else word}"


def _amount(value: float) -> str:
    return f"{np.ceil(value * 100) / 100:g}"


def _assumptions(plans: Sequence[Planned], chosen: Chosen) -> Iterator[str]:
    if any(plan.chosen for plan in plans):
        yield _checked(plans)
    yield HOURLY
    if any(len(plan.chosen.parts) > 1 for plan in plans if plan.chosen) or any(
        plan.fleets for plan in plans
    ):
        yield SLOWER_PART
    if not all(plan.proven for plan in plans):
        yield UNPROVEN
    if not chosen.exact:
        gap = chosen.cost / chosen.bound - 1.0 if chosen.bound > 0 else np.inf
        yield (
            "The choice under shared limits is not proven best: at the same number of plans "
            f"served, none costs less by more than {gap:.2%}."
        )


def _of_deployments(told: Iterable[tuple[str, Iterable[str]]]) -> Iterator[str]:
    """Yield each sentence once, after the plans whose deployments it is true of."""
    plans: dict[str, list[str]] = {}
    for name, sentences in told:
        for sentence in sentences:
            plans.setdefault(sentence, []).append(name)
    for sentence, names in plans.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"{', '.join(names[:NAMED])}{more}: {sentence}"


def _checked(plans: Sequence[Planned]) -> str:
    """Return how far simulations have checked what is chosen, in a sentence."""
    served = [plan for plan in plans if plan.chosen is not None]
    open_ = [plan for plan in served if not all(part.simulated for part in _parts(plan))]
    batch = [plan.name for plan in open_ if _is_batch(plan)]
    others = [plan.name for plan in open_ if not _is_batch(plan)]
    if len(open_) == len(served):
        found = "no simulation has checked the chosen deployments"
    elif others:
        found = f"no simulation has checked the deployments for: {', '.join(others)}"
    else:
        found = "simulations have checked the chosen deployments, no others"
    never = f"; batch jobs are not simulated: {', '.join(batch)}" if batch else ""
    return f"{BY_FORMULA}; {found}{never}."


def _is_batch(plan: Planned) -> bool:
    return any(part.option.run_hours is not None for part in _parts(plan))


def _parts(plan: Planned) -> tuple[Part, ...]:
    return plan.chosen.parts if plan.chosen is not None else ()


def _short(value: float) -> float:
    return float(rounded(value))
