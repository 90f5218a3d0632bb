"""The wait for a free slot or for KV memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Floats
from planner.model.queueing.normal import normal_cdf, normal_density
from planner.model.queueing.saturation import Saturation
from planner.model.queueing.service import Service
from planner.model.queueing.steady import Arrivals, Batch

FAR = 6.0
"""Standard deviations of free slots beyond which nobody waits."""
LEAST_VARIATION = 0.1


@dataclass(frozen=True)
class SlotWait:
    """Probability of waiting for a slot, and the mean wait of those that do [s], (n,)."""

    probability: Floats
    mean: Floats


def slot_wait(
    s: Service, full: Saturation, batch: Batch, arrivals: Arrivals, resident: Floats
) -> SlotWait:
    """Return the wait for slots and KV memory.

    Below the limit the number resident is normal around its mean, above it exponential; both
    densities meet at the limit. The wait is exponential.

    Args:
        s: The server.
        full: Its limits.
        batch: Its steady state.
        arrivals: Arrivals at it.
        resident: Mean number of sequences resident, prompts included, (n,).

    Source:
        S. Halfin and W. Whitt, Oper. Res. 29(3), 1981 (the probability); A. O. Allen,
        "Probability, Statistics and Queueing Theory", 2nd ed. 1990, section 5.3.5 (Allen-Cunneen:
        the tail).
    """
    w = s.workload
    spare = np.maximum(full.rate - arrivals.rate, 1e-9 * full.rate)
    # Lengths decide how long a queue lasts, hardly whether there is one.
    drift = 2.0 * spare / (arrivals.rate * (arrivals.burstiness + 1.0))
    contexts = batch.variance + resident * w.context_cv2
    probability = np.maximum(
        _probability(full.limit, resident, batch.variance, drift),
        _probability(np.maximum(full.memory, 1.0), resident, contexts, drift),
    )
    variation = np.maximum(arrivals.burstiness + w.steps_cv2, LEAST_VARIATION)
    return SlotWait(probability, variation / (2.0 * spare))


def _probability(limit: Floats, resident: Floats, variance: Floats, drift: Floats) -> Floats:
    spread = np.sqrt(variance)
    # Half a sequence: the normal density stands for whole numbers.
    distance = (limit - 0.5 - resident) / spread
    density = np.maximum(normal_density(np.minimum(distance, 8.0)), 1e-15)
    probability = 1.0 / (1.0 + drift * spread * normal_cdf(distance) / density)
    return np.where(distance > FAR, 0.0, probability)
