"""Picks checked by simulation: how sure a percentile is, how many replicas it takes."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.demand import targets
from planner.candidates.hardware import hardware_class
from planner.catalog import load_catalog
from planner.commands.plan import plan
from planner.cost import allowed_offers, quote
from planner.report import FORMATS
from planner.select import checks
from planner.select.answers import answers
from planner.select.front import front
from planner.select.objectives import chosen
from planner.select.picks import picks
from planner.select.resize import fewest, fewest_stable
from planner.select.verification import SERVERS, Requests, Wanted, observe, percentile
from planner.simulate import Deployment
from planner.simulate.run import Run
from planner.spec.record import PlanRecord
from planner.spec.record_check import loose_ends
from planner.spec.slo import Slo
from planner.spec.verification import Simulated
from tests.select.plans import archive
from tests.select.random_slos import share_held, study

NONE = np.zeros(0)


def a_run(ttft: np.ndarray) -> Run:
    """A run whose requests took these times; the rest of it does not matter."""
    count = len(ttft)
    whole = np.ones(count, dtype=np.int64)
    return Run(
        arrival=np.arange(count, dtype=float),
        admitted=np.arange(count, dtype=float),
        ttft=ttft,
        tpot=ttft,
        e2e=ttft,
        prompt=whole,
        output=whole,
        measured=np.ones(count, dtype=bool),
        gap_end=NONE,
        gap=NONE,
        gaps=NONE,
        servers=1,
        batch=0.0,
        utilization=0.0,
        preemptions=0,
        rejected=0,
        overloaded=False,
    )


@pytest.mark.parametrize("persistence", [0.0, 0.95], ids=["independent", "in long waves"])
def test_the_upper_end_lies_above_the_true_percentile_in_about_99_of_100_studies(persistence):
    # exp of a Gaussian AR(1) of unit variance: its 95th percentile is exp(1.6449).
    random, above = np.random.default_rng(7), 0
    for _ in range(200):
        runs = []
        for _ in range(2):
            noise = random.standard_normal(4500) * np.sqrt(1 - persistence**2)
            wave = np.empty(4500)
            level = random.standard_normal()
            for i, shock in enumerate(noise):
                level = persistence * level + shock
                wave[i] = level
            runs.append(a_run(np.exp(wave)))
        above += percentile(runs, "ttft", 0.95).upper >= np.exp(1.6448536)
    assert 0.95 * 200 <= above <= 200


def test_the_percentile_is_the_smallest_value_that_one_in_twenty_exceeds():
    values = np.arange(1.0, 1001.0)
    seen = percentile([a_run(values)], "ttft", 0.95)
    assert seen.value == 950.0
    # All k that are above lie in the last of eight stretches of 125: the mean share is k/1000, its
    # standard error the same. k/1000 * (1 + 2.602) <= 0.05 up to k = 13.
    assert seen.upper == 987.0


def test_rejected_requests_count_as_never_served():
    values = np.ones(1000)
    values[:100] = np.inf
    seen = percentile([a_run(values)], "ttft", 0.95)
    assert seen.value == np.inf


def test_nobody_has_a_tpot_where_outputs_are_of_one_token_and_any_limit_holds():
    nobody = replace(a_run(np.ones(1000)), tpot=np.full(1000, np.nan))
    assert percentile([nobody], "tpot", 0.95).empty
    assert percentile([nobody], "itl", 0.95).empty
    seen = observe(a_fleet(2), Requests(asked(1)), [Wanted("tpot_p95_ms", "tpot", 0.95, 1e-9)], 2.0)
    assert seen.holds


@pytest.mark.parametrize("output", [1, {"mean": 1.01, "cv": 0}, {"p50": 1, "p95": 1}])
def test_a_plan_for_outputs_of_one_token_has_no_tpot_and_its_picks_are_checked(output):
    record = plan(asked(output), space="quick", trials=20)
    assert record.verification
    for check in record.verification:
        assert {entry.key.split("_")[0] for entry in check.latencies} == {"ttft", "e2e"}
    for option in record.options:
        assert option.tpot is None
        assert [target.key for target in option.targets] == ["ttft_p95_ms"]
    assert not list(loose_ends(record))
    assert "TPOT simulated │ -" in " ".join(FORMATS["table"](record, width=160).split())


def test_where_nobody_has_a_tpot_nothing_is_chosen_for_it_and_nothing_is_drafted():
    record = plan(asked(1), space="quick", trials=20, verify=False)
    assert set(record.picks) == {"cheapest", "balanced", "lowest_ttft", "best_quality"}
    assert {option.speculation for option in record.options} == {"off"}
    seen = [
        (o.money.usd_per_mtok_output, o.ttft.p95_ms, np.ceil(2 * o.quality.median))
        for o in record.options
    ]
    for one in seen:
        beaten = [all(a <= b for a, b in zip(other, one, strict=True)) for other in seen]
        assert sum(beaten) == sum(other == one for other in seen)


def test_a_method_that_was_asked_for_alone_is_tried_though_it_drafts_nothing():
    slo = asked(1)
    alone = slo.speculation.model_copy(update={"methods": ("ngram",)})
    record = plan(slo.model_copy(update={"speculation": alone}), space="quick", verify=False)
    assert {option.speculation for option in record.options} == {"ngram"}


def test_the_cost_is_an_objective_always_and_tpot_where_somebody_has_one():
    tpot, cost = ["tpot_p50_ms", "tpot_p95_ms"], ["usd_per_mtok_output"]
    slo = asked(1).model_copy(update={"objectives": tuple(tpot)})
    assert [objective.name for objective in chosen(slo)] == cost
    longer = slo.model_copy(update={"traffic": asked(9).traffic})
    assert [objective.name for objective in chosen(longer)] == tpot + cost


def test_a_class_of_one_token_has_no_target_on_tpot_and_the_other_keeps_its_own():
    one = {"share": 0.5, "prompt_tokens": 500}
    classes = (
        {"name": "label", "output_tokens": 1, **one},
        {"name": "chat", "output_tokens": 200, **one},
    )
    traffic = {"rate_per_s": 5.0, "classes": classes}
    slo = Slo.model_validate({**CHAT.model_dump(by_alias=True), "traffic": traffic})
    assert [target.key for target in targets(slo)] == [
        "label.ttft_p95_ms",
        "chat.ttft_p95_ms",
        "chat.tpot_p95_ms",
    ]


@given(st.sets(st.integers(1, 60), min_size=1), st.data(), st.integers(1, 70), st.booleans())
def test_the_fewest_replicas_are_those_that_a_linear_scan_finds(counts, data, least, down):
    levels = sorted(counts)
    start = data.draw(st.sampled_from(levels))
    tried: list[int] = []

    def holds(n: int) -> bool:
        tried.append(n)
        return n >= least

    choices = [n for n in levels if n >= least and (down or n >= start)]
    assert fewest(levels, start, holds, down=down) == (choices[0] if choices else 0)
    assert tried[0] == start
    assert len(tried) == len(set(tried)) <= 2 * np.ceil(np.log2(len(levels) + 1)) + 2


CHAT = Slo.model_validate(
    {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "traffic": {
            "rate_per_s": 20.0,
            "prompt_tokens": {"p50": 500, "p95": 1500},
            "output_tokens": {"p50": 150, "p95": 400},
        },
        "slo": {"ttft_p95_ms": 600, "tpot_p95_ms": 30, "confidence": 0.5},
        "purchase": {"accelerators": ("l40s", "h100-sxm"), "allow_unvalidated": True},
    }
)


def asked(output) -> Slo:
    """The requests of CHAT with other outputs."""
    traffic = {"rate_per_s": 5.0, "prompt_tokens": 500, "output_tokens": output}
    return Slo.model_validate({**CHAT.model_dump(by_alias=True), "traffic": traffic})


def a_fleet(replicas: int) -> Deployment:
    """Servers of M/D/1: 10 ms a request whatever it holds, one at a time."""
    return Deployment(
        decode=(0.0, 0.0),
        decode_context=(0.0, 0.0),
        stall=(0.0,) * 65_536,
        alone=(0.0, *(0.010,) * 65_535),
        sequences=1,
        budget=65_535,
        replicas=replicas,
        routing="random",
    )


def test_a_large_fleet_is_simulated_in_part_at_the_same_rate_a_server():
    one_token = CHAT.model_copy(
        update={
            "traffic": CHAT.traffic.model_copy(
                update={
                    "rate_per_s": 2000.0,
                    "output_tokens": Slo.model_validate(
                        {
                            **CHAT.model_dump(mode="python", by_alias=True),
                            "traffic": {"rate_per_s": 1.0, "prompt_tokens": 1, "output_tokens": 1},
                        }
                    ).traffic.output_tokens,
                }
            )
        }
    )
    seen = observe(a_fleet(40), Requests(one_token), [Wanted("ttft_p50_ms", "ttft", 0.5)], 40.0)
    assert seen.replicas == SERVERS
    # M/D/1 at utilization 2000 / 40 * 0.010 = 0.5.
    assert seen.utilization == pytest.approx(0.5, abs=0.02)


def test_every_size_gets_the_same_requests():
    requests = Requests(CHAT, seed=3)
    few, many = requests.draw(6, 50).arrivals, requests.draw(6, 9000).arrivals
    np.testing.assert_array_equal(few.time, many.time[:50])
    np.testing.assert_array_equal(few.prompt, many.prompt[:50])
    np.testing.assert_array_equal(few.output, many.output[:50])


@lru_cache(maxsize=2)
def a_plan(verify: bool) -> PlanRecord:
    return plan(CHAT, space="quick", verify=verify)


def test_every_pick_of_a_plan_has_been_simulated_and_holds():
    record = a_plan(True)
    held = {check.option for check in record.verification if check.holds}
    assert set(record.picks.values()) <= held
    for check in record.verification:
        assert check.trials[0].replicas >= 1
        limits = {"ttft_p95_ms": 600, "tpot_p95_ms": 30}
        upper = {entry.key: entry.upper_ms for entry in check.latencies}
        assert check.holds == all(upper[key] <= limit for key, limit in limits.items())


def test_no_pick_waits_for_the_checks_of_another(monkeypatch):
    """Short outputs behind long prompts: the formula's sizes fail one after the other."""
    monkeypatch.setattr(checks, "CHECKED", 7)
    lengths = {
        "prompt_tokens": {"p50": 6000, "p95": 20000},
        "output_tokens": {"p50": 12, "p95": 60},
    }
    asked = CHAT.model_copy(
        update={
            "task": "code",
            "traffic": CHAT.traffic.model_validate({"rate_per_s": 10, **lengths}),
            "targets": CHAT.targets.model_validate({"ttft_p95_ms": 2500, "tpot_p95_ms": 30}),
        }
    )
    record = plan(asked, space="quick")
    done = Counter(name for check in record.verification for name in check.picks)
    turns = [done[name] for name in record.picks]
    assert sum(turns) >= 7
    assert min(turns) >= 1
    unchecked = [o for o in record.options if o.id in record.picks.values()]
    unchecked = [o for o in unchecked if not record.simulated(o)]
    assert unchecked
    table = FORMATS["table"](record, width=400)
    assert table.count(" ok by formula") == 2 * len(unchecked)
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(FORMATS["csv"](record)))}
    for option in record.options:
        source = "simulation" if record.simulated(option) else "formula"
        assert rows[option.id]["upper_ms_from"] == source
    for check in record.verification:
        if check.option in rows:
            seen = {entry.key: entry.simulated_ms for entry in check.latencies}
            assert float(rows[check.option]["tpot_p95_simulated_ms"]) == seen["tpot_p95_ms"]


def test_checks_that_are_interrupted_keep_what_has_been_checked():
    """Expected: the checks of an undisturbed plan, up to the one that is lost."""
    seen = []

    def impatient(phrase, _share):
        seen.append(phrase)
        if seen.count("simulating the picks") == 2:
            raise KeyboardInterrupt

    record, whole = plan(CHAT, space="quick", progress=impatient), a_plan(True)
    assert record.verification == whole.verification[:1]
    assert len(whole.verification) > 1
    assert (record.search.stopped, record.search.proven) == ("interrupted", True)
    assert record.options
    assert any("rest on the closed formula" in note for note in record.assumptions)


def test_an_unverified_plan_says_so_and_has_no_simulation():
    record = a_plan(False)
    assert record.verification == ()
    assert any("no simulation" in note for note in record.assumptions)


def test_a_verified_plan_is_the_same_every_time():
    again = plan(CHAT, space="quick")
    assert again.model_dump_json() == a_plan(True).model_dump_json()


def test_an_option_that_a_simulation_refutes_leaves_the_front_and_the_next_moves_up():
    record, catalog = a_plan(False), load_catalog()
    quotes = _quotes(record, catalog)
    slo = CHAT
    before = front(answers(record.archive), record.archive, quotes, slo)
    first = before.rows[picks(before)["cheapest"]]
    place, row = (int(x[first]) for x in (before.trusted.answers.place, before.trusted.answers.row))
    refuted = Simulated(row=row, upper_ms={"ttft_p95_ms": 601.0})
    archive = list(record.archive)
    archive[place] = archive[place].model_copy(update={"simulated": (refuted,)})
    after = front(answers(archive), archive, quotes, slo)
    assert first not in after.rows
    second = after.rows[picks(after)["cheapest"]]
    money = before.trusted.money["usd_per_mtok_output"]
    assert money[second] >= money[first] * (1 - 1e-9)


def test_an_option_that_a_simulation_clears_needs_no_headroom():
    record, catalog = a_plan(False), load_catalog()
    quotes, slo = _quotes(record, catalog), CHAT.model_copy(update={"headroom": 0.01})
    archive = list(record.archive)
    assert not len(front(answers(archive), archive, quotes, slo).rows)
    cleared = Simulated(row=0, upper_ms={"ttft_p95_ms": 599.0, "tpot_p95_ms": 29.0})
    archive[0] = archive[0].model_copy(update={"simulated": (cleared,)})
    assert len(front(answers(archive), archive, quotes, slo).rows) == 1


def _quotes(record: PlanRecord, catalog):
    offers = allowed_offers(catalog, CHAT.purchase, record.inputs.as_of)
    classes: dict[str, list] = {}
    for offer in offers:
        chip = catalog.accelerators[offer.accelerator]
        made = hardware_class(chip, offer.gpus, offer.link, offer.internode_gb_per_s)
        classes.setdefault(made.id, []).append(offer)
    return {key: quote(catalog, offers) for key, offers in classes.items()}


def test_picks_hold_with_other_seeds_and_cost_hardly_more_than_the_fewest_replicas_that_do():
    # Four SLOs of the study in planner/search/README.md, which has 200.
    verdicts = list(study(4, seed=11))
    picked = [verdict for verdict in verdicts if verdict.verified]
    others = [verdict for verdict in verdicts if not verdict.verified]
    assert len(picked) >= 3
    assert share_held(picked) == 1.0
    assert np.median([verdict.excess for verdict in picked]) <= 0.08
    assert share_held(others) >= 0.85


def test_the_table_shows_formula_and_simulation_below_each_other():
    text = FORMATS["table"](a_plan(True), width=160)
    for label in ("TTFT p50 / p95", "TTFT simulated", "TPOT simulated", "replicas tried"):
        assert label in text
    assert "simulated" not in FORMATS["table"](a_plan(False), width=160).split("Others")[0]


@pytest.mark.parametrize(
    ("utilization", "margin", "least"),
    [
        (0.7, 1.0, 8),  # 10 x 0.7 / 0.98 = 7.1
        (0.7, 1.2, 9),  # 10 x 0.7 x 1.2 / 0.98 = 8.6: 8 would be overloaded if steps take 1.2
        (0.8, 1.3, 10),  # 10.6: no more than headroom asks
        (0.05, 1.0, 1),
        (0.5, 1.6, 7),  # 10 x 0.5 / 0.8 = 6.25: the formula may be trusted with 0.8
    ],
)
def test_a_fleet_that_may_be_overloaded_is_not_tried(utilization, margin, least):
    row = {"replicas": 10, "utilization": utilization}
    assert fewest_stable(archive("h100-sxm", row, margin=margin), 0, 0.8) == least
