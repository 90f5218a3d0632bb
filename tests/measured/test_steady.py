from pathlib import Path

import pytest

from planner.catalog import load_catalog
from planner.errors import InputError
from planner.measured.steady import FILE, TABLE, compare_steady, median_error, render

PUBLISHED = Path(__file__).parent.parent / "published"


@pytest.fixture(scope="module")
def runs():
    return compare_steady(load_catalog(), PUBLISHED / FILE)


def test_the_stored_table_is_what_the_code_produces(runs):
    assert (PUBLISHED / TABLE).read_text() == render(runs)


def test_every_run_is_compared(runs):
    assert len(runs) == 550


def test_power_as_a_share_of_the_limit_is_within_15_percent_at_the_median(runs):
    assert median_error([run.power for run in runs if run.text]) <= 0.15


def test_gaps_of_dense_models_on_h100_are_within_10_percent_at_the_median(runs):
    dense = [r.itl for r in runs if r.text and not r.moe and r.accelerator == "h100-sxm"]
    assert median_error(dense) <= 0.10


def test_the_median_error_by_hand():
    assert median_error([1.1, 0.7, float("nan"), 1.0]) == pytest.approx(0.1)


def test_an_unknown_model_is_a_fault_of_the_file(tmp_path):
    rows = (PUBLISHED / FILE).read_text().splitlines()
    spoilt = tmp_path / "steady.csv"
    spoilt.write_text("\n".join([rows[0], rows[1].replace("Qwen/Qwen3-14B", "nobody/nothing")]))
    with pytest.raises(InputError, match="not known"):
        compare_steady(load_catalog(), spoilt)
