"""`plan export`: every target of every kind of plan, from a stored file."""

import pytest

from planner.commands.export import export
from planner.deploy import TARGETS
from planner.errors import InputError
from planner.spec.verification import Simulated
from tests.deploy.plans import record, stored


@pytest.fixture
def plan(tmp_path):
    return stored(tmp_path / "plan.json", record())


@pytest.mark.parametrize(
    "target", [name for name, t in TARGETS.items() if t.engine in ("", "vllm")]
)
def test_every_target_names_the_plan_and_the_option(target, plan):
    made = export(plan, "cheapest", target)
    assert (made.target, made.option) == (target, "o-1a2b3c4d")
    assert made.files
    commented = [text for name, text in made.files.items() if not name.endswith((".json", ".csv"))]
    for text in commented:
        assert f"Option o-1a2b3c4d of plan sha256:{made.digest}" in text
        assert text.endswith("\n")


def test_the_same_plan_gives_the_same_bytes(plan):
    assert export(plan, "cheapest", "kubernetes") == export(plan, "o-1a2b3c4d", "kubernetes")


def test_another_plan_has_another_digest(plan, tmp_path):
    other = stored(tmp_path / "other.json", record(max_num_seqs=64))
    assert export(plan, "cheapest", "vllm").digest != export(other, "cheapest", "vllm").digest


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((), "ttft_p95_ms 400 predicted, 560 with margin, target 800"),
        ((0,), "ttft_p95_ms 400 predicted by formula, 560 simulated with margin, target 800"),
    ],
)
def test_the_head_says_whether_the_margin_is_on_simulated_times(rows, said, tmp_path):
    made = record()
    seen = tuple(Simulated(row=row, upper_ms={"ttft_p95_ms": 400.0}) for row in rows)
    (archive,) = made.archive
    made = made.model_copy(update={"archive": (archive.model_copy(update={"simulated": seen}),)})
    files = export(stored(tmp_path / "plan.json", made), "cheapest", "vllm").files
    assert any(said in text for text in files.values())


def test_a_model_beside_the_plan_is_read(tmp_path):
    (tmp_path / "config.json").write_text(
        '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,'
        ' "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,'
        ' "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,'
        ' "torch_dtype": "bfloat16"}'
    )
    traffic = {"max_context_tokens": None}
    plan = stored(tmp_path / "plan.json", record(model="config.json", traffic=traffic))
    made = export(plan, "cheapest", "vllm", checkpoint="org/model")
    # p99 of prompt and output: above either p95, below the model's own limit.
    (line,) = [line for line in next(iter(made.files.values())).splitlines() if "max-model" in line]
    assert 3200 < int(line.split()[1]) < 8192


def test_an_option_that_is_not_there_names_the_picks(plan):
    with pytest.raises(InputError, match="has no option 'fastest'; picks are cheapest"):
        export(plan, "fastest", "vllm")


def test_a_file_that_is_no_plan_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="is no plan"):
        export(path, "cheapest", "vllm")
