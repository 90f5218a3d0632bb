from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.catalog import Catalog, load_catalog
from planner.commands.why import why
from planner.errors import InputError
from planner.report.why import render
from planner.select.why import WhyNot
from planner.spec.option import Option
from planner.spec.record import PlanRecord
from tests.commands.small_plans import slo, small_plan


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def plan(catalog: Catalog) -> PlanRecord:
    return small_plan(catalog)


@pytest.fixture
def ask(catalog: Catalog, plan: PlanRecord, tmp_path: Path) -> Any:
    def answer(text: str, record: PlanRecord = plan) -> WhyNot:
        file = tmp_path / "deployment.yaml"
        file.write_text(text, encoding="utf-8")
        (only,) = why(record, file, catalog=catalog)
        return only

    return answer


def yaml_of(option: Option, **changes: Any) -> str:
    names = (
        "accelerator", "engine", "weights", "kv", "tp", "pp", "dp", "replicas", "max_num_seqs",
        "token_budget",
    )  # fmt: skip
    values = {name: getattr(option, name) for name in names}
    values |= {"engine_generation": option.generation} | changes
    return "\n".join(f"{name}: {value}" for name, value in values.items())


def test_every_option_of_the_front_is_told_from_its_own_description(ask: Any, plan: PlanRecord):
    for option in plan.options:
        answer = ask(yaml_of(option))
        assert answer.verdict == "on the front"
        assert answer.option == option.model_copy(
            update={"archive_row": 0, "money": answer.option.money}
        )
        assert answer.option.money.usd_per_hour == option.money.usd_per_hour


def test_one_replica_of_many_breaks_a_limit_and_says_by_how_much(ask: Any, plan: PlanRecord):
    many = max(plan.options, key=lambda option: option.utilization * option.replicas)
    assert many.utilization * many.replicas > slo().headroom
    answer = ask(yaml_of(many, replicas=1))
    assert answer.verdict == "breaks a limit"
    # By hand: the load of all the replicas on one.
    utilization = many.utilization * many.replicas
    assert f"utilization {utilization:.3g}, limit {slo().headroom}" in answer.because


def test_twice_the_replicas_are_beaten_by_something_cheaper(ask: Any, plan: PlanRecord):
    cheapest = plan.options[0]
    best_quality = min(plan.options, key=lambda o: (o.quality.median, o.money.usd_per_hour))
    answer = ask(yaml_of(best_quality, replicas=best_quality.replicas * 8))
    assert answer.option.money.usd_per_hour > cheapest.money.usd_per_hour
    for other in answer.beaten_by:
        assert other.money.usd_per_mtok_output <= answer.option.money.usd_per_mtok_output
        assert other.ttft.p95_ms <= answer.option.ttft.p95_ms * (1 + 1e-5)
        assert other.tpot.p95_ms <= answer.option.tpot.p95_ms * (1 + 1e-5)


def test_without_replicas_it_gets_as_many_as_the_load_needs(ask: Any):
    answer = ask("accelerator: l40s\nengine: vllm\nweights: fp8\nmax_num_seqs: 256")
    option = answer.option
    each = option.capacity_tokens_per_s / option.replicas
    assert option.utilization <= slo().headroom
    assert (option.replicas - 1) * each * slo().headroom < option.output_tokens_per_s


def test_a_model_that_does_not_fit_says_how_much_memory_it_takes(ask: Any, catalog: Catalog):
    big = small_plan(catalog, slo(model="meta-llama/Llama-3.3-70B-Instruct"))
    answer = ask("accelerator: l40s\nweights: bf16", big)
    assert answer.verdict == "does not fit"
    # 70.55e9 parameters of 2 bytes are 131.4 GiB.
    assert answer.because[0].startswith("weights take 131 of 45 GiB a GPU")


@pytest.mark.parametrize(
    ("text", "verdict", "words"),
    [
        ("accelerator: h100-sxm\ntp: 3", "cannot run", "3"),
        ("accelerator: b200-sxm", "not for sale", "no price row"),
        ("weights: fp8\ngpu_memory_gib: 80", "cannot run", "name one"),
    ],
)
def test_what_cannot_be_had_says_so(ask: Any, text: str, verdict: str, words: str):
    answer = ask(text)
    assert answer.verdict == verdict
    assert answer.because
    assert words in answer.because[0]
    assert answer.option is None


def test_a_deployment_of_another_model_is_refused(ask: Any):
    with pytest.raises(InputError, match=r"line 1.*the plan is for meta-llama/Llama-3.1-8B"):
        ask("model: Qwen/Qwen3-32B\naccelerator: l40s")


def test_offline_work_is_judged_by_its_deadline(ask: Any, catalog: Catalog):
    traffic = {
        "offline": {"requests": 1_000_000, "deadline_hours": 5.0},
        "prompt_tokens": 700.0,
        "output_tokens": 100.0,
    }
    asked = slo(traffic=traffic, slo={}, objectives=("usd_per_mtok_output", "quality_loss_percent"))
    offline = small_plan(catalog, asked)
    option = offline.options[0]
    assert ask(yaml_of(option), offline).verdict == "on the front"
    slow = ask("accelerator: l40s\nweights: bf16\nreplicas: 1", offline)
    assert slow.verdict == "breaks a limit"
    assert slow.because[0].startswith("run ")


def test_the_answer_reads_as_text(ask: Any, plan: PlanRecord):
    text = render([ask(yaml_of(plan.options[0]))])
    assert text.startswith("row 1: on the front\n")
    assert plan.options[0].id in text
