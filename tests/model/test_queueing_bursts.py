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
    share = met_share(np.array([number]), np.array([variance / number]), "round_robin")
    # With less than one on average, what is left of the spread of 0 and 1 is taken for meetings.
    left = variance if number < 1 else 0.0
    assert share[0] * number == pytest.approx(others + left, abs=1e-12)


@given(st.floats(0.01, 100), st.floats(0, 5))
def test_poisson_arrivals_and_bursts_meet_everybody_and_nobody_less_than_none(number, spread):
    for routing in ("random", "round_robin", "least_loaded"):
        (share,) = met_share(np.array([number]), np.array([spread]), routing)
        assert 0 <= share <= 1 + 1e-12
        assert share == pytest.approx(1.0, abs=1e-6) or spread < 1


@pytest.mark.parametrize("servers", [1, 2, 3, 6, 16])
@pytest.mark.parametrize("number", [0.1, 0.5, 1.0, 2.3, 8.0])
def test_the_shortest_queue_shares_a_poisson_number_and_each_meets_its_neighbours(servers, number):
    """Referee: Poisson numbers dealt out one by one; pairs at a server over the square of the mean.

    For one server E[n (n - 1)] of a Poisson number is the square of its mean.
    """
    pairs, chance = 0.0, np.exp(-servers * number)
    for total in range(400):
        held = [total // servers + (place < total % servers) for place in range(servers)]
        pairs += chance * sum(n * (n - 1) for n in held) / servers
        chance *= servers * number / (total + 1)
    (share,) = met_share(np.array([number]), np.array([1.0 / servers]), "least_loaded")
    assert share == pytest.approx(pairs / number**2, abs=0.006)
    if servers == 1:
        assert share == pytest.approx(1.0, abs=1e-9)


@given(st.floats(0.001, 60), st.floats(1.0, 3.0), st.floats(0.0, 1.2), st.floats(0.0, 1.2))
def test_the_shortest_queue_lets_more_meet_of_more_and_of_numbers_that_vary_more(
    number, times, spread, other
):
    low, high = sorted((spread, other))
    numbers, spreads = np.array([number, times * number]), np.array([low, high])
    more = met_share(numbers, np.full(2, low), "least_loaded")
    assert more[0] <= more[1] + 1e-12
    wider = met_share(np.full(2, number), spreads, "least_loaded")
    assert wider[0] <= wider[1] + 1e-9


@pytest.mark.parametrize("burstiness", [2.0, 4.0, 9.0])
def test_burst_sizes_follow_the_renewal_function_of_gamma_gaps(burstiness):
    from scipy.special import gammainc

    shape = 1 / burstiness
    for expected in (0.01, 0.1, 1.0, 10.0):
        arrived = sum(gammainc(k * shape, shape * expected) for k in range(1, 600))
        exact = 1 + arrived - expected
        got = burst_size(np.array([burstiness]), np.array([expected]))[0]
        assert got - 1 == pytest.approx(exact - 1, abs=0.07 * (burstiness - 1) / 2)
