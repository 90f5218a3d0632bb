"""What a plan for a recorded trace tells of it."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates.trace_load import TraceLoad
from planner.importers.traces import Trace
from planner.select.trace_notes import trace_notes
from planner.spec.slo import Slo
from tests.commands.test_plan_traffic import BASE
from tests.report.records import trace as summary

ONE = np.array([1])
ADVICE = "One steady rate does not describe the trace: check a choice by its replay."


def notes(replayed: int, **changes) -> list[str]:
    recorded = Trace("a.csv", "plain", np.array([0.0]), ONE, ONE, ("As recorded.",))
    load = TraceLoad(Slo.model_validate(BASE), recorded, summary(**changes))
    return list(trace_notes(load, replayed=replayed))


def test_what_the_busiest_window_is_worth_is_told():
    assert notes(4200) == [
        "a.csv: sized for its busiest 60 s (12 requests/s of mean lengths bring its tokens),"
        " paid for by its mean (7 requests/s).",
        "As recorded.",
        "Latencies by formula are of the busiest 60 s, replayed ones of all that was replayed; by"
        " windows is the formula over that time, window by window.",
    ]
    (first, _) = notes(4200, window_s=None)
    assert first.startswith("a.csv: sized for the rate of the whole trace (12 requests/s), paid")


def test_a_replay_is_advised_only_where_there_was_none_and_one_rate_is_not_all():
    assert ADVICE in notes(0)
    assert ADVICE not in notes(4200)
    assert ADVICE not in notes(0, window_s=None)


@pytest.mark.parametrize(("requests", "told"), [(120_021, True), (20_000, False)])
def test_the_part_of_a_long_trace_that_was_replayed_is_told(requests, told):
    part = (
        "Of the trace's 120,021 requests the 20,000 around its busiest minute were replayed;"
        " `plan simulate --trace` replays all."
    )
    assert (part in notes(20_000, requests=requests)) is told
