from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.workload import workload, workload_from_samples
from tests.model.by_hand import constant


def log_normal(median, sigma):
    normal = NormalDist()
    return lambda rank: median * np.exp(sigma * normal.inv_cdf(rank))


def test_log_normal_moments_match_their_closed_forms():
    w = workload(log_normal(800, 0.8), log_normal(200, 0.7))
    assert w.prompt_mean == pytest.approx(800 * np.exp(0.32), rel=1e-4)
    assert w.prompt_square == pytest.approx(800**2 * np.exp(1.28), rel=1e-3)
    assert w.output_mean == pytest.approx(200 * np.exp(0.245), rel=1e-4)


def test_constant_lengths_give_the_context_by_hand():
    w = constant(1000, 101)
    assert w.context == pytest.approx(1000 + 100 / 2)
    assert w.context_end == pytest.approx(1101)
    assert w.steps_cv2 == pytest.approx(0, abs=1e-9)
    assert w.peakedness == pytest.approx(1)
    np.testing.assert_allclose(w.prompt, 1000)


def test_peakedness_of_exponential_outputs_is_a_half():
    # E[min of two exponentials] is half the mean.
    w = workload(lambda _: 1, lambda rank: 1 - 500 * np.log1p(-rank))
    assert w.peakedness == pytest.approx(0.5, rel=1e-3)


def test_uniform_outputs_have_the_textbook_moments():
    w = workload(lambda _: 100, lambda rank: 1 + 300 * rank)
    assert w.steps_mean == pytest.approx(150)
    assert w.steps_square == pytest.approx(300**2 / 3)
    # (p + d/2) d over d: 100 + 30000 / 150 / 2; E[min of two] = 300 / 3.
    assert w.context == pytest.approx(200)
    assert w.peakedness == pytest.approx(100 / 150)


def test_statistics_of_samples_agree_with_a_plain_walk_over_the_requests():
    rng = np.random.default_rng(1)
    prompt = rng.integers(1, 3000, 300).astype(float)
    output = np.maximum(rng.integers(1, 400, 300) * prompt / 1500, 1)
    w = workload_from_samples(prompt, output)
    contexts = []
    ends = []
    for p, o in zip(prompt, output, strict=True):
        d = o - 1
        contexts.append(((p + d / 2) * d, d))
        ends.append(((p + o) * d, d))
    assert w.context == pytest.approx(sum(a for a, _ in contexts) / sum(b for _, b in contexts))
    assert w.context_end == pytest.approx(sum(a for a, _ in ends) / sum(b for _, b in ends))
    pairs = np.minimum(output[:, None] - 1, output[None, :] - 1).mean()
    assert w.peakedness == pytest.approx(pairs / (output - 1).mean())


def test_large_samples_agree_with_the_quantile_functions_they_were_drawn_from():
    rng = np.random.default_rng(2)
    size = 400_000
    prompt = 800 * np.exp(0.6 * rng.standard_normal(size))
    output = 200 * np.exp(0.5 * rng.standard_normal(size))
    drawn = workload_from_samples(prompt, output)
    exact = workload(log_normal(800, 0.6), log_normal(200, 0.5))
    for field in ("prompt", "output", "prompt_at_output", "weight"):
        np.testing.assert_allclose(getattr(drawn, field), getattr(exact, field), rtol=0.03)
    for field in ("context", "context_end", "context_cv2", "steps_cv2", "peakedness"):
        assert getattr(drawn, field) == pytest.approx(getattr(exact, field), rel=0.03)


@given(
    median=st.floats(2, 1e5),
    sigma=st.floats(0, 1.5),
    output=st.floats(1, 5000),
    spread=st.floats(0, 1.2),
)
def test_nodes_ascend_weigh_one_and_average_to_the_mean(median, sigma, output, spread):
    w = workload(log_normal(median, sigma), log_normal(output, spread))
    for nodes, mean in ((w.prompt, w.prompt_mean), (w.output, w.output_mean)):
        assert nodes.shape == w.weight.shape
        assert w.weight.sum() == pytest.approx(1)
        assert (w.weight * nodes).sum() == pytest.approx(mean)
        assert (np.diff(nodes[:, 0]) >= -1e-9 * mean).all()


@given(length=st.floats(1, 1e6), output=st.floats(1, 1e5))
def test_constant_samples_equal_the_constant_workload(length, output):
    drawn = workload_from_samples(np.full(7, length), np.full(7, output))
    exact = constant(length, output)
    for field in ("context", "context_end", "peakedness", "prompt_square", "steps_square"):
        assert getattr(drawn, field) == pytest.approx(getattr(exact, field), rel=1e-9, abs=1e-9)


def test_lengths_spread_within_a_node_as_far_as_their_quantiles():
    # Outputs uniform between 100 and 300: a node that holds a share s of them has (200 s)^2 / 12.
    w = workload(lambda _: 10.0, lambda rank: 100.0 + 200.0 * rank)
    np.testing.assert_allclose(w.output_spread, (200.0 * w.weight) ** 2 / 12.0, rtol=1e-6)
    drawn = workload_from_samples(np.full(10**5, 10.0), 100 + 200 * np.linspace(0, 1, 10**5))
    np.testing.assert_allclose(drawn.output_spread, w.output_spread, rtol=1e-3)


def walked(prompt, output, longest, count=400):
    """Lengths at even ranks of both distributions, every pair, cut as a server cuts them."""
    ranks = (np.arange(count) + 0.5) / count
    p, o = np.meshgrid([prompt(x) for x in ranks], [output(x) for x in ranks])
    o = np.clip(o, 1, longest - 1)
    p = np.clip(p, 1, longest - o)
    return p.ravel(), o.ravel()


@pytest.mark.parametrize(
    ("prompt", "output"),
    [((500, 1.0894), (10, 3.4677)), ((100, 3.4677), (200, 1.6464)), ((60_000, 0.1), (900, 0.5))],
    ids=["long outputs", "long prompts", "every prompt too long"],
)
def test_cut_lengths_agree_with_a_plain_walk_over_the_requests(prompt, output):
    prompt, output = log_normal(*prompt), log_normal(*output)
    p, o = walked(prompt, output, 8192)
    w, d = workload(prompt, output, longest=8192), o - 1
    assert w.prompt_mean == pytest.approx(p.mean(), rel=0.003)
    assert w.output_mean == pytest.approx(o.mean(), rel=0.003)
    assert w.context == pytest.approx(((p + d / 2) * d).mean() / d.mean(), rel=0.003)
    assert w.context_end == pytest.approx(((p + o) * d).mean() / d.mean(), rel=0.003)
    assert w.prompt_square == pytest.approx((p * p).mean(), rel=0.003)
    assert w.mean(w.prompt_at_output)[0] == pytest.approx(p.mean(), rel=0.003)
    assert w.steps_cv2 == pytest.approx(d.var() / d.mean() ** 2, rel=0.02, abs=1e-6)


def test_a_limit_beyond_every_length_changes_nothing():
    free = workload(log_normal(800, 0.8), log_normal(200, 0.7))
    far = workload(log_normal(800, 0.8), log_normal(200, 0.7), longest=1e9)
    assert far.context_end == free.context_end
    np.testing.assert_array_equal(far.prompt_weighted, free.prompt_weighted)


LENGTH = st.floats(0, 7).map(lambda power: 10**power)


@given(p50=LENGTH, p95=LENGTH, o50=LENGTH, o95=LENGTH, longest=st.integers(2, 10**7))
def test_no_request_ends_beyond_the_limit(p50, p95, o50, o95, longest):
    prompt, output = (
        log_normal(min(pair), abs(np.log(pair[1] / pair[0])) / 1.645)
        for pair in ((p50, p95), (o50, o95))
    )
    w = workload(prompt, output, longest=longest)
    assert 2 - 1e-6 <= w.prompt_mean + w.output_mean <= longest * (1 + 1e-9)
    assert w.context <= w.context_end <= longest * (1 + 1e-9)
