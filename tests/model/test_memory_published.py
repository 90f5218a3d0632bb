"""Start-up logs of real engines against what we say of the same deployment.

``tests/published/memory.csv``: one row a log with its public source; columns of ``plan score``,
then what the log states. ``started`` = no: the engine refused to start. ``arch_kv_bytes_per_token``
is arithmetic on the published architecture that the log's own figures confirm.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from planner.candidates.score import score_points
from planner.catalog import load_catalog
from planner.spec.point import parse_point

with (Path(__file__).parents[1] / "published" / "memory.csv").open(encoding="utf-8") as file:
    LOGS = list(csv.DictReader(file))
STARTED = [log for log in LOGS if log["started"] == "yes"]
REFUSED = [log for log in LOGS if log["started"] == "no"]


@pytest.fixture(scope="module")
def scores():
    scored = score_points(load_catalog(), [parse_point(log) for log in LOGS])
    return dict(zip((log["id"] for log in LOGS), scored, strict=True))


def errors(scores, figure, column, logs=STARTED):
    pairs = [(scores[log["id"]].figures[figure], float(log[column])) for log in logs if log[column]]
    return np.array([predicted / printed - 1 for predicted, printed in pairs])


def test_there_are_enough_logs_to_tell():
    assert len(STARTED) >= 50
    assert {log["engine"] for log in STARTED} == {"vLLM", "SGLang"}


def test_no_deployment_that_started_is_called_impossible(scores):
    assert {scores[log["id"]].status for log in STARTED} == {"memory_only"}


def test_what_was_refused_is_called_impossible_and_says_how_long_a_request_may_be(scores):
    for log in REFUSED:
        assert scores[log["id"]].status == "does_not_fit"
        assert "the longest request that fits has" in scores[log["id"]].reason


def test_weights_are_as_printed(scores):
    error = np.abs(errors(scores, "weights_gib_per_gpu", "measured_weights_gib"))
    assert error.mean() <= 0.003
    assert error.max() <= 0.02


def test_bytes_per_token_are_exact(scores):
    error = np.abs(errors(scores, "kv_bytes_per_token", "arch_kv_bytes_per_token"))
    assert error.max() <= 0.001


def test_the_pool_has_the_tokens_that_the_engine_prints(scores):
    error = np.abs(errors(scores, "kv_cache_tokens", "measured_kv_tokens"))
    assert error.mean() <= 0.04
    assert np.median(error) <= 0.002


def test_current_versions_are_within_one_percent_where_the_pool_is_not_a_remnant(scores):
    logs = [
        log
        for log in STARTED
        if log["engine_version"] == "0.19.0" and float(log["measured_kv_gib"] or 0) > 10
    ]
    assert len(logs) >= 35
    assert np.abs(errors(scores, "kv_cache_tokens", "measured_kv_tokens", logs)).max() <= 0.01


def test_as_many_requests_fit_as_the_engine_prints(scores):
    # The engine's figure is not limited by its batch limit, ours is (1024).
    logs = [
        log
        for log in STARTED
        if log["engine_version"] == "0.19.0"
        and float(log["measured_max_concurrency"] or math.inf) < 1000
    ]
    error = errors(scores, "max_concurrency", "measured_max_concurrency", logs)
    assert np.median(np.abs(error)) <= 0.002
    assert np.abs(error).max() <= 0.04
