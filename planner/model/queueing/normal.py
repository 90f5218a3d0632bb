"""Exponential, normal and log-normal distributions, fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from planner.model.arrays import Floats

LEAST_VARIANCE = 1e-10
WIDEST = 1.645**2
"""Largest variance of a logarithm: of wider ones with the same mean p95 falls."""
NOTHING = 100.0
"""Exponent from which on a decay counts for nothing: results that are no more normal floating-point
numbers would take eight times as long."""


def decay(exponent: Floats) -> Floats:
    """Return exp(-exponent), 4e-44 at least."""
    result: Floats = np.exp(np.maximum(-exponent, -NOTHING))
    return result


def normal_density(z: Floats) -> Floats:
    """Density of the standard normal distribution."""
    result: Floats = np.exp(-0.5 * z * z) * (1.0 / np.sqrt(2.0 * np.pi))
    return result


def normal_cdf(z: Floats) -> Floats:
    """P(Z <= z) of the standard normal distribution; absolute error below 1.5e-4.

    Source: logistic form, S. R. Bowling et al., J. Ind. Eng. Manag. 2(1), 2009, eq. 10.
    """
    near = np.clip(z, -8.0, 8.0)
    result: Floats = 1.0 / (1.0 + np.exp(-near * (1.5976 + 0.07056 * near * near)))
    return result


@dataclass(frozen=True)
class LogNormal:
    """A log-normal distribution, made once and asked often.

    Attributes:
        median: Logarithm of the median.
        steepness: 1 / standard deviation of the logarithm.
    """

    median: Floats
    steepness: Floats

    @classmethod
    def of(cls, mean: Floats, variance: Floats, median: Floats | None = None) -> Self:
        """Return the one with this mean and variance.

        The variance counts up to WIDEST, and as long as the median, which never is above the mean,
        stays above a given one.

        Args:
            mean, variance: Of the variable.
            median: Logarithm of the least median, if there is one.
        """
        log_mean, log_variance = np.log(mean), np.log1p(variance / (mean * mean))
        widest = WIDEST if median is None else np.minimum(2.0 * (log_mean - median), WIDEST)
        log_variance = np.maximum(np.minimum(log_variance, widest), LEAST_VARIANCE)
        return cls(log_mean - 0.5 * log_variance, 1.0 / np.sqrt(log_variance))

    def above(self, log_at: Floats) -> Floats:
        """By how many standard deviations the median is above x, by the logarithm of x."""
        return (self.median - log_at) * self.steepness

    def survival(self, log_at: Floats) -> Floats:
        """P(X > x) by the logarithm of x."""
        return normal_cdf(self.above(log_at))
