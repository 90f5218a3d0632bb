"""A PostgreSQL database of its own for a test, where there is a server."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

SERVER = os.environ.get("PLANNER_TEST_POSTGRES", "")
"""URL of a database whose user may create others; .ci/run starts a server and sets it."""
WHY_NOT = (
    "PLANNER_TEST_POSTGRES names no server"
    if not SERVER
    else "psycopg is not installed"
    if find_spec("psycopg") is None
    else ""
)
needs_postgres = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "there is a server")


@contextmanager
def database() -> Iterator[str]:
    """The URL of a fresh database."""
    import psycopg

    name = f"planner_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(SERVER, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield f"{SERVER.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(SERVER, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
