"""Points of a CSV file, simulated one by one."""

from __future__ import annotations

import numpy as np
import pytest

from planner.commands.simulate_points import simulate_points

POINTS = """\
name,model,accelerator,tp,rate_per_s,prompt_tokens,output_tokens,prompt_tokens_p95,burstiness
steady,meta-llama/Llama-3.1-8B-Instruct,h100-sxm,1,10,500,200,1500,
bursty,meta-llama/Llama-3.1-8B-Instruct,h100-sxm,1,10,500,200,1500,9
silent,meta-llama/Llama-3.1-8B-Instruct,h100-sxm,1,,500,200,,
unknown,no-such-model,h100-sxm,1,1,500,200,,
odd,meta-llama/Llama-3.1-8B-Instruct,h100-sxm,1,1,500,200,x,
large,meta-llama/Llama-3.3-70B-Instruct,l4,1,1,500,200,,
"""


def points(tmp_path, text: str, **options) -> dict[str, dict[str, str]]:
    file = tmp_path / "points.csv"
    file.write_text(text)
    table = simulate_points(file, **options)
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_each_row_of_a_csv_is_simulated_or_says_why_not(tmp_path):
    found = points(tmp_path, POINTS, requests=2000, seeds=1)
    assert {name: row["status"] for name, row in found.items()} == {
        "steady": "ok",
        "bursty": "ok",
        "silent": "invalid",
        "unknown": "unknown_model",
        "odd": "invalid",
        "large": "does_not_fit",
    }
    assert "rate_per_s" in found["silent"]["reason"]
    assert "prompt_tokens_p95" in found["odd"]["reason"]
    steady, bursty = found["steady"], found["bursty"]
    assert float(bursty["ttft_p95_ms"]) > float(steady["ttft_p95_ms"])
    for key in ("ttft_p50_ms", "tpot_p50_ms", "e2e_p50_ms"):
        assert float(steady[key]) == pytest.approx(float(steady[f"formula_{key}"]), rel=0.15)
    assert float(steady["output_tokens_per_s"]) == pytest.approx(2000, rel=0.1)


def test_a_run_of_a_stated_length_is_taken_whole(tmp_path):
    text = (
        "name,model,accelerator,rate_per_s,prompt_tokens,output_tokens,num_requests\n"
        "one,meta-llama/Llama-3.1-8B-Instruct,h100-sxm,5,500,200,1\n"
    )
    one = points(tmp_path, text, seeds=1)["one"]
    assert one["requests"] == "1"
    assert one["ttft_p50_ms"] == one["ttft_p99_ms"]
    assert np.isfinite(float(one["e2e_p50_ms"]))


ONE = "meta-llama/Llama-3.1-8B-Instruct,h100-sxm,5,500"


def of_one(tmp_path, **cells: str) -> dict[str, str]:
    """The row of one deployment with further columns."""
    columns, values = ",".join(cells), ",".join(cells.values())
    text = f"name,model,accelerator,rate_per_s,prompt_tokens,{columns}\none,{ONE},{values}\n"
    return points(tmp_path, text, requests=1000, seeds=1)["one"]


@pytest.mark.parametrize(
    ("column", "cell", "expected"),
    [
        ("prompt_tokens_p95", "400", "400 is below prompt_tokens 500, its p50"),
        ("num_requests", "10.5", "num_requests"),
        ("burstiness", "1e9", "1000"),
        ("routing", "round", "least_loaded"),
        ("prefix_hit_rate", "1", "prefix_hit_rate"),
    ],
)
def test_traffic_that_cannot_be_is_refused(tmp_path, column, cell, expected):
    row = of_one(tmp_path, **{"output_tokens": "20", column: cell})
    assert row["status"] == "invalid"
    assert expected in row["reason"]


def test_prompts_in_the_prefix_cache_are_not_computed(tmp_path):
    whole = of_one(tmp_path, output_tokens="20", prompt_tokens_p95="900")
    half = of_one(tmp_path, output_tokens="20", prompt_tokens_p95="900", prefix_hit_rate="0.9")
    for key in ("ttft_p50_ms", "formula_ttft_p50_ms"):
        assert float(half[key]) < 0.8 * float(whole[key])


def test_random_routing_waits_longer_than_to_the_least_loaded(tmp_path):
    busy = {"output_tokens": "200", "replicas": "4", "max_num_seqs": "4"}
    best, chance = (of_one(tmp_path, **busy, routing=how) for how in ("least_loaded", "random"))
    assert float(chance["ttft_p95_ms"]) > float(best["ttft_p95_ms"])


def test_requests_beyond_what_the_engine_takes_are_refused_and_a_long_tail_is_cut(tmp_path):
    row = of_one(tmp_path, output_tokens="20", max_model_len="519")
    assert (row["status"], row["ttft_p50_ms"]) == ("unsupported", "")
    assert row["reason"] == "requests of 520 tokens are longer than max_model_len 519"
    tail = of_one(tmp_path, output_tokens="20", max_model_len="520", prompt_tokens_p95="900")
    assert tail["status"] == "ok"
    # Half of the requests are longer than the median.
    cut = int(tail["reason"].split()[0])
    assert cut == pytest.approx(500, abs=60)
    assert tail["reason"].endswith(
        "of 1,000 requests are longer than 520 tokens and are cut to that"
    )


def test_requests_beyond_the_models_context_are_simulated_but_not_called_ok(tmp_path):
    # Its context is 131,072 tokens: a prompt of 500 leaves room for 130,572.
    text = (
        "name,model,accelerator,rate_per_s,prompt_tokens,output_tokens\n"
        "full,meta-llama/Llama-3.1-8B-Instruct,h100-sxm,0.001,500,130572\n"
        "over,meta-llama/Llama-3.1-8B-Instruct,h100-sxm,0.001,500,130573\n"
    )
    found = points(tmp_path, text, requests=2, seeds=1)
    assert found["full"]["status"] == "ok"
    over = found["over"]
    assert over["status"] == "beyond_context"
    assert over["reason"] == "requests of 131,073 tokens are beyond the model's context of 131,072"
    assert float(over["ttft_p50_ms"]) > 0


def test_outputs_of_one_token_have_no_time_between_tokens(tmp_path):
    row = of_one(tmp_path, output_tokens="1")
    assert row["ttft_p95_ms"]
    for key in ("tpot_p95_ms", "itl_p95_ms", "formula_tpot_p95_ms", "formula_itl_p95_ms"):
        assert row[key] == ""


def test_columns_of_traffic_that_are_not_read_are_named(tmp_path):
    file = tmp_path / "points.csv"
    head = "model,accelerator,rate_per_s,prompt_tokens,mean_rate_per_s,burstines,note"
    file.write_text(f"{head}\n{ONE},3,2,x\n")
    assert simulate_points(file, requests=100, seeds=1).remarks == (
        "column 'mean_rate_per_s' is carried through, not read",
        "column 'burstines' is carried through, not read; did you mean 'burstiness'?",
    )


def test_a_row_that_is_overloaded_says_so_as_a_score_does(tmp_path):
    row = of_one(tmp_path, output_tokens="2000", max_num_seqs="1")
    assert (row["status"], row["overloaded"]) == ("overloaded", "1")
    assert row["reason"].startswith("the queue grows without end at ")
    assert float(row["ttft_p95_ms"]) > 1000
    assert row["formula_ttft_p95_ms"] == ""
    assert float(row["busy_share"]) > 0.9
