"""What is known of lengths, taken out of the noise of a simulated run.

How many long prompts a run happens to draw moves its TTFT p95 more than anything else where most of
it is the own prompt's time. Their share is known: so each stratum of length counts for its share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from planner.model.arrays import Floats

RANKS = (0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)
"""Where lengths are divided: finer where percentiles are asked for."""
FEWEST = 5.0
"""Requests expected beyond the last division: with fewer, a stratum may be empty."""

Lengths = NDArray[np.int64]


@dataclass(frozen=True)
class Strata:
    """Strata of length, and how many requests belong to each.

    Attributes:
        edges: Longest length in each but the last, rising, (k - 1,) [tokens].
        within: Share of the requests up to each edge, (k - 1,).
    """

    edges: Lengths
    within: Floats

    @classmethod
    def of(cls, lengths: Lengths, shares: Floats) -> Self:
        """Divide requests of these lengths, of which each stands for a share of all, (n,)."""
        order = np.argsort(lengths, kind="stable")
        rising, total = lengths[order], np.cumsum(shares[order]) / shares.sum()
        last = len(rising) - 1
        edges = np.unique(rising[np.minimum(np.searchsorted(total, RANKS), last)])
        within = total[np.searchsorted(rising, edges, side="right") - 1]
        return cls(edges, within)

    def weights(self, lengths: Lengths) -> Floats:
        """Return a weight for each request of a random sample, (n,), their mean 1.

        Strata that the sample has nobody of are left out.

        Source:
            Post-stratification: W. G. Cochran, Sampling Techniques, 3rd ed., 1977, section 5A.9.
        """
        count = len(lengths)
        if not count:
            return np.zeros(0)
        kept = count * (1.0 - self.within) >= FEWEST
        edges, within = self.edges[kept], self.within[kept]
        shares = np.diff(np.concatenate([[0.0], within, [1.0]]))
        stratum = np.searchsorted(edges, lengths)
        counts = np.bincount(stratum, minlength=len(shares))
        each = np.divide(shares, counts, out=np.zeros_like(shares), where=counts > 0)
        total = shares[counts > 0].sum()
        result: Floats = each[stratum] * (count / total)
        return result
