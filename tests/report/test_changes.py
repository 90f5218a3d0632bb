from __future__ import annotations

from planner.report.changes import render
from planner.select.changes import changes
from tests.report.records import money, offer, option, price, record


def test_two_records_of_the_same_inputs_differ_in_nothing():
    assert render(changes(record(), record())) == "Nothing changed.\n"


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


def test_a_row_that_was_only_seen_again_is_no_change():
    seen_again = offer(seen="2026-10-01")
    assert not changes(record(), record(offers=(seen_again, record().offers[1])))


def test_a_row_that_is_gone_and_a_new_one_are_named():
    new = record(offers=(record().offers[0], offer(instance_type="b.1x")))
    text = render(changes(record(), new))
    assert "acme a.2x, north, on demand: gone, was 9 USD/h" in text
    assert "acme b.1x, north, on demand: new, 4 USD/h" in text
