"""The day that prices are judged by."""

from __future__ import annotations

import datetime

from planner.errors import InputError


def checked_day(text: str) -> str:
    """Return a date as it is; raises InputError unless it is YYYY-MM-DD."""
    try:
        day = datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        day = ""
    # Python also reads 20261129 and 2026-W48-7, which no date of ours is written like.
    if not day or day != text:
        message = f"{ascii(text)[:40]} is no date; write YYYY-MM-DD"
        raise InputError("--as-of", [message])
    return day
