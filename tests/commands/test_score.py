from __future__ import annotations

import csv
import io

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
