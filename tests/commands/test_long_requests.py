"""Requests longer than the model, or slo.yaml, takes: cut and told, refused where most are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.candidates.demand import longer_share, mean_lengths, of_model, slo_workload
from planner.errors import InputError
from planner.select.verification import Requests
from tests.commands.small_plans import small_plan
from tests.commands.test_plan_traffic import an_slo
from tests.search.problems import catalog

SKEWED = {
    "prompt_tokens": {"p50": 500, "p95": 3000},
    "output_tokens": {"p50": 10, "p95": 3000},
}


def test_the_formula_and_the_simulator_see_requests_cut_at_the_context_of_the_model():
    slo = of_model(an_slo(SKEWED), 40960)
    drawn = Requests(slo).draw(seed=3, count=60_000).arrivals
    prompt, output = drawn.prompt, drawn.output
    assert (prompt + output).max() == 40960
    formula = slo_workload(slo)
    assert (formula.prompt_mean, formula.output_mean) == mean_lengths(slo)
    assert formula.output_mean == pytest.approx(output.mean(), rel=0.03)
    end = ((prompt + output) * (output - 1)).sum() / (output - 1).sum()
    assert formula.context_end == pytest.approx(end, rel=0.03)


def test_the_shorter_of_the_context_and_the_longest_request_accepted_cuts():
    assert an_slo({}).traffic.longest is None
    assert of_model(an_slo({"max_context_tokens": 8192}), 40960).traffic.longest == 8192
    assert of_model(an_slo({"max_context_tokens": 8192}), 4096).traffic.longest == 4096


def test_outputs_with_a_long_tail_get_a_plan():
    made = small_plan(catalog(), an_slo(SKEWED, slo={"ttft_p95_ms": 2000, "tpot_p95_ms": 50}))
    assert made.options
    assert not any("are cut" in told for told in made.assumptions)


@pytest.mark.parametrize(
    ("traffic", "told"),
    [
        ({}, "the model's 131072 tokens"),
        ({"max_context_tokens": 60_000}, "traffic.max_context_tokens, 60000 tokens"),
    ],
    ids=["by the model", "by slo.yaml"],
)
def test_a_cut_that_one_request_in_a_hundred_gets_is_told(traffic, told):
    long = {"prompt_tokens": {"p50": 100, "p95": 50_000}}
    made = small_plan(catalog(), an_slo({**long, **traffic}))
    assert [told in note for note in made.assumptions if "are cut" in note] == [True]


PROMPTS = {"prompt_tokens": {"p50": 130_000, "p95": 140_000}}
SHORT = {"name": "short", "share": 0.4, "prompt_tokens": 100, "output_tokens": 100}
LONG = {"name": "long", "share": 0.6, "prompt_tokens": 130_000, "output_tokens": 1500}


@pytest.mark.parametrize(
    ("traffic", "keys"),
    [
        ({**PROMPTS, "output_tokens": 1500}, ["traffic.prompt_tokens"]),
        (
            {**PROMPTS, "output_tokens": 1500, "max_context_tokens": 131_500},
            ["traffic.max_context_tokens", "traffic.prompt_tokens"],
        ),
        (
            {"prompt_tokens": None, "output_tokens": None, "classes": [SHORT, LONG]},
            ["traffic.classes"],
        ),
    ],
)
def test_a_model_is_not_planned_for_requests_of_which_it_takes_less_than_half(traffic, keys):
    with pytest.raises(InputError) as refused:
        small_plan(catalog(), an_slo(traffic))
    assert [fault.key for fault in refused.value.faults] == keys


def test_a_model_is_planned_for_requests_of_which_it_takes_a_few_less():
    long = {"prompt_tokens": {"p50": 129_000, "p95": 131_000}, "output_tokens": 1500}
    made = small_plan(catalog(), an_slo(long))
    # Prompts up to 129,572 are not cut: log(129572 / 129000) / (log(131000 / 129000) / 1.645) is
    # 0.473 standard deviations, beyond which lie 31.8 %.
    assert any("are cut to that: 32% of all" in note for note in made.assumptions)


def test_a_trace_of_which_the_model_takes_less_than_half_is_refused(tmp_path):
    file = tmp_path / "long.csv"
    rows = [f"{second},{size},50" for second, size in enumerate([100, 132_000, 133_000] * 40)]
    file.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *rows, ""]))
    asked = {"rate_per_s": None, "prompt_tokens": None, "output_tokens": None, "trace": str(file)}
    with pytest.raises(InputError, match="67% of the requests are longer") as refused:
        small_plan(catalog(), an_slo(asked))
    assert [fault.key for fault in refused.value.faults] == ["traffic.trace"]


def test_a_trace_of_long_prompts_or_long_outputs_is_planned_though_their_medians_are_long(tmp_path):
    # Medians add up to 135,000 tokens, of which the model takes 131,072; one in ten has as many.
    file = tmp_path / "mixed.csv"
    kinds = [(90_000, 10)] * 9 + [(90_000, 45_000)] * 2 + [(100, 45_000)] * 9
    rows = [f"{60 * second},{p},{o}" for second, (p, o) in enumerate(kinds * 6)]
    file.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *rows, ""]))
    asked = {"rate_per_s": None, "prompt_tokens": None, "output_tokens": None, "trace": str(file)}
    assert small_plan(catalog(), an_slo(asked)).inputs.trace.requests == 120


def test_a_few_requests_of_one_class_may_be_cut_whole():
    classes = [{**SHORT, "share": 0.99}, {**LONG, "share": 0.01, "prompt_tokens": 131_000}]
    made = small_plan(
        catalog(), an_slo({"prompt_tokens": None, "output_tokens": None, "classes": classes})
    )
    assert made.options or made.misses


LENGTHS = st.tuples(st.floats(0, 7), st.floats(0, 7)).map(
    lambda powers: {"p50": 10 ** min(powers), "p95": 10 ** max(powers)}
)


@settings(max_examples=15, deadline=None)
@given(prompt=LENGTHS, output=LENGTHS)
def test_any_lengths_get_a_plan_or_a_reason_and_no_warning(prompt, output):
    # pytest turns warnings into errors.
    asked = an_slo({"prompt_tokens": prompt, "output_tokens": output})
    if longer_share(asked, 131_072) > 0.5:
        with pytest.raises(InputError, match="of the requests are longer than the 131072 tokens"):
            small_plan(catalog(), asked)
        return
    made = small_plan(catalog(), asked)
    assert made.options or made.untrusted or made.misses or made.obstacle
