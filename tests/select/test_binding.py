"""The limit that binds, and what runs out there."""

import numpy as np
import pytest

from planner.select.answers import answers, priced
from planner.select.binding import StepShares, binding
from tests.select.plans import archive, quotes, slo


def bound(row, shares=(0.0, 0.0), memory_bound=False, **changes):
    one = [archive("a", row)]
    answer = priced(answers(one), one, quotes(one, 10.0), slo(**changes))
    link, launch = (np.array([share]) for share in shares)
    return binding(answer, 0, StepShares(link, launch), 0, memory_bound)


@pytest.mark.parametrize(
    ("row", "shares", "limit", "use", "resource"),
    [
        ({"tpot_p95_ms": 45.0}, (0.1, 0.1), "tpot_p95_ms", 0.9, "decode"),
        ({"tpot_p95_ms": 45.0}, (0.4, 0.1), "tpot_p95_ms", 0.9, "link"),
        ({"tpot_p95_ms": 45.0}, (0.1, 0.4), "tpot_p95_ms", 0.9, "launch"),
        ({"ttft_p95_ms": 900.0}, (0.0, 0.0), "ttft_p95_ms", 0.9, "prefill"),
        (
            {"ttft_p95_ms": 900.0, "wait_probability": 0.05},
            (0.0, 0.0),
            "ttft_p95_ms",
            0.9,
            "queue",
        ),
        ({"utilization": 0.76}, (0.0, 0.0), "headroom", 0.95, "batch"),
    ],
    ids=["reading", "the network", "the host", "prompts", "slots", "load"],
)
def test_the_tightest_limit_binds(row, shares, limit, use, resource):
    got = bound(row, shares)
    assert (got.limit, got.use, got.resource) == (limit, use, resource)


def test_load_bounded_by_memory_says_so():
    assert bound({"utilization": 0.76}, memory_bound=True).resource == "memory"


def test_a_budget_binds_only_where_it_is_tight():
    # $10/h of 11 is 91 %: more than TPOT's 40 %, but instances come in steps.
    assert bound({}, purchase={"budget_usd_per_hour": 11.0}).limit == "headroom"
    got = bound({}, purchase={"budget_usd_per_hour": 10.2})
    assert (got.limit, got.resource) == ("budget_usd_per_hour", "money")


def test_offline_the_deadline_binds():
    row = {"run_hours": 3.0, "ttft_p95_ms": None, "tpot_p95_ms": None, "wait_probability": None}
    offline = {
        "offline": {"requests": 7200, "deadline_hours": 4.0},
        "prompt_tokens": 900.0,
        "output_tokens": 100.0,
    }
    got = bound(row, traffic=offline, slo={})
    assert (got.limit, got.use, got.resource) == ("deadline_hours", 0.75, "time")
