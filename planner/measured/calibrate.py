"""Own benchmark runs -> factors on predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

from planner.candidates.points import SCORED, PointResolver, Rejected, Resolved, to_batch
from planner.candidates.score import score_points
from planner.catalog import Catalog
from planner.files import Document
from planner.model.bounds import bound_prefill, bound_tpot
from planner.spec.calibration import (
    Calibration,
    CalibrationEntry,
    CalibrationKey,
    Factor,
    Rejection,
)
from planner.spec.load import load
from planner.spec.point import Point
from planner.spec.result import Result
from planner.units import MILLI

TOLERANCE = 0.98
"""Clocks and token counts of a benchmark are taken to be right to 2 %."""
FEWEST = 2
"""Runs that a factor needs: one alone is as likely to make the next prediction worse."""
METRICS = ("ttft", "tpot")


class Spread(NamedTuple):
    """Standard deviations of ln(measured / predicted): of groups' medians, and inside a group."""

    between: float
    within: float


SPREADS: Mapping[str, Spread] = {"ttft": Spread(0.18, 0.30), "tpot": Spread(0.12, 0.10)}
"""Of groups of one model family, accelerator, engine generation and weight format, with the family
left out of the fit. Source: tests/published/left_out.csv; a test computes them anew."""


@dataclass(frozen=True)
class Measured:
    """A run and the deployment that it measured.

    Attributes:
        point: The deployment, under the load of the run.
        result: What the tool measured.
    """

    point: Point
    result: Result


def under_load(point: Point, result: Result) -> Point:
    """Return a deployment with its load replaced by that of a run.

    Raises:
        InputError: The run states a load that is none.
    """
    asked = {
        "kind": result.load,
        "concurrency": result.concurrency,
        "rate_per_s": result.rate_per_s if result.load == "open_loop" else None,
        "num_requests": float(result.requests + result.failed),
        "prompt_tokens": result.prompt_tokens,
        "output_tokens": result.output_tokens,
        "length_factor": 1.0,
    }
    return load(Document(result.name, point.model_dump() | asked, {}), Point)


def calibrate(catalog: Catalog, runs: Sequence[Measured], date: str) -> Calibration:
    """Fit one factor for TTFT and one for TPOT per model, accelerator, engine and weights.

    Args:
        catalog: Whose predictions are corrected.
        runs: Runs and the deployments that they measured.
        date: When they were made, YYYY-MM-DD.

    Returns:
        Entries of keys with two usable runs or more; every other run is listed with the reason.
    """
    usable, rejected = _usable(catalog, runs)
    entries: list[CalibrationEntry] = []
    for key in dict.fromkeys(run.key for run in usable):
        group = [run for run in usable if run.key == key]
        if len(group) < FEWEST:
            rejected.append(Rejection(source=group[0].name, reason=_alone(key)))
            continue
        entries.append(
            CalibrationEntry(
                **key._asdict(),
                ttft=fit([run.ttft for run in group if run.ttft is not None], "ttft"),
                tpot=fit([run.tpot for run in group if run.tpot is not None], "tpot"),
                sources=tuple(run.name for run in group),
            )
        )
    return Calibration(
        date=date,
        catalog_digest=catalog.digest,
        entries=tuple(entries),
        rejected=tuple(rejected),
    )


def _alone(key: CalibrationKey) -> str:
    return (
        f"the only run of {key.model} {key.weights} on {key.accelerator}, {key.generation}; "
        "a factor needs two, best at other batch sizes or lengths"
    )


def fit(ratios: Sequence[float], metric: str) -> Factor | None:
    """Return the factor that measured / predicted ratios give; None for fewer than two.

    The median of the logarithms is drawn towards 0 by n / (n + k), k = (within / between)^2: the
    best estimate of a group's own error from n runs, if groups and runs scatter log-normally.

    Args:
        ratios: Measured / predicted of each run.
        metric: ttft or tpot.

    Source:
        C. N. Morris, "Parametric Empirical Bayes Inference", J. Am. Stat. Assoc. 78(381), 1983,
        doi:10.1080/01621459.1983.10477920.

    >>> fit([1.2, 1.2, 1.2], "tpot").value
    1.1596
    """
    if len(ratios) < FEWEST:
        return None
    others = [[*ratios[:i], *ratios[i + 1 :]] for i in range(len(ratios))]
    corrected = [
        ratio / _estimate(rest, metric) for ratio, rest in zip(ratios, others, strict=True)
    ]
    return Factor(
        value=_rounded(_estimate(ratios, metric)),
        low=_rounded(min(ratios)),
        high=_rounded(max(ratios)),
        points=len(ratios),
        error_before=_rounded(_error(ratios)),
        error_after=_rounded(_error(corrected)),
    )


def _estimate(ratios: Sequence[float], metric: str) -> float:
    between, within = SPREADS[metric]
    weight = len(ratios) / (len(ratios) + (within / between) ** 2)
    return math.exp(weight * median(math.log(ratio) for ratio in ratios))


def _error(ratios: Sequence[float]) -> float:
    return sum(abs(1.0 / ratio - 1.0) for ratio in ratios) / len(ratios)


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


@dataclass(frozen=True)
class _Usable:
    """A run with its measured / predicted ratios."""

    name: str
    key: CalibrationKey
    ttft: float | None
    tpot: float | None


def _usable(catalog: Catalog, runs: Sequence[Measured]) -> tuple[list[_Usable], list[Rejection]]:
    resolver = PointResolver(catalog)
    scores = score_points(catalog, [run.point for run in runs])
    usable: list[_Usable] = []
    rejected: list[Rejection] = []
    for run, score in zip(runs, scores, strict=True):
        found = resolver.resolve(run.point)
        reasons = [] if score.status in SCORED else [score.reason]
        if isinstance(found, Resolved) and not reasons:
            reasons = list(impossible(catalog, found, run.result))
        if isinstance(found, Rejected) or reasons:
            reason = "; ".join(reasons) or "cannot be scored"
            rejected.append(Rejection(source=run.result.name, reason=reason))
            continue
        usable.append(
            _Usable(
                name=run.result.name,
                key=CalibrationKey(
                    found.architecture.id,
                    found.hardware.accelerator.id,
                    found.stack.generation.id,
                    found.weights.id,
                ),
                ttft=_ratio(run.result, "ttft", score.figures),
                tpot=_ratio(run.result, "tpot", score.figures),
            )
        )
    return usable, rejected


def _ratio(result: Result, metric: str, figures: Mapping[str, float]) -> float | None:
    measured = result.statistics(metric)
    predicted = figures.get(f"{metric}_ms", math.nan)
    if measured is None or not measured.mean or not predicted > 0 or math.isinf(predicted):
        return None
    return measured.mean / predicted


def impossible(catalog: Catalog, found: Resolved, result: Result) -> Iterator[str]:
    """Yield why a run cannot have measured this deployment: it beats the speed of light.

    The bound of TPOT is that of the batch which the run itself shows: output tokens per second
    x TPOT = sequences that decode at once (Little's law).

    Args:
        catalog: For the fitted values.
        found: The deployment.
        result: The run.
    """
    if result.speculated and found.method is None:
        yield "the server speculated, the deployment says that it does not; name the method"
        return
    candidate = to_batch(catalog, [found], [0]).candidates
    prompt = np.array([result.prompt_tokens])
    copies = found.point.copies * found.point.dp
    if result.tpot is not None and result.tpot.mean:
        seconds = result.tpot.mean * MILLI
        sequences = max((result.output_tokens_per_s or 0.0) * seconds / copies, 1.0)
        context = prompt + 0.5 * result.output_tokens
        bound = float(bound_tpot(candidate, np.array([sequences]), context)[0])
        if seconds < TOLERANCE * bound:
            yield (
                f"TPOT {result.tpot.mean:.4g} ms beats the bound of {bound / MILLI:.4g} ms that "
                "memory bandwidth and arithmetic set; was speculation on, were the weights "
                f"lighter than {found.weights.id}, or were there more GPUs than "
                f"{found.point.tp * found.point.pp * found.point.dp} a replica?"
            )
    if result.ttft is not None and result.ttft.mean:
        bound = float(bound_prefill(candidate, prompt)[0])
        if result.ttft.mean * MILLI < TOLERANCE * bound:
            yield (
                f"TTFT {result.ttft.mean:.4g} ms beats the bound of {bound / MILLI:.4g} ms for a "
                f"prompt of {result.prompt_tokens:.0f} tokens; did the prefix cache serve "
                "repeated prompts, or are the prompts shorter?"
            )
