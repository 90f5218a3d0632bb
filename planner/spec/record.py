"""``plan.json``: everything a plan rests on, found, and answers; renders without a model or price.

Numbers have 6 significant digits; None stands for "does not apply" or "without bound". The record
holds no wall clock, so the same inputs, seed and versions give the same bytes.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.spec.archive import ClassArchive
from planner.spec.base import Name, NonNegative, Positive, Spec, Whole
from planner.spec.calibration import Calibration
from planner.spec.offer import Offer
from planner.spec.option import Option
from planner.spec.trace import TraceSummary
from planner.spec.verification import Verification


class Inputs(Spec):
    """What the plan was asked.

    Attributes:
        slo: The whole of slo.yaml, by its own keys, defaults filled in.
        catalog_digest: SHA-256 over the catalog's files and price files.
        basis_digest: SHA-256 over the catalog's files but prices, which predictions rest on; None
            = the plan is of a version that did not note it.
        space: The whole search space, by its own keys.
        calibration: The calibration file that was applied; None = none.
        seed: Seed of the search.
        as_of: Date that prices are judged by, YYYY-MM-DD.
        trace: The trace whose figures stand in `slo`; None = slo.yaml named none.
    """

    slo: dict[str, Any]
    catalog_digest: Name
    basis_digest: Name | None = None
    space: dict[str, Any]
    calibration: Calibration | None = None
    seed: int
    as_of: Name
    trace: TraceSummary | None = None


MissKind = Literal["nearest", "within the purchase limits", "keeps the targets"]


class Miss(Spec):
    """A deployment that comes nearest to the targets, where none meets them.

    Attributes:
        kind: What it is nearest of: of all, of what quota, budget and power allow, or of what
            keeps the targets but not those.
        option: The deployment.
        excess: How far it is from meeting everything: the largest value / limit.
        misses: Limits that it breaks, in words with numbers (``TTFT p95 1310 ms, target 800``).
        would_do: Changes each of which would make it work, as a person would write them
            (``ttft_p95_ms: 1310``, ``rate_per_s: 7.9``, ``3 replicas more``).
    """

    kind: MissKind = "nearest"
    option: Option
    excess: Positive
    misses: tuple[str, ...]
    would_do: tuple[str, ...]


class Relaxation(Spec):
    """One limit of slo.yaml, moved as little as makes the plan work; all others stay.

    Attributes:
        limit: Its key in slo.yaml, with dots.
        asked: Its value there.
        needed: The nearest value that works.
        option: What would be bought then.
    """

    limit: Name
    asked: NonNegative
    needed: NonNegative
    option: Option


class SearchReport(Spec):
    """How the archive was found.

    Attributes:
        mode: ``search``: seeds, Optuna, polish; ``enumeration``: every candidate was scored.
        shapes: Shapes that the space holds after support and memory were masked.
        candidates: Deployments that those shapes stand for.
        scored: Deployments that the open-loop formula was asked for.
        trials: Trials of the Optuna study.
        proven: Every deployment not scored was shown, by its own bound, to be dominated or out
            of reach of the limits.
        missed: Points of the archive that the search had missed and the proof has added; None =
            no proof was asked for.
        simulated: Deployments that a second search, around the front, found to hold by simulation.
        hypervolume: Of the front, in log units of its own box.
        stopped: Why the search ended: ``fixed point``, ``trials``, ``time limit``, ``interrupted``.
    """

    mode: Literal["search", "enumeration"]
    shapes: Whole
    candidates: Whole
    scored: Whole
    trials: Whole
    proven: bool
    missed: Whole | None = None
    simulated: Whole = 0
    hypervolume: NonNegative
    stopped: Literal["fixed point", "trials", "time limit", "interrupted"]


class PlanRecord(Spec):
    """The plan.

    Attributes:
        schema_version: Version of this layout.
        planner_version: Version of the program.
        inputs: What was asked.
        offers: Price rows of the classes searched, which the purchase terms allow.
        archive: Per hardware class.
        options: The front, cheapest first: meets every limit, rests on evidence and clean prices
            (unless slo.yaml allows others), and nothing is at least as good in every objective.
        picks: Pick -> option id: cheapest, balanced, lowest_ttft, lowest_tpot, best_quality.
        shown: Ids of at most a dozen further options worth showing, thinned.
        untrusted: Options that would cost less than the cheapest pick, or stand alone, but rest
            on unvalidated evidence, a flagged price, or lie beyond the gates; ``flags`` says why.
        misses: Nearest misses; only where ``options`` is empty.
        relaxations: Limits that can be moved alone to make the plan work; only where ``options``
            is empty.
        obstacle: Why no deployment exists at all; empty = some do.
        assumptions: What the plan takes for granted, in sentences.
        search: How it was found.
        verification: Options that a simulation has checked, in that order; those that are not
            on the front did not hold, or were sized anew.
    """

    schema_version: Literal[1] = 1
    planner_version: Name
    inputs: Inputs
    offers: tuple[Offer, ...]
    archive: tuple[ClassArchive, ...]
    options: tuple[Option, ...]
    picks: dict[Name, Name]
    shown: tuple[Name, ...]
    untrusted: tuple[Option, ...]
    misses: tuple[Miss, ...]
    relaxations: tuple[Relaxation, ...] = ()
    obstacle: str = ""
    assumptions: tuple[str, ...]
    search: SearchReport
    verification: tuple[Verification, ...] = ()

    def simulated(self, option: Option) -> bool:
        """Return whether an option's upper latencies are simulated ones, not the formula's."""
        rows = {
            entry.row
            for archive in self.archive
            if archive.hardware.id == option.hardware
            for entry in archive.simulated
        }
        return option.archive_row in rows
