"""Where a study is kept: a journal file, SQLite or a database server; passwords stay secret."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

from planner.errors import InputError

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage, RDBStorage
    from optuna.trial import FrozenTrial

OPTION = "--storage"
SCHEME = "://"
DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
"""Schemes that people write -> dialect and driver."""
PACKAGES = {"postgresql+psycopg": "psycopg; pip install 'slo-planner[study]'"}
"""Dialect and driver -> what it needs."""
USER = re.compile(r"^(?P<head>[^/?]*//?[^:/?@]*:)(?P<secret>.*)(?P<tail>@)")
QUERY = re.compile(r"(?P<head>[?&][^=&]*(?:pass|secret|token|key)[^=&]*=)(?P<secret>[^&]*)", re.I)
HIDDEN = "***"
SQLITE_WAIT_S = 60
"""How long SQLite waits for another writer."""
HEARTBEAT_S = 30
GRACE_S = 90
"""A trial without a heartbeat for so long has lost its worker."""
JOURNAL_HEAD = b'{"op_code":'
"""How a journal file begins; a file that begins otherwise is left alone."""
UNREADABLE = "is no readable journal file"

Stale = Callable[["Study", "FrozenTrial"], None]


@dataclass(frozen=True)
class Address:
    """An Optuna storage URL, or the path of a journal file.

    Attributes:
        text: As given; may hold a password, so it is never shown.
    """

    text: str

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    @property
    def shown(self) -> str:
        """The address without secrets."""
        return _masked(self.text)

    @property
    def url(self) -> str:
        """The URL with its driver."""
        scheme, rest = self.text.split(SCHEME, 1)
        return f"{DRIVERS.get(scheme, scheme)}{SCHEME}{rest}"

    @property
    def is_journal(self) -> bool:
        """Whether it is the path of a journal file."""
        return SCHEME not in self.text

    def without_secrets(self, message: str) -> str:
        """Return a message with every password of this address struck out."""
        found = [
            match["secret"] for match in (*USER.finditer(self.text), *QUERY.finditer(self.text))
        ]
        for secret in sorted({*found, *map(unquote, found)} - {""}, key=len, reverse=True):
            message = message.replace(secret, HIDDEN)
        return message


def _masked(text: str) -> str:
    hidden = USER.sub(rf"\g<head>{HIDDEN}\g<tail>", text)
    return QUERY.sub(rf"\g<head>{HIDDEN}", hidden)


@contextmanager
def opened(address: Address, stale: Stale | None = None) -> Iterator[BaseStorage]:
    """Give a storage, made if there is none, and close it afterwards.

    Args:
        address: Where.
        stale: Called with a trial whose worker has fallen silent; None = no heartbeat. A journal
            file has no heartbeat.

    Raises:
        InputError: It cannot be opened, or fails while it is in use; the message holds no password.
    """
    with faults(address):
        if address.is_journal:
            yield _journal(address)
            return
        storage = _database(address, stale)
        try:
            yield storage
        finally:
            storage.remove_session()
            storage.engine.dispose()


@contextmanager
def faults(address: Address) -> Iterator[None]:
    """Turn what a storage raises into one line for the user, free of passwords."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except StorageInternalError as error:
        raise _refused(address, error.__cause__ or error) from None
    except (SQLAlchemyError, OSError) as error:
        raise _refused(address, error) from None


def _refused(address: Address, error: BaseException | str) -> InputError:
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    message = address.without_secrets(first)
    return InputError(OPTION, [f"{address.shown}: {message}; give an Optuna URL or a file"])


def _database(address: Address, stale: Stale | None) -> RDBStorage:
    import optuna
    from optuna.storages import RDBStorage

    url = address.url
    scheme = url.split(SCHEME, 1)[0]
    kwargs = {"connect_args": {"timeout": SQLITE_WAIT_S}} if scheme == "sqlite" else None
    beats = stale is not None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with quiet():
            return RDBStorage(
                url,
                engine_kwargs=kwargs,
                heartbeat_interval=HEARTBEAT_S if beats else None,
                grace_period=GRACE_S if beats else None,
                heartbeat_stale_trial_callback=stale,
            )
    except ImportError:
        needed = PACKAGES.get(scheme, f"a database driver for {scheme}")
        raise InputError(OPTION, [f"{address.shown}: needs {needed}"]) from None
    except ValueError as error:
        raise _refused(address, f"no URL of a database ({error})") from None


@contextmanager
def quiet() -> Iterator[None]:
    """Hide that heartbeats are experimental in Optuna: a user cannot do anything about it."""
    import warnings

    from optuna.exceptions import ExperimentalWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield


def _journal(address: Address) -> BaseStorage:
    from optuna.storages import JournalStorage

    path = Path(address.text)
    if sys.platform == "win32":
        raise _refused(address, "journal files need file locks that Windows lacks")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise _refused(address, "no file can be made there")
    with path.open("ab"), path.open("rb") as file:
        head = file.read(len(JOURNAL_HEAD))
    if not JOURNAL_HEAD.startswith(head):
        raise _refused(address, "is a file of another kind, left as it is")
    try:
        # Optuna forgives a last line that it cannot read, and would write after it.
        with path.open("rb") as file:
            json.loads(_last_line(file) or "{}")
        return JournalStorage(_backend(address, path))
    except (ValueError, KeyError, TypeError):
        raise _refused(address, UNREADABLE) from None


def _backend(address: Address, path: Path) -> Any:
    import fcntl

    from optuna.storages.journal import JournalFileBackend

    class Backend(JournalFileBackend):
        """A journal file that outlives a killed writer.

        A write cut short leaves half a line; the next write would continue that line and so spoil
        the file. It is cut off first.
        """

        def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
            try:
                yield from super().read_logs(log_number_from)
            except ValueError:
                raise _refused(address, UNREADABLE) from None

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
            with path.open("r+b") as file:
                # The system takes this lock back when its holder dies; Optuna's own one is a
                # file that a killed holder leaves behind, which costs the next one 30 s.
                fcntl.flock(file, fcntl.LOCK_EX)
                file.seek(whole_lines(path))
                file.truncate()
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())

    return Backend(str(path))


def _last_line(file: IO[bytes]) -> bytes:
    """Return the last whole line of a file; empty = it has none."""
    end = file.seek(0, os.SEEK_END)
    text = b""
    while end and text.count(b"\n") < 3:
        start = max(end - 4096, 0)
        file.seek(start)
        text, end = file.read(end - start) + text, start
    return text.rpartition(b"\n")[0].rpartition(b"\n")[2]


def whole_lines(path: Path) -> int:
    """Return the bytes of a file up to the end of its last whole line."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(end - 4096, 0)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0
