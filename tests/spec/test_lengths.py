import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.files import parse_yaml
from planner.spec.lengths import MomentLengths, QuantileLengths
from planner.spec.load import load
from planner.spec.traffic import Traffic


def prompt(text):
    data = f"rate_per_s: 1\noutput_tokens: 1\nprompt_tokens: {text}\n"
    return load(parse_yaml(data, "a.yaml"), Traffic).prompt_tokens


def test_two_quantiles_give_the_mean_of_the_log_normal_by_hand():
    # ln(3200/900) = 1.268511, / 1.6448536 = 0.771200; 900 exp(0.771200^2 / 2) = 1211.69
    length = prompt("{p50: 900, p95: 3200}")
    assert length.sigma == pytest.approx(0.771200, abs=1e-6)
    assert length.mean == pytest.approx(1211.69, abs=0.01)
    assert length.quantile(0.95) == pytest.approx(3200)
    assert length.quantile(0.5) == 900


def test_mean_and_cv_give_median_and_spread_by_hand():
    # cv 1: sigma^2 = ln 2, median = 1000 / sqrt 2
    length = prompt("{mean: 1000, cv: 1}")
    assert length.sigma == pytest.approx(math.sqrt(math.log(2)))
    assert length.median == pytest.approx(707.10678)


@pytest.mark.parametrize("text", ["700", "700.0", "{p50: 700, p95: 700}", "{mean: 700, cv: 0}"])
def test_a_constant_has_every_quantile_equal(text):
    length = prompt(text)
    assert (length.mean, length.quantile(0.01), length.quantile(0.99)) == (700, 700, 700)


@given(mean=st.floats(10, 1e5), cv=st.floats(0.05, 3))
def test_both_forms_describe_the_same_distribution(mean, cv):
    moments = MomentLengths(mean=mean, cv=cv)
    quantiles = QuantileLengths(
        p50=max(1.0, moments.quantile(0.5)), p95=max(1.0, moments.quantile(0.95))
    )
    if quantiles.p50 > 1:
        assert quantiles.mean == pytest.approx(mean, rel=1e-9)
        assert quantiles.quantile(0.99) == pytest.approx(moments.quantile(0.99), rel=1e-9)


def test_mean_and_cv_agree_with_many_equally_likely_draws():
    length = QuantileLengths(p50=250, p95=700)
    draws = [length.quantile((n + 0.5) / 100_000) for n in range(100_000)]
    assert statistics.fmean(draws) == pytest.approx(length.mean, rel=1e-4)


@pytest.mark.parametrize("text", ["true", "'900'", "[900]", "~x", "2026-01-01"])
def test_anything_else_is_told_the_three_forms(text):
    with pytest.raises(InputError, match=r"write a number of tokens, \{p50: 900, p95: 3200\}"):
        prompt(text)
