"""What a portfolio says of its choice beyond the choice itself."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from planner.commands import portfolio_task
from planner.report.portfolio import FORMATS, table
from planner.report.words import money
from planner.select.selection import ENDS_TOGETHER
from tests.commands.portfolios import (
    CATALOG,
    alone,
    made,
    targets,
    traffic,
    write_slo,
)
from tests.commands.small_plans import CHIPS, space


@pytest.mark.parametrize(
    ("verify", "served", "told", "noted"),
    [
        (False, 2, "not verified by simulation", "no simulation has checked the chosen"),
        (True, 2, "1 of 2 deployments verified by", "others; batch jobs are not simulated: batch."),
        (True, 1, "1 of 1 deployment verified by", "simulations have checked the chosen"),
    ],
    ids=["formula alone", "offline work has nothing to simulate", "all simulated"],
)  # fmt: skip
def test_what_is_proven_is_told_apart_from_what_is_simulated(tmp_path, verify, served, told, noted):
    batch = {"offline": {"requests": 50_000, "deadline_hours": 4}}
    lengths = {"prompt_tokens": 500, "output_tokens": 100}
    files = [
        write_slo(tmp_path, "chat", traffic=traffic(5.0)),
        write_slo(tmp_path, "batch", traffic=batch | lengths, slo={}),
    ][:served]
    record = made(files, verify=verify)
    assert f"cost for these limits: proven the least by the formula, {told}" in table(record)
    assert noted in record.assumptions[0]
    assert record.assumptions[0].startswith("Costs, and what is proven of them, are the formula's")


def test_what_the_chosen_deployments_bind_to_and_need_is_told(tmp_path):
    file = write_slo(tmp_path, "chat", quality={"allow": ("int4",)})
    offers = tuple(
        o.model_copy(update={"minimum_hours": 720.0, "upfront_share": 0.5, "quota_instances": 9})
        for o in CATALOG.offers
    )
    record = made([file], catalog=replace(CATALOG, offers=offers), space=space(weights=("int4",)))
    ((part,),) = (plan.chosen.parts for plan in record.plans)
    hour = part.option.money.invoiced_usd_per_hour
    # By hand: 720 h are paid for in any case, half of them at the start.
    told = f"due at once {money(hour * 360)}; bound for 720 h: {money(hour * 720)} in all"
    assert f"- chat: {told}; instances at most 9 (quota).\n" in table(record)
    needed = "supply a checkpoint with int4 weights, the release is bf16"
    assert f"- To deploy chat: {needed}.\n" in table(record)
    (row,) = csv.DictReader(FORMATS["csv"](record).splitlines())
    assert float(row["due_at_once_usd"]) == pytest.approx(hour * 360, rel=1e-5)
    assert row["needs"] == needed


def test_checks_that_are_interrupted_end_a_portfolio(tmp_path, monkeypatch):
    monkeypatch.setattr(portfolio_task.Work, "checked", lambda _work, result, _seed: result.cut())
    with pytest.raises(KeyboardInterrupt):
        made([write_slo(tmp_path, "chat")], verify=True)


def test_where_nothing_is_served_nothing_is_said_of_chosen_deployments(tmp_path):
    record = made([write_slo(tmp_path, "never", slo=targets(0.1, 0.1))])
    said = table(record)
    assert "0 of 1 plan served" in said
    assert "cost for these limits" not in said
    assert "simulation" not in said


def test_what_deployments_rest_on_is_told_once_with_the_plans_it_is_true_of(tmp_path):
    alike = {"prompt_tokens": {"p50": 500.0, "p95": 2000.0}, "output_tokens": 150}
    files = [
        *(write_slo(tmp_path, n, traffic={"rate_per_s": 40.0, **alike}) for n in "abcd"),
        write_slo(tmp_path, "e", traffic=traffic(40.0)),
    ]
    record = made(files)
    assert all(plan.chosen.parts[0].option.replicas > 1 for plan in record.plans)
    told = [note for note in record.assumptions if note.endswith(ENDS_TOGETHER)]
    assert told == [f"a, b, c and 1 more: {ENDS_TOGETHER}"]
    assert told[0] in table(record)


def test_what_is_cut_and_what_nobody_sells_is_told_as_in_the_plans_own_record(tmp_path):
    changes = {
        "traffic": traffic(5.0, max_context_tokens=1024),
        "purchase": {"accelerators": CHIPS, "terms": ("on_demand", "reserved_3y")},
    }
    told = [
        note for note in alone(**changes).assumptions if "are cut" in note or "as its term" in note
    ]
    assert len(told) == 2
    record = made([write_slo(tmp_path, "chat", **changes)])
    assert [f"chat: {note}" for note in told] == [
        note for note in record.assumptions if note.removeprefix("chat: ") in told
    ]
