"""The table of options on terminals of any width: whole columns or none, prices always."""

from __future__ import annotations

import pytest

from planner.report import FORMATS
from planner.spec.verification import Simulated
from tests.report.records import check, option, record

ALWAYS = ("id", "buy", "replicas", "$/Mtok", "TTFT ms", "TPOT ms")


def header(width: int) -> str:
    others = tuple(option(id=f"o-0000000{number}") for number in range(3))
    made = record()
    shown = record(
        options=(*made.options, *others), shown=(*made.shown, *(other.id for other in others))
    )
    lines = FORMATS["table"](shown, width=width).splitlines()
    start = next(row for row, line in enumerate(lines) if line.startswith("Others on the front"))
    assert max(len(line) for line in lines[start + 1 : start + 6]) <= width
    return lines[start + 1]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_price_and_latency_stand_in_the_table_however_narrow(width):
    assert [name for name in ALWAYS if name not in header(width)] == []


def test_a_wide_terminal_shows_every_column():
    assert header(160).rstrip().endswith("limit")


def test_a_narrow_terminal_does_without_the_least_of_the_columns():
    assert "limit" not in header(80)
    assert "E2E" not in header(60)


def test_the_margin_follows_the_simulation_that_it_is_put_on_and_names_the_confidence():
    labels = [line[1:17].strip() for line in FORMATS["table"](record(), width=120).splitlines()]
    assert labels.index("80 % confidence") > labels.index("TPOT bound")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(("rows", "told"), [((), False), ((1,), False), ((0, 1), True)])
def test_the_margin_says_that_it_is_on_simulated_times_where_every_pick_was_simulated(
    width, rows, told
):
    made = record(options=(option(), option(id="o-00000002", archive_row=1)))
    seen = tuple(Simulated(row=row, upper_ms={"ttft_p95_ms": 400.0}) for row in rows)
    (archive,) = made.archive
    made = made.model_copy(update={"archive": (archive.model_copy(update={"simulated": seen}),)})
    lines = FORMATS["table"](made, width=width).splitlines()
    labels = [line[1:17].strip() for line in lines]
    at = labels.index("80 % confidence")
    assert (labels[at - 1] == "simulated, with") is told
    assert max(map(len, lines[: at + 2])) <= width


def test_a_pick_that_was_simulated_under_the_name_of_another_shows_what_was_seen_of_it():
    picks = {"cheapest": "o-00000001", "balanced": "o-00000002"}
    upper = {"ttft_p50_ms": 90.0, "ttft_p95_ms": 450.0, "tpot_p50_ms": 8.0, "tpot_p95_ms": 9.0}
    upper |= {"e2e_p50_ms": 2000.0, "e2e_p95_ms": 3000.0}
    made = record(picks=picks, verification=(check("o-00000002", "o-00000001"),))
    (archive,) = made.archive
    seen = tuple(Simulated(row=row, upper_ms=upper) for row in (0, 1))
    made = made.model_copy(update={"archive": (archive.model_copy(update={"simulated": seen}),)})
    lines = FORMATS["table"](made, width=120).splitlines()
    cells = {line[1:17].strip(): line.split("│")[2:] for line in lines if line.startswith("│")}
    first, second, *_ = (text.strip() for text in cells["TTFT simulated"])
    assert (first, second) == ("200 ms / 400 ms", "up to 90 ms / 450 ms")
    assert [text.strip() for text in cells["replicas tried"][:2]] == ["2 ok, 1 ok"] * 2
