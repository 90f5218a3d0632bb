"""How firm a choice is: what ``sensitivity`` finds and reports show."""

from __future__ import annotations

from dataclasses import dataclass

from planner.spec.offer import Offer
from planner.spec.option import Option


@dataclass(frozen=True)
class Effect:
    """What becomes of a purchase when something changes; the purchase itself stays as it is.

    Attributes:
        usd_per_mtok_output: Price per million output tokens [USD].
        usd_per_hour: Price [USD/h]; offline the price of the whole run [USD].
        use: Largest share of any limit that is used, latencies with their margin, utilization
            against the headroom; above 1 = broken; None = without bound.
    """

    usd_per_mtok_output: float
    usd_per_hour: float
    use: float | None

    @property
    def holds(self) -> bool:
        """Whether every limit holds."""
        return self.use is not None and self.use <= 1.0


@dataclass(frozen=True)
class Bar:
    """One bar of a tornado: something is lower, and higher, than was planned.

    Attributes:
        driver: What changes.
        low_label, high_label: By how much.
        low, high: What becomes of the purchase.
    """

    driver: str
    low_label: str
    high_label: str
    low: Effect
    high: Effect


@dataclass(frozen=True)
class Flip:
    """The price at which something else would be bought in a pick's place.

    Attributes:
        usd_per_instance_hour: Price of the pick's own row from which on it is beaten.
        change: The same as a share of today's price: 0.08 = 8 % dearer.
        replacement: What would be bought: the cheapest that keeps every limit, does not rest on
            that price row, and is at least as good in all else that the pick was made for.
    """

    usd_per_instance_hour: float
    change: float
    replacement: Option


@dataclass(frozen=True)
class RateFlip:
    """From this rate on, another option of the front is the cheapest that keeps its limits."""

    rate_per_s: float
    option: str


@dataclass(frozen=True)
class Regret:
    """What a pick costs beyond the best option of the front, if a scenario comes true.

    Attributes:
        scenario: What comes true.
        holds: Whether the pick still keeps its limits.
        usd_per_hour: Extra cost against the cheapest option that does [USD/h], offline of the run;
            None = no option of the front keeps its limits then. At another price of its own,
            what would take its place counts too.
        best: Id of that option.
    """

    scenario: str
    holds: bool
    usd_per_hour: float | None
    best: str | None


@dataclass(frozen=True)
class BreakEven:
    """When a commitment beats paying by the hour, for the hardware class of a pick.

    Attributes:
        committed: Cheapest price row of a committed term.
        by_the_hour: Cheapest price row on demand.
        share_of_hours: Share of all hours from which on the commitment costs less; above 1 =
            never.
        base_replicas: Replicas that are needed for longer than that, if the fleet follows its
            load profile: commit to these, buy the others by the hour. None = it does not.
    """

    committed: Offer
    by_the_hour: Offer
    share_of_hours: float
    base_replicas: int | None = None


@dataclass(frozen=True)
class PickFirmness:
    """How firm one pick is.

    Attributes:
        option: Id.
        now: As planned.
        bars: Widest first.
        flip: None = nothing else could take its place.
        highest_rate: Largest rate at which the purchase keeps its limits [1/s]; None offline.
        fewer_rate: Largest rate at which one instance less would do [1/s]; None = it never does.
        regrets: Scenario by scenario.
        break_evens: Commitment by commitment; empty = no such price is known.
    """

    option: str
    now: Effect
    bars: tuple[Bar, ...]
    flip: Flip | None
    highest_rate: float | None
    fewer_rate: float | None
    regrets: tuple[Regret, ...]
    break_evens: tuple[BreakEven, ...] = ()


@dataclass(frozen=True)
class Firmness:
    """How firm the picks of a plan are.

    Attributes:
        change: Share by which prices, traffic and lengths were moved.
        picks: One for each distinct pick.
        rate_flips: Rates, rising, at which the cheapest option of the front changes.
    """

    change: float
    picks: tuple[PickFirmness, ...]
    rate_flips: tuple[RateFlip, ...]
