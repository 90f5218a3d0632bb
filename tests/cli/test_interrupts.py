"""Ctrl-C: the shell is told, whatever is still shown, and nothing is left running."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = [sys.executable, "-c", "from planner.cli import main; main()"]
LONG = ["--slo", str(EXAMPLES / "chat-70b.yaml"), "--space", "wide", "--no-verify", "--verbose"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def interrupted_after(stage: str, command: list[str]) -> tuple[int, str, str]:
    """Press Ctrl-C once a stage has ended; return exit code, stdout and stderr."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:
        told = iter(process.stderr.readline, "")
        assert any(stage in line for line in told)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_an_interrupted_search_shows_what_it_found_and_says_so_to_the_shell(tmp_path):
    record = tmp_path / "plan.json"
    code, out, err = interrupted_after("sampling shapes", [*PROGRAM, *LONG, "--out", str(record)])
    assert code == 130
    assert "interrupted" in out
    assert '"stopped": "interrupted"' in record.read_text()
    assert "Traceback" not in err


def test_an_interrupted_search_that_has_found_nothing_is_not_followed_by_another():
    command = [*PROGRAM, "--slo", str(EXAMPLES / "infeasible.yaml"), "--verbose"]
    code, out, err = interrupted_after("trying what is usual", command)
    assert code == 130
    assert "No candidate meets every target so far: the search was cut short." in out
    assert "is not proven exact, interrupted" in out
    assert "proving the front" not in err
    assert "Traceback" not in err


def test_a_plan_whose_picks_are_being_simulated_is_shown_without_the_rest_of_that(tmp_path):
    record = tmp_path / "plan.json"
    command = [*PROGRAM, "--slo", str(EXAMPLES / "chat-70b.yaml"), "--verbose"]
    code, out, err = interrupted_after("proving the front", [*command, "--out", str(record)])
    assert code == 130
    assert "is proven exact, interrupted" in out
    assert "rest on the closed formula" in out or "no simulation has checked" in out
    stored = json.loads(record.read_text())
    assert stored["search"]["stopped"] == "interrupted"
    assert stored["options"]
    assert "Traceback" not in err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_search_by_simulation_says_so(jobs):
    command = [*PROGRAM, "--slo", str(EXAMPLES / "chat-70b.yaml"), "--space", "quick"]
    command += ["--score", "simulate", "--jobs", jobs, "--trials", "2000", "--no-verify"]
    code, out, err = interrupted_after("proving the front", [*command, "--verbose"])
    assert code == 130
    assert re.search(r"is proven exact.*, interrupted\n", out)
    assert "Traceback" not in err


def test_an_interrupted_start_shows_nothing_and_no_traceback():
    code, out, err = interrupted_after("starting", [*PROGRAM, *LONG])
    assert (code, out) == (130, "")
    assert "Traceback" not in err


def test_a_run_that_the_shell_started_with_ctrl_c_ignored_goes_on():
    """As a shell starts what a script puts in the background."""
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *PROGRAM, *LONG]
    code, out, _ = interrupted_after("sampling shapes", command)
    assert code == 0
    assert "interrupted" not in out


def test_what_handled_ctrl_c_before_does_so_again_afterwards(capsys):
    for handler in (signal.default_int_handler, lambda *_: None):
        before = signal.signal(signal.SIGINT, handler)
        try:
            with pytest.raises(SystemExit) as done:
                main(["schema"])
            assert signal.getsignal(signal.SIGINT) is handler
        finally:
            signal.signal(signal.SIGINT, before)
        assert not done.value.code
    capsys.readouterr()
