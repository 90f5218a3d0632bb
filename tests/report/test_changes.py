from __future__ import annotations

import pytest

from planner.report.changes import render
from planner.select.changes import changes
from tests.report.records import money, offer, option, price, record


def test_two_records_of_the_same_inputs_differ_in_nothing():
    assert render(changes(record(), record())) == "Nothing changed.\n"


def test_classes_of_requests_instead_of_one_are_told_value_by_value():
    def asked(traffic):
        inputs = record().inputs
        return record(inputs=inputs.model_copy(update={"slo": {"traffic": traffic}}))

    lengths = {"p50": 500.0, "p95": 900.0}
    chat = {"name": "chat", "share": 0.75, "prompt_tokens": lengths, "slo": {"ttft_p50_ms": None}}
    one = {"classes": None, "prompt_tokens": lengths, "trace": None}
    two = {"classes": (chat, {**chat, "name": "code", "share": 0.25}), "prompt_tokens": None}
    text = render(changes(asked(one), asked(two)))
    lines = text[text.index("Inputs") :].splitlines()[1:]
    assert sorted(line.strip() for line in lines) == [
        "slo.traffic.classes.chat.prompt_tokens.p50: - -> 500",
        "slo.traffic.classes.chat.prompt_tokens.p95: - -> 900",
        "slo.traffic.classes.chat.share: - -> 0.75",
        "slo.traffic.classes.code.prompt_tokens.p50: - -> 500",
        "slo.traffic.classes.code.prompt_tokens.p95: - -> 900",
        "slo.traffic.classes.code.share: - -> 0.25",
        "slo.traffic.prompt_tokens.p50: 500 -> -",
        "slo.traffic.prompt_tokens.p95: 900 -> -",
    ]


def test_entries_without_a_name_of_their_own_go_by_their_place():
    def asked(*entries):
        inputs = record().inputs
        return record(inputs=inputs.model_copy(update={"space": {"speculation": entries}}))

    off, ngram = {"method": "off", "draft_tokens": None}, {"method": "ngram", "draft_tokens": (3,)}
    more = render(changes(asked(off), asked(off, ngram)))
    assert "Inputs (1)\n  space.speculation.ngram.draft_tokens: - -> 3\n" in more
    bare = render(changes(asked(ngram), asked(ngram, off)))
    assert "Inputs (1)\n  space.speculation.off.method: - -> off\n" in bare
    twice = render(changes(asked(off, off), asked(off, off, ngram)))
    assert "space.speculation.3.method: - -> ngram" in twice


def test_a_share_of_a_class_that_moved_is_one_line():
    def asked(share):
        slo = {"traffic": {"classes": ({"name": "chat", "share": share},)}, "engines": ("vllm",)}
        return record(inputs=record().inputs.model_copy(update={"slo": slo}))

    text = render(changes(asked(0.5), asked(0.75)))
    assert "Inputs (1)\n  slo.traffic.classes.chat.share: 0.5 -> 0.75\n" in text


def test_a_price_change_shows_both_prices_and_the_share():
    dearer = offer(list_price_per_hour=5.0)
    sold = option(money=money(price(dearer), 5.0))
    new = record(offers=(dearer, record().offers[1]), options=(sold, record().options[1]))
    text = render(changes(record(), new))
    assert text.startswith("No pick changed.\n")
    assert "acme a.1x, north, on demand: 4 USD/h -> 5 USD/h (+25.0%)" in text
    assert "Prices (1)" in text


def test_a_moved_pick_shows_what_it_was_and_what_staying_costs():
    dearer = offer(list_price_per_hour=40.0)
    new = record(
        offers=(dearer, record().offers[1]),
        options=(record().options[1],),
        picks={"cheapest": "o-00000002", "lowest_tpot": "o-00000002"},
    )
    text = render(changes(record(), new))
    assert "Cheapest: its price rose by 900.0%" in text
    assert "staying with the old one costs $31.00/h more" in text
    assert "No longer on the front (1)" in text


@pytest.mark.parametrize(
    ("price_now", "said"),
    [
        (4.0, "staying with the old one costs $1.10 per job more"),
        (1.2, "staying with the old one costs $0.300 per job less"),
    ],
    ids=["half an hour at $4 against 6 minutes at $9", "0.5 h x $1.2 = $0.60 against $0.90"],
)
def test_offline_work_is_paid_by_the_job_not_by_the_hour_of_runs_of_other_lengths(price_now, said):
    first, second = record().options
    before = option(run_hours=0.5, money=first.money.model_copy(update={"usd_per_job": 2.0}))
    cost = second.money.model_copy(update={"usd_per_job": 0.9})
    after = second.model_copy(update={"run_hours": 0.1, "money": cost})
    old = record(options=(before, after), picks={"cheapest": before.id})
    sold = (offer(list_price_per_hour=price_now), old.offers[1])
    new = record(offers=sold, options=(before, after), picks={"cheapest": after.id})
    text = render(changes(old, new))
    assert said in text
    assert "$4.00/h, $2.00 per job" in text
    assert "$9.00/h, $0.900 per job" in text


def test_a_row_that_was_only_seen_again_is_no_change():
    seen_again = offer(seen="2026-10-01")
    assert not changes(record(), record(offers=(seen_again, record().offers[1])))


def test_a_row_that_is_gone_and_a_new_one_are_named():
    new = record(offers=(record().offers[0], offer(instance_type="b.1x")))
    text = render(changes(record(), new))
    assert "acme a.2x, north, on demand: gone, was 9 USD/h" in text
    assert "acme b.1x, north, on demand: new, 4 USD/h" in text
