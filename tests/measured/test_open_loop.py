"""Open-loop runs of real servers against the simulator, and which are left out."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pytest

from planner.catalog import load_catalog
from planner.errors import InputError
from planner.measured.open_loop import (
    Compared,
    compare,
    left_out,
    median_error,
    read_open_loop,
)

RUNS = Path(__file__).parents[1] / "published" / "open_loop.csv"
HEADER = (
    "id,source,engine,engine_version,model,accelerator,tp,prompt_tokens,prompt_fixed,"
    "output_tokens,output_fixed,rate_per_s,num_requests,replayed_tokens,ttft_p50_ms,outside\n"
)


@lru_cache(maxsize=1)
def compared() -> tuple[Compared, ...]:
    return compare(load_catalog(), read_open_loop(RUNS))


@pytest.mark.parametrize(
    ("metric", "share", "limit"),
    [
        ("tpot", 0.5, 0.06),
        ("tpot", 0.99, 0.08),
        ("ttft", 0.5, 0.12),
        ("ttft", 0.99, 0.20),
    ],
)
def test_simulated_percentiles_are_near_those_of_real_servers(metric, share, limit):
    assert median_error(compared(), metric, share) <= limit


def test_the_errors_that_the_readme_tells_are_those_that_are_measured():
    text = (RUNS.parents[2] / "README.md").read_text()
    pattern = r"median error is (\d+)-(\d+) % for TPOT and (\d+)-(\d+) % for\s+TTFT \(p50 and p99\)"
    ((*told,),) = re.findall(pattern, text)
    cases = (("tpot", 0.5), ("tpot", 0.99), ("ttft", 0.5), ("ttft", 0.99))
    assert [round(100 * median_error(compared(), *case)) for case in cases] == list(map(int, told))


def test_enough_runs_are_compared_and_every_other_one_says_why_not():
    runs, others = read_open_loop(RUNS), left_out(RUNS)
    assert len(runs) >= 25
    assert all(run.source.count("/") >= 1 for run in runs)
    assert len(others) >= 200
    assert all(len(reason) > 10 for reason in others.values())


def test_prompts_that_come_round_are_found_only_if_the_cache_holds_all_in_between(tmp_path):
    # H100 PCIe, Llama 3 8B: about 54 GiB of KV cache at 128 KiB a token hold 440,000 tokens.
    file = tmp_path / "runs.csv"
    row = "vllm,0.8.5,meta-llama/Meta-Llama-3-8B-Instruct,h100-pcie,1,400,1,50,1,1,200,"
    file.write_text(
        f"{HEADER}fits,a/b,{row}90000,20,\nevicted,a/b,{row}900000,20,\ndistinct,a/b,{row},20,\n"
    )
    results = {c.id: c.simulated for c in compare(load_catalog(), read_open_loop(file))}
    assert results["evicted"] == results["distinct"]
    # 400 tokens of an 8B model are 6.4 TFLOP: 8 ms at 756 TFLOP/s, which reading the weights once
    # (16 GB, 8 ms) hides in part.
    assert results["distinct"] - results["fits"] > 0.003


def test_a_compared_run_without_a_measurement_is_refused(tmp_path):
    file = tmp_path / "runs.csv"
    row = "x,a/b,vllm,0.8.5,meta-llama/Meta-Llama-3-8B-Instruct,h100-pcie,1,400,1,50,1,1,200,,,"
    file.write_text(HEADER + row + "\n")
    with pytest.raises(InputError, match="line 2"):
        read_open_loop(file)
