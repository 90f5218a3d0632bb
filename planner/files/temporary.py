"""A temporary folder that goes with its process, or with the next one that makes such a folder."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = "in-use"
"""File in the folder that its owner holds locked; the system unlocks it when the owner dies."""


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Give an empty folder, and remove it afterwards.

    First removes those of this prefix that processes of this user left which have been killed.

    Args:
        prefix: How its name begins.
    """
    if sys.platform == "win32":
        with tempfile.TemporaryDirectory(prefix=prefix) as made:
            yield Path(made)
        return
    import fcntl

    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if _abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix) as made:
        draft = Path(made, "draft")
        with draft.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # By its name it is never seen without the lock.
            draft.rename(Path(made, LOCK))
            yield Path(made)


def _abandoned(folder: Path) -> bool:
    """Whether a folder is of this user, and of a process that is gone."""
    import fcntl

    try:
        if folder.lstat().st_uid != os.geteuid():
            return False
        with Path(folder, LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
