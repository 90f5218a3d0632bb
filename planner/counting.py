"""A count with its noun: one replica, two replicas."""

from __future__ import annotations


def counted(count: float, noun: str, plural: str = "", *, shown: str = "") -> str:
    """Return a count with its noun, in the singular for exactly one.

    Args:
        count: How many.
        noun: Of one.
        plural: Of any other number; empty = the noun with an s.
        shown: The count as text, where it is not plain.

    >>> counted(1, "replica"), counted(2, "replica"), counted(0, "entry", "entries")
    ('1 replica', '2 replicas', '0 entries')
    """
    return f"{shown or count} {noun if count == 1 else plural or f'{noun}s'}"


def request_rate(shown: str) -> str:
    """Return a rate with its unit, in the singular where it reads as exactly one.

    Args:
        shown: The rate as text.

    >>> request_rate("1"), request_rate("1.5")
    ('1 request/s', '1.5 requests/s')
    """
    return f"{shown} {'request' if shown == '1' else 'requests'}/s"
