"""Load that changes: percentiles over windows, each in its own steady state."""

from __future__ import annotations

import numpy as np
import pytest

from planner.model.queueing import percentile, steady_state
from planner.model.windows import Window, window_percentile, window_states
from tests.model.by_hand import constant
from tests.simulate.conftest import PARAMETERS, chat_candidate

CHAT = constant(500.0, 200.0)
METRICS = ("ttft", "tpot", "e2e")


@pytest.fixture(scope="module")
def chat():
    return chat_candidate()


@pytest.mark.parametrize("metric", METRICS)
def test_windows_that_are_all_alike_are_one_steady_state(chat, metric):
    windows = [Window(0.25, 2.0, CHAT)] * 4
    got = window_percentile(window_states(chat, PARAMETERS, windows), metric, 0.95)
    state = steady_state(chat, PARAMETERS, CHAT, np.array([2.0]))
    np.testing.assert_allclose(got, percentile(state, CHAT, metric, 0.95), rtol=1e-4)


@pytest.mark.parametrize("metric", METRICS)
def test_the_busy_tenth_of_the_requests_sets_the_p95(chat, metric):
    # Half of the busy tenth is the slowest twentieth, if the quiet ones are all faster.
    quiet, busy = constant(50.0, 20.0), constant(8000.0, 800.0)
    windows = [Window(0.9, 0.1, quiet), Window(0.1, 0.1, busy)]
    got = window_percentile(window_states(chat, PARAMETERS, windows), metric, 0.95)
    state = steady_state(chat, PARAMETERS, busy, np.array([0.1]))
    np.testing.assert_allclose(got, percentile(state, busy, metric, 0.5), rtol=1e-3)


def test_an_overloaded_window_makes_only_the_percentiles_endless_that_it_reaches(chat):
    windows = [Window(0.97, 1.0, CHAT), Window(0.03, 1e6, CHAT)]
    found = window_states(chat, PARAMETERS, windows)
    assert found.overloaded_share() == pytest.approx(0.03)
    assert np.isfinite(window_percentile(found, "ttft", 0.95)).all()
    assert np.isinf(window_percentile(found, "ttft", 0.99)).all()
