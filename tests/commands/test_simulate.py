"""``plan simulate``: one option, a trace, a CSV of points; and how they are shown."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pytest

from planner.commands.plan import plan
from planner.commands.simulate import Simulation, simulate
from planner.errors import InputError
from planner.report import FORMATS
from planner.report.simulation import percentiles_csv, render, timeline_csv
from planner.spec.record import PlanRecord
from planner.spec.slo import Slo
from tests.commands.test_plan_traffic import BASE, a_bursty_trace, mixed_slo
from tests.report.records import with_trace


@lru_cache(maxsize=1)
def record() -> PlanRecord:
    return plan(Slo.model_validate(BASE), space="quick")


@lru_cache(maxsize=1)
def simulated() -> Simulation:
    return simulate(record(), seeds=2)


def line(found: Simulation, key: str):
    return next(one for one in found.lines if one.key == key)


def test_other_seeds_confirm_what_the_plan_had_simulated():
    check = next(c for c in record().verification if c.option == record().picks["cheapest"])
    by_plan = {entry.key: entry.simulated_ms for entry in check.latencies}
    found = simulate(record(), seeds=6)
    for key in ("ttft_p50_ms", "tpot_p95_ms", "e2e_p95_ms"):
        assert line(found, key).simulated * 1e3 == pytest.approx(by_plan[key], rel=0.1)


def test_percentiles_rise_and_lie_between_the_runs():
    for metric in ("ttft", "tpot", "e2e", "itl"):
        mine = [one for one in simulated().lines if one.metric == metric]
        assert [one.share for one in mine] == [0.5, 0.9, 0.95, 0.99]
        assert all(a.simulated <= b.simulated for a, b in pairwise(mine))
        assert all(one.low <= one.simulated <= one.high for one in mine)


def test_every_token_that_is_asked_for_comes_out():
    # 20 requests/s of outputs with mean 150 exp(sigma^2 / 2), sigma = ln(400/150) / 1.6449.
    mean = 150 * math.exp((math.log(400 / 150) / 1.6448536) ** 2 / 2)
    assert simulated().output_tokens_per_s == pytest.approx(20 * mean, rel=0.03)
    assert simulated().rejected == 0
    assert not simulated().overloaded


def test_goodput_counts_the_requests_that_meet_both_limits():
    found = simulated()
    assert 0.95 <= found.attainment <= 1.0
    assert found.goodput_per_s == pytest.approx(20 * found.attainment, rel=0.05)
    assert {limit.key for limit in found.limits} == {"ttft_p95_ms", "tpot_p95_ms"}
    assert all(limit.holds for limit in found.limits)


def test_a_trace_is_replayed_as_it_is_beside_both_formulas(tmp_path):
    trace = tmp_path / "trace.csv"
    a_bursty_trace(trace)
    found = simulate(record(), trace=trace)
    assert (found.source, found.seeds, found.requests) == ("trace.csv", 1, 3840)
    assert found.rate_per_s == pytest.approx(6.4, rel=0.02)
    p95 = line(found, "tpot_p95_ms")
    # Half of the requests come at 12/s: one steady rate of 6.4/s is too good for them.
    assert p95.formula < p95.windows
    assert abs(p95.windows / p95.simulated - 1) < abs(p95.formula / p95.simulated - 1)
    text = render(found)
    assert "by windows" in text
    assert "Counts in 10 s and 60 s windows" in text
    # It is what the reader does.
    assert "simulate the trace" not in text


def test_a_formula_that_misses_a_trace_is_named(tmp_path):
    # Two hundred long prompts at once every minute, nothing in between.
    times = [60 * minute + 0.001 * n for minute in range(10) for n in range(200)]
    rows = "\n".join(f"{time:.3f},2000,20" for time in times)
    (tmp_path / "trace.csv").write_text(f"arrival_s,prompt_tokens,output_tokens\n{rows}\n")
    found = simulate(record(), trace=tmp_path / "trace.csv")
    assert any("misses ttft_p95_ms" in note for note in found.notes)


def test_requests_of_a_trace_beyond_the_context_of_the_model_are_cut(tmp_path):
    # 131,072 tokens are the context of Llama 3.1.
    rows = "\n".join(f"{n}.0,{500_000 if n % 100 == 0 else 500},100" for n in range(400))
    (tmp_path / "trace.csv").write_text(f"arrival_s,prompt_tokens,output_tokens\n{rows}\n")
    found = simulate(record(), trace=tmp_path / "trace.csv")
    told = "4 of 400 requests are longer than 131,072 tokens and are cut to that."
    assert told in found.notes
    assert found.rejected == 0


def test_targets_of_each_class_are_shown():
    found = simulate(plan(mixed_slo(), space="quick", verify=False), requests=3000, seeds=1)
    keys = [limit.key for limit in found.limits]
    assert keys == ["chat.ttft_p95_ms", "chat.tpot_p95_ms", "summarization.ttft_p95_ms"]
    slow, quick = (next(x for x in found.limits if x.key.startswith(k)) for k in ("summ", "chat"))
    assert slow.simulated_ms > quick.simulated_ms


def test_every_request_is_judged_by_the_limits_of_its_own_class():
    found = simulate(classed(), requests=3000, seeds=1)
    by_class = [x for x in found.limits if x.key.endswith("ttft_p95_ms")]
    assert [round(x.limit_ms) for x in by_class] == [300, 3000]
    # All hold with room to spare, though hardly a long document begins within chat's 300 ms.
    assert all(limit.holds for limit in found.limits)
    assert found.attainment > 0.95


@lru_cache(maxsize=1)
def classed() -> PlanRecord:
    classes = (
        {
            "name": "chat",
            "share": 0.5,
            "prompt_tokens": 100,
            "output_tokens": 20,
            "slo": {"ttft_p95_ms": 300, "tpot_p95_ms": 60},
        },
        {
            "name": "documents",
            "share": 0.5,
            "prompt_tokens": 24_000,
            "output_tokens": 20,
            "slo": {"ttft_p95_ms": 3000},
        },
    )
    slo = {**BASE, "traffic": {"rate_per_s": 0.2, "classes": classes}, "slo": {"confidence": 0.5}}
    return plan(Slo.model_validate(slo), space="quick", verify=False)


def a_trace(tmp_path, rows) -> Path:
    file = tmp_path / "trace.csv"
    text = "\n".join(",".join(map(str, row)) for row in rows)
    file.write_text(f"arrival_s,prompt_tokens,output_tokens\n{text}\n")
    return file


def test_a_trace_is_not_judged_by_the_limits_of_classes(tmp_path):
    trace = a_trace(tmp_path, [(n, 100, 20) for n in range(50)])
    found = simulate(classed(), trace=trace)
    assert found.limits == ()
    assert any("does not say which class a request is of" in note for note in found.notes)
    assert "no limit applies" in render(found)


def test_a_limit_that_no_request_of_a_trace_can_miss_is_not_judged(tmp_path):
    found = simulate(record(), trace=a_trace(tmp_path, [(n, 100, 1) for n in range(50)]))
    assert [limit.key for limit in found.limits] == ["ttft_p95_ms"]
    assert "tpot_p95_ms is not judged: no simulated request has such a time." in found.notes
    assert "TPOT p95  -" in render(found)


@pytest.mark.parametrize("count", [1, 2, 100])
def test_a_trace_without_duration_is_refused(tmp_path, count):
    trace = a_trace(tmp_path, [(5, 100, 20)] * count)
    with pytest.raises(InputError, match="has no duration; give requests at different times"):
        simulate(record(), trace=trace)


def test_the_first_requests_of_a_trace_are_compared_with_the_formula_of_those_alone(tmp_path):
    # Even seconds first; later ten times as many requests, ten times as long.
    rows = [(n, 100, 20) for n in range(100)]
    rows += [(100 + n / 10, 1000, 200) for n in range(1000)]
    found = simulate(record(), trace=a_trace(tmp_path, rows), requests=100)
    assert found.rate_per_s == pytest.approx(1.0)
    assert found.requests == 100
    few, cut = found.notes
    assert few.startswith("Of 100 measured requests fewer than 10 lie beyond a p95")
    assert cut == "Only the first 100 of 1,100 requests."
    p95 = line(found, "e2e_p95_ms")
    assert p95.formula == pytest.approx(p95.simulated, rel=0.1)


def test_first_requests_at_one_time_are_refused(tmp_path):
    trace = a_trace(tmp_path, [(0, 100, 20), (0, 100, 20), (9, 100, 20), (12, 100, 20)])
    with pytest.raises(InputError, match="the first 2 requests of the trace come at one time"):
        simulate(record(), trace=trace, requests=2)


def test_arrivals_that_are_drawn_for_the_plan_of_a_trace_are_told():
    found = simulate(with_trace(record()), requests=200, seeds=1)
    told = (
        "The plan is for the trace a.csv; these are Poisson arrivals at the rate of its busiest"
        " 60 s: replay it with --trace."
    )
    assert found.notes[0] == told
    assert "trace" not in " ".join(simulated().notes)


def test_limits_are_told_to_be_without_the_margin_of_the_plan():
    assert "without the margin for the model's own error" in render(simulated())


def test_a_load_beyond_the_formula_is_told_without_a_factor(tmp_path):
    # 10 s at 300/s, for an option that was sized for 20/s.
    rows = [(n / 300, 500, 100) for n in range(3000)]
    found = simulate(record(), trace=a_trace(tmp_path, rows))
    assert math.isinf(line(found, "ttft_p95_ms").formula)
    assert sum("more than the option can take" in note for note in found.notes) == 1
    assert "inf" not in " ".join(found.notes)


def test_the_report_shows_percentiles_targets_and_queue_over_time():
    text = render(simulated())
    for part in ("TTFT p95", "formula", "simulated", "goodput", "queue", "holds"):
        assert part in text
    rows = list(csv.DictReader(io.StringIO(timeline_csv(simulated()))))
    assert len(rows) == 24
    assert all(float(row["batch"]) <= float(row["batch_max"]) for row in rows)
    # The last request is in flight until the end.
    assert float(rows[-1]["in_flight_max"]) >= 1
    assert "batch of the fleet" in text
    table = list(csv.DictReader(io.StringIO(percentiles_csv(simulated()))))
    assert len(table) == 16
    assert table[0]["windows_ms"] == ""


def test_an_unknown_option_and_offline_work_are_refused(tmp_path):
    with pytest.raises(InputError, match="has no option 'cheapst'; did you mean 'cheapest'"):
        simulate(record(), option="cheapst")
    offline = {"offline": {"requests": 100000, "deadline_hours": 10}}
    lengths = {k: v for k, v in BASE["traffic"].items() if k != "rate_per_s"}
    batch = {**BASE, "traffic": {**lengths, **offline}, "slo": {}}
    with pytest.raises(InputError, match="offline work"):
        simulate(plan(Slo.model_validate(batch), space="quick"))


@pytest.mark.parametrize(("requests", "few"), [(2, True), (100, True), (200, False)])
def test_a_percentile_of_few_requests_is_told_to_rest_on_chance(requests, few):
    # Two runs, 82 % of each measured: 8 of 164 requests lie beyond a p95, 16 of 328.
    notes = simulate(record(), requests=requests, seeds=2).notes
    assert any("chance decides" in note for note in notes) == few


def test_with_few_requests_the_formula_is_not_said_to_miss(tmp_path):
    # 30 requests within 30 ms once a minute: their p95 is far above that at a steady rate.
    lines = "".join(f"{60 * (i // 30) + i % 30 / 1000},2000,20\n" for i in range(600))
    for name, count in (("few", 60), ("many", 600)):
        rows = "".join(lines.splitlines(keepends=True)[:count])
        (tmp_path / name).write_text("arrival_s,prompt_tokens,output_tokens\n" + rows)
    few, many = (simulate(record(), trace=tmp_path / name).notes for name in ("few", "many"))
    assert any("misses ttft_p95_ms" in note for note in many)
    assert not any("misses" in note for note in few)
    assert any("or a longer one" in note for note in few)
    assert not any("chance decides" in note for note in many)


def test_requests_of_a_trace_count_once_however_often_they_are_replayed(tmp_path):
    rows = [(60 * (n // 30) + n % 30 / 1000, 2000, 20) for n in range(90)]
    random = plan(Slo.model_validate({**BASE, "routing": "random"}), space="quick", verify=False)
    notes = simulate(random, trace=a_trace(tmp_path, rows), seeds=3).notes
    assert any(note.startswith("Of 90 measured requests") for note in notes)
    assert not any("misses" in note for note in notes)


def test_a_stored_plan_is_simulated_like_the_plan_itself(tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(FORMATS["json"](record()))
    assert render(simulate(file, seeds=2)) == render(simulated())


def test_goodput_says_that_limits_on_itl_are_not_counted():
    one, *rest = simulated().limits
    of_tokens = replace(one, key="itl_p99_ms")
    both = render(replace(simulated(), limits=(of_tokens, one, *rest)))
    assert "meet every limit that is theirs (itl_p99_ms: on tokens, not counted)" in both
    alone = render(replace(simulated(), limits=(of_tokens,)))
    assert "no goodput: limits on ITL are on tokens, not on requests" in alone
    assert "meet every limit that is theirs\n" in render(simulated())
