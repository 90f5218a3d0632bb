"""What a buyer reads first: the load that costs rest on, and how old the prices are."""

from __future__ import annotations

import datetime
import io

import openpyxl
import pytest

from planner.report import FORMATS, words
from planner.report.html_data import page_data
from planner.report.pack import Pack
from planner.report.xlsx import render as workbook
from planner.spec.option import Binding
from planner.spec.record import Miss, Relaxation
from tests.report.records import option, record, with_trace

TODAY = datetime.date(2026, 11, 29)


def with_traffic(**changes):
    made = record()
    slo = {**made.inputs.slo, "traffic": {**made.inputs.slo["traffic"], **changes}}
    return made.model_copy(update={"inputs": made.inputs.model_copy(update={"slo": slo})})


def test_the_age_of_the_picks_own_prices_is_told_and_not_only_that_of_the_newest():
    made = record()
    said = words.price_age(made, TODAY)
    assert said.startswith(f"prices judged as of {made.inputs.as_of}")
    seen = {o.money.price.seen for o in made.options if o.id in made.picks.values()}
    assert all(date in said for date in (min(seen), max(seen)))


def test_a_plan_without_a_pick_tells_the_day_alone():
    made = record(options=(), picks={}, shown=())
    assert words.price_age(made, TODAY).startswith(f"prices judged as of {made.inputs.as_of}")
    assert "picks" not in words.price_age(made, TODAY)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rate_per_s": 12.0, "mean_rate_per_s": 7.0}, "12 requests/s in the busiest hour, 7 on"),
        # By hand: half of the hours at the full rate, half at none.
        (
            {"rate_per_s": 12.0, "mean_rate_per_s": None, "load_profile": [0, 1] * 12},
            "12 requests/s in the busiest hour, 6 on average",
        ),
    ],
)
def test_the_mean_rate_that_costs_rest_on_stands_beside_the_rate_sized_for(changes, expected):
    assert expected in words.asked(with_traffic(**changes))[0]


def test_the_rate_of_a_trace_is_that_of_its_busiest_window():
    made = with_trace(with_traffic(rate_per_s=12.0, mean_rate_per_s=7.0))
    assert "12 requests/s in the busiest 60 s, 7 on average" in words.asked(made)[0]


def test_one_rate_is_named_once():
    line = words.asked(with_traffic(rate_per_s=12.0, mean_rate_per_s=12.0))[0]
    assert line.endswith("12 requests/s")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"prefix_hit_rate": 0.0, "burstiness": 1.0, "max_context_tokens": None}, []),
        (
            {"prefix_hit_rate": 0.55, "burstiness": 2.0},
            ["55 % of each prompt cached, burstiness 2 (squared CV of the gaps)"],
        ),
        ({"max_context_tokens": 32_768}, ["at most 32,768 tokens a request"]),
    ],
)
def test_what_else_of_the_traffic_moves_the_answer_is_told_where_it_was_stated(changes, expected):
    assert words.asked(with_traffic(**changes))[2:-1] == expected


def test_what_one_limit_alone_would_buy_is_said_to_rest_on_the_formula():
    one = Relaxation(limit="slo.ttft_p95_ms", asked=800, needed=900, option=option())
    told, line = words.alone(record(relaxations=(one,)))
    assert told == (
        "One limit alone, all others as asked, by the formula (a simulation may refuse it):"
    )
    assert line.startswith("slo.ttft_p95_ms: 900 instead of 800 buys")


@pytest.mark.parametrize(
    ("proven", "stopped", "said"),
    [
        (True, "fixed point", "No candidate meets every target (20 considered)."),
        (False, "fixed point", "No candidate meets every target (20 considered)."),
        (False, "time limit", "No candidate meets every target so far: the search was cut short."),
        (False, "interrupted", "No candidate meets every target so far: the search was cut short."),
    ],
)
def test_every_report_of_an_empty_plan_says_whether_the_search_was_cut_short(proven, stopped, said):
    search = record().search.model_copy(update={"proven": proven, "stopped": stopped})
    pack = Pack(record(options=(), picks={}, search=search))
    sheets = openpyxl.load_workbook(io.BytesIO(workbook(pack)))
    cells = [cell.value for row in sheets["Decision"].iter_rows() for cell in row]
    assert said in cells
    assert page_data(pack)["nothing"] == said
    assert said in FORMATS["table"](pack.record)


@pytest.mark.parametrize(
    ("would_do", "said"),
    [
        ((), ["No limit moved alone makes the plan work."]),
        (("purchase.allow_unvalidated: true",), []),
    ],
)
def test_that_no_limit_alone_would_do_is_not_said_where_a_change_would(would_do, said):
    miss = Miss(option=option(), excess=1.1, misses=("evidence",), would_do=would_do)
    assert words.alone(record(misses=(miss,))) == said


def classed(**targets):
    """A plan for two classes of requests; targets by class name."""
    made = record()
    shares = {"chat": 0.6, "long documents": 0.4}
    classes = [
        {"name": name, "share": share, "prompt_tokens": {"p50": 9000, "p95": 32000},
         "output_tokens": {"p50": 250, "p95": 700},
         "slo": {key: targets.get(name.split()[0], {}).get(key) for key in KEYS}}
        for name, share in shares.items()
    ]  # fmt: skip
    traffic = {"rate_per_s": 3.0, "classes": classes}
    slo = {**made.inputs.slo, "traffic": traffic}
    return made.model_copy(update={"inputs": made.inputs.model_copy(update={"slo": slo})})


KEYS = ("ttft_p95_ms", "ttft_p99_ms", "tpot_p95_ms", "e2e_p95_ms")


def test_each_class_of_requests_has_its_own_targets_in_the_head_of_the_report():
    made = classed(long={"ttft_p95_ms": 12000.0, "e2e_p95_ms": 60000.0})
    assert words.asked(made)[-3:] == [
        "targets, each with 80 % confidence:",
        "  chat: ttft_p95_ms <= 800",
        "  long documents: ttft_p95_ms <= 12,000, e2e_p95_ms <= 60,000",
    ]


def test_classes_without_targets_of_their_own_share_those_of_the_file_in_one_line():
    last = words.asked(classed())[-1]
    assert last == "targets: ttft_p95_ms <= 800, each with 80 % confidence"


def test_the_head_fits_a_terminal_of_100_columns():
    limits = {"ttft_p95_ms": 12000.0, "tpot_p95_ms": 80.0, "e2e_p95_ms": 60000.0}
    made = classed(chat=limits, long=limits)
    head = FORMATS["table"](made, width=100).split("\n\n")[0].splitlines()
    assert [line.rstrip() for line in head] == words.asked(made)
    assert max(map(len, head)) <= 100


def test_markup_in_the_name_of_a_class_is_shown_as_text():
    made = classed(chat={"ttft_p95_ms": 500.0})
    traffic = made.inputs.slo["traffic"]
    traffic["classes"][0]["name"] = "[red]chat[/red]"
    head = FORMATS["table"](made, width=100).split("\n\n")[0]
    assert "  [red]chat[/red]: ttft_p95_ms <= 500" in head.splitlines()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"replicas": 2, "tp": 4, "gpus": 8, "instances": 1}, "2 x TP4"),
        # Four servers of eight as the smallest order, one of them used.
        ({"replicas": 8, "tp": 1, "gpus": 32, "instances": 4}, "8 x TP1, 24 GPUs idle"),
        ({"replicas": 1, "tp": 7, "gpus": 8, "instances": 1}, "1 x TP7, 1 GPU idle"),
        (
            {"replicas": 3, "spare_replicas": 1, "tp": 2, "gpus": 8, "instances": 1},
            "3 x TP2 + 1 spare",
        ),
    ],
)
def test_gpus_that_are_paid_for_and_do_nothing_are_told(changes, said):
    made = option(gpus_per_replica=changes["tp"], **changes)
    assert words.parallelism(made) == said


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(20.8, "20.8 h"), (0.1, "0.1 h"), (0.05, "3 min"), (8.21e-05, "0.296 s"), (None, "-")],
)
def test_short_times_are_told_in_minutes_or_seconds(hours, expected):
    assert words.duration(hours) == expected


@pytest.mark.parametrize(
    ("usd", "expected"), [(0.0004, "< $0.01 in 0.296 s"), (0.012, "$0.012 in 0.296 s")]
)
def test_a_run_that_costs_less_than_a_cent_is_not_told_as_free(usd, expected):
    option = record().options[0]
    money = option.money.model_copy(update={"usd_per_job": usd})
    made = option.model_copy(update={"money": money, "run_hours": 8.21e-05})
    assert words.run(made) == expected


def test_small_numbers_have_no_exponent():
    assert words.number(8.21e-05) == "0.0000821"


@pytest.mark.parametrize(
    ("limit", "use", "said"),
    [
        ("headroom", 0.625, "headroom 80 %, 62 % used (memory)"),
        ("headroom", 0.5, "capacity, 50 % used (memory)"),
        ("max_gpus", 0.5, "max_gpus, 50 % used (memory)"),
    ],
    ids=["0.5 / 0.625 = 0.8 of the capacity", "checked by simulation: all of it", "no headroom"],
)
def test_what_the_headroom_is_a_share_of_is_said(limit, use, said):
    one = option(utilization=0.5, binding=Binding(limit=limit, use=use, resource="memory"))
    assert words.binding(one) == said


@pytest.mark.parametrize(("routing", "told"), [("random", True), ("least_loaded", False)])
def test_routing_at_random_is_told(routing, told):
    made = record()
    slo = {**made.inputs.slo, "routing": routing}
    made = made.model_copy(update={"inputs": made.inputs.model_copy(update={"slo": slo})})
    assert ("each request to a replica at random" in "\n".join(words.asked(made))) is told


def test_what_lies_beyond_the_gates_is_told_with_its_figures():
    beyond = option(
        utilization=0.91,
        wait_probability=0.003,
        slots=12.0,
        flags=("flagged price", "beyond the gates"),
    )
    assert words.cautions(beyond) == (
        "flagged price, beyond the gates (91 % use, 0.3 % wait for a slot, 12 slots; the formula is"
        " trusted up to 85 %, 2 % and from 8 on)"
    )
