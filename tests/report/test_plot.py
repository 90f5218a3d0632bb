from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planner.report.plot import HEIGHT, front_plot
from tests.report.records import latency, money, offer, option, price, record


def spread(*places: tuple[float, float]) -> tuple:
    """Options at (TPOT, USD per Mtok)."""
    row = price(offer())
    return tuple(
        option(
            id=f"o-{number:08x}",
            tpot=latency(tpot),
            money=money(row, 4.0, usd_per_mtok_output=cost),
        )
        for number, (tpot, cost) in enumerate(places)
    )


def drawn(places, picks, width=80):
    return front_plot(record(options=spread(*places), picks=picks), width)


def test_the_cheapest_stands_lowest_and_the_fastest_leftmost():
    places = [(40.0, 1.0), (20.0, 2.0), (10.0, 4.0)]
    lines = drawn(places, {"cheapest": "o-00000000", "lowest_tpot": "o-00000002"})
    rows = [line.split("|", 1)[1] for line in lines if "|" in line]
    assert len(rows) == HEIGHT
    assert rows[0] == "T"
    assert rows[-1] == " " * 67 + "C"
    # Halving the one doubles the other: on logarithmic scales the middle of both.
    middle = next(i for i, row in enumerate(rows) if "." in row)
    assert middle in (HEIGHT // 2 - 1, HEIGHT // 2)
    assert rows[middle].index(".") in (33, 34)


def test_the_axes_name_their_ends_and_the_letters():
    text = "\n".join(drawn([(40, 1), (20, 2), (10, 4)], {"cheapest": "o-00000000"}))
    for word in ("$1.00", "$4.00", "10 ms", "40 ms", "C cheapest", ". others"):
        assert word in text


def test_two_options_are_not_worth_a_plot():
    assert drawn([(40, 1), (20, 2)], {}) == []


def test_offline_work_has_no_latency_to_plot():
    none = tuple(o.model_copy(update={"tpot": None}) for o in spread((1, 1), (2, 2), (3, 3)))
    assert front_plot(record(options=none, picks={}), 80) == []


@given(
    places=st.lists(st.tuples(st.floats(0.1, 1e5), st.floats(1e-3, 1e4)), min_size=3, max_size=30),
    width=st.integers(30, 300),
)
def test_no_line_is_wider_than_the_terminal_but_the_legend(places, width):
    lines = drawn(places, {"cheapest": "o-00000000"}, width)
    assert all(len(line) <= width for line in lines[1:-1])
