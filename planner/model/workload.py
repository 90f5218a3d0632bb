"""Statistics of prompt and output lengths, computed once a plan and shared by all candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Floats

EDGES = np.array([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88, 0.92, 0.95, 0.965, 0.985, 1.0])
"""Ranks between the nodes: finer where p95 and p99 lie."""
POINTS = 16
"""Gauss-Legendre points inside each node."""
TAIL_POWER = 3
"""The last node's points crowd towards rank 1 with this power, where quantile functions rise."""


@dataclass(frozen=True)
class Workload:
    """What the open-loop model needs to know about lengths and arrivals.

    A request decodes for d = output - 1 steps; its first token comes from its prefill. Nodes are
    means over ranges of ranks, shape (nodes, 1), so that they broadcast against (n,) candidates.

    Attributes:
        prompt: Prompt length at nodes of the prompt's rank [tokens].
        prompt_weighted: Mean length of the prompt that a prompt token belongs to, at the same
            nodes: E[p^2] / E[p] [tokens]; attention grows with it.
        output: Output length at nodes of the output's rank [tokens].
        output_spread: Variance of the output lengths within each node [tokens^2].
        prompt_at_output: Mean prompt length at nodes of the output's rank [tokens].
        weight: Share of the requests in each node.
        prompt_mean, prompt_square: E[p], E[p^2].
        output_mean: E[o].
        steps_mean, steps_square: E[d], E[d^2].
        context: Mean context of a decoding sequence [tokens]: E[(p + d/2) d] / E[d].
        context_end: Mean length at which a resident sequence ends, by residence:
            E[(p + o) d] / E[d] [tokens].
        context_cv2: Squared coefficient of variation of a decoding sequence's context.
        steps_cv2: Squared coefficient of variation of d.
        peakedness: Integral of (1 - F)^2 over d, divided by E[d]: how far bursts of arrivals
            carry into the number in service.
        burstiness: Squared coefficient of variation of the gaps between arrivals.
        prefix_hit: Share of prompt tokens found in the prefix cache.
    """

    prompt: Floats
    prompt_weighted: Floats
    output: Floats
    output_spread: Floats
    prompt_at_output: Floats
    weight: Floats
    prompt_mean: float
    prompt_square: float
    output_mean: float
    steps_mean: float
    steps_square: float
    context: float
    context_end: float
    context_cv2: float
    steps_cv2: float
    peakedness: float
    burstiness: float
    prefix_hit: float

    def mean(self, values: Floats) -> Floats:
        """Return the mean over the requests of values by node, (nodes, n) -> (n,)."""
        result: Floats = self.weight[:, 0] @ values
        return result


def workload(
    prompt: Callable[[float], float],
    output: Callable[[float], float],
    *,
    longest: float = np.inf,
    burstiness: float = 1.0,
    prefix_hit: float = 0.0,
) -> Workload:
    """Return the statistics of independent prompt and output lengths, cut where they are too long.

    Args:
        prompt: Quantile function, rank in (0, 1) -> length [tokens].
        output: The same of the output.
        longest: Most tokens of prompt and output together; longer outputs are cut to one token
            less, then prompts to what is left.
        burstiness: Squared coefficient of variation of the gaps between arrivals.
        prefix_hit: Share of prompt tokens found in the prefix cache: not computed, but held.

    Returns:
        Statistics; integrals over the rank by Gauss-Legendre quadrature inside each node.
    """
    ranks, shares = _quadrature()
    p = _lengths(prompt, ranks)
    o = _lengths(output, ranks)
    if p.max() + o.max() > longest:
        pairs = _cut_pairs(p, o, shares, longest)
        return _assemble(*_of_pairs(pairs, ranks, shares), burstiness, prefix_hit)
    d = o - 1.0
    p1, p2 = _mean(shares, p), _mean(shares, p * p)
    d1, d2, d3 = (_mean(shares, d**k) for k in (1, 2, 3))
    moments = _Moments(
        p1=p1,
        p2=p2,
        d1=d1,
        d2=d2,
        d3=d3,
        pd=p1 * d1,
        ppd=p2 * d1,
        pdd=p1 * d2,
        o1=_mean(shares, o),
        # E[min of two draws] is the integral of (1 - F)^2.
        smaller=_mean(shares, d * 2.0 * (1.0 - ranks)),
    )
    prompts, outputs = _node_means(shares, p), _node_means(shares, o)
    weighted = _node_means(shares, p * p) / prompts
    spread = _node_means(shares, o * o) - outputs**2
    nodes = _Nodes(prompts, weighted, outputs, spread, np.full_like(outputs, p1))
    return _assemble(moments, nodes, burstiness, prefix_hit)


@dataclass(frozen=True)
class _Pairs:
    """Prompts of every pair of ranks after the cut, and the outputs.

    Attributes:
        prompt: By rank of the prompt and of the output [tokens], (points, points).
        output: By rank of the output [tokens], (points,).
        share: Share of the requests at each rank, (points,).
    """

    prompt: Floats
    output: Floats
    share: Floats


def _cut_pairs(prompt: Floats, output: Floats, shares: Floats, longest: float) -> _Pairs:
    """Return the lengths of independent prompts and outputs, both together at most `longest`."""
    o = np.minimum(output.ravel(), max(longest - 1.0, 1.0))
    p = np.clip(prompt.reshape(-1, 1), 1.0, np.maximum(longest - o, 1.0))
    return _Pairs(p, o, shares.ravel())


def _of_pairs(pairs: _Pairs, ranks: Floats, shares: Floats) -> tuple[_Moments, _Nodes]:
    """Return moments and nodes of lengths that the cut made depend on each other."""
    p, o, share = pairs.prompt, pairs.output, pairs.share
    d = o - 1.0
    # Means over the other length: of the prompt's powers by the output, and the other way round.
    p_at_o, pp_at_o = share @ p, share @ p**2
    p_at_p, pp_at_p = ((p**k @ share).reshape(ranks.shape) for k in (1, 2))
    moments = _Moments(
        p1=float(share @ p_at_o),
        p2=float(share @ pp_at_o),
        d1=float(share @ d),
        d2=float(share @ d**2),
        d3=float(share @ d**3),
        pd=float(share @ (p_at_o * d)),
        ppd=float(share @ (pp_at_o * d)),
        pdd=float(share @ (p_at_o * d**2)),
        o1=float(share @ o),
        smaller=float(share @ (d * 2.0 * (1.0 - ranks.ravel()))),
    )
    outputs = o.reshape(ranks.shape)
    prompts, means = _node_means(shares, p_at_p), _node_means(shares, outputs)
    return moments, _Nodes(
        prompt=prompts,
        prompt_weighted=_node_means(shares, pp_at_p) / prompts,
        output=means,
        output_spread=_node_means(shares, outputs**2) - means**2,
        prompt_at_output=_node_means(shares, p_at_o.reshape(ranks.shape)),
    )


def workload_from_samples(
    prompt: Floats, output: Floats, *, burstiness: float = 1.0, prefix_hit: float = 0.0
) -> Workload:
    """Return the statistics of sampled lengths; row i of both arrays is one request.

    Args:
        prompt: Lengths [tokens], (requests,); their correlation with the outputs is kept.
        output: Lengths [tokens], (requests,).
        burstiness: As in ``workload``.
        prefix_hit: As in ``workload``.

    Returns:
        Statistics.
    """
    p = np.maximum(np.asarray(prompt, dtype=np.float64), 1.0)
    o = np.maximum(np.asarray(output, dtype=np.float64), 1.0)
    d = o - 1.0
    size = len(p)
    falling = np.sort(d)[::-1]
    # The k-th largest (from 0) of n is the smaller of 2k + 1 of the n^2 ordered pairs.
    smaller = float((falling * (2.0 * np.arange(size) + 1.0)).sum()) / size**2
    moments = _Moments(
        p1=float(p.mean()),
        p2=float((p * p).mean()),
        d1=float(d.mean()),
        d2=float((d * d).mean()),
        d3=float((d**3).mean()),
        pd=float((p * d).mean()),
        ppd=float((p * p * d).mean()),
        pdd=float((p * d * d).mean()),
        o1=float(o.mean()),
        smaller=smaller,
    )
    order = np.argsort(o, kind="stable")
    ascending = np.sort(p)
    prompts = _rank_means(ascending)
    weighted = _rank_means(ascending**2) / prompts
    outputs = _rank_means(o[order])
    spread = _rank_means(o[order] ** 2) - outputs**2
    nodes = _Nodes(prompts, weighted, outputs, spread, _rank_means(p[order]))
    return _assemble(moments, nodes, burstiness, prefix_hit)


@dataclass(frozen=True)
class _Moments:
    p1: float
    p2: float
    d1: float
    d2: float
    d3: float
    pd: float
    ppd: float
    pdd: float
    o1: float
    smaller: float


@dataclass(frozen=True)
class _Nodes:
    prompt: Floats
    prompt_weighted: Floats
    output: Floats
    output_spread: Floats
    prompt_at_output: Floats


def _assemble(m: _Moments, nodes: _Nodes, burstiness: float, prefix_hit: float) -> Workload:
    steps = max(m.d1, 1e-9)
    context = (m.pd + m.d2 / 2.0) / steps if m.d1 > 0 else m.p1
    end = (m.pd + m.d2 + m.d1) / steps if m.d1 > 0 else m.p1 + m.o1
    square = (m.ppd + m.pdd + m.d3 / 3.0) / steps if m.d1 > 0 else context**2
    return Workload(
        prompt=nodes.prompt[:, None],
        prompt_weighted=nodes.prompt_weighted[:, None],
        output=nodes.output[:, None],
        # Rounding can leave a constant length a variance below 0.
        output_spread=np.maximum(nodes.output_spread, 0.0)[:, None],
        prompt_at_output=nodes.prompt_at_output[:, None],
        weight=np.diff(EDGES)[:, None],
        prompt_mean=m.p1,
        prompt_square=m.p2,
        output_mean=m.o1,
        steps_mean=m.d1,
        steps_square=m.d2,
        context=context,
        context_end=end,
        context_cv2=max(square / context**2 - 1.0, 0.0),
        steps_cv2=max(m.d2 / steps**2 - 1.0, 0.0) if m.d1 > 0 else 0.0,
        peakedness=m.smaller / steps if m.d1 > 0 else 1.0,
        burstiness=burstiness,
        prefix_hit=prefix_hit,
    )


def _quadrature() -> tuple[Floats, Floats]:
    """Ranks and their shares, (nodes, points)."""
    x, share = np.polynomial.legendre.leggauss(POINTS)
    inside, share = (x + 1.0) / 2.0, share / 2.0
    low, width = EDGES[:-1, None], np.diff(EDGES)[:, None]
    ranks = low + width * inside
    shares = width * np.broadcast_to(share, ranks.shape)
    rest = (1.0 - inside) ** TAIL_POWER
    ranks[-1] = 1.0 - width[-1] * rest
    shares = np.array(shares)
    shares[-1] = width[-1] * share * TAIL_POWER * (1.0 - inside) ** (TAIL_POWER - 1)
    return ranks, shares


def _lengths(quantile: Callable[[float], float], ranks: Floats) -> Floats:
    values = np.array([quantile(float(rank)) for rank in ranks.ravel()], dtype=np.float64)
    return np.maximum(values.reshape(ranks.shape), 1.0)


def _mean(shares: Floats, values: Floats) -> float:
    return float((shares * values).sum())


def _node_means(shares: Floats, values: Floats) -> Floats:
    means: Floats = (shares * values).sum(axis=1) / shares.sum(axis=1)
    return means


def _rank_means(ordered: Floats) -> Floats:
    """Means over the nodes' ranges of ranks; a sample that straddles an edge counts in part."""
    size = len(ordered)
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    at_edges = np.interp(EDGES * size, np.arange(size + 1.0), total)
    means: Floats = np.diff(at_edges) / (np.diff(EDGES) * size)
    return means
