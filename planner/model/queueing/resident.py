"""How many sequences are resident when a server is full, and what fills it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.arrays import Floats
from planner.model.memory import sequences_of_lengths
from planner.model.queueing.normal import normal_cdf, normal_density
from planner.model.queueing.service import Service


@dataclass(frozen=True)
class Resident:
    """Sequences that a full server holds, (n,).

    Attributes:
        limit: Sequences that the engine allows.
        memory: Sequences for which there is KV memory on average.
        held: Sequences resident on average; below 1 = not even one fits.
        growing: Share of the time in which growing sequences fill the memory.
    """

    limit: Floats
    memory: Floats
    held: Floats
    growing: Floats


def resident(s: Service) -> Resident:
    """Return what a server holds while requests wait.

    Engines that reserve prompt and output hold final lengths. Others admit a prompt whenever it
    fits, so that their memory is full at any time: of sequences of all ages, whose number varies
    with their lengths, unless the engine allows fewer. It is normal around what fits on average.

    Source:
        The mean of the smaller of a normal variable and a limit: C. E. Clark, Oper. Res. 9(2),
        1961; planner/model/README.md#queueing.
    """
    c, w = s.candidates, s.workload
    limit = np.minimum(c.layout.max_sequences, s.budget / (1.0 + s.terms.draft_tokens))
    varies = w.prompt_square - w.prompt_mean**2 + w.steps_square - w.steps_mean**2
    lengths = np.array([[w.context], [w.context_end]])
    variance = np.array([[w.context_cv2 * w.context**2], [max(varies, 0.0)]])
    fits, whole = sequences_of_lengths(c, lengths, np.sqrt(3.0 * variance))
    # The prompt at the head of the queue leaves anything up to its own length unused.
    unused = w.prompt_square / (2.0 * w.prompt_mean) / w.context
    fits = np.maximum(fits - unused, 1.0)
    deviation = np.sqrt(fits * w.context_cv2 + unused**2 / 3.0)
    z = (limit - fits) / deviation
    share = normal_cdf(z)
    beyond = np.maximum(deviation * (normal_density(z) + z * share), 0.0)
    growing = c.engine.full_length == 0
    memory = np.where(growing, fits, whole)
    most = np.minimum(limit, memory)
    held = np.where(growing, np.clip(limit - beyond, np.minimum(most, 1.0), most), most)
    held = np.where(whole < 1.0, np.minimum(held, whole), held)
    return Resident(limit, memory, held, np.where(growing, share, 0.0))
