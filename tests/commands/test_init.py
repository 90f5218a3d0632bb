from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from planner.catalog import load_catalog
from planner.commands.init import ENTRIES, flow, init, start
from planner.commands.plan import plan
from planner.errors import InputError
from planner.files import parse_yaml
from planner.spec.load import load
from planner.spec.slo import Slo
from tests.cli.runner import run
from tests.importers.foreign_slos import DGDR, FILES, SERVICE_CLASSES
from tests.importers.test_vllm_metrics import dump

CATALOG = load_catalog()


def read(text: str) -> Slo:
    return load(parse_yaml(text, "slo.yaml"), Slo)


def foreign(folder: Path, name: str) -> tuple[Path, str]:
    file, text, entry = FILES[name]
    path = folder / file
    path.write_text(text)
    return path, entry


def test_the_plain_template_plans_as_it_is(tmp_path):
    path = tmp_path / "slo.yaml"
    path.write_text(init())
    found = plan(path, catalog=CATALOG, space="quick", verify=False)
    assert found.options
    assert found.inputs.slo["model"] == "meta-llama/Llama-3.3-70B-Instruct"


def test_every_key_that_is_commented_out_is_right_when_it_is_not():
    text = re.sub(r"(?m)^( *)# (\w+:)", r"\1\2", init())
    slo = read(text)
    assert (slo.purchase.max_gpus, slo.engines) == (64, ("vllm",))
    assert slo.traffic.prefix_hit_rate == 0.3


def test_the_template_fits_a_terminal():
    assert all(len(line) <= 105 for line in init().splitlines())


@pytest.mark.parametrize("name", FILES)
def test_a_foreign_file_becomes_one_that_plans(name, tmp_path):
    path, entry = foreign(tmp_path, name)
    made = start(source=path, entry=entry)
    slo = tmp_path / "slo.yaml"
    slo.write_text(made.text)
    assert plan(slo, catalog=CATALOG, space="quick", verify=False).options


def test_what_a_file_gives_is_in_the_text_with_where_it_comes_from(tmp_path):
    path, _ = foreign(tmp_path, "inference-perf")
    text = init(source=path)
    slo = read(text)
    assert slo.model == "meta-llama/Llama-3.1-8B-Instruct"
    assert slo.targets.ttft_p95_ms == 800
    assert "ttft: 0.8 s; the file names no percentile: p95" in text
    assert slo.traffic.mean_rate_per_s is None


def test_what_a_file_does_not_say_is_assumed_aloud(tmp_path):
    path, entry = foreign(tmp_path, "service classes")
    made = start(source=path, entry=entry)
    assert made.remarks[0] == (
        "Assumed, for classes.yaml does not say: traffic.rate_per_s, traffic.prompt_tokens,"
        " traffic.output_tokens."
    )
    assert "rate_per_s: 12" in made.text
    assert made.text.count("ASSUMED, not in classes.yaml") == 3


def test_what_has_no_counterpart_is_listed_in_the_file_too(tmp_path):
    path, _ = foreign(tmp_path, "dgdr")
    made = start(source=path)
    assert "Left out: spec.modelCache.pvcName: weights" in made.remarks
    assert "# Left out: spec.modelCache.pvcName: weights\n" in made.text


def test_one_target_of_a_file_is_enough(tmp_path):
    path = tmp_path / "dgdr.yaml"
    path.write_text(DGDR.replace("{ttft: 1500.0, itl: 40.0}", "{e2eLatency: 20000}"))
    slo = read(init(source=path))
    assert slo.targets.items() == (("e2e", 95, 20000.0),)


def test_accelerators_get_the_names_of_the_catalog_and_unknown_ones_are_told(tmp_path):
    path = tmp_path / "dgdr.yaml"
    path.write_text(DGDR)
    assert read(init(source=path)).purchase.accelerators == ("h200-sxm",)
    path.write_text(DGDR.replace("h200_sxm", "x900"))
    made = start(source=path)
    assert read(made.text).purchase.accelerators == ()
    assert any(r.startswith("Left out: accelerator 'x900' is unknown") for r in made.remarks)


def test_an_unknown_model_of_a_file_is_kept_and_told(tmp_path):
    path = tmp_path / "classes.yaml"
    path.write_text(SERVICE_CLASSES.replace("ibm-granite/granite-3.3-8b-instruct", "default/x"))
    made = start(source=path, entry="Freemium")
    assert read(made.text).model == "default/x"
    assert any(
        r.startswith("Mend before planning: unknown model 'default/x'") for r in made.remarks
    )
    assert read(init(source=path, entry="Freemium", model="llama-3.1-8b")).model == "llama-3.1-8b"


def test_metrics_fill_in_traffic_and_win_over_a_file(tmp_path):
    path, _ = foreign(tmp_path, "inference-perf")
    metrics = tmp_path / "metrics.txt"
    metrics.write_text(dump())
    made = start(source=path, metrics=[metrics], window_s=200)
    slo = read(made.text)
    assert slo.traffic.rate_per_s == 5
    assert slo.traffic.prefix_hit_rate == 0.3
    assert slo.targets.ttft_p95_ms == 800
    assert "# TTFT today: p50 100 ms, p95 300 ms.\n" in made.text


def test_a_file_made_from_metrics_plans(tmp_path):
    metrics = tmp_path / "metrics.txt"
    metrics.write_text(dump())
    os.utime(metrics, (1.7e9 + 500, 1.7e9 + 500))
    slo = tmp_path / "slo.yaml"
    slo.write_text(init(metrics=[metrics]))
    assert plan(slo, catalog=CATALOG, space="quick", verify=False).options


def test_a_text_of_a_foreign_file_cannot_break_out_of_its_line(tmp_path):
    path = tmp_path / "dgdr.yaml"
    path.write_text(DGDR.replace("Qwen/Qwen3-32B", '"a\\nslo: {}"').replace("rapid", '"x\\ny: 1"'))
    with pytest.raises(InputError, match=r"as slo.yaml: 1 problem\n.*control or invisible"):
        init(source=path)
    path.write_text(DGDR.replace("rapid", '"x\\ny: 1"'))
    assert read(init(source=path)).model == "Qwen/Qwen3-32B"


@pytest.mark.parametrize(
    "value",
    ["plain", "org/name-1.5", "off", "yes: no", "# no", "12", "true", "", "ünïcode", {"p50": 1.5},
     ("a", "b c"), ()],
    ids=str,
)  # fmt: skip
def test_a_value_on_one_line_means_itself(value):
    assert parse_yaml(f"key: {flow(value)}", "").data == {"key": value}


def test_no_entry_of_the_template_is_named_twice():
    keys = [entry.key for entry in ENTRIES]
    assert len(keys) == len(set(keys))


def test_the_program_writes_the_file_and_tells_what_to_look_at(tmp_path, capsys):
    path, _ = foreign(tmp_path, "goodput")
    out = tmp_path / "slo.yaml"
    outcome = run(capsys, "init", "--from", str(path), "--out", str(out))
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("Assumed, for goodput.json does not say: model, traffic.rate")
    assert read(out.read_text()).targets.e2e_p95_ms == 20000
    assert run(capsys, "init", "--from", str(path), "--quiet").err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "nowhere.json"), "no such file"),
        (("--from-metrics", "nowhere.txt"), "no such file"),
        (("--model", "lama-3.1-8b"), "did you mean"),
        (("--from", "FILE", "--entry", "x"), "'x' is no use case"),
        (("--from", "FILE"), "more than one use case; name one with --entry"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_call_ends_in_exit_code_2(arguments, message, tmp_path, capsys):
    path, _ = foreign(tmp_path, "templates")
    outcome = run(capsys, "init", *(str(path) if part == "FILE" else part for part in arguments))
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert "Traceback" not in outcome.err
