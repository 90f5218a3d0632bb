import datetime
import json
import os
import time
import tracemalloc
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner import files
from planner.errors import InputError
from planner.files import digest, dotted, parse_yaml, read_csv, read_json, read_yaml, yaml_file

SAMPLE = """\
# a comment
id: acme
shares:
  - 0.5

  - {name: x,
     value: 7}
empty:
"""


def test_every_key_path_knows_its_line_in_yaml():
    assert parse_yaml(SAMPLE, "a.yaml").lines == {
        (): 2,
        ("id",): 2,
        ("shares",): 3,
        ("shares", 0): 4,
        ("shares", 1): 6,
        ("shares", 1, "name"): 6,
        ("shares", 1, "value"): 7,
        ("empty",): 8,
    }


def test_every_key_path_knows_its_line_in_json(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": [1,\n {"b": "x\\"{[,"}],\n\n"c\\n": {},\n"d": []}')
    document = read_json(path)
    assert document.data == {"a": (1, {"b": 'x"{[,'}), "c\n": {}, "d": ()}
    assert dict(document.lines) == {
        (): 1,
        ("a",): 1,
        ("a", 0): 1,
        ("a", 1): 2,
        ("a", 1, "b"): 2,
        ("c\n",): 4,
        ("d",): 5,
    }


def test_a_missing_key_has_the_line_of_its_nearest_parent():
    document = parse_yaml(SAMPLE, "a.yaml")
    assert document.line(("shares", 1, "weight", "low")) == 6
    assert document.line(("nothing",)) == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("off", "off"),
        ("on", "on"),
        ("NO", "NO"),
        ("", None),
        ("~", None),
        ("null", None),
        ("12", 12),
        ("-012", -12),
        ("0x1F", 31),
        ("0o17", 15),
        ("1e6", 1e6),
        ("1.", 1.0),
        (".5", 0.5),
        ("-2.5E-3", -0.0025),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("1.2.3", "1.2.3"),
        ("2026-11-29", datetime.date(2026, 11, 29)),
        ("'2026-11-29'", "2026-11-29"),
        ('"12"', "12"),
        ("<<", "<<"),
        ("=", "="),
        ("|\n  a\n  b\n", "a\nb\n"),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(text, value):
    got = parse_yaml(f"key: {text}", "a.yaml").data
    assert got == {"key": value}
    assert type(got["key"]) is type(value)


def test_keys_are_always_text():
    assert parse_yaml("{off: 1, 12: 2, true: 3, null: 4}", "a.yaml").data == {
        "off": 1,
        "12": 2,
        "true": 3,
        "null": 4,
    }


def test_an_alias_stands_for_its_anchor():
    document = parse_yaml("a: &x {p50: 1}\nb: *x\nc: [*x, *x]\n", "a.yaml")
    assert document.data["c"] == ({"p50": 1}, {"p50": 1})
    assert document.line(("c", 1, "p50")) == 3


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def as_tuples(value):
    if isinstance(value, dict):
        return {key: as_tuples(item) for key, item in value.items()}
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


@given(value=JSON_VALUES, indent=st.sampled_from([None, 1]))
def test_json_reads_back_what_was_written_and_finds_the_line_of_each_path(
    value, indent, tmp_path_factory
):
    path = tmp_path_factory.mktemp("json") / "a.json"
    text = json.dumps(value, indent=indent)
    path.write_text(text)
    document = read_json(path)
    assert document.data == as_tuples(value)
    rows = text.split("\n")
    for place, line in document.lines.items():
        if place and isinstance(place[-1], str):
            assert json.dumps(place[-1]) in rows[line - 1]


@given(
    value=st.dictionaries(
        st.text("ab: ,{}[]#'*&!%", max_size=4),
        st.integers() | st.booleans() | st.lists(st.text("ab: ,{}[]#'*&!%\\\"", max_size=4)),
    )
)
def test_yaml_reads_json_as_json_does(value):
    small = {key: item for key, item in value.items() if len(str(item)) < 30}
    assert parse_yaml(json.dumps(small), "a").data == as_tuples(small)


@pytest.mark.parametrize("text", [SAMPLE, "a: &x [1, 2]\nb: *x\n", "t: [off, 1e6, 2026-01-01]\n"])
def test_the_slow_parser_of_pure_python_reads_the_same(text, monkeypatch):
    fast = parse_yaml(text, "a")
    monkeypatch.setattr(yaml_file, "_EVENTS", yaml.BaseLoader)
    slow = parse_yaml(text, "a")
    assert (slow.data, dict(slow.lines)) == (fast.data, dict(fast.lines))


@pytest.mark.parametrize("text", ["a: [", "\ta: 1", 'a: "', "a: b: c", "[" * 10_000, "a: \x01"])
def test_the_slow_parser_refuses_politely_too(text, monkeypatch):
    monkeypatch.setattr(yaml_file, "_EVENTS", yaml.BaseLoader)
    with pytest.raises(InputError):
        parse_yaml(text, "a")


def test_a_billion_laughs_costs_neither_time_nor_memory():
    rows = [f"a0: &a0 [{', '.join(['lol'] * 10)}]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(InputError, match="more than 400000 values"):
        parse_yaml("\n".join(rows), "bomb.yaml")
    took = time.process_time() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert took < 0.5
    assert peak < 2_000_000


def test_no_more_than_the_limit_is_read_of_an_endless_file():
    with pytest.raises(InputError, match="larger than 4 MB"):
        read_yaml(Path("/dev/zero"))


def test_a_catalog_of_forty_files_loads_well_within_its_budget():
    entry = "".join(
        f"key_{n}: {{value: {n}.5, source: 'a sheet', tags: [a, b]}}\n" for n in range(40)
    )
    began = time.process_time()
    for _ in range(40):
        parse_yaml(entry, "entry.yaml")
    assert time.process_time() - began < 0.5


def test_csv_rows_are_read_by_name_and_know_where_they_begin(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeffname, gpus\r\n"two\r\nlines",8\r\n\r\n,\r\nx , 4\r\n'.encode())
    rows = read_csv(path)
    assert [(row.line, row.values) for row in rows] == [
        (2, {"name": "two\r\nlines", "gpus": "8"}),
        (6, {"name": "x", "gpus": "4"}),
    ]


def test_writing_replaces_the_whole_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("old and much longer")
    files.write_text(path, "né")
    assert path.read_bytes() == "né".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


def test_a_failed_write_keeps_the_old_file_and_removes_the_draft(tmp_path, monkeypatch):
    path = tmp_path / "plan.json"
    path.write_text("old")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


def test_writing_through_a_link_keeps_the_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    files.write_bytes(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_devices_are_written_to_and_not_replaced():
    null = Path("/dev/null")
    files.write_text(null, "x")
    assert null.is_char_device()


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "cannot be written (Is a directory); name a file in a folder you may write to"),
        ("gone/plan.json", "there is no folder FOLDER/gone); make it first, or name a file in"),
        ("a/b/plan.json", "there is no folder FOLDER/a/b); make it first"),
        ("file/plan.json", "FOLDER/file is a file, not a folder); name a file in a folder"),
        ("file/sub/plan.json", "FOLDER/file is a file, not a folder); name a file in a folder"),
    ],
)
@pytest.mark.parametrize("ask", [lambda path: files.write_text(path, "x"), files.check_writable])
def test_a_place_that_cannot_be_written_is_named_with_its_fault(tmp_path, name, fault, ask):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as raised:
        ask(tmp_path / name)
    assert fault.replace("FOLDER", str(tmp_path)) in str(raised.value)


def test_the_digest_is_sha_256_of_the_parts_with_their_lengths():
    # By hand: printf '\0\0\0\0\0\0\0\2ab' | sha256sum
    assert digest("ab") == "9caccc24b5d7e06c21c0277b6530d66664273e11f326515c58eaa3691afccfff"
    assert digest("ab", "c") != digest("a", "bc")
    assert digest(b"ab") == digest("ab")


def test_key_paths_are_written_as_people_write_them():
    assert dotted(("traffic", "classes", 0, "share")) == "traffic.classes[0].share"
    assert dotted((0, "a\x1b[31m")) == "[0].'a\\x1b[31m'"
