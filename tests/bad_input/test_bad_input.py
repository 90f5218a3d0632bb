from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.files import Document, parse_yaml, read_csv, read_json, read_yaml
from planner.spec.load import load
from planner.spec.slo import Slo
from tests.bad_input.cases import GOOD, OTHER_FILES, VALUES, WHOLE_FILE, Case
from tests.bad_input.cli_cases import CLI_CASES

READERS: dict[str, Callable[[Path], object]] = {
    "slo": lambda path: load(read_yaml(path), Slo),
    "json": read_json,
    "csv": read_csv,
}
CASES = (*WHOLE_FILE, *VALUES, *OTHER_FILES)
JARGON = ("pydantic", "http", "Traceback", "validation error", "Input should", "type=", "dict")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_bad_file_is_answered_with_place_key_and_repair(case: Case, tmp_path):
    path = case.write(tmp_path)
    with pytest.raises(InputError) as caught:
        READERS[case.kind](path)
    title, *lines = str(caught.value).splitlines()
    noun = "problem" if case.count == 1 else "problems"
    assert title == f"{path}: {case.count} {noun}"
    assert len(lines) == case.count
    for expected in case.faults:
        assert any(line.startswith(f"  {expected}") for line in lines), (expected, lines)
    assert not [word for word in JARGON if word in "".join(lines)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_fault_fits_a_line_and_shows_no_control_characters(case: Case, tmp_path):
    path = case.write(tmp_path)
    with pytest.raises(InputError) as caught:
        READERS[case.kind](path)
    for fault in caught.value.faults:
        assert str(fault).isprintable()
        assert len(str(fault)) < 320


def test_the_file_that_the_cases_spoil_is_good():
    assert load(parse_yaml(GOOD, "good.yaml"), Slo).traffic.rate_per_s == 12


def test_no_two_cases_have_one_name():
    names = [case.id for case in (*CASES, *CLI_CASES)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", CLI_CASES, ids=lambda case: case.id)
def test_the_slo_files_of_the_program_cases_are_well_formed(case):
    assert load(parse_yaml(case.slo, "slo.yaml"), Slo).model


def answer(read: Callable[[], object]) -> str:
    """Return what a person is told; anything but an InputError escapes and fails the test."""
    try:
        read()
    except InputError as error:
        return str(error)
    return ""


@given(text=st.text() | st.text("ab:,-[]{}&*!|>'\"%@\n\t #?~0.", max_size=60))
def test_no_text_whatever_raises_anything_but_an_input_error(text):
    answer(lambda: load(parse_yaml(text, "slo.yaml"), Slo))


@given(start=st.integers(0, len(GOOD)), length=st.integers(0, 30), put=st.text(max_size=5))
def test_no_slip_in_a_good_file_raises_anything_but_an_input_error(start, length, put):
    spoilt = GOOD[:start] + put + GOOD[start + length :]
    answer(lambda: load(parse_yaml(spoilt, "slo.yaml"), Slo))


KEYS = st.sampled_from([*Slo.model_fields, "slo", "rate_per_s", "prompt_tokens", "p50", "mean"])
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.dates(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(value=st.dictionaries(KEYS, VALUE))
def test_no_structure_whatever_raises_anything_but_an_input_error(value):
    answer(lambda: load(Document("slo.yaml", value, {}), Slo))
