"""What makes the program pleasant: versions, timings, help with examples, completion."""

from __future__ import annotations

import datetime
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from planner import __version__
from planner.catalog import load_catalog
from planner.cli.app import app
from planner.cli.examples import EXAMPLES
from planner.cli.output import Stages, progress
from tests.cli.runner import run

SLO = """\
model: meta-llama/Llama-3.1-8B-Instruct
traffic: {rate_per_s: 2, prompt_tokens: 500, output_tokens: 100}
slo: {ttft_p95_ms: 2000}
"""
PROGRAM = "from planner.cli import main; main()"


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        full = f"{before} {name}".strip()
        if hasattr(command, "commands"):
            yield from commands(command, full)
        else:
            yield full, command


ROOT = typer.main.get_command(app)
COMMANDS = dict(commands(ROOT))


@pytest.fixture
def slo(tmp_path):
    path = tmp_path / "slo.yaml"
    path.write_text(SLO)
    return str(path)


@pytest.mark.parametrize(("asked", "expected"), [(None, "1"), ("4", "4")])
def test_linear_algebra_has_one_thread_unless_asked_otherwise(asked, expected, monkeypatch, capsys):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    if asked is None:
        monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    assert run(capsys, "--version").code == 0
    assert os.environ["OPENBLAS_NUM_THREADS"] == expected


def test_the_version_names_the_catalog_and_the_age_of_its_prices(capsys):
    catalog = load_catalog()
    days = (datetime.date.today() - datetime.date.fromisoformat(catalog.newest_seen)).days
    assert run(capsys, "--version").out == (
        f"plan {__version__}, catalog {catalog.digest[:12]},"
        f" newest price {catalog.newest_seen} ({days} days old)\n"
    )


def test_verbose_times_every_stage_and_the_whole(slo, capsys):
    outcome = run(capsys, "--slo", slo, "--space", "quick", "--verbose")
    times = re.findall(r"(?m)^ *(\d+) ms  (.*)$", outcome.err)
    stages = [stage for _, stage in times]
    assert stages[:2] == ["starting", "reading slo.yaml and catalog"]
    assert stages[-2:] == ["writing", "in all"]
    assert "simulating the picks" in stages
    *parts, whole = (int(milliseconds) for milliseconds, _ in times)
    assert sum(parts) == pytest.approx(whole, abs=len(parts))
    assert "in all" not in outcome.out


def test_quiet_leaves_stderr_empty(slo, capsys):
    outcome = run(capsys, "--slo", slo, "--space", "quick", "--no-verify", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out


def test_a_stage_ends_when_another_begins(capsys):
    stages = Stages("first", verbose=True)
    with progress(stages=stages) as show:
        show("second", 0.0)
        show("second", 0.5)
        show("third", 1.0)
    stages.end()
    told = [line.split("ms  ")[1] for line in capsys.readouterr().err.splitlines()]
    assert told == ["first", "second", "third", "in all"]


def test_without_a_terminal_and_without_timings_there_is_no_progress():
    with progress() as show:
        assert show is None
    with progress(stages=Stages("first", verbose=False)) as show:
        assert show is None


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_ends_with_examples_of_it(name, capsys):
    outcome = run(capsys, *name.split(), "--help")
    assert outcome.code == 0
    shown = outcome.out.split("Examples:")[-1]
    assert EXAMPLES[name]
    assert all(line in shown for line in EXAMPLES[name])
    assert all(f"plan {name}" in line for line in EXAMPLES[name])


@pytest.mark.parametrize(("name", "line"), [(n, line) for n in EXAMPLES for line in EXAMPLES[n]])
def test_the_options_of_an_example_are_options_of_its_command(name, line):
    words = shlex.split(re.split(r"(?:^|; )plan ", line)[-1])
    named = next((n for n in COMMANDS if words[: len(n.split())] == n.split()), "")
    command = COMMANDS.get(named, ROOT)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    assert name in (named, "")


def test_every_command_without_arguments_has_one_line_of_help():
    for name, command in COMMANDS.items():
        assert command.get_short_help_str(120).endswith((".", ":")), name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_a_shell_is_valid(shell):
    environment = os.environ | {"_PLAN_COMPLETE": f"source_{shell}"}
    script = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True
    ).stdout
    assert "_PLAN_COMPLETE" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "index", "expected"),
    [
        ("plan sc", 1, {"score", "schema"}),
        ("plan prices ", 2, {"import", "list", "check"}),
        ("plan init --fr", 2, {"--from", "--from-metrics"}),
    ],
)
def test_a_shell_completes_commands_and_options(words, index, expected):
    asked = {"_PLAN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(index)}
    environment = os.environ | asked
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True
    ).stdout
    assert expected <= set(answer.split())
