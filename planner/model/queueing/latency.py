"""Distributions of TTFT, TPOT, E2E and ITL in a steady state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.model.arrays import LEAST, Floats, Indices
from planner.model.queueing.normal import LogNormal, decay, normal_cdf
from planner.model.queueing.state import Metric, OpenLoop
from planner.model.roots import falling_root
from planner.model.workload import Workload

Survival = Callable[[Floats], Floats]

RANGE = (1e-6, 1e6)
"""Latencies between which percentiles are sought [s]."""
NEAR = 0.08
"""How far above a known floor a percentile is sought first, as a share."""
ABOUT = 4.0
"""By how much it is sought first below and above the mean."""
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
    return survival_function(state, w, metric)(at)


def survival_function(state: OpenLoop, w: Workload, metric: Metric) -> Survival:
    """Return ``survival`` as a function of the limit, (n,) -> (n,): to be asked more than once."""
    longer, lost = _SURVIVALS[metric](state, w), state.utilization >= 1.0

    def over(limit: Floats) -> Floats:
        return np.where(lost, 1.0, np.clip(longer(limit), 0.0, 1.0))

    return over


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
        over = survival_function(some, w, metric)
        return lambda x: over(np.exp(x)) - (1.0 - share)

    least, most = (np.full(len(stable), np.log(end)) for end in RANGE)
    if above is None:
        mean = np.log(_MEANS[metric](state, w)[stable])
        first = mean - np.log(ABOUT), mean + np.log(ABOUT)
    else:
        least = np.log(above[stable])
        first = least, least + NEAR
    jumps = _JUMPS[metric](state) if metric in _JUMPS else None
    at_jumps = None if jumps is None else np.log(jumps[:, stable])
    found[stable] = np.exp(falling_root(excess, first, (least, most), at_jumps))
    return found


def _mean_first(s: OpenLoop, w: Workload) -> Floats:
    return w.mean(s.own) + s.wait_mean + s.wait_probability * s.slot_wait


def _mean_step(s: OpenLoop, w: Workload) -> Floats:
    return w.mean(s.step) / s.accepted


def _mean_whole(s: OpenLoop, w: Workload) -> Floats:
    return _mean_first(s, w) + w.mean(s.steps * s.step)


def _usual_step(s: OpenLoop, _: Workload) -> Floats:
    return s.decode


def _first_jumps(s: OpenLoop) -> Floats:
    """Return where TTFT jumps: all prompts of a length take the same time on an idle server [s]."""
    return s.own


def _step_jumps(s: OpenLoop) -> Floats:
    """Return where TPOT jumps: at bounds, and where undisturbed requests differ little [s]."""
    floor, filled = _held_up_range(s)
    few = np.stack([s.fullest, s.slowest, s.calm_step])
    jumps: Floats = np.concatenate([few, floor + filled]) / s.accepted
    return jumps


def _ttft(s: OpenLoop, w: Workload) -> Survival:
    """Own prefill, then: a uniform pause if no other prompt is met, else generalised Pareto.

    Who meets another prompt waits no shorter than who meets none.
    """
    rise, power = s.wait_shape / s.wait_scale, 1.0 / s.wait_shape
    mixed = _mixed(s, w)

    def longer(limit: Floats) -> Floats:
        over = limit - s.own
        past = np.maximum(over, 0.0)
        paused = np.maximum(1.0 - past / s.pause, 0.0)
        queued = decay(np.log(np.maximum(1.0 + rise * past, 1e-12)) * power)
        queued = np.maximum(queued, paused)
        quick = s.quiet * s.awake * paused + (1.0 - s.quiet) * queued
        quick = np.where(over < 0.0, 1.0, quick)
        return mixed(quick, over - s.wait_mean)

    return longer


def _tpot(s: OpenLoop, w: Workload) -> Survival:
    """Undisturbed requests, and those that prompts hold up, each log-normal; by output node.

    Of the requests that get a second token; of all as if they got one, where none does.
    """
    second = w.weight * _decoding(w)
    if second.any():
        w = replace(w, weight=second / second.sum())
    busy = 1.0 - s.calm
    held_up = s.step - s.calm_step
    mean = held_up / busy
    square = (s.crowd + held_up * held_up) / busy
    variance = np.maximum(square - mean * mean, 0.0) + s.drift
    usual = np.maximum(s.calm_step - s.fastest, LEAST_EXCESS)
    floor, filled = _held_up_range(s)
    room = s.slowest - floor
    raised = np.clip(s.calm_step - floor + mean, LEAST_EXCESS, room)
    # No more than a variable between two bounds can vary (Bhatia and Davis, 2000).
    variance = np.minimum(variance, raised * (room - raised))
    log_filled = np.log(filled)
    most = 1.0 / np.sqrt(np.log1p(s.filled / (filled * filled)))
    undisturbed, disturbed = LogNormal.of(usual, s.drift), LogNormal.of(raised, variance)

    def longer(limit: Floats) -> Floats:
        step = limit * s.accepted
        calm = undisturbed.survival(np.log(np.maximum(step - s.fastest, LEAST)))
        calm = np.where(step > s.fullest, 0.0, calm)
        at = np.log(np.maximum(step - floor, LEAST))
        crowded = disturbed.above(at)
        # No request is held up for longer than one of which every step carries prompts, and which
        # meets one more besides.
        bound = (log_filled - at) * most
        crowded = normal_cdf(np.where(bound < 0.0, np.minimum(crowded, bound), crowded))
        return np.where(step > s.slowest, 0.0, w.mean(s.calm * calm + busy * crowded))

    return longer


def _held_up_range(s: OpenLoop) -> tuple[Floats, Floats]:
    """Return the least step of a request that is held up, and what it is above it if all are.

    By output node [s], (nodes, n).
    """
    floor = np.maximum(s.calm_step - DRIFTS * np.sqrt(s.drift), s.fastest)
    filled = np.minimum(s.filled_step, s.slowest) - floor
    return floor, np.maximum(filled, LEAST_EXCESS)


def _e2e(s: OpenLoop, w: Workload) -> Survival:
    """TTFT and the decode steps together, log-normal by output node; TTFT of one-token outputs.

    Nobody is served sooner than alone on the server, nor later than if all steps carried prompts;
    and nobody gets the last token before the first.
    """
    own = w.mean(s.own)
    prompts = np.maximum(w.mean(s.own**2) - own * own, 0.0)
    first = own * (w.prompt_at_output / w.prompt_mean)
    soonest = 0.5 * first + s.steps * s.fastest
    least = soonest + 0.5 * s.wait_mean
    mean = first + s.wait_mean + s.steps * s.step

    def varies(step: Floats, variance: Floats | float) -> Floats:
        lengths: Floats = w.output_spread * (step / s.accepted) ** 2
        return variance + lengths + prompts

    alone = LogNormal.of(0.5 * first, varies(s.fastest, 0.0))

    def held_up(step: Floats, variance: Floats) -> LogNormal:
        of_steps = np.minimum(variance, (0.5 * s.slowest) ** 2) * s.steps**2
        excess = 0.5 * (first + s.wait_mean) + s.steps * (step - s.fastest)
        variance = varies(step, of_steps + s.wait_variance)
        # That a few wait for long has nobody else served sooner.
        return LogNormal.of(np.maximum(excess, LEAST_EXCESS), variance, alone.median)

    usual, filled = held_up(s.step, s.drift + s.crowd), held_up(s.filled_step, s.filled)
    first_token, mixed = _ttft(s, w), _mixed(s, replace(w, weight=w.weight * _decoding(w)))
    single = 1.0 - w.mean(_decoding(w))

    def longer(limit: Floats) -> Floats:
        begun = first_token(limit)
        at = np.log(np.maximum(limit - least, LEAST))
        above, bound = usual.above(at), filled.above(at)
        above = np.where(bound < 0.0, np.minimum(above, bound), above)
        decoded = mixed(normal_cdf(np.maximum(above, alone.above(at))), limit - mean)
        return np.maximum(single * begun + decoded, begun)

    return longer


def _decoding(w: Workload) -> Floats:
    """Share of the requests that get a second token, by output node, (nodes, 1)."""
    return np.clip(w.output - 1.0, 0.0, 1.0)


def _itl(s: OpenLoop, _: Workload) -> Survival:
    """Steps that only decode, and steps that carry a chunk of a prompt."""
    usual = STEP_SPREAD * s.decode
    spread = s.decode_sd + usual
    own = usual + CHUNK_SPREAD * s.chunk

    def longer(limit: Floats) -> Floats:
        over = s.decode - limit
        # No step decodes more sequences than fit.
        fullest = s.fullest - limit
        plain = normal_cdf(np.minimum(over / spread, fullest / usual))
        # Prompts take their own time however little is decoded beside them.
        least = s.carrying - limit
        most = np.maximum(fullest + s.chunk, least)
        carrying = np.maximum((over + s.chunk) / (s.decode_sd + own), least / own)
        carrying = normal_cdf(np.minimum(carrying, most / own))
        mixed = (s.chunk_weight * carrying).sum(axis=0)
        result: Floats = (1.0 - s.mixed) * plain + s.mixed * mixed
        return result

    return longer


def _mixed(s: OpenLoop, w: Workload) -> Callable[[Floats, Floats], Floats]:
    """Those that find a slot, and those that wait for one."""
    waiting = bool(s.wait_probability.any())

    def over(quick: Floats, beyond: Floats) -> Floats:
        if waiting:
            slow = decay(np.maximum(beyond, 0.0) / s.slot_wait)
            quick = quick + s.wait_probability * np.maximum(slow - quick, 0.0)
        return w.mean(quick)

    return over


_MEANS = {"ttft": _mean_first, "tpot": _mean_step, "e2e": _mean_whole, "itl": _usual_step}
"""Metric -> about where its percentiles are [s], (n,)."""
_JUMPS = {"ttft": _first_jumps, "tpot": _step_jumps}
"""Metric -> latencies at which its survival may jump [s], (k, n)."""
_SURVIVALS = {"ttft": _ttft, "tpot": _tpot, "e2e": _e2e, "itl": _itl}
