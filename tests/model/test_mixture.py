"""Several kinds of requests on the same servers."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.mixture import mixture, prompt_nodes_from
from planner.model.workload import workload, workload_from_samples
from tests.model.by_hand import constant

CHAT = constant(200.0, 100.0)
SUMMARY = constant(4000.0, 20.0)


def test_moments_of_two_constant_kinds_match_hand_computed_ones():
    # 3 of 4 requests are chats: 200 + 100 tokens; the rest summaries: 4000 + 20.
    got = mixture([CHAT, SUMMARY], [0.75, 0.25]).whole
    assert got.prompt_mean == pytest.approx(0.75 * 200 + 0.25 * 4000)
    assert got.output_mean == pytest.approx(0.75 * 100 + 0.25 * 20)
    steps = 0.75 * 99 + 0.25 * 19
    assert got.steps_mean == pytest.approx(steps)
    # Contexts count by steps: (200 + 99/2) * 99 and (4000 + 19/2) * 19.
    assert got.context == pytest.approx((0.75 * 249.5 * 99 + 0.25 * 4009.5 * 19) / steps)
    # E[min of two]: both chats 99, else 19.
    least = 0.75**2 * 99 + (1 - 0.75**2) * 19
    assert got.peakedness == pytest.approx(least / steps)


def test_moments_of_spread_kinds_are_those_of_all_requests_together():
    # Slow plain version: one sample of each kind's lengths, put together.
    random = np.random.default_rng(5)
    sizes = (30_000, 10_000)
    prompts = [np.exp(random.normal(6, 0.8, sizes[0])), np.exp(random.normal(8, 0.4, sizes[1]))]
    outputs = [np.exp(random.normal(5, 0.6, sizes[0])), np.exp(random.normal(3, 0.5, sizes[1]))]
    parts = [workload_from_samples(p, o) for p, o in zip(prompts, outputs, strict=True)]
    got = mixture(parts, sizes).whole
    plain = workload_from_samples(np.concatenate(prompts), np.concatenate(outputs))
    names = [f.name for f in fields(got) if isinstance(getattr(got, f.name), float)]
    for name in names:
        tolerance = 0.01 if name == "peakedness" else 1e-9
        assert getattr(got, name) == pytest.approx(getattr(plain, name), rel=tolerance), name


def test_one_kind_alone_is_itself():
    alone = workload(lambda r: 100 + r, lambda r: 10 + r)
    got = mixture([alone], [1.0])
    assert got.whole is alone
    assert got.parts == (alone,)


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=5))
def test_each_kind_sees_its_own_nodes_and_all_of_its_own_weight(shares):
    kinds = [constant(100.0 * (n + 1), 10.0 * (n + 1)) for n in range(len(shares))]
    got = mixture(kinds, shares)
    assert got.whole.weight.sum() == pytest.approx(1.0)
    for kind, part in zip(kinds, got.parts, strict=True):
        assert part.weight.sum() == pytest.approx(1.0)
        assert (part.weight * part.prompt).sum() == pytest.approx(kind.prompt_mean)
        assert (part.weight * part.output).sum() == pytest.approx(kind.output_mean)


def test_the_nodes_from_a_rank_on_are_the_longest_in_any_order():
    mixed = mixture([SUMMARY, CHAT], [0.25, 0.75]).whole
    longest = mixed.prompt[prompt_nodes_from(mixed, 0.95), 0]
    assert longest == pytest.approx(np.full(len(longest), 4000.0))
    assert mixed.prompt[prompt_nodes_from(mixed, 0.5)[0], 0] == pytest.approx(200.0)
    one = workload(lambda r: 1000 * r + 1, lambda r: 10.0)
    first = int(np.searchsorted(np.cumsum(one.weight[:, 0]), 0.95 - 1e-9))
    assert prompt_nodes_from(one, 0.95).tolist() == list(range(first, len(one.weight)))


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5), st.floats(0.01, 0.99))
def test_the_nodes_from_a_rank_on_hold_what_is_beyond_it(shares, rank):
    kinds = [constant(100.0 * (n + 1), 10.0) for n in range(len(shares))]
    mixed = mixture(kinds, shares).whole
    nodes = prompt_nodes_from(mixed, rank)
    assert mixed.weight[nodes].sum() >= 1.0 - rank - 1e-9
    others = np.delete(mixed.prompt[:, 0], nodes)
    assert others.max(initial=0.0) <= mixed.prompt[nodes].min()
