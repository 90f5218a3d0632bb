"""The portfolio command: many plans, searched once a workload, under shared limits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.commands import portfolio_task
from planner.commands.portfolio import read_limits
from planner.errors import InputError
from planner.report.portfolio import FORMATS, table
from planner.spec.portfolio import Limits, PortfolioRecord, Quota
from planner.spec.record import PlanRecord
from planner.spec.record_file import read_record
from tests.cli.runner import run
from tests.commands.portfolios import (
    CATALOG,
    alone,
    contents,
    made,
    targets,
    traffic,
    write_slo,
)
from tests.commands.small_plans import CHIPS

VARIANTS = {
    "as it is": {},
    "tight": {"slo": targets(500.0, 30.0)},
    "loose": {"slo": targets(4000.0, 120.0)},
    "other percentiles": {"slo": targets(1500.0, 80.0, e2e_p50_ms=9000.0, tpot_p99_ms=90.0)},
    "another confidence": {"slo": targets(1000.0, 60.0, confidence=0.95)},
    "few GPUs": {
        "purchase": {"accelerators": CHIPS, "allow_flagged_prices": True, "max_gpus": 2},
    },
    "one chip": {"purchase": {"accelerators": ("l40s",), "allow_flagged_prices": True}},
    "clean prices": {"purchase": {"accelerators": CHIPS}},
    "half the mean rate": {"traffic": traffic(20.0, mean_rate_per_s=10.0)},
    "two objectives": {"objectives": ("usd_per_mtok_output", "ttft_p95_ms")},
    "impossible": {"slo": targets(1.0, 1.0)},
}


@pytest.fixture(scope="module")
def variants(tmp_path_factory):
    """All variants of one workload in one portfolio, and how often it was searched."""
    folder = tmp_path_factory.mktemp("variants")
    files = [write_slo(folder, name, **changes) for name, changes in VARIANTS.items()]
    searches = []
    search = portfolio_task.search
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            portfolio_task, "search", lambda *a, **k: (searches.append(a), search(*a, **k))[1]
        )
        record = made(files, folder=folder / "out")
    plans = {one.name: read_record(folder / "out" / one.file) for one in record.plans}
    return record, plans, len(searches)


def test_one_workload_is_searched_once_and_once_more_for_what_nothing_meets(variants):
    *_, searches = variants
    assert searches == 2


@pytest.mark.parametrize("name", VARIANTS)
def test_a_plan_of_a_portfolio_has_the_front_of_the_plan_made_alone(variants, name):
    _, plans, _ = variants
    ours, theirs = plans[name], alone(**VARIANTS[name])

    def front(record: PlanRecord) -> list[tuple]:
        return [
            (o.hardware, o.money.usd_per_mtok_output, o.ttft.p95_ms, o.tpot.p95_upper_ms,
             o.quality.p90, o.money.price.provider, o.targets)
            for o in record.options
        ]  # fmt: skip

    assert front(ours) == front(theirs)
    assert [m.misses for m in ours.misses] == [m.misses for m in theirs.misses]
    assert ours.inputs == theirs.inputs
    if name != "few GPUs":
        # A replica of more GPUs on as many instances may stand for one of few.
        assert ours.archive == theirs.archive


def test_without_limits_every_plan_gets_its_cheapest_pick(variants):
    record, plans, _ = variants
    assert record.exact
    for one in record.plans:
        if one.name == "impossible":
            continue
        (part,) = one.chosen.parts
        assert part.option == plans[one.name].options[0]
        assert part.option.id == plans[one.name].picks["cheapest"]
    assert record.usd_per_hour == pytest.approx(
        sum(p.options[0].money.usd_per_hour for p in plans.values() if p.options), rel=1e-5
    )


def test_what_nothing_meets_is_said_with_what_would_do(variants):
    record, plans, _ = variants
    one = next(p for p in record.plans if p.name == "impossible")
    assert one.chosen is None
    assert one.alone_usd_per_hour is None
    assert "no deployment meets its targets" in one.why
    assert "target 1" in one.why
    assert one.would_do == plans["impossible"].misses[0].would_do
    assert record.served == len(VARIANTS) - 1


@pytest.fixture
def two_rates(tmp_path) -> list[Path]:
    tight = targets(600.0, 30.0)
    return [
        write_slo(tmp_path, "small", traffic=traffic(5.0)),
        write_slo(tmp_path, "large", traffic=traffic(30.0), slo=tight),
    ]


def test_a_quota_moves_the_plan_to_which_it_costs_least(two_rates):
    free = made(two_rates)
    chip = free.plans[1].chosen.parts[0].option.accelerator
    gpus = [
        part.option.gpus
        for one in free.plans
        for part in one.chosen.parts
        if part.option.accelerator == chip
    ]
    tight = made(two_rates, Limits(quotas=(Quota(accelerator=chip, gpus=max(gpus) - 1),)))
    used = [
        part.option.gpus
        for one in tight.plans
        for part in one.chosen.parts
        if part.option.accelerator == chip
    ]
    assert sum(used) <= max(gpus) - 1
    assert tight.served == 2
    assert tight.exact
    assert tight.usd_per_hour > free.usd_per_hour
    assert [use.used for use in tight.uses] == [sum(used)]


def test_a_quota_on_one_provider_leaves_the_same_hardware_of_the_next(tmp_path):
    changes = {"purchase": {"accelerators": ("h100-sxm",), "allow_flagged_prices": True}}
    file = write_slo(tmp_path, "one", **changes)
    first = made([file]).plans[0].chosen.parts[0].option
    second = made([file], Limits(quotas=(Quota(provider=first.provider, gpus=0),)))
    moved = second.plans[0].chosen.parts[0].option
    assert moved.provider != first.provider
    # By hand: the least that the class costs at any other provider.
    others = [
        (CATALOG.usd_per_hour(offer) * first.instances, offer.provider)
        for offer in CATALOG.offers
        if offer.accelerator == "h100-sxm"
        and offer.gpus == 1
        and offer.term == "on_demand"
        and offer.flag != "fractional"
        and offer.provider != first.provider
        and offer.minimum_instances == 1
    ]
    assert moved.money.usd_per_hour <= min(others)[0] * (1 + 1e-5)


def test_a_plan_that_the_budget_leaves_out_says_how_much_more_would_do(two_rates):
    free = made(two_rates)
    costs = sorted(one.chosen.usd_per_hour for one in free.plans)
    record = made(two_rates, Limits(budget_usd_per_hour=sum(costs) - 0.01))
    left = [one for one in record.plans if one.chosen is None]
    assert record.served == 1
    (one,) = left
    assert "shared limits" in one.why
    assert one.would_do == ("0.01 USD/h more",)
    # One of two can be served: the cheaper one.
    assert record.usd_per_hour == pytest.approx(costs[0])


def test_gpus_in_all_are_limited(two_rates):
    free = made(two_rates)
    record = made(two_rates, Limits(max_gpus=free.gpus - 1))
    assert record.gpus <= free.gpus - 1


def test_an_offer_that_states_its_own_quota_is_limited_too(tmp_path, two_rates):
    free = made(two_rates)
    offer = free.plans[1].chosen.parts[0].option.money.price
    rows = tuple(
        o.model_copy(update={"quota_instances": 1})
        if (o.provider, o.instance_type, o.region, o.term)
        == (offer.provider, offer.instance_type, offer.region, offer.term)
        else o
        for o in CATALOG.offers
    )

    record = made(two_rates, catalog=replace(CATALOG, offers=rows))
    (use,) = record.uses
    assert use.used <= use.most
    assert offer.instance_type in use.limit


def test_files_of_the_same_name_in_two_folders_are_two_plans(tmp_path):
    files = []
    for region in ("east", "west"):
        (tmp_path / region).mkdir()
        files.append(write_slo(tmp_path / region, "chat"))
    record = made(files, folder=tmp_path / "out")
    names = [one.name for one in record.plans]
    assert len(set(names)) == 2
    assert all(name.endswith(("east-chat", "west-chat")) for name in names)
    assert len(contents(tmp_path / "out")) == 4


def test_faults_of_all_files_are_told_at_once(tmp_path):
    good = write_slo(tmp_path, "good")
    bad = tmp_path / "bad.yaml"
    bad.write_text("model: x\ntraffic: {}\n")
    with pytest.raises(InputError) as error:
        made([good, bad, tmp_path / "none.yaml"])
    text = str(error.value)
    assert "bad.yaml" in text
    assert "none.yaml" in text
    with pytest.raises(InputError, match="named twice"):
        made([good, good])


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("quotas:\n  - {accelerator: h10, gpus: 8}\n", "quotas[0].accelerator"),
        ("quotas:\n  - {provider: awss, gpus: 8}\n", "did you mean 'aws'"),
        ("quotas:\n  - {gpus: 8}\n", "quotas[0].gpus"),
        ("quotas:\n  - {provider: aws, gpus: 8}\n  - {provider: AWS, gpus: 9}\n", "twice"),
        ("budget: 3\n", "budget_usd_per_hour"),
        ("budget_usd_per_hour: -3\n", "above 0"),
    ],
)
def test_a_wrong_quota_file_is_refused(text, fragment, tmp_path, capsys):
    quota = tmp_path / "quota.yaml"
    quota.write_text(text)
    outcome = run(capsys, "portfolio", str(write_slo(tmp_path, "a")), "--quota", str(quota))
    assert outcome.code == 2
    assert outcome.out == ""
    assert fragment in outcome.err


def test_limits_of_the_command_line_stand_over_those_of_the_file(tmp_path):
    quota = tmp_path / "quota.yaml"
    quota.write_text("max_gpus: 8\nbudget_usd_per_hour: 5.0\n")
    limits = read_limits(quota, max_gpus=16)
    assert (limits.max_gpus, limits.budget_usd_per_hour) == (16, 5.0)


def test_the_command_writes_table_record_and_plans(tmp_path, capsys):
    file = write_slo(tmp_path, "chat")
    hard = write_slo(tmp_path, "hard", slo=targets(1.0, 1.0))
    out = tmp_path / "out"
    outcome = run(
        capsys,
        "portfolio",
        str(file),
        str(hard),
        "--space",
        "quick",
        "--out",
        str(out),
        "--jobs",
        "1",
    )
    assert outcome.code == 3
    assert "1 of 2 plans served" in outcome.out
    assert "hard (meta-llama/Llama-3.1-8B-Instruct) is not served" in outcome.out
    assert "would do: slo.ttft_p95_ms" in outcome.out
    record = PortfolioRecord.model_validate_json((out / "portfolio.json").read_text())
    assert read_record(out / record.plans[0].file).picks["cheapest"].startswith("o-")
    again = run(
        capsys, "portfolio", str(file), "--space", "quick", "--format", "csv", "--jobs", "1"
    )
    assert again.code == 0
    header, line = again.out.splitlines()
    assert line.split(",")[header.split(",").index("plan")] == "chat"


def test_the_command_refuses_an_unknown_format_and_two_kinds_of_workers(tmp_path, capsys):
    file = str(write_slo(tmp_path, "chat"))
    assert "did you mean 'table'" in run(capsys, "portfolio", file, "--format", "tabel").err
    both = run(capsys, "portfolio", file, "--cluster", "tcp://x:1", "--jobs", "2")
    assert both.code == 2
    assert "--jobs" in both.err


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("file/out", "file is a file, not a folder); name another"),
        ("file", "a file, not a folder; name a folder"),
        ("gone/all.json", "gone); make it first, or name a file in a folder that exists"),
    ],
)
def test_an_out_that_cannot_be_written_is_told_before_any_search(
    out, message, tmp_path, capsys, monkeypatch
):
    searches = []
    monkeypatch.setattr(portfolio_task, "search", lambda *a, **_: searches.append(a))
    (tmp_path / "file").write_text("")
    file = str(write_slo(tmp_path, "chat"))
    outcome = run(capsys, "portfolio", file, "--jobs", "1", "--out", str(tmp_path / out))
    assert (outcome.code, searches) == (2, [])
    assert message in outcome.err


def test_the_json_of_a_record_reads_back_as_it_was(variants):
    record, *_ = variants
    text = FORMATS["json"](record)
    assert PortfolioRecord.model_validate_json(json.dumps(json.loads(text))) == record


def test_the_least_of_fronts_that_are_not_proven_is_not_proven_either(two_rates):
    record = made(two_rates)
    unsure = tuple(plan.model_copy(update={"proven": False}) for plan in record.plans)
    said = table(record.model_copy(update={"plans": unsure}))
    assert "cost for these limits: the least of what was found by the formula" in said
    assert "proven the least" not in said
