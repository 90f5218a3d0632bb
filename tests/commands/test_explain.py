"""What ``plan explain`` prints must multiply out and agree with the other reports."""

from __future__ import annotations

import datetime

import pytest

from planner.commands.explain import explain
from planner.report import json_text
from planner.report.explanation import render
from planner.spec.money import Lease
from planner.spec.offer import ExchangeRate
from planner.spec.option import Interval, Intervals, Latency
from planner.spec.verification import Simulated
from tests.report.records import (
    check,
    money,
    offer,
    option,
    price,
    record,
    rows,
    with_trace,
)


def explained(tmp_path, made):
    path = tmp_path / "plan.json"
    path.write_text(json_text.render(made), encoding="utf-8")
    return render(explain(path))


def checked_record():
    """By hand: simulated 450 ms x 1.2 = 540 ms; the formula's 400 ms x 1.2 would be 480 ms."""
    ttft = Latency(p50_ms=200, p95_ms=400, p50_upper_ms=240, p95_upper_ms=540)
    made = record(options=(option(ttft=ttft),), picks={"cheapest": "o-00000001"})
    seen = (Simulated(row=0, upper_ms={"ttft_p95_ms": 450.0}),)
    archive = made.archive[0].model_copy(update={"simulated": seen})
    return made.model_copy(update={"archive": (archive,)})


def test_the_value_with_margin_of_a_simulated_option_is_the_simulated_one_times_the_factor(
    tmp_path,
):
    text = explained(tmp_path, checked_record())
    assert "TTFT p95: 400 ms" in text
    assert "TTFT p95 simulated: 450 ms  = upper end of its 99 % interval" in text
    assert "TTFT p95 with margin: 540 ms  = 450 simulated x 1.2: measured / predicted" in text


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        (4200, "replayed, nothing left to chance"),
        (120_021, "replay of the 4,200 requests around the busiest minute"),
    ],
)
def test_a_part_of_a_trace_that_was_replayed_is_told(tmp_path, requests, expected):
    checks = (check("o-00000001", "o-00000001", requests=4200),)
    made = with_trace(checked_record(), requests=requests)
    text = explained(tmp_path, made.model_copy(update={"verification": checks}))
    assert f"TTFT p95 simulated: 450 ms  = {expected}" in text


def test_the_rate_sized_for_is_told_from_the_trace_where_there_is_one(tmp_path):
    assert "rate sized for: 3 requests/s\n      source: slo.yaml\n" in explained(tmp_path, record())
    text = explained(tmp_path, with_trace(record()))
    assert "the tokens of its busiest 60 s\n      source: a.csv\n" in text
    text = explained(tmp_path, with_trace(record(), window_s=None))
    assert "that of the whole trace\n      source: a.csv\n" in text


def test_an_option_that_was_never_simulated_multiplies_the_formulas_value(tmp_path):
    text = explained(tmp_path, record())
    assert "TTFT p95 with margin: 480 ms  = 400 x 1.2: measured / predicted" in text
    assert "simulated" not in text


def test_the_evidence_is_that_of_the_other_reports(tmp_path):
    drafts = {"speculation": "ngram", "draft_tokens": 3}
    made = record(options=(option(evidence="wide", **drafts), record().options[1]))
    columns = {"speculation": ("ngram", "off"), "draft_tokens": (3, 0)}
    archive = made.archive[0].model_copy(update={"rows": rows(tp=(1, 2), **columns)})
    text = explained(tmp_path, made.model_copy(update={"archive": (archive,)}))
    assert "speed evidence: wide interval  = the stack with speculation ngram" in text
    assert "measured on this stack: validated  = vllm-v1 on acme-x1" in text


def test_evidence_that_no_layout_weakens_needs_no_reason(tmp_path):
    assert "speed evidence: validated\n" in explained(tmp_path, record())


def bought(usd_per_hour, **terms):
    """Return a plan of one option, bought on these terms."""
    one = option(money=money(price(offer()).model_copy(update=terms), usd_per_hour))
    return record(options=(one,), picks={"cheapest": one.id})


def test_what_a_price_binds_to_is_multiplied_out(tmp_path):
    lease = Lease(hours=26280, upfront_share=0.5, minimum_instances=2, quota_instances=4)
    text = explained(tmp_path, bought(11.0, lease=lease, usd_per_instance_hour=11.0))
    # By hand: 11 x 26,280 = 289,080, of which half is 144,540.
    assert "bound for: 289,080 USD  = 26,280 h of the shortest lease x 11" in text
    assert "due at once: 144,540 USD  = 289,080 x 0.5 paid at the start" in text
    assert "fewest instances that are sold: 2" in text
    assert "quota: 4 instances" in text
    assert "bound for" not in explained(tmp_path, record())


def test_a_price_in_another_currency_names_rate_day_and_source(tmp_path):
    ecb = ExchangeRate(usd=1.25, date=datetime.date(2026, 11, 2), source="ECB")
    made = bought(10.0, currency="EUR", exchange=ecb, usd_per_instance_hour=10.0)
    text = explained(tmp_path, made)
    assert "price as listed: EUR 8.00 (list 4.00) x 1.25 USD" in text
    assert "source: ECB, 2026-11-02; currencies.yaml" in text


def test_the_price_of_spot_is_that_of_its_source_and_then_with_the_allowance(tmp_path):
    spot = {"interruption_share": 0.1, "usd_per_instance_hour": 1.0, "row_usd_per_hour": 0.9}
    text = explained(tmp_path, bought(1.0, **spot))
    assert "  price: 0.9 USD per instance-hour\n" in text
    assert "price of an hour that does its work: 1 USD  = 0.9 / (1 - 0.1" in text


def test_the_interval_of_the_cost_is_that_at_full_utilization(tmp_path):
    end = Interval(low=0.5, high=1.0)
    found = Intervals(capacity_tokens_per_s=end, usd_per_mtok_full=end)
    one = option(intervals=found)
    made = record(options=(one,), picks={"cheapest": one.id})
    wanted = "80 % interval of USD per million output tokens at full utilization: 0.5 to 1"
    assert wanted in explained(tmp_path, made)


def test_the_bound_is_said_to_be_that_of_the_options_own_batch(tmp_path):
    text = explained(tmp_path, record())
    assert "TPOT bound: 5 ms  = all efficiencies 1, at the option's own batch" in text
