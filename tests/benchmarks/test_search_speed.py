"""A whole search against the number of offers: its cost grows no faster than they do."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from planner.catalog import load_catalog
from planner.catalog.models import find_architecture
from planner.files import read_yaml
from planner.search.search import Found, search
from planner.search.setup import reach_of, setting, with_reach
from planner.spec.load import load
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace

ROOT = Path(__file__).parents[2]
COUNTS = (10, 50, 200, 800)
RUNS = 3


@pytest.fixture(scope="module")
def plan_of():
    """Search for the chat example on so many offers.

    The catalog's, spread over all of it, then the same from other sellers with other networks
    between their servers, which are further hardware classes.
    """
    catalog = load_catalog()
    slo = load(read_yaml(ROOT / "examples" / "chat-70b.yaml"), Slo)
    space = load(read_yaml(ROOT / "search_spaces" / "default.yaml"), SearchSpace)
    model = find_architecture(slo.model)

    every = [
        offer.model_copy(
            update={
                "provider": f"{offer.provider}-{other}",
                "internode_gb_per_s": (offer.internode_gb_per_s or 12.5) * (1 + other / 10),
            }
        )
        for other in range(-(-max(COUNTS) // len(catalog.offers)))
        for offer in catalog.offers
    ]

    def run(count: int) -> Found:
        offers = [every[number * len(every) // count] for number in range(count)]
        made = setting(slo, catalog, space, model, offers)
        return search(with_reach(made.problem, reach_of(slo, 1.5)))

    return run


def test_a_search_of_fifty_offers(benchmark, plan_of):
    assert len(benchmark(plan_of, 50).entries)


@pytest.mark.skipif(
    "PLANNER_SPEED" not in os.environ, reason="set PLANNER_SPEED on a quiet machine"
)
def test_cost_grows_no_faster_than_linearly_with_offers(plan_of):
    times = []
    for count in COUNTS:
        runs = []
        for _ in range(RUNS):
            begin = time.process_time()
            plan_of(count)
            runs.append(time.process_time() - begin)
        times.append(min(runs))
    for i in range(len(COUNTS) - 1):
        assert times[i + 1] / times[i] <= COUNTS[i + 1] / COUNTS[i], times
