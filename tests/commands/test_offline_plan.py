"""Offline work: a deadline holds with the confidence asked, as a latency target does."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist

import pytest
import yaml

from planner.catalog import load_catalog
from planner.commands.explain import explain
from planner.commands.portfolio import portfolio
from planner.commands.stored import open_plan
from planner.files import dump_yaml
from planner.report import FORMATS
from planner.select.scenarios import Scenario, Subjects, effects
from planner.spec.record_file import read_record
from tests.commands.small_plans import CHIPS, slo, small_plan, space

CATALOG = load_catalog()
EFFICIENCY = Path("hardware_catalog/efficiency.yaml")
HOURS = 5.0


def quantiles(generation, accelerator):
    """The measured q10, q50 and q90 of the time of a run, as the file states them."""
    entries = yaml.safe_load(EFFICIENCY.read_text())["errors"]
    wanted = (generation, accelerator, "time")
    (found,) = [e for e in entries if (e["generation"], e["accelerator"], e["metric"]) == wanted]
    return found["q10"], found["q50"], found["q90"]


def offline(confidence, **changes):
    traffic = {
        "offline": {"requests": 30_000_000, "deadline_hours": HOURS},
        "prompt_tokens": 700.0,
        "output_tokens": 100.0,
    }
    return slo(
        traffic=traffic,
        slo={"confidence": confidence},
        objectives=("usd_per_mtok_output", "quality_loss_percent"),
        **changes,
    )


@pytest.fixture(scope="module")
def plans():
    return {share: small_plan(CATALOG, offline(share)) for share in (0.5, 0.8, 0.9)}


def test_at_90_percent_the_bound_of_a_run_is_the_90_percent_end_of_its_80_percent_interval(plans):
    for option in plans[0.9].options:
        (target,) = option.targets
        *_, q90 = quantiles(option.generation, option.accelerator)
        assert target.predicted == option.run_hours
        assert target.upper == pytest.approx(option.run_hours * max(q90, 1.0), rel=1e-4)
        assert option.intervals.run_hours.high == pytest.approx(option.run_hours * q90, rel=1e-4)


def test_at_80_percent_the_bound_lies_on_the_log_normal_through_the_median_and_that_end(plans):
    steps = NormalDist().inv_cdf(0.8) / NormalDist().inv_cdf(0.9)
    for option in plans[0.8].options:
        _, q50, q90 = quantiles(option.generation, option.accelerator)
        factor = max(q50 * (q90 / q50) ** steps, 1.0)
        assert option.targets[0].upper == pytest.approx(option.run_hours * factor, rel=1e-4)


def test_at_50_percent_a_run_has_no_margin(plans):
    assert plans[0.5].options
    for option in plans[0.5].options:
        assert option.targets[0].upper == option.targets[0].predicted


def test_every_option_is_sized_so_that_its_bound_keeps_the_deadline(plans):
    for plan in plans.values():
        assert plan.options
        for option in (*plan.options, *plan.untrusted):
            assert option.targets[0].upper <= HOURS
            assert option.targets[0].holds


def test_more_confidence_never_costs_less(plans):
    cost = [min(o.money.usd_per_hour for o in plans[share].options) for share in sorted(plans)]
    assert cost == sorted(cost)
    # Some deployment that half of the cases would need is no longer enough.
    ids = [{option.id for option in plans[share].options} for share in (0.5, 0.9)]
    assert ids[0] != ids[1]


def test_the_bound_and_the_interval_stand_beside_the_prediction(plans):
    text = FORMATS["table"](plans[0.9], width=160)
    option = next(o for o in plans[0.9].options if o.id == plans[0.9].picks["cheapest"])
    assert "30,000,000 requests within 5 h with 90 % confidence" in text
    assert "90 % confidence" in text.split("Picks")[1]
    assert f"deadline_hours {option.targets[0].upper:.3g} of 5 ok" in text


def test_an_explanation_shows_the_job_and_divides_its_run_by_the_deadline(plans, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(FORMATS["json"](plans[0.9], width=0, color=False), encoding="utf-8")
    explained = explain(path)
    (load,) = [section for section in explained.sections if section.title == "load"]
    items = {item.name: item for item in load.items}
    hours = explained.option.run_hours
    assert "rate sized for" not in items
    assert (items["requests"].value, items["deadline"].value) == ("30,000,000", "5 h")
    assert float(items["utilization"].value) == pytest.approx(hours / HOURS, rel=1e-4)
    assert items["utilization"].formula == f"{hours:.6g} h / 5 h: the whole run / deadline"
    rate = items["mean rate of the run"]
    assert rate.source == ""
    assert float(rate.value.split()[0].replace(",", "")) == pytest.approx(
        30_000_000 / (hours * 3600), rel=1e-4
    )


def test_an_error_that_comes_true_takes_the_place_of_the_margin(plans):
    stored = open_plan(plans[0.8], CATALOG)
    option = plans[0.8].options[0]
    subjects = Subjects(stored.scene, stored.slo, (option,))
    _, _, q90 = quantiles(option.generation, option.accelerator)
    (planned,) = effects(subjects, Scenario("as planned"))
    (slow,) = effects(subjects, Scenario("slow", error=0.9))
    assert planned.use == pytest.approx(option.targets[0].upper / HOURS, rel=1e-4)
    assert planned.usd_per_hour == pytest.approx(option.money.usd_per_job, rel=1e-4)
    assert slow.use == pytest.approx(option.run_hours * q90 / HOURS, rel=1e-4)
    assert slow.usd_per_hour == pytest.approx(option.money.usd_per_job * q90, rel=1e-4)


def test_two_confidences_in_one_portfolio_get_the_plans_they_get_alone(plans, tmp_path):
    files = []
    for share in (0.5, 0.9):
        asked = offline(share).model_dump(mode="json", by_alias=True, exclude_unset=True)
        files.append(tmp_path / f"{share:.0%}.yaml")
        files[-1].write_text(dump_yaml(asked), encoding="utf-8")
    folder = tmp_path / "out"
    record = portfolio(files, None, catalog=CATALOG, space=space(), prove=True, folder=folder)
    for one, share in zip(record.plans, (0.5, 0.9), strict=True):
        found = read_record(folder / one.file)
        assert found.options == plans[share].options


def test_on_spot_a_run_takes_the_tenth_longer_that_does_no_work_and_still_keeps_the_deadline():
    bought = {"accelerators": CHIPS, "allow_flagged_prices": True, "terms": ("spot",)}
    spot = small_plan(CATALOG, offline(0.8, purchase=bought))
    assert spot.options
    for option in spot.options:
        money, lost = option.money, option.money.price.interruption_share
        assert lost == 0.1
        work = 30_000_000 / option.rate_per_s / 3600
        assert option.run_hours == pytest.approx(work / 0.9, rel=1e-4)
        assert option.targets[0].predicted == option.run_hours
        assert option.targets[0].upper <= HOURS
        assert money.usd_per_job == pytest.approx(
            option.run_hours * money.usd_per_hour * 0.9, rel=1e-4
        )
    stored = open_plan(spot, CATALOG)
    (planned, *_) = effects(
        Subjects(stored.scene, stored.slo, spot.options), Scenario("as planned")
    )
    assert planned.usd_per_hour == pytest.approx(spot.options[0].money.usd_per_job, rel=1e-4)
    text = " ".join(FORMATS["table"](spot, width=200).split())
    cheapest = next(o for o in spot.options if o.id == spot.picks["cheapest"])
    assert f"${cheapest.money.usd_per_hour * 0.9:.2f} invoiced, 10 % does no work" in text


def test_the_search_has_the_replicas_that_spot_needs_beside_those_that_steady_machines_need():
    ids = []
    for terms in (("on_demand",), ("spot",)):
        bought = {"accelerators": ("h100-sxm",), "allow_flagged_prices": True, "terms": terms}
        asked = offline(0.8, purchase=bought)
        huge = asked.traffic.model_copy(
            update={"offline": asked.traffic.offline.model_copy(update={"requests": 60_000_000})}
        )
        got = small_plan(CATALOG, asked.model_copy(update={"traffic": huge}))
        cheapest = next(o for o in got.options if o.id == got.picks["cheapest"])
        ids.append(cheapest.replicas)
    # A ninth more, give or take the rounding to whole instances.
    assert ids[0] < ids[1] <= ids[0] / 0.9 + 8


@pytest.mark.parametrize("terms", [("on_demand",), ("spot",)])
def test_a_deadline_that_the_gpus_allowed_miss_is_told_with_one_that_they_keep(terms):
    bought = {
        "accelerators": CHIPS,
        "allow_flagged_prices": True,
        "max_gpus": 4,
        "terms": terms,
    }
    asked = offline(0.8, purchase=bought)
    missed = small_plan(CATALOG, asked)
    assert not missed.options
    (near,) = [m for m in missed.misses if m.kind == "within the purchase limits"]
    assert near.option.gpus == 4
    (told,) = near.would_do
    key, _, hours = told.partition(": ")
    assert key == "traffic.offline.deadline_hours"
    for share, found in ((1.0, True), (0.98, False)):
        job = asked.traffic.offline.model_copy(update={"deadline_hours": float(hours) * share})
        traffic = asked.traffic.model_copy(update={"offline": job})
        got = small_plan(CATALOG, asked.model_copy(update={"traffic": traffic}))
        assert bool(got.options) == found
