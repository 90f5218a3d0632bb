"""slo.yaml -> the load as the model sees it, and the targets of each kind of request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Floats
from planner.model.batching import Load, all_at_once
from planner.model.mixture import Mixture, mixture
from planner.model.queueing import safe_share
from planner.model.workload import Workload, workload
from planner.spec.lengths import Lengths
from planner.spec.slo import Slo

RANKS = (np.arange(200) + 0.5) / 200
"""Ranks at which the sum of prompt and output is tabulated."""
BETWEEN = ("tpot", "itl")
"""Metrics of the time between tokens."""
NEARLY_ALL = 1 - 1e-6
EVERY = -1
"""Number of no kind: all requests together."""


@dataclass(frozen=True)
class Kind:
    """One kind of request: its name (empty if there is only one), share and lengths."""

    name: str
    share: float
    prompt: Lengths
    output: Lengths

    @property
    def decodes(self) -> bool:
        """Whether any output has a second token: else there is no time between tokens."""
        return round(self.output.quantile(NEARLY_ALL)) > 1


@dataclass(frozen=True)
class Target:
    """A latency target.

    Attributes:
        key: ``ttft_p95_ms``; that of one kind of request ``chat.ttft_p95_ms``.
        metric: ttft, tpot, itl or e2e.
        percentile: In percent.
        limit: Longest value [ms].
        kind: Number of the kind of request that it is about; EVERY = all together.
    """

    key: str
    metric: str
    percentile: int
    limit: float
    kind: int = EVERY


def kinds(slo: Slo) -> tuple[Kind, ...]:
    """Return the kinds of requests: the classes of slo.yaml, or the only one."""
    traffic = slo.traffic
    if traffic.classes is not None:
        return tuple(
            Kind(one.name, one.share, one.prompt_tokens, one.output_tokens)
            for one in traffic.classes
        )
    if traffic.prompt_tokens is None or traffic.output_tokens is None:
        raise ValueError("the traffic has no lengths; a trace must be read first")
    return (Kind("", 1.0, traffic.prompt_tokens, traffic.output_tokens),)


def targets(slo: Slo) -> tuple[Target, ...]:
    """Return every latency target: those of the file hold for each class without its own.

    Without those on the time between tokens of requests that get a single one: they always hold.
    """
    classes = slo.traffic.classes
    gaps = decodes(slo)
    if classes is None:
        wanted = slo.targets.items()
        return tuple(Target(_key(m, p), m, p, x) for m, p, x in wanted if gaps or m not in BETWEEN)
    apart = {"itl": [gaps] * len(classes), "tpot": [kind.decodes for kind in kinds(slo)]}
    return tuple(
        Target(f"{one.name}.{_key(m, p)}", m, p, limit, number)
        for number, one in enumerate(classes)
        for m, p, limit in (one.slo.items() or slo.targets.items())
        if m not in apart or apart[m][number]
    )


def decodes(slo: Slo) -> bool:
    """Return whether any request gets a second token."""
    traffic = slo.traffic
    unread = traffic.classes is None and traffic.output_tokens is None
    return unread or any(kind.decodes for kind in kinds(slo))


def _key(metric: str, percentile: int) -> str:
    return f"{metric}_p{percentile}_ms"


def metric_of(key: str) -> str:
    """Return the metric of a target's key."""
    return key.rsplit(".", maxsplit=1)[-1].split("_", maxsplit=1)[0]


def mean_lengths(slo: Slo) -> tuple[float, float]:
    """Return the mean prompt and output [tokens]."""
    every = kinds(slo)
    total = sum(kind.share for kind in every)
    means = [_means(kind, slo.traffic.longest) for kind in every]
    return (
        sum(kind.share * prompt for kind, (prompt, _) in zip(every, means, strict=True)) / total,
        sum(kind.share * output for kind, (_, output) in zip(every, means, strict=True)) / total,
    )


def _means(kind: Kind, longest: int | None) -> tuple[float, float]:
    """Return the mean prompt and output of a kind, cut at the longest request [tokens]."""
    both = kind.prompt.quantile(NEARLY_ALL) + kind.output.quantile(NEARLY_ALL)
    if longest is None or both <= longest:
        return kind.prompt.mean, kind.output.mean
    cut = workload(kind.prompt.quantile, kind.output.quantile, longest=longest)
    return cut.prompt_mean, cut.output_mean


def of_model(slo: Slo, context_tokens: int) -> Slo:
    """Return slo.yaml with its requests cut at the longest context of its model [tokens]."""
    return slo.model_copy(update={"traffic": slo.traffic.within(context_tokens)})


def job_load(slo: Slo, rows: int, requests: float | None = None) -> Load:
    """Return the requests of slo.yaml, all at once, as the load of each of some candidates.

    Args:
        slo: Lengths, and the offline job.
        rows: Candidates.
        requests: Requests of the job; None = those of slo.yaml, one where it states no job.
    """
    offline = slo.traffic.offline
    stated = 1.0 if offline is None else offline.requests
    prompt, output = mean_lengths(slo)
    return all_at_once(
        prompt,
        output,
        stated if requests is None else requests,
        prefix_hit=slo.traffic.prefix_hit_rate,
        rows=rows,
    )


def context_quantile(slo: Slo, share: float) -> float:
    """Return the quantile of prompt + output [tokens] over all kinds of requests, before a cut."""
    every = kinds(slo)
    if len(every) == 1:
        return float(np.quantile(_sums(every[0].prompt, every[0].output), share))
    values, weight = _contexts(every)
    order = np.argsort(values, kind="stable")
    ranks = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][np.searchsorted(ranks, share)])


def longer_share(slo: Slo, limit: float) -> float:
    """Return the share of the requests of which prompt and output are longer than that [tokens]."""
    values, weight = _contexts(kinds(slo))
    return float(weight[values > limit].sum() / weight.sum())


def _contexts(every: Sequence[Kind]) -> tuple[Floats, Floats]:
    """Return prompt + output [tokens] of equally likely requests of each kind, and their weight."""
    sums = [_sums(kind.prompt, kind.output) for kind in every]
    return np.concatenate(sums), np.repeat([kind.share for kind in every], len(sums[0]))


def _sums(prompt: Lengths, output: Lengths) -> Floats:
    p = np.array([prompt.quantile(float(rank)) for rank in RANKS])
    o = np.array([output.quantile(float(rank)) for rank in RANKS])
    sums: Floats = (p[:, None] + o).ravel()
    return sums


def slo_mixture(slo: Slo) -> Mixture:
    """Return the statistics of the lengths and arrivals that slo.yaml states, by kind."""
    every = kinds(slo)
    parts = [
        workload(
            kind.prompt.quantile,
            kind.output.quantile,
            longest=slo.traffic.longest or np.inf,
            burstiness=slo.traffic.burstiness,
            prefix_hit=slo.traffic.prefix_hit_rate,
        )
        for kind in every
    ]
    return mixture(parts, [kind.share for kind in every])


def slo_workload(slo: Slo) -> Workload:
    """Return the statistics of all requests together."""
    return slo_mixture(slo).whole


def with_headroom(slo: Slo) -> Slo:
    """Return slo.yaml with the headroom that its lengths call for, where it states none."""
    if "headroom" in slo.model_fields_set or slo.traffic.offline is not None:
        return slo
    return slo.model_copy(update={"headroom": trusted_share(slo)})


def trusted_share(slo: Slo) -> float:
    """Return the share of the capacity that the formula may be trusted with at these lengths."""
    return safe_share(mean_lengths(slo)[1])


def sized_rate(slo: Slo) -> float:
    """Return the requests per second that are sized for; offline: the mean over the deadline."""
    rate = slo.traffic.rate_per_s or slo.traffic.average_rate_per_s
    if rate is None:
        raise ValueError("the traffic states no rate")
    return rate
