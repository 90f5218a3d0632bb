"""The table of options on terminals of any width: whole columns or none, prices always."""

from __future__ import annotations

import pytest

from planner.report import FORMATS
from planner.spec.verification import Simulated
from tests.report.records import option, record

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
