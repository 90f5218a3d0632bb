"""Verdicts: what a run may and may not say about a target."""

import pytest

from planner.measured.verify import Planned, verify
from planner.spec.result import Result, Statistics
from tests.deploy.plans import record

PLANNED = Planned(rate_per_s=12.0, prompt_tokens=1000.0, output_tokens=300.0)
KEYS = ("ttft_p95_ms", "tpot_p95_ms")
FAST = {50.0: 200.0, 95.0: 600.0, 99.0: 900.0}
SLOW = {50.0: 300.0, 95.0: 801.0, 99.0: 2000.0}
TPOT = {50.0: 18.0, 95.0: 25.0, 99.0: 30.0}


def run(ttft=FAST, tpot=TPOT, **changes):
    given = {
        "tool": "vllm-bench",
        "file": "run.json",
        "load": "open_loop",
        "rate_per_s": 12.0,
        "achieved_per_s": 11.9,
        "requests": 3600,
        "prompt_tokens": 1010.0,
        "output_tokens": 299.0,
        "ttft": Statistics(mean=250.0, percentiles=ttft),
        "tpot": Statistics(mean=19.0, percentiles=tpot),
    }
    return Result(**(given | changes))


def checked(result, **plan):
    made = record(**plan)
    return verify(made, made.options[0], result, PLANNED)


def verdicts(result, **plan):
    return tuple(check.verdict for check in checked(result, **plan).checks)


def test_a_run_within_every_limit_holds():
    found = checked(run())
    assert found.holds is True
    ttft, tpot = found.checks
    assert (ttft.key, ttft.limit, ttft.predicted, ttft.upper) == (KEYS[0], 800.0, 400.0, 560.0)
    assert (ttft.measured, ttft.measured_as, ttft.verdict) == (600.0, "p95", "holds")
    assert (tpot.measured, tpot.verdict, tpot.reason) == (25.0, "holds", "")


def test_one_target_beyond_its_limit_misses_and_the_other_still_holds():
    found = checked(run(ttft=SLOW))
    assert [check.verdict for check in found.checks] == ["misses", "holds"]
    assert found.holds is False


CASES = {
    "lighter and within: nothing": ({"achieved_per_s": 9.0}, "not comparable"),
    "lighter and beyond: misses": ({"achieved_per_s": 9.0, "ttft": SLOW}, "misses"),
    "heavier and within: holds": ({"achieved_per_s": 15.0}, "holds"),
    "heavier and beyond: nothing": ({"achieved_per_s": 15.0, "ttft": SLOW}, "not comparable"),
    "shorter prompts and within: nothing": ({"prompt_tokens": 500.0}, "not comparable"),
    "shorter answers and beyond: misses": ({"output_tokens": 100.0, "ttft": SLOW}, "misses"),
    "longer prompts and within: holds": ({"prompt_tokens": 2000.0}, "holds"),
    "longer and fewer, beyond: nothing": (
        {"prompt_tokens": 2000.0, "achieved_per_s": 5.0, "ttft": SLOW},
        "not comparable",
    ),
    "no rate in the file: nothing": (
        {"achieved_per_s": None, "rate_per_s": None, "load": "closed_loop"},
        "not comparable",
    ),
    "five per cent off is no difference": ({"achieved_per_s": 11.45}, "holds"),
    "a higher percentile within decides": ({"ttft": {50.0: 100.0, 99.0: 790.0}}, "holds"),
    "a lower percentile beyond decides": ({"ttft": {50.0: 900.0}}, "misses"),
    "a lower percentile within does not": ({"ttft": {50.0: 100.0, 90.0: 300.0}}, "not measured"),
    "a higher percentile beyond does not": ({"ttft": {50.0: 100.0, 99.0: 900.0}}, "not measured"),
    "too few requests for a p95": ({"requests": 99}, "not measured"),
    "enough requests for a p95": ({"requests": 100}, "holds"),
    "few requests still show a miss": ({"requests": 30, "ttft": SLOW}, "misses"),
    "more failed than the percentile allows": ({"failed": 400}, "misses"),
    "a few failed": ({"failed": 36}, "holds"),
    "nothing streamed": ({"ttft": {}}, "not measured"),
}


@pytest.mark.parametrize("case", list(CASES))
def test_the_verdict_on_ttft(case):
    changes, verdict = CASES[case]
    ttft = changes.get("ttft", FAST)
    rest = {key: value for key, value in changes.items() if key != "ttft"}
    assert verdicts(run(ttft=ttft, **rest))[0] == verdict


def test_a_difference_in_load_is_named():
    (ttft, _) = checked(run(achieved_per_s=9.0, prompt_tokens=500.0)).checks
    assert ttft.reason == (
        "lighter than planned: rate 9 requests/s, planned 12; prompts 500 tokens, planned 1000"
    )


def test_a_deadline_is_not_shown_by_a_run():
    found = checked(run(), targets={"deadline_hours": (24.0, 20.0, 22.0)})
    assert [check.verdict for check in found.checks] == ["not measured"]
    assert found.holds is None


def test_what_the_simulation_said_stands_beside():
    latency = {"key": "ttft_p95_ms", "formula_ms": 400.0, "simulated_ms": 450.0, "upper_ms": 470.0}
    verification = {
        "picks": ["cheapest"], "checked": "o-1a2b3c4d", "option": "o-1a2b3c4d", "holds": True,
        "trials": [], "latencies": [latency], "utilization": 0.7, "seeds": [0],
        "requests": 1000, "replicas_simulated": 2,
    }  # fmt: skip
    ttft, tpot = checked(run(), verification=[verification]).checks
    assert (ttft.simulated, tpot.simulated) == (450.0, None)


def test_a_closed_loop_and_failures_are_noted():
    notes = checked(run(load="closed_loop", concurrency=64.0, failed=3)).notes
    assert "arrivals wait for the server" in notes[0]
    assert notes[1] == "3 of 3603 requests failed"
