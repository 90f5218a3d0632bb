"""What ``plan explain`` prints must multiply out and agree with the other reports."""

from __future__ import annotations

from planner.commands.explain import explain
from planner.report import json_text
from planner.report.explanation import render
from planner.spec.option import Latency
from planner.spec.verification import Simulated
from tests.report.records import option, record, rows


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
