"""What the program does with streams that others have closed, filled or encoded otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "from planner.cli import main; main()"
SLO = """
model: meta-llama/Llama-3.1-8B-Instruct
traffic: {rate_per_s: 2, prompt_tokens: 500, output_tokens: 100}
slo: {ttft_p95_ms: 2000}
purchase: {accelerators: [h100-sxm]}
"""


def run(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a shell command in which ``$PLAN`` is the program."""
    plan = f'{sys.executable} -c "{PROGRAM}"'
    return subprocess.run(
        ["sh", "-c", command.replace("$PLAN", plan)],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_full_disk_behind_stdout_is_one_line_and_no_traceback():
    done = run("$PLAN init > /dev/full")
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        "stdout: 1 problem",
        "  cannot be written (No space left on device); write to a file by --out",
    ]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_the_shell_closed_is_written_to_nowhere(closed):
    done = run(f"$PLAN init {closed}")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_without_unicode_gets_frames_of_ascii(encoding, plan_path):
    command = f"$PLAN reprice {plan_path}"
    done = run(command, PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    assert b"+-----" in done.stdout
    assert b"?" not in done.stdout
    assert done.stderr == b""


def test_a_dash_for_a_file_is_answered_with_the_name_of_stdin():
    done = run("$PLAN score -")
    assert done.returncode == 2
    assert b"/dev/stdin" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "cat {slo} | $PLAN --slo /dev/stdin {options}",
        "mkfifo {slo}.pipe; cat {slo} > {slo}.pipe & $PLAN --slo {slo}.pipe {options}",
    ],
    ids=["stdin", "a named pipe"],
)
def test_an_slo_that_is_piped_in_is_planned_for_like_a_file(tmp_path, command):
    slo, options = tmp_path / "slo.yaml", "--space quick --no-verify --quiet --format csv"
    slo.write_text(SLO)
    file = run(f"$PLAN --slo {slo} {options}")
    piped = run(command.format(slo=slo, options=options))
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert piped.stdout == file.stdout


def test_a_folder_that_has_been_deleted_below_the_program_is_no_traceback(tmp_path):
    slo = tmp_path / "slo.yaml"
    slo.write_text(SLO)
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"cd {gone} && rmdir {gone} && $PLAN --slo {slo} --out plan.json"
    done = run(command, PYTHONPATH=str(Path.cwd()))
    assert done.returncode == 2
    assert b"plan.json: 1 problem" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.fixture(scope="module")
def plan_path(tmp_path_factory):
    from planner.catalog import load_catalog
    from planner.report import FORMATS
    from tests.commands.small_plans import small_plan

    path = tmp_path_factory.mktemp("plans") / "plan.json"
    path.write_text(FORMATS["json"](small_plan(load_catalog())))
    return path


def test_a_disk_that_fills_up_at_the_end_of_a_study_costs_a_remark_and_not_the_plan(tmp_path):
    """A limit on the size of files stands for the disk; the end of the file is added at the end."""
    whole, cut = tmp_path / "whole.log", tmp_path / "cut.log"
    slo = Path(__file__).parents[2] / "examples" / "chat-70b.yaml"
    command = f"$PLAN --slo {slo} --space quick --no-verify --format csv --storage"
    plain = run(f"{command} {whole}")
    blocks = whole.stat().st_size * 9 // 10 // 512
    full = run(f"ulimit -f {blocks}; {command} {cut}")
    assert (full.returncode, full.stdout) == (0, plain.stdout)
    lacks, *rest = full.stderr.decode().splitlines()
    assert lacks.startswith("The stored study lacks a part of what was found, which the next run")
    assert str(cut) in lacks
    assert rest == plain.stderr.decode().splitlines()
