"""A plan.json that somebody has edited: every command that reads it answers, or says what is wrong.

Each key in turn is deleted, emptied, and given another type or value. PLANNER_EDITS=all tries every
edit (minutes); otherwise a sample of them, always the same.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner.catalog import load_catalog
from planner.commands import export as export_command
from planner.commands.deployments import option_point
from planner.commands.diff import diff
from planner.commands.explain import explain
from planner.commands.plan import plan
from planner.commands.report import write_report
from planner.commands.reprice import reprice
from planner.commands.simulate import simulate
from planner.commands.verify import verify
from planner.commands.why import why
from planner.deploy import TARGETS
from planner.errors import InputError
from planner.report import FILES, FORMATS, changes, explanation, simulation
from planner.report import why as why_text
from planner.report.pack import Pack
from planner.spec.record_file import read_record
from tests.commands.small_plans import slo, space
from tests.importers.benchmark_files import Run, vllm

CATALOG = load_catalog()
SAMPLE = 60
FIRM_EVERY = 12
"""How firm the picks are takes seconds to say: one edit in so many is asked."""
OTHERS = (None, "", "x", "o-none", 0, -1, 3, 0.5, 1e30, True, [], {})
"""What a value is replaced by: empty ones, other types, and values that may be sound elsewhere."""
LENGTHS = {"prompt_tokens": 700.0, "output_tokens": 100.0}
FIRM = "report with how firm the picks are"
CLASSES = (
    {"name": "a", "share": 0.5, **LENGTHS, "slo": {"ttft_p99_ms": 2000.0}},
    {"name": "b", "share": 0.5, **LENGTHS},
)
ASKED = {
    "online": {},
    "classes": {"traffic": {"rate_per_s": 20.0, "classes": CLASSES}},
    "offline": {
        "traffic": {"offline": {"requests": 1_000_000, "deadline_hours": 5.0}, **LENGTHS},
        "slo": {},
        "objectives": ("usd_per_mtok_output", "quality_loss_percent"),
    },
    "misses": {"slo": {"ttft_p95_ms": 1.0, "tpot_p95_ms": 0.5}},
}


@cache
def good(kind: str) -> str:
    """A plan as it is written: few rows, its picks simulated where they can be."""
    purchase = {"accelerators": ("l40s", "h100-sxm"), "providers": ("aws", "runpod")}
    tiny = space(weights=("fp8",), tensor_parallel=(1,), max_num_seqs=(64,), token_budget=(2048,))
    asked = slo(**{"purchase": purchase, **ASKED[kind]})
    return FORMATS["json"](plan(asked, catalog=CATALOG, space=tiny, prove=True))


def keys(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """Every key of the data; of a list the first and the last entry."""
    if isinstance(value, dict):
        inside = list(value)
    else:
        inside = sorted({0, len(value) - 1}) if isinstance(value, list) and value else []
    for key in inside:
        yield (*path, key)
        yield from keys(value[key], (*path, key))


def edits(kind: str) -> Iterator[tuple[str, str]]:
    """What was done, and the plan's text after it."""
    data = json.loads(good(kind))
    tried = [(path, new) for path in keys(data) for new in ("delete", *OTHERS)]
    if os.environ.get("PLANNER_EDITS") != "all":
        tried = random.Random(kind).sample(tried, SAMPLE)
    for path, new in tried:
        spoilt = copy.deepcopy(data)
        at = spoilt
        for key in path[:-1]:
            at = at[key]
        if new == "delete":
            del at[path[-1]]
        else:
            at[path[-1]] = new
        yield f"{'.'.join(map(str, path))} = {new!r}", json.dumps(spoilt)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("edited")
    (made / "other.yaml").write_text("accelerator: h100-sxm\nweights: bf16\n")
    times = {50: 10.0, 90: 18.0, 95: 20.0, 99: 26.0}
    (made / "result.json").write_text(vllm(Run(ttft=times, tpot=times, e2e=times)))
    for kind in ASKED:
        (made / f"{kind}.json").write_text(good(kind))
    return made


def readers(folder: Path, kind: str, path: Path) -> dict[str, Callable[[], object]]:
    """Every command that reads a plan, without its printing."""
    whole = folder / f"{kind}.json"
    targets = {
        f"export {t}": lambda t=t: export_command.export(path, "cheapest", t) for t in TARGETS
    }
    tables = {f"format {f}": lambda f=f: FORMATS[f](read_record(path)) for f in FORMATS}
    files = {f"report {s}": lambda s=s: FILES[s](Pack(read_record(path))) for s in FILES}

    def repriced() -> None:
        found = reprice(path, catalog=CATALOG, search=False)
        changes.render(found.changes)
        FORMATS["table"](found.record)

    return {
        **tables, **files, **targets,
        "reprice": repriced,
        "diff": lambda: changes.render(diff(whole, path)),
        "diff, the other way": lambda: changes.render(diff(path, whole)),
        "explain": lambda: explanation.render(explain(path)),
        "why": lambda: why_text.render(why(path, folder / "other.yaml", catalog=CATALOG)),
        "simulate": lambda: simulation.render(
            simulate(path, requests=30, seeds=1, catalog=CATALOG)
        ),
        "verify": lambda: verify(path, [folder / "result.json"]),
        "calibrate": lambda: option_point(path, "cheapest"),
        FIRM: lambda: write_report(path, folder / "report.xlsx", catalog=CATALOG),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ASKED)
def test_no_edit_of_a_plan_ends_in_a_traceback(kind, folder, monkeypatch):
    monkeypatch.setattr(export_command, "load_catalog", lambda *_: CATALOG)
    path = folder / f"{kind}-edited.json"
    commands = readers(folder, kind, path)
    for number, (what, text) in enumerate(edits(kind)):
        path.write_text(text)
        for name, command in commands.items():
            if name == FIRM and number % FIRM_EVERY:
                continue
            try:
                command()
            except InputError as error:
                # What is wrong with the file itself is said alike by all commands.
                if error.source == str(path):
                    break
            except Exception as error:
                pytest.fail(f"{name} after {what}: {error!r}")


def test_emptied_latencies_of_a_verification_are_told_with_line_and_repair(tmp_path):
    data = json.loads(good("online"))
    data["verification"][0]["latencies"] = []
    text = json.dumps(data, indent=1)
    path = tmp_path / "plan.json"
    path.write_text(text)
    missing = "e2e_p50_ms, e2e_p95_ms, tpot_p50_ms, tpot_p95_ms, ttft_p50_ms, ttft_p95_ms"
    line = next(n for n, row in enumerate(text.splitlines(), 1) if '"latencies": []' in row)
    with pytest.raises(InputError) as caught:
        reprice(path, catalog=CATALOG)
    assert str(caught.value) == (
        f"{path}: 1 problem\n  line {line}  verification[0].latencies: has no {missing};"
        " plan again, or undo the edit"
    )


def test_a_target_that_the_plan_has_no_figures_for_is_refused(tmp_path):
    data = json.loads(good("online"))
    data["inputs"]["slo"]["slo"]["itl_p99_ms"] = 100.0
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"inputs\.slo: the plan has no figures for itl_p99_ms"):
        reprice(path, catalog=CATALOG)
