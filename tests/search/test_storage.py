"""Storages: what is opened, what is refused, and that no password is ever shown."""

import json
import sys

import optuna
import pytest

from planner.errors import InputError
from planner.search.storage import Address, faults, opened, whole_lines
from planner.search.stored_study import DIGEST, Identity, Store, stored_study
from planner.search.study import sampler

SECRET = "p4ss:w/rd"
URLS = (
    "postgresql://me:p4ss:w/rd@db.example/plans",
    "postgresql+psycopg://me:p4ss%3Aw%2Frd@db.example/plans?sslmode=require",
    "postgresql://db.example/plans?user=me&password=p4ss:w/rd",
    "postgresql:/me:p4ss:w/rd@db.example/plans",
    "mysql://:p4ss:w/rd@db.example",
)


def identity(**inputs) -> Identity:
    return Identity({"model": "m", **inputs}, {"model": "m"})


def study_in(text: str, **inputs):
    return stored_study(Store(Address(text), identity(**inputs)), 2, sampler(0))


def add(text: str, values: list[float], **inputs) -> None:
    with study_in(text, **inputs) as study:
        study.add_trial(optuna.create_trial(values=values))


def values_in(text: str, **inputs) -> list[list[float]]:
    with study_in(text, **inputs) as study:
        return [trial.values for trial in study.trials]


def open_storage(address: Address) -> None:
    with opened(address):
        pass


@pytest.mark.parametrize("url", URLS)
def test_an_address_is_shown_without_its_password(url):
    address = Address(url)
    for text in (address.shown, repr(address), repr(Store(address, identity()))):
        assert "p4ss" not in text
        assert "example" in text


def test_an_address_without_a_password_is_shown_as_it_is():
    for text in ("study.log", "sqlite:///a/b.db", "postgresql://me@db.example:5432/plans"):
        assert Address(text).shown == text


@pytest.mark.parametrize("spelled", [SECRET, "p4ss%3Aw%2Frd"])
def test_a_message_that_repeats_the_password_is_struck_out(spelled):
    address = Address("postgresql://me:p4ss%3Aw%2Frd@db.example/plans")
    assert address.without_secrets(f"no entry for {spelled}.") == "no entry for ***."


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me:s3cret@127.0.0.1:1/plans", "Connection refused"),
        ("postgresql://me:s3cret@127.0.0.1:port/plans", "no URL of a database"),
        ("nosuch://me:s3cret@127.0.0.1/plans", "nosuch"),
        ("sqlite:////no/such/folder/study.db", "unable to open"),
        ("postgresql:/me:s3cret@db.example/plans", "no file can be made there"),
    ],
)
def test_a_storage_that_cannot_be_opened_is_told_in_one_line_without_password(url, message):
    if "127.0.0.1:1" in url:
        pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(InputError) as caught:
        open_storage(Address(url))
    text = str(caught.value)
    assert text.startswith("--storage: 1 problem\n")
    assert len(text.splitlines()) == 2
    assert message in text
    assert "s3cret" not in text
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_missing_driver_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"needs psycopg; pip install 'slo-planner\[study\]'"):
        open_storage(Address("postgresql://me@127.0.0.1:1/plans"))


def test_a_storage_that_fails_in_use_is_told_without_password():
    address = Address("postgresql://me:s3cret@db.example/plans")
    lost = optuna.exceptions.StorageInternalError("failed")
    lost.__cause__ = RuntimeError("server closed for s3cret")
    with pytest.raises(InputError, match=r"server closed for \*\*\*"), faults(address):
        raise lost


@pytest.mark.parametrize("content", ['{"schema_version": 1}', "id,model\n1,x\n", "x" * 9000])
def test_a_file_of_another_kind_is_refused_and_left_as_it_is(tmp_path, content):
    file = tmp_path / "plan.json"
    file.write_text(content)
    with pytest.raises(InputError, match="another kind"):
        open_storage(Address(str(file)))
    assert file.read_text() == content


def test_a_journal_with_a_spoilt_line_in_the_middle_is_refused(tmp_path):
    file = tmp_path / "study.log"
    add(str(file), [1.0, 2.0])
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:1], b'{"op_code":9\n', *lines[1:]]))
    with pytest.raises(InputError, match="no readable journal"):
        open_storage(Address(str(file)))


@pytest.mark.parametrize("last", [b"garbage", b"1", b"x" * 9000, b"{}"])
def test_a_journal_whose_last_line_is_spoilt_is_refused_and_left_as_it_is(tmp_path, last):
    file = tmp_path / "study.log"
    add(str(file), [1.0, 2.0])
    spoilt = file.read_bytes() + last + b"\n"
    file.write_bytes(spoilt)
    with pytest.raises(InputError, match="no readable journal"):
        open_storage(Address(str(file)))
    assert file.read_bytes() == spoilt


def test_a_journal_that_is_spoilt_while_it_is_in_use_is_told_in_one_line(tmp_path):
    file = tmp_path / "study.log"
    add(str(file), [1.0, 2.0])
    with opened(Address(str(file))) as kept:
        file.write_bytes(file.read_bytes() + b"garbage\n{}\n")
        with pytest.raises(InputError, match="no readable journal"):
            kept.get_all_studies()


def test_a_journal_cut_in_the_middle_of_a_line_is_read_and_continued(tmp_path):
    """Expected: what was written before the cut; without the repair the next line is spoilt."""
    file = tmp_path / "study.log"
    add(str(file), [1.0, 2.0])
    whole = file.read_bytes()
    add(str(file), [3.0, 4.0])
    file.write_bytes(file.read_bytes()[:-7])
    assert values_in(str(file)) == [[1.0, 2.0]]
    add(str(file), [5.0, 6.0])
    assert file.read_bytes().startswith(whole)
    for line in file.read_text().splitlines():
        json.loads(line)
    assert values_in(str(file)) == [[1.0, 2.0], [5.0, 6.0]]


@pytest.mark.parametrize("tail", [b"", b"x" * 10, b"x" * 5000])
@pytest.mark.parametrize("lines", [0, 1, 3])
def test_whole_lines_end_at_the_last_line_break(tmp_path, lines, tail):
    file = tmp_path / "f"
    file.write_bytes(b"line\n" * lines + tail)
    assert whole_lines(file) == 5 * lines


@pytest.mark.parametrize("kind", ["study.log", "sqlite:///{}/study.db"])
def test_a_study_is_found_again_and_another_plan_s_is_not_mixed_up(tmp_path, kind):
    text = kind.format(tmp_path) if "{}" in kind else str(tmp_path / kind)
    add(text, [1.0, 2.0], rate=1)
    add(text, [3.0, 4.0], rate=2)
    assert values_in(text, rate=1) == [[1.0, 2.0]]
    assert values_in(text, rate=2) == [[3.0, 4.0]]
    with study_in(text, rate=1) as study:
        assert study.user_attrs["model"] == "m"


def test_a_study_of_other_inputs_by_the_same_name_is_refused(tmp_path):
    text = str(tmp_path / "study.log")
    with study_in(text) as study:
        study.set_user_attr(DIGEST, "of something else")
    with pytest.raises(InputError, match=r"is of other inputs; name another storage, or delete"):
        values_in(text)


def test_a_study_that_someone_else_made_by_that_name_is_refused(tmp_path):
    text = str(tmp_path / "study.log")
    with opened(Address(text)) as storage:
        foreign = optuna.create_study(
            storage=storage, study_name=identity().name, directions=["minimize"] * 2
        )
        foreign.add_trial(optuna.create_trial(values=[1.0, 2.0]))
    with pytest.raises(InputError, match="is of other inputs"):
        values_in(text)


def test_the_name_of_a_study_depends_on_every_input():
    names = {identity().name, identity(a=1).name, identity(a=2).name, identity(a=1).of(b=1).name}
    assert len(names) == 4
    assert identity(a=1, b=2).name == identity(b=2, a=1).name
