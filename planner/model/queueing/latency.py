"""Distributions of TTFT, TPOT, E2E and ITL in a steady state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.model.arrays import Floats, Indices
from planner.model.queueing.normal import log_normal_survival, normal_cdf
from planner.model.queueing.state import Metric, OpenLoop
from planner.model.roots import falling_root
from planner.model.workload import Workload

RANGE = (1e-6, 1e6)
"""Latencies between which percentiles are sought [s]."""
NEAR = 0.08
"""How far above a known floor a percentile is sought first, as a share."""
LEAST = 1e-300
"""Stands for nothing where a logarithm is taken."""
LEAST_EXCESS = 1e-9
"""Least mean excess over a floor [s]: far below what a percentile is read to."""
CHUNK_SPREAD = 0.1
"""Spread of a chunk's time around its node's mean."""
STEP_SPREAD = 0.02
DRIFTS = 2.0
"""Standard deviations of the batch's drift below the mean at which a held-up step begins."""


def survival(state: OpenLoop, w: Workload, metric: Metric, limit: Floats | float) -> Floats:
    """Probability that a request (ITL: a token) takes longer than a limit.

    Args:
        state: Steady state, (n,).
        w: The workload it was computed for.
        metric: ttft, tpot, e2e or itl.
        limit: Limit [s], (n,) or one for all.

    Returns:
        P(metric > limit), (n,); 1 at or beyond capacity.
    """
    at = np.broadcast_to(np.asarray(limit, dtype=np.float64), state.pause.shape)
    over = _SURVIVALS[metric](state, w, at)
    return np.where(state.utilization >= 1.0, 1.0, np.clip(over, 0.0, 1.0))


def percentile(
    state: OpenLoop, w: Workload, metric: Metric, share: float, above: Floats | None = None
) -> Floats:
    """Latency that a share of the requests stay within.

    Args:
        state: Steady state, (n,).
        w: The workload it was computed for.
        metric: ttft, tpot, e2e or itl.
        share: Share in (0, 1), as 0.95.
        above: Latencies that it is known to exceed, mostly by less than NEAR [s], (n,).

    Returns:
        Smallest t with P(metric > t) <= 1 - share [s], (n,); infinity at or beyond capacity.
    """
    found = np.full(state.utilization.shape, np.inf)
    stable = np.flatnonzero(state.utilization < 1.0)

    def excess(rows: Indices) -> Callable[[Floats], Floats]:
        some = state.take(stable[rows]) if len(rows) < len(found) else state
        return lambda x: survival(some, w, metric, np.exp(x)) - (1.0 - share)

    least, most = (np.full(len(stable), np.log(end)) for end in RANGE)
    if above is None:
        roots = falling_root(excess, least, most, most)
    else:
        least = np.log(above[stable])
        roots = falling_root(excess, least, least + NEAR, most)
    found[stable] = np.exp(roots)
    return found


def _ttft(s: OpenLoop, w: Workload, limit: Floats) -> Floats:
    """Own prefill, then: a uniform pause if no other prompt is met, else generalised Pareto."""
    over = limit - s.own
    past = np.maximum(over, 0.0)
    paused = s.awake * np.maximum(1.0 - past / s.pause, 0.0)
    inside = np.maximum(1.0 + (s.wait_shape / s.wait_scale) * past, 1e-12)
    queued = np.exp(np.log(inside) * (-1.0 / s.wait_shape))
    quick = np.where(over < 0.0, 1.0, s.quiet * paused + (1.0 - s.quiet) * queued)
    slow = np.exp(-np.maximum(over - s.wait_mean, 0.0) / s.slot_wait)
    return _mixed(s, w, quick, slow)


def _tpot(s: OpenLoop, w: Workload, limit: Floats) -> Floats:
    """Undisturbed requests, and those that prompts hold up, each log-normal; by output node."""
    step = limit * s.accepted
    busy = 1.0 - s.calm
    held_up = s.step - s.calm_step
    mean = held_up / busy
    square = (s.crowd + held_up * held_up) / busy
    variance = np.maximum(square - mean * mean, 0.0) + s.drift
    usual = np.maximum(s.calm_step - s.fastest, LEAST_EXCESS)
    calm = log_normal_survival(usual, s.drift, np.maximum(step - s.fastest, LEAST))
    calm = np.where(step > s.fullest, 0.0, calm)
    floor = np.maximum(s.calm_step - DRIFTS * np.sqrt(s.drift), s.fastest)
    room = s.slowest - floor
    raised = np.clip(s.calm_step - floor + mean, LEAST_EXCESS, room)
    # No more than a variable between two bounds can vary (Bhatia and Davis, 2000).
    variance = np.minimum(variance, raised * (room - raised))
    at = np.maximum(step - floor, LEAST)
    crowded = log_normal_survival(raised, variance, at)
    filled = np.clip(s.filled_step - floor, LEAST_EXCESS, room)
    most = np.log1p((s.filled + s.drift) / (filled * filled))
    # No request is held up for longer than one of which every step carries prompts.
    bound = normal_cdf(np.log(filled / at) / np.sqrt(most))
    crowded = np.where(at > filled, np.minimum(crowded, bound), crowded)
    total: Floats = (w.weight * (s.calm * calm + busy * crowded)).sum(axis=0)
    return np.where(step > s.slowest, 0.0, total)


def _e2e(s: OpenLoop, w: Workload, limit: Floats) -> Floats:
    """TTFT and the decode steps together, log-normal by output node."""
    own = (w.weight * s.own).sum(axis=0)
    spread = np.maximum((w.weight * s.own**2).sum(axis=0) - own * own, 0.0)
    first = own * (w.prompt_at_output / w.prompt_mean) + s.wait_mean
    mean = first + s.steps * s.step
    least = 0.5 * first + s.steps * s.fastest
    of_steps = np.minimum(s.drift + s.crowd, (0.5 * s.slowest) ** 2) * s.steps**2
    lengths = w.output_spread * (s.step / s.accepted) ** 2
    variance = of_steps + lengths + s.wait_variance + spread
    quick = log_normal_survival(
        np.maximum(mean - least, LEAST_EXCESS), variance, np.maximum(limit - least, LEAST)
    )
    slow = np.exp(-np.maximum(limit - mean, 0.0) / s.slot_wait)
    return _mixed(s, w, quick, slow)


def _itl(s: OpenLoop, _: Workload, limit: Floats) -> Floats:
    """Steps that only decode, and steps that carry a chunk of a prompt."""
    usual = STEP_SPREAD * s.decode
    over = s.decode - limit
    spread = s.decode_sd + usual
    # No step decodes more sequences than fit.
    fullest = s.fullest - limit
    plain = normal_cdf(np.minimum(over / spread, fullest / usual))
    own = usual + CHUNK_SPREAD * s.chunk
    # Prompts take their own time however little is decoded beside them.
    least = s.carrying - limit
    most = np.maximum(fullest + s.chunk, least)
    carrying = np.maximum((over + s.chunk) / (s.decode_sd + own), least / own)
    carrying = normal_cdf(np.minimum(carrying, most / own))
    mixed = (s.chunk_weight * carrying).sum(axis=0)
    result: Floats = (1.0 - s.mixed) * plain + s.mixed * mixed
    return result


def _mixed(s: OpenLoop, w: Workload, quick: Floats, slow: Floats) -> Floats:
    """Those that find a slot, and those that wait for one."""
    over = quick + s.wait_probability * np.maximum(slow - quick, 0.0)
    result: Floats = (w.weight * over).sum(axis=0)
    return result


_SURVIVALS = {"ttft": _ttft, "tpot": _tpot, "e2e": _e2e, "itl": _itl}
