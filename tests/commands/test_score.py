from __future__ import annotations

import csv
import io

import pytest

from tests.cli.runner import run

HEADER = "model,accelerator,concurrency,engine_gen\n"
ROW = "meta-llama/Llama-3.1-8B-Instruct,h100-sxm,8,"


def test_an_unknown_generation_is_told_with_file_line_column_and_what_is_allowed(tmp_path, capsys):
    path = tmp_path / "points.csv"
    path.write_text(f"{HEADER}{ROW}vllm_v0\n{ROW}vllm_v7\n{ROW}\n")
    outcome = run(capsys, "score", str(path))
    assert outcome.err == (
        f"{path}: 1 problem\n"
        "  line 3  engine_gen: 'vllm_v7' is no generation of vllm;"
        " allowed are vllm-2023, vllm-v0, vllm-v1\n"
    )
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [row["status"] for row in rows] == ["ok", "invalid", "ok"]
    assert "vllm_v7" in rows[1]["reason"]
    assert rows[1]["ttft_ms"] == ""


BROKEN = {
    "deployments.yaml": "- model: {model}\n  accelerator: h100-sxm\n  concurrency: .nan\n"
    "  tp: none\n- model: {model}\n  accelerator: l40s\n  concurrency: 4\n  tp: 0\n  tp: -1\n",
    "deployments.json": '[{{"model": "{model}", "accelerator": "h100-sxm",\n\n "concurrency":'
    ' NaN,\n "tp": "none"}}, {{"model": "{model}", "accelerator": "l40s",\n\n "concurrency": 4,\n'
    ' "tp": 0,\n "tp": -1}}]',
}


@pytest.mark.parametrize(("name", "text"), BROKEN.items(), ids=BROKEN)
def test_unreadable_values_and_other_faults_are_told_together(name, text, tmp_path, capsys):
    path = tmp_path / name
    path.write_text(text.format(model="meta-llama/Llama-3.1-8B-Instruct"))
    outcome = run(capsys, "score", str(path))
    assert (outcome.code, outcome.out) == (2, "")
    told = outcome.err.splitlines()[1:]
    assert [line.split(":")[0] for line in told] == [
        "  line 3  [0].concurrency",
        "  line 4  [0].tp",
        f"  line {9 if name.endswith('yaml') else 8}  [1].tp",
    ]


@pytest.mark.parametrize(
    ("accelerator", "tp", "said"),
    [
        ("h100-sxm", 8, ""),
        ("h100-sxm", 16, "; larger replicas cross the network"),
        # NVIDIA's GH200 comes alone, GB200 by four on a tray.
        ("gh200", 2, "; the catalog sells at most 1 x gh200"),
        ("gb200", 4, ""),
        ("gb200", 8, "; the catalog sells at most 4 x gb200"),
    ],
)
def test_the_size_of_servers_is_told_where_a_deployment_rests_on_it(
    accelerator, tp, said, tmp_path, capsys
):
    path = tmp_path / "points.csv"
    header = "model,accelerator,concurrency,tp"
    path.write_text(f"{header}\nmeta-llama/Llama-3.3-70B-Instruct,{accelerator},8,{tp}\n")
    told = f"servers are taken to hold 8 GPUs, which no column says{said}\n" if said else ""
    assert run(capsys, "score", str(path)).err == told


def test_a_json_file_of_deployments_is_scored_as_its_yaml_is(tmp_path, capsys):
    text = (
        '[{"model": "meta-llama/Llama-3.1-8B-Instruct", "accelerator": "l40s", "concurrency": 4}]'
    )
    for suffix in ("json", "yaml"):
        (tmp_path / f"one.{suffix}").write_text(text)
    found = [run(capsys, "score", str(tmp_path / f"one.{suffix}")) for suffix in ("json", "yaml")]
    assert found[0] == found[1]
    assert "ok" in found[0].out


def test_lengths_are_read_under_the_names_that_benchmarks_give_them(tmp_path, capsys):
    def scored(lengths: str, cells: str) -> list[str]:
        path = tmp_path / "points.csv"
        path.write_text(f"model,accelerator,{lengths}\nllama-3.1-8b-instruct,h100-sxm,{cells}\n")
        outcome = run(capsys, "score", str(path))
        assert (outcome.code, outcome.err) == (0, "")
        return outcome.out.splitlines()[1].split(",ok,")[1:]

    own = scored("prompt_tokens,output_tokens,concurrency", "7000,90,16")
    assert scored("isl,osl,max_concurrency", "7000,90,16") == own
    assert scored("input_len,output_len,concurrency", "7000,90,16") == own
    assert scored("prompt_tokens,isl,osl,concurrency", "7000,100,90,16") == own
    assert scored("prompt_tokens,output_tokens,concurrency", "100,90,16") != own


def test_a_fault_names_the_column_as_the_file_does(tmp_path, capsys):
    path = tmp_path / "points.csv"
    path.write_text("model,accelerator,isl\nllama-3.1-8b-instruct,h100-sxm,-3\n")
    assert "isl: '-3' must be at least 1" in run(capsys, "score", str(path)).err
