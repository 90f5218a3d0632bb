from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.efficiency import (
    Stack,
    engine_row,
    error_entry,
    evidence,
    global_parameters,
    interval,
    stack_values,
)
from planner.catalog import load_catalog
from planner.spec.efficiency import ErrorEntry

CATALOG = load_catalog()
H100 = CATALOG.accelerator("h100-sxm")
MI355X = CATALOG.accelerator("mi355x")
T4 = CATALOG.accelerator("t4")


def entry(accelerator, metric="tpot", generation="vllm-v1", **given_):
    values = {"q10": 0.8, "q50": 1.0, "q90": 1.25, "evidence": "validated", **given_}
    return ErrorEntry(
        generation=generation, accelerator=accelerator, metric=metric, rows=40, source="s", **values
    )


MADE_UP = CATALOG.efficiency.model_copy(
    update={
        "errors": (entry("h100-sxm"), entry("mi300x", q50=1.1, evidence="wide")),
        "default_errors": (entry("any", q10=0.5, q90=2.0, evidence="unvalidated"),),
    }
)


@pytest.mark.parametrize(
    ("confidence", "expected"),
    # One z90 up or down is the stored end; 0.8 is 0.6567 of it: 1.25^0.6567.
    [(0.9, 1.25), (0.5, 1.0), (0.1, 0.8), (0.8, 1.1578), (0.2, 0.8637), (0.95, 1.3317)],
)
def test_an_interval_passes_through_the_stored_quantiles(confidence, expected):
    assert interval(MADE_UP, "vllm-v1", H100, "tpot", confidence) == pytest.approx(
        expected, rel=1e-4
    )


@given(low=st.floats(0.01, 0.98), more=st.floats(0.001, 0.01))
def test_more_confidence_never_asks_for_a_smaller_margin(low, more):
    first = interval(MADE_UP, "vllm-v1", H100, "tpot", low)
    assert interval(MADE_UP, "vllm-v1", H100, "tpot", low + more) >= first


def test_without_evidence_the_default_quantiles_hold():
    assert error_entry(MADE_UP, "vllm-v1", T4, "tpot").q90 == 2.0
    assert evidence(MADE_UP, "vllm-v1", T4) == "unvalidated"


def test_a_borrower_takes_twice_the_distance_and_no_evidence():
    assert MI355X.borrow == "mi300x"
    found = error_entry(MADE_UP, "vllm-v1", MI355X, "tpot")
    assert (found.q10, found.q50, found.q90) == pytest.approx((0.64, 1.21, 1.5625))
    assert found.evidence == evidence(MADE_UP, "vllm-v1", MI355X) == "unvalidated"


@pytest.mark.parametrize(("name", "word"), [("h100-sxm", "validated"), ("mi300x", "wide")])
def test_evidence_is_that_of_the_entry(name, word):
    assert evidence(MADE_UP, "vllm-v1", CATALOG.accelerator(name)) == word


def test_an_accelerators_values_win_over_the_generations_and_the_global_ones():
    efficiency, stack = CATALOG.efficiency, Stack(CATALOG.generation("vllm"))
    mi300x = CATALOG.accelerator("mi300x")
    assert stack_values(efficiency, stack, H100)["hbm_efficiency"] == (
        efficiency.parameters["hbm_efficiency"].value
    )
    own = stack_values(efficiency, stack, mi300x)["hbm_efficiency"]
    assert own == efficiency.accelerators[1].parameters["hbm_efficiency"].value
    assert stack_values(efficiency, stack, MI355X)["hbm_efficiency"] == own


@pytest.mark.parametrize(
    ("version", "stock"), [("0.6.1", True), ("0.6.6", False), ("", False)], ids=str
)
def test_values_of_old_versions_hold_before_their_version_only(version, stock):
    numbers = tuple(int(part) for part in version.split(".")) if version else ()
    stack = Stack(CATALOG.generation("vllm", "0.6.1"), numbers)
    values = stack_values(CATALOG.efficiency, stack, CATALOG.accelerator("mi300x"))
    expected = CATALOG.efficiency.accelerators[2 if stock else 1].parameters["gemm_efficiency"]
    assert values["gemm_efficiency"] == expected.value


def test_an_engine_row_multiplies_values_by_their_factors():
    efficiency, stack = CATALOG.efficiency, Stack(CATALOG.generation("vllm"))
    row, v = engine_row(efficiency, stack, H100, "nvlink"), stack_values(efficiency, stack, H100)
    assert row["sequence"] == v["sequence_s"] * v["sequence_factor"]
    assert row["special_layer"] == v["special_layer_s"] * v["special_factor"]
    assert row["link_share"] == efficiency.links["nvlink"].share.value
    assert engine_row(efficiency, stack, H100, "mesh")["link_share"] == (
        efficiency.links["mesh"].share.value
    )


def test_global_parameters_come_from_the_catalog_alone():
    p, stored = global_parameters(CATALOG.efficiency), CATALOG.efficiency.parameters
    assert p.softmax_slots == stored["softmax_slots"].value
    assert p.first_token == stored["first_token_s"].value
