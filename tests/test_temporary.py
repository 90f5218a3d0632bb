"""Temporary folders: gone with their process, or with the next one; never a living one's."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.files.temporary import LOCK, temporary_folder

PREFIX = "plan-test-"
OWNER = f"""
import sys
from planner.files.temporary import temporary_folder
with temporary_folder({PREFIX!r}) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no locks")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def owner(place) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a folder, until its input ends or it is killed."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    environment = {**os.environ, "TMPDIR": str(place)}
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        yield process
        process.kill()


def others(place: Path, *mine: Path) -> list[Path]:
    return [folder for folder in place.glob(f"{PREFIX}*") if folder not in mine]


def test_a_folder_is_there_while_it_is_used_and_gone_afterwards(place):
    with temporary_folder(PREFIX) as folder:
        (folder / "study.log").write_text("x")
        assert others(place) == [folder]
    assert others(place) == []


def test_the_folder_of_a_killed_process_goes_with_the_next_one(owner, place):
    left = Path(owner.stdout.readline().strip())
    (left / "study.log").write_text("x")
    owner.kill()
    owner.wait()
    assert others(place) == [left]
    with temporary_folder(PREFIX) as folder:
        assert others(place, folder) == []


def test_the_folder_of_a_living_process_stays(owner, place):
    left = Path(owner.stdout.readline().strip())
    with temporary_folder(PREFIX) as folder:
        assert others(place, folder) == [left]
    assert (left / LOCK).exists()


def test_the_folder_of_another_user_stays(place, monkeypatch):
    """Also where this user may do anything, as root."""
    left = place / f"{PREFIX}theirs"
    left.mkdir()
    (left / LOCK).touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
        with temporary_folder(PREFIX) as folder:
            assert others(place, folder) == [left]
    with temporary_folder(PREFIX) as folder:
        assert others(place, folder) == []


def test_what_only_has_such_a_name_stays(place):
    kept = place / "kept"
    kept.mkdir()
    (kept / LOCK).touch()
    (place / f"{PREFIX}link").symlink_to(kept)
    (place / f"{PREFIX}file").touch()
    (place / f"{PREFIX}folder").mkdir()
    before = sorted(place.iterdir())
    with temporary_folder(PREFIX):
        pass
    assert sorted(place.iterdir()) == before
    assert (kept / LOCK).exists()
