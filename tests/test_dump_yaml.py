"""YAML that we write: every reader gets back what was meant."""

import datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.files import dump_yaml, parse_yaml

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6) | TEXT,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_our_reader_reads_back_what_was_written(data):
    assert parse_yaml(dump_yaml(data), "test").data == data


@pytest.mark.parametrize(
    "text",
    ["yes", "off", "1e5", "0o17", "012", "1_000", "12:30", "2026-11-20", "null", "~", "", "a: b",
     "# no", "-", "a\nb\n", "true", ".5", "0x1f", "=", "{x}", "*a", "nan"],
)  # fmt: skip
def test_text_stays_text_for_yaml_1_1_and_1_2(text):
    written = dump_yaml({"key": text})
    assert parse_yaml(written, "test").data == {"key": text}
    assert yaml.safe_load(written) == {"key": text}


def test_keys_keep_their_order_lists_are_indented_and_comments_come_first():
    data = {"b": ["x", {"c": 1}], "a": datetime.date(2026, 11, 20)}
    written = dump_yaml(data, comment="one\n\ntwo")
    assert written == "# one\n#\n# two\nb:\n  - x\n  - c: 1\na: 2026-11-20\n"
