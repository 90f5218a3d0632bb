"""Bytes from and to the disk: size limits on the way in, whole files or nothing on the way out."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from planner.errors import Fault, InputError


def read_text(path: Path, limit: int) -> str:
    """Return a file's text; a byte-order mark is dropped.

    Args:
        path: The file; a pipe is read like a file.
        limit: Most bytes accepted [B]; no more than that is ever read.

    Raises:
        InputError: Missing, a folder, unreadable, too large, binary, not UTF-8, or empty.
    """
    source = str(path)
    try:
        with path.open("rb") as handle:
            raw = handle.read(limit + 1)
    except FileNotFoundError:
        message = "no such file; check the path"
        if source == "-":
            message = "no such file; name /dev/stdin to read what is piped in"
        raise InputError(source, [message]) from None
    except IsADirectoryError:
        raise InputError(source, ["a folder, not a file; name the file in it"]) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(source, [f"cannot be read ({reason}); check path and rights"]) from None
    if len(raw) > limit:
        raise InputError(source, [too_large(limit)])
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(source, ["UTF-16 text; save it as UTF-8"])
    if b"\0" in raw:
        raise InputError(source, ["a binary file, not text; name a text file"])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            source, [Fault(f"line {line}", "", "not UTF-8; save it as UTF-8")]
        ) from None
    if not text.strip():
        raise InputError(source, ["the file is empty; write its content first"])
    return text


def too_large(limit: int) -> str:
    """Return the message for a file of more than `limit` bytes."""
    return f"larger than {limit // 1_000_000} MB; is it the right file?"


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all; see :func:`write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: a reader sees the old content or the new.

    Devices and pipes (``/dev/stdout``) are written to directly.

    Raises:
        InputError: The file cannot be written; what was there before is unchanged.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        _replace(target, data)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None


def make_folder(path: Path) -> Path:
    """Return the folder, made with its parents where it is missing.

    Raises:
        InputError: It is a file, or cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(str(path), ["a file, not a folder; name a folder"]) from None
    except OSError as error:
        near, reason = _nearest(path), error.strerror
        if isinstance(error, NotADirectoryError):
            reason = f"{near} is a file, not a folder"
        raise InputError(str(path), [f"cannot be made ({reason}); name another"]) from None
    return path


def check_writable(path: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a file that :func:`write_bytes` could not write, before long work is done for it.

    None and ``-`` (stdout) always can be.

    Args:
        path: The file.
        inputs: Files that are read, which it must not replace.

    Raises:
        InputError: It is a folder, or its folder is missing or may not be written to, or it is an
            input.
    """
    if path is None or str(path) == "-":
        return
    if any(_same(path, one) for one in inputs if one is not None):
        raise InputError(str(path), ["is read here and would be lost; name another file"])
    if path.is_dir():
        raise _unwritable(path, os.strerror(errno.EISDIR))
    if not path.parent.is_dir():
        raise _unwritable(path, os.strerror(errno.ENOENT))
    if not path.exists() and not os.access(path.parent, os.W_OK):
        raise _unwritable(path, os.strerror(errno.EACCES))


def _same(path: Path, other: Path) -> bool:
    try:
        return path.is_file() and path.samefile(other)
    except OSError:
        return False


def _unwritable(path: Path, reason: str) -> InputError:
    repair = "name a file in a folder you may write to"
    near = _nearest(path.parent)
    if near.exists() and not near.is_dir():
        reason, repair = f"{near} is a file, not a folder", "name a file in a folder"
    elif near != path.parent:
        reason = f"there is no folder {path.parent}"
        repair = "make it first, or name a file in a folder that exists"
    return InputError(str(path), [f"cannot be written ({reason}); {repair}"])


def _nearest(folder: Path) -> Path:
    """Return the folder, or the first above it that exists, be it a file."""
    try:
        return next((path for path in (folder, *folder.parents) if path.exists()), folder)
    except OSError:
        # A name that is too long, or a folder that may not be searched: the reason says so.
        return folder


def digest(*parts: bytes | str) -> str:
    """Return the SHA-256 of the parts, in order; ("ab", "c") and ("a", "bc") differ."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "big"))
        total.update(data)
    return total.hexdigest()


def _replace(target: Path, data: bytes) -> None:
    draft = target.with_name(f".{target.name[:80]}.{secrets.token_hex(6)}.tmp")
    try:
        with draft.open("xb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
