"""What a benchmark run says about a plan's option: a verdict for every target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from planner.spec.option import Option, TargetResult
from planner.spec.record import PlanRecord
from planner.spec.result import Result

Verdict = Literal["holds", "misses", "not measured", "not comparable"]

TOLERANCE = 0.05
"""A load counts as the planned one within this share."""
BEYOND = 5
"""Requests that must lie beyond a percentile for it to say anything."""
_KEY = re.compile(r"(ttft|tpot|itl|e2e)_p(\d+)_ms")


@dataclass(frozen=True)
class Planned:
    """The load that an option was sized for.

    Attributes:
        rate_per_s: On what was measured: all replicas, or some of them.
        prompt_tokens, output_tokens: Mean lengths; None = those of a trace.
    """

    rate_per_s: float
    prompt_tokens: float | None
    output_tokens: float | None


@dataclass(frozen=True)
class Check:
    """One target.

    Attributes:
        key: As in slo.yaml.
        limit: The target, in the key's unit.
        predicted, upper: Prediction without and with margin; None = without bound.
        simulated: By the plan's simulation; None = not simulated.
        measured: By the run; None = not measured.
        measured_as: The percentile that was measured (``p95``, or a neighbour that decides).
        verdict: What follows.
        reason: Why, where it is neither plainly held nor missed.
    """

    key: str
    limit: float
    predicted: float | None
    upper: float | None
    simulated: float | None
    measured: float | None
    measured_as: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Checked:
    """A run beside an option.

    Attributes:
        option: Id.
        result: The run.
        planned: The load that it should have had.
        checks: Every target.
        notes: What makes the run a poor witness.
    """

    option: str
    result: Result
    planned: Planned
    checks: tuple[Check, ...]
    notes: tuple[str, ...]

    @property
    def holds(self) -> bool | None:
        """Whether every target holds; None if none was missed but some could not be judged."""
        verdicts = {check.verdict for check in self.checks}
        if "misses" in verdicts:
            return False
        return True if verdicts == {"holds"} else None


def verify(record: PlanRecord, option: Option, result: Result, planned: Planned) -> Checked:
    """Judge every target of an option by a run.

    A run whose load is no lighter than planned and whose latency is within the limit shows that
    the target holds; one no heavier and beyond the limit, that it does not; anything else says
    nothing.

    Args:
        record: The plan.
        option: The option that was measured.
        result: The run.
        planned: The load that the option was sized for.
    """
    gap = _gap(result, planned)
    simulated = _simulated(record, option)
    checks = (_check(target, result, gap, simulated) for target in option.targets)
    return Checked(
        option=option.id,
        result=result,
        planned=planned,
        checks=tuple(checks),
        notes=tuple(_notes(result, option)),
    )


@dataclass(frozen=True)
class _Gap:
    """How a run's load differs from the plan's, in words; empty = it does not."""

    lighter: str
    heavier: str


def _gap(result: Result, planned: Planned) -> _Gap:
    measured = {
        "rate": (result.achieved_per_s or result.rate_per_s, planned.rate_per_s, "requests/s"),
        "prompts": (result.prompt_tokens, planned.prompt_tokens, "tokens"),
        "outputs": (result.output_tokens, planned.output_tokens, "tokens"),
    }
    lighter: list[str] = []
    heavier: list[str] = []
    for name, (found, wanted, unit) in measured.items():
        if wanted is None:
            continue
        if found is None:
            lighter.append(f"{name} not in the file")
            heavier.append(f"{name} not in the file")
        elif found < wanted * (1 - TOLERANCE):
            lighter.append(f"{name} {found:.4g} {unit}, planned {wanted:.4g}")
        elif found > wanted * (1 + TOLERANCE):
            heavier.append(f"{name} {found:.4g} {unit}, planned {wanted:.4g}")
    return _Gap("; ".join(lighter), "; ".join(heavier))


def _check(
    target: TargetResult, result: Result, gap: _Gap, simulated: Mapping[str, float]
) -> Check:
    reading = _read(target, result)
    verdict, reason = _judge(reading, target.limit, result, gap)
    return Check(
        key=target.key,
        limit=target.limit,
        predicted=target.predicted,
        upper=target.upper,
        simulated=simulated.get(target.key),
        measured=reading.value,
        measured_as="" if reading.share is None else f"p{reading.share:g}",
        verdict=verdict,
        reason=reason,
    )


@dataclass(frozen=True)
class _Reading:
    """What a run shows of a target: a percentile [%] and its value, or why there is none."""

    asked: float = 0.0
    share: float | None = None
    value: float | None = None
    missing: str = ""


def _read(target: TargetResult, result: Result) -> _Reading:
    match = _KEY.fullmatch(target.key)
    if match is None:
        return _Reading(missing="a benchmark run does not show it")
    metric, asked = match.group(1), float(match.group(2))
    statistics = result.statistics(metric)
    if statistics is None or not statistics.percentiles:
        return _Reading(missing=f"no percentiles of {metric.upper()} in the file")
    share, value = _deciding(statistics.percentiles, asked, target.limit)
    return _Reading(asked, share, value)


def _deciding(
    percentiles: Mapping[float, float], asked: float, limit: float
) -> tuple[float, float]:
    """Return the percentile that decides.

    It is the one asked; else a higher one within the limit, or a lower one beyond it; else the
    nearest, which decides nothing.
    """
    if asked in percentiles:
        return asked, percentiles[asked]
    higher = [(s, v) for s, v in sorted(percentiles.items()) if s > asked and v <= limit]
    lower = [(s, v) for s, v in sorted(percentiles.items()) if s < asked and v > limit]
    nearest = min(percentiles.items(), key=lambda item: abs(item[0] - asked))
    return (higher[:1] or lower[-1:] or [nearest])[0]


def _judge(reading: _Reading, limit: float, result: Result, gap: _Gap) -> tuple[Verdict, str]:
    if reading.value is None or reading.share is None:
        return "not measured", reading.missing
    share, asked = reading.share, reading.asked
    inside = reading.value <= limit
    failed = result.failed_share * 100
    beyond = result.requests * (100 - share) / 100
    rules: tuple[tuple[bool, Verdict, str], ...] = (
        (failed > 100 - asked, "misses", f"{failed:.3g} % of the requests failed"),
        (
            share != asked and inside != (share > asked),
            "not measured",
            f"p{share:g} alone does not decide p{asked:g}",
        ),
        (
            inside and beyond < BEYOND,
            "not measured",
            f"{result.requests} requests are too few for p{share:g}",
        ),
        (
            inside and bool(gap.lighter),
            "not comparable",
            f"lighter than planned: {gap.lighter}",
        ),
        (
            not inside and bool(gap.heavier),
            "not comparable",
            f"heavier than planned: {gap.heavier}",
        ),
    )
    decided = next(((verdict, why) for applies, verdict, why in rules if applies), None)
    return decided or ("holds" if inside else "misses", "")


def _simulated(record: PlanRecord, option: Option) -> dict[str, float]:
    """Return the simulated percentiles of an option by target key."""
    found = (check for check in record.verification if check.option == option.id)
    check = next(found, None)
    if check is None:
        return {}
    return {
        latency.key: latency.simulated_ms
        for latency in check.latencies
        if latency.simulated_ms is not None
    }


def _notes(result: Result, option: Option) -> Iterator[str]:
    yield from result.notes
    if result.load != "open_loop":
        yield (
            f"a {result.load.replace('_', ' ')} run: its arrivals wait for the server, so that it "
            "shows shorter queues than requests that come by themselves"
        )
    if result.speculated and option.speculation == "off":
        yield "the server speculated, the option does not"
    if result.failed:
        yield f"{result.failed} of {result.requests + result.failed} requests failed"
