"""Post-stratification by length, against what is known by hand and against large samples."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.select.strata import Strata
from planner.select.verification import Requests, Wanted, percentile
from planner.spec.slo import Slo
from tests.select.test_verification import a_run

RANKS = (np.arange(2000) + 0.5) / 2000
NORMAL = NormalDist()
LENGTHS = np.rint([1000 * np.exp(NORMAL.inv_cdf(rank)) for rank in RANKS]).astype(np.int64)
STRATA = Strata.of(LENGTHS, np.ones(2000))


def test_each_stratum_counts_for_its_share_whatever_the_sample_holds_of_it():
    strata = Strata.of(np.arange(1, 101), np.ones(100))
    # Beyond the edges at 25, 50, 75, 90 and 95 lie at least five of 120; beyond 98 there are 2.4.
    sample = np.repeat([10, 30, 60, 80, 92, 99], [50, 10, 20, 20, 15, 5])
    weights = strata.weights(sample)
    sums = [weights[sample == length].sum() for length in (10, 30, 60, 80, 92, 99)]
    np.testing.assert_allclose(sums, 120 * np.array([0.25, 0.25, 0.25, 0.15, 0.05, 0.05]))


def test_kinds_count_by_their_shares():
    strata = Strata.of(np.array([100, 200]), np.array([0.9, 0.1]))
    weights = strata.weights(np.repeat([100, 200], [80, 20]))
    np.testing.assert_allclose(weights, np.repeat([0.9 / 0.8, 0.1 / 0.2], [80, 20]))


@given(
    sample=st.lists(st.integers(1, 500), min_size=1, max_size=300),
    reference=st.lists(st.integers(1, 500), min_size=1, max_size=300),
)
def test_weights_add_up_to_the_sample(sample, reference):
    strata = Strata.of(np.array(reference), np.ones(len(reference)))
    weights = strata.weights(np.array(sample))
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(len(sample))


def test_lengths_that_do_not_vary_leave_all_requests_alike():
    strata = Strata.of(np.full(2000, 700), np.ones(2000))
    np.testing.assert_allclose(strata.weights(np.full(90, 700)), 1)


def a_study(random: np.random.Generator, waiting: float):
    """Two runs of a latency that is the length's share plus an exponential wait."""
    runs = []
    for _ in range(2):
        lengths = np.rint(1000 * np.exp(random.standard_normal(1500))).astype(np.int64)
        run = a_run(lengths + waiting * random.exponential(1000, 1500))
        run.prompt[:] = lengths
        runs.append(run)
    return runs


@pytest.mark.parametrize("waiting", [0.1, 1.0])
def test_intervals_by_strata_are_shorter_and_still_hold_the_truth(waiting):
    random, large = np.random.default_rng(5), np.random.default_rng(6)
    many = 1000 * np.exp(large.standard_normal(2_000_000))
    truth = np.quantile(many + waiting * large.exponential(1000, 2_000_000), 0.95)
    plain, sorted_ = [], []
    for _ in range(200):
        runs = a_study(random, waiting)
        plain.append(percentile(runs, "ttft", 0.95))
        sorted_.append(percentile(runs, "ttft", 0.95, STRATA))
    assert sum(seen.upper >= truth for seen in sorted_) >= 0.97 * 200
    assert np.mean([seen.value for seen in sorted_]) == pytest.approx(truth, rel=0.01)
    lengths = [np.mean([seen.upper - truth for seen in some]) for some in (sorted_, plain)]
    assert lengths[0] <= 0.7 * lengths[1]


def test_the_strata_of_a_class_are_those_of_its_lengths():
    lengths = {"p50": 1000, "p95": 1000 * float(np.exp(NORMAL.inv_cdf(0.95)))}
    slo = Slo.model_validate(
        {
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "traffic": {
                "rate_per_s": 1.0,
                "prompt_tokens": lengths,
                "output_tokens": {"p50": 100, "p95": 100},
            },
            "slo": {"ttft_p95_ms": 1000},
        }
    )
    found = Requests(slo).strata(Wanted("ttft_p95_ms", "ttft", 0.95))
    np.testing.assert_array_equal(found.edges, STRATA.edges)
    np.testing.assert_allclose(found.within, STRATA.within)
    assert Requests(slo).strata(Wanted("tpot_p95_ms", "tpot", 0.95)) is None


def test_a_part_of_a_run_without_requests_of_a_class_has_no_weights_and_no_warning():
    # pytest turns warnings into errors.
    assert STRATA.weights(np.zeros(0, dtype=np.int64)).shape == (0,)
