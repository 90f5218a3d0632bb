"""Fleets of two deployments: the pruned composition against every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.pareto import nondominated, rounded
from planner.search.fleet import Pool, compose, part_burstiness, useful


def random_pool(seed: int, rows: int, limits: int = 2) -> Pool:
    draw = np.random.default_rng(seed)
    gpus = draw.integers(1, 9, rows) * 8.0
    kind = draw.integers(0, limits, rows)
    uses = np.where(kind[:, None] == np.arange(limits), gpus[:, None], 0.0)
    return Pool(
        cost=rounded(gpus * draw.choice([1.1, 2.0, 2.3, 3.9], rows)),
        uses=uses,
        latency=rounded(draw.uniform(0.01, 1.0, (rows, 2))),
        loss=draw.choice([0.0, 0.5, 1.0, 2.5], (rows, 1)),
        offer=draw.integers(0, 4, rows),
    )


def every_pair(first: Pool, second: Pool, share: float, most, most_loss) -> set[tuple[float, ...]]:
    """The best of all pairs, one at a time."""
    points = []
    for i in range(len(first)):
        for j in range(len(second)):
            uses = first.uses[i] + second.uses[j]
            loss = share * first.loss[i] + (1 - share) * second.loss[j]
            apart = first.offer[i] != second.offer[j]
            if apart and (uses <= most).all() and (rounded(loss) <= most_loss).all():
                cost = float(rounded(first.cost[i] + second.cost[j]))
                slower = np.maximum(first.latency[i], second.latency[j])
                points.append((cost, *uses, *slower, *rounded(loss)))
    table = np.array(points).reshape(len(points), -1)
    return {tuple(row) for row in table[nondominated(table)]}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_the_fleets_are_the_best_of_every_pair(seed, share):
    first, second = random_pool(seed, 30), random_pool(1000 + seed, 40)
    most, most_loss = np.array([48.0, 64.0]), np.array([1.5])
    found = compose(first, second, share, most, most_loss)
    expected = every_pair(first, second, share, most, most_loss)
    assert {tuple(row) for row in found.whole.points()} == expected
    assert len(found.first) == len(expected)


def pool(*rows: tuple[float, ...]) -> Pool:
    """Rows of cost, GPUs, latency, loss, offer."""
    cost, gpus, latency, loss, offer = np.array(rows, dtype=float).T
    return Pool(cost, gpus[:, None], latency[:, None], loss[:, None], offer.astype(np.intp))


NO_LIMIT = np.array([np.inf]), np.array([np.inf])


def test_a_fleet_adds_cost_and_gpus_and_takes_the_slower_part():
    found = compose(pool((10, 8, 0.5, 0.0, 0)), pool((3, 4, 0.8, 2.0, 1)), 0.75, *NO_LIMIT)
    # Three quarters of the requests lose nothing, one quarter 2 %.
    assert found.whole.points().tolist() == [[13.0, 12.0, 0.8, 0.5]]


def test_nothing_fits_a_quota_that_both_parts_together_exceed():
    found = compose(
        pool((1, 8, 0.5, 0, 0)), pool((1, 8, 0.5, 0, 1)), 0.5, np.array([15.0]), NO_LIMIT[1]
    )
    assert len(found.first) == 0


def test_two_deployments_on_one_offer_are_no_fleet():
    both = pool((1, 8, 0.5, 0, 7), (2, 8, 0.5, 0, 3))
    found = compose(both, both, 0.5, *NO_LIMIT)
    # The cheapest pair would be twice the first row; the other offer beats nothing by itself.
    assert found.whole.cost.tolist() == [3.0]


def test_an_empty_pool_gives_no_fleet():
    some = random_pool(0, 5)
    none = some.take(np.zeros(0, dtype=np.intp))
    assert len(compose(none, some, 0.5, np.full(2, 99.0), np.ones(1)).first) == 0


@given(seed=st.integers(0, 5000))
def test_a_beaten_deployment_more_changes_no_fleet(seed):
    first, second = random_pool(seed, 20), random_pool(seed + 1, 20)
    names = ("cost", "uses", "latency", "loss", "offer")
    # Worse than the first row, at the same offer.
    worse = {name: 2 * getattr(first, name)[:1] + 0.5 for name in names[:-1]}
    worse["offer"] = first.offer[:1]
    more = Pool(**{name: np.concatenate([getattr(first, name), worse[name]]) for name in names})
    limits = np.array([80.0, 80.0]), np.array([2.0])
    before, after = compose(first, second, 0.5, *limits), compose(more, second, 0.5, *limits)
    np.testing.assert_array_equal(before.whole.points(), after.whole.points())


def test_of_equal_deployments_at_one_offer_only_the_first_is_kept():
    assert useful(pool((1, 1, 1, 0, 0), (1, 1, 1, 0, 0), (1, 1, 1, 0, 1))).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("burstiness", "share", "expected"), [(1.0, 0.3, 1.0), (4.0, 0.25, 1.75), (0.0, 0.5, 0.5)]
)
def test_thinning_a_stream_pulls_it_towards_poisson(burstiness, share, expected):
    # Gaps of mean 1 and variance b; a geometric number of them with mean 1/s has by Wald's
    # identities the mean 1/s and the variance b/s + (1 - s)/s^2: squared CV = s b + 1 - s.
    assert part_burstiness(burstiness, share) == pytest.approx(expected)
