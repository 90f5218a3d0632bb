"""The fast distributions against exact ones."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from planner.model.queueing.normal import LogNormal, normal_cdf

NORMAL = NormalDist()


def test_the_normal_distribution_is_as_exact_as_it_says():
    z = np.linspace(-4, 4, 401)
    exact = [NORMAL.cdf(value) for value in z]
    np.testing.assert_allclose(normal_cdf(z), exact, atol=1.5e-4)


def test_the_log_normal_has_its_mean_and_variance():
    # Mean 2, variance 4: sigma^2 = ln 2, median = 2 / sqrt(2).
    at = np.array([2 / math.sqrt(2), 2 / math.sqrt(2) * math.exp(math.sqrt(math.log(2)))])
    got = LogNormal.of(np.array([2.0, 2.0]), np.array([4.0, 4.0])).survival(np.log(at))
    np.testing.assert_allclose(got, [0.5, 1 - NORMAL.cdf(1)], atol=2e-4)


def test_the_log_normal_is_no_wider_than_lets_its_median_stay_above_the_least():
    # Mean 2, variance 4: sigma^2 = ln 2. For the median 1.6 it is 2 ln (2 / 1.6) = 0.446.
    one = LogNormal.of(np.full(3, 2.0), np.full(3, 4.0), np.log([1.0, 1.6, 2.1]))
    np.testing.assert_allclose(np.exp(one.median), [2 / math.sqrt(2), 1.6, 2.0])
    np.testing.assert_allclose(one.steepness[:2] ** -2, [math.log(2), 2 * math.log(2 / 1.6)])
