from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.commands.export import Exported, export
from tests.deploy.plans import record, stored

PROGRAMS = ("vllm", "python3", "trtllm-serve", "guidellm")
ECHO = """#!/bin/sh
"{python}" -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "$(basename "$0")" "$@"
"""


@pytest.fixture
def exported(tmp_path: Path) -> Callable[..., Exported]:
    """Export a plan with one option, changed as asked."""

    def make(to: str, *, checkpoint: str = "", head: str = "", **plan: object) -> Exported:
        path = stored(tmp_path / "plan.json", record(**plan))
        return export(path, "cheapest", to, checkpoint=checkpoint, head=head)

    return make


@pytest.fixture
def words(tmp_path: Path) -> Callable[..., list[str]]:
    """Run a script with programs that print what they were called with."""
    import sys

    folder = tmp_path / "bin"
    folder.mkdir()
    for name in PROGRAMS:
        program = folder / name
        program.write_text(ECHO.format(python=sys.executable))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run(text: str, **variables: str) -> list[str]:
        script = tmp_path / "run.sh"
        script.write_text(text)
        environment = {"PATH": f"{folder}:/usr/bin:/bin", **variables}
        done = subprocess.run(
            ["/bin/sh", str(script)], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run
