"""What a plan says that it takes for granted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from planner.catalog import load_catalog
from planner.select.selection import FORMULA_ONLY, ITL_COARSE, SHORT_COARSE, assumed, checked
from planner.spec.accelerator import rests_on
from planner.spec.slo import Slo
from planner.spec.verification import Trial
from tests.report.records import check

CATALOG = load_catalog()
ASKED = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "traffic": {"rate_per_s": 2.0, "prompt_tokens": 500.0, "output_tokens": 100.0},
    "slo": {"tpot_p95_ms": 40.0},
    "speculation": {"acceptance": {"eagle3": 0.74}},
}
ONLINE = Slo.model_validate(ASKED)


def option(
    accelerator, weights, run_hours=None, speculation="off", acceptance_range=None, replicas=1
):
    price = SimpleNamespace(interruption_share=0.0, term="on_demand")
    return SimpleNamespace(
        accelerator=accelerator,
        weights=weights,
        gpus_per_replica=1,
        gpus=1,
        instances=1,
        replicas=replicas,
        speculation=speculation,
        acceptance_range=acceptance_range,
        run_hours=run_hours,
        lease_outlasts_run=False,
        money=SimpleNamespace(price=price),
    )


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        # The catalog guesses the mxfp4 rate of the B200 and the nvfp4 and mxfp4 rates of the B300.
        (("fp8", "bf16"), "exponential_tera_per_s."),
        (("mxfp4", "nvfp4"), "peak_tflops.mxfp4, exponential_tera_per_s."),
    ],
)
def test_only_formats_that_an_option_uses_are_called_assumed(weights, told):
    chosen = [option("b200-sxm", one) for one in weights]
    (note,) = assumed(CATALOG, ONLINE, chosen)
    assert note == f"{CATALOG.accelerators['b200-sxm'].name}: assumed, not verified: {told}"


def test_a_format_counts_only_on_the_accelerator_that_runs_it():
    notes = list(assumed(CATALOG, ONLINE, [option("b200-sxm", "mxfp4"), option("b300-sxm", "fp8")]))
    assert ["mxfp4" in note for note in notes] == [True, False]


def test_an_option_rests_on_bf16_whatever_its_weights():
    assert rests_on("peak_tflops.bf16", "nvfp4")
    assert rests_on("tdp_w", "nvfp4")
    assert not rests_on("peak_tflops.fp8", "nvfp4")


OTHERS = "other options rest on the closed formula."


@pytest.mark.parametrize(
    ("holds", "said"),
    [
        ({}, "Latencies come from a closed formula; no simulation has checked these options."),
        (
            {"o-1": True, "o-2": True},
            f"The picks have been checked by simulation; {OTHERS}",
        ),
        (
            {"o-1": True, "o-2": False},
            "All picks but balanced have been checked by simulation and hold;"
            f" balanced and {OTHERS}",
        ),
        (
            {"o-2": True, "o-3": True},
            "All picks but cheapest, best_quality have been checked by simulation and hold;"
            f" cheapest, best_quality and {OTHERS}",
        ),
        (
            {"o-1": False, "o-9": True},
            "No simulation has checked the picks, only other options; latencies come from the"
            " formula.",
        ),
    ],
    ids=["none asked", "all", "one breaks a limit", "one option is two picks", "none"],
)
def test_one_sentence_says_which_picks_a_simulation_has_checked(holds, said):
    checks = [
        check(name, name, holds=state, trials=(Trial(replicas=1, max_num_seqs=1, holds=state),))
        for name, state in holds.items()
    ]
    picked = {"cheapest": "o-1", "balanced": "o-2", "best_quality": "o-1"}
    assert checked(ONLINE, checks, picked) == (said,)


@pytest.mark.parametrize(("first", "told"), [(True, "The picks have"), (False, "All picks but")])
def test_a_pick_counts_as_checked_where_the_size_of_the_formula_held_under_another_name(
    first, told
):
    trials = (Trial(replicas=2, max_num_seqs=64, holds=first),)
    checks = [check("o-2", "o-1", trials=trials)]
    (said,) = checked(ONLINE, checks, {"cheapest": "o-1", "balanced": "o-2"})
    assert said.startswith(told)


@pytest.mark.parametrize("metric", ["itl_p95_ms", "itl_p50_ms"])
def test_a_target_on_itl_says_that_the_formula_is_coarse_there(metric):
    asked = Slo.model_validate(ASKED | {"slo": {"tpot_p95_ms": 40.0, metric: 60.0}})
    assert checked(asked, (), {}) == (FORMULA_ONLY, ITL_COARSE)
    assert checked(ONLINE, (), {}) == (FORMULA_ONLY,)


@pytest.mark.parametrize(
    ("median", "target", "told"),
    [
        (15.0, "tpot_p95_ms", True),
        (15.0, "e2e_p95_ms", True),
        (15.0, "ttft_p95_ms", False),
        (16.0, "tpot_p95_ms", False),
        (1.0, "e2e_p95_ms", False),
    ],
)
def test_outputs_of_few_tokens_say_that_the_formula_is_coarse_there(median, target, told):
    traffic = {**ASKED["traffic"], "output_tokens": {"p50": median, "p95": median}}
    asked = Slo.model_validate(ASKED | {"traffic": traffic, "slo": {target: 2000.0}})
    assert (SHORT_COARSE in checked(asked, (), {})) is told


@pytest.mark.parametrize(
    ("hours", "told"), [(None, 0), (0.001, 1), (0.49, 1), (0.51, 0), (20.0, 0)]
)
def test_short_runs_say_that_starts_and_billing_units_are_left_out(hours, told):
    made = option("h100-sxm", "fp8", hours)
    notes = [note for note in assumed(CATALOG, ONLINE, [made]) if note.startswith("Short runs")]
    assert len(notes) == told


def test_draft_acceptance_that_slo_yaml_gives_is_not_called_the_catalogs():
    ranges = {"eagle3": None, "mtp": None, "ngram": (0.25, 0.3), "off": None}
    made = [
        option("h100-sxm", "fp8", speculation=name, acceptance_range=ends)
        for name, ends in ranges.items()
    ]
    assert [note for note in assumed(CATALOG, ONLINE, made) if note.startswith("Draft")] == [
        "Draft acceptance (mtp) is the catalog's for this task; measure your own. No range of it is"
        " known: intervals and margins leave its spread out.",
        "Draft acceptance (ngram) is the catalog's for this task; measure your own. Its range"
        " (0.25-0.3 for the first token) widens the 80 % intervals, not the margins of"
        " the targets.",
        "Draft acceptance (eagle3) is that of slo.yaml, taken as exact by intervals and margins.",
    ]


@pytest.mark.parametrize(
    ("output", "replicas", "told"),
    [(200, 2, True), (200, 1, False), ({"mean": 200, "cv": 0.3}, 2, False), (1, 2, False)],
)
def test_fleets_with_outputs_of_one_length_are_told_to_end_together(output, replicas, told):
    raw = ONLINE.model_dump(by_alias=True)
    raw["traffic"]["output_tokens"] = output
    made = option("h100-sxm", "fp8", replicas=replicas)
    notes = [note for note in assumed(CATALOG, Slo.model_validate(raw), [made]) if "grow" in note]
    assert bool(notes) == told


@pytest.mark.parametrize(("own", "told"), [({"ttft_p95_ms": 900}, True), ({}, False)])
def test_targets_of_the_file_that_hold_for_no_class_are_told(own, told):
    raw = ONLINE.model_dump(by_alias=True)
    lengths = {key: raw["traffic"].pop(key) for key in ("prompt_tokens", "output_tokens")}
    one = {"share": 0.5, **lengths}
    raw["traffic"]["classes"] = [
        {"name": "ask", "slo": {"ttft_p95_ms": 500}, **one},
        {"name": "read", "slo": own, **one},
    ]
    notes = list(assumed(CATALOG, Slo.model_validate(raw), [option("h100-sxm", "fp8")]))
    assert any("hold for no class" in note for note in notes) == told
