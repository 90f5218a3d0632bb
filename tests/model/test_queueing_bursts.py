"""How bursts reach one server, and how many of the others a request meets there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.queueing.bursts import (
    burst_size,
    met_share,
    number_spread,
    split_burstiness,
)


def test_random_splitting_thins_a_burst_and_taking_turns_divides_it():
    servers = np.array([1.0, 4.0])
    np.testing.assert_allclose(split_burstiness(5.0, servers, "random"), [5, 2])
    np.testing.assert_allclose(split_burstiness(5.0, servers, "least_loaded"), [5, 1.25])


def test_the_shortest_queue_shares_what_makes_the_number_of_all_vary():
    servers = np.array([1.0, 4.0])
    # 1 + (5 - 1) / 2 = 3 for all; 1 + (2 - 1) / 2 and 1 + (1.25 - 1) / 2 where arrivals are shared.
    for routing, expected in {
        "least_loaded": [3, 0.75], "random": [3, 1.5], "round_robin": [3, 1.125]
    }.items():  # fmt: skip
        np.testing.assert_allclose(number_spread(5.0, 0.5, servers, routing), expected)


@pytest.mark.parametrize(
    ("counts", "others"),
    [
        # A server with 3 or 4 requests, half of the time each: 3 x 2 + 4 x 3 meet 18 of 7.
        ((3, 4), 18 / 7),
        ((10, 10), 9.0),
        ((0, 1), 0.0),
    ],
)
def test_a_request_meets_all_others_of_those_that_it_finds(counts, others):
    number, variance = np.mean(counts), np.var(counts)
    share = met_share(np.array([number]), np.array([variance / number]))
    # With less than one on average, what is left of the spread of 0 and 1 is taken for meetings.
    left = variance if number < 1 else 0.0
    assert share[0] * number == pytest.approx(others + left, abs=1e-12)


@given(st.floats(0.01, 100), st.floats(0, 5))
def test_poisson_arrivals_and_bursts_meet_everybody_and_nobody_less_than_none(number, spread):
    (share,) = met_share(np.array([number]), np.array([spread]))
    assert 0 <= share <= 1
    assert share == 1 or spread < 1


@pytest.mark.parametrize("burstiness", [2.0, 4.0, 9.0])
def test_burst_sizes_follow_the_renewal_function_of_gamma_gaps(burstiness):
    from scipy.special import gammainc

    shape = 1 / burstiness
    for expected in (0.01, 0.1, 1.0, 10.0):
        arrived = sum(gammainc(k * shape, shape * expected) for k in range(1, 600))
        exact = 1 + arrived - expected
        got = burst_size(np.array([burstiness]), np.array([expected]))[0]
        assert got - 1 == pytest.approx(exact - 1, abs=0.07 * (burstiness - 1) / 2)
