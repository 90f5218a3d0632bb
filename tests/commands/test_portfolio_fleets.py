"""Fleets of two deployments in a portfolio, by share of the traffic or by kind of request."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from planner.commands.plan import plan
from planner.commands.portfolio_parts import Part, part_slo, splits
from planner.spec.portfolio import Limits, Quota
from tests.commands.portfolios import CATALOG, made, targets, write_slo
from tests.commands.small_plans import slo, space

NODES = {
    "model": "meta-llama/Llama-3.3-70B-Instruct",
    "traffic": {
        "rate_per_s": 70.0,
        "prompt_tokens": {"p50": 900.0, "p95": 3200.0},
        "output_tokens": {"p50": 250.0, "p95": 700.0},
        "prefix_hit_rate": 0.3,
        "max_context_tokens": 32768,
    },
    "slo": targets(800.0, 40.0),
    "purchase": {
        "accelerators": ("h100-sxm", "b200-sxm"),
        "providers": ("aws",),
        "allow_flagged_prices": True,
    },
}
"""Whole servers only: one large and one small one carry what two large ones would idle at."""
WIDER = space(
    weights=("bf16", "fp8"), kv=("bf16", "fp8"), tensor_parallel=(1, 2, 4, 8),
    max_num_seqs=(32, 128, 512), token_budget=(8192,),
    replicas={"max": 256, "spread": (1.0, 1.5, 2.0)},
    conditions=("replica_within_node",),
)  # fmt: skip


def by_single_plans(part: Part) -> dict[str, float]:
    """The least that each accelerator costs for a part of the traffic, by plans of their own."""
    found = {}
    for chip in NODES["purchase"]["accelerators"]:
        whole = slo(**NODES | {"purchase": NODES["purchase"] | {"accelerators": (chip,)}})
        asked = whole if part == Part() else part_slo(whole, part)
        record = plan(asked, catalog=CATALOG, space=WIDER, prove=True, verify=False)
        found[chip] = min((o.money.usd_per_hour for o in record.options), default=np.inf)
    return found


def test_a_fleet_is_shown_where_it_beats_every_single_offer(tmp_path):
    record = made([write_slo(tmp_path, "nodes", **NODES)], space=WIDER, fleets=True)
    (one,) = record.plans
    single = min(by_single_plans(Part()).values())
    pairs = {}
    for share in (0.25, 0.5, 0.75):
        first, second = by_single_plans(Part(share)), by_single_plans(Part(1 - share))
        for a, b in itertools.permutations(first, 2):
            pairs[share, a, b] = first[a] + second[b]
    best = min(pairs.values())
    assert best < single
    assert one.chosen.usd_per_hour == pytest.approx(best, rel=1e-5)
    assert one.fleets[0].usd_per_hour == pytest.approx(best, rel=1e-5)
    a, b = one.chosen.parts
    assert a.share + b.share == 1.0
    assert a.option.accelerator != b.option.accelerator
    assert one.chosen.gpus == a.option.gpus + b.option.gpus
    for fleet in one.fleets:
        parts = fleet.parts
        assert fleet.usd_per_hour < single
        assert fleet.ttft_p95_ms == max(part.option.ttft.p95_ms for part in parts)
        assert fleet.tpot_p95_ms == max(part.option.tpot.p95_ms for part in parts)
        loss = sum(part.share * part.option.quality.p90 for part in parts)
        assert fleet.quality_loss_p90_percent == pytest.approx(loss, rel=1e-5)
        for part in parts:
            assert part.option.rate_per_s == pytest.approx(70.0 * part.share)
            assert all(target.holds for target in part.option.targets)


def test_a_fleet_is_chosen_where_a_quota_leaves_no_single_offer(tmp_path):
    file = write_slo(tmp_path, "nodes", **NODES)
    single = made([file], Limits(quotas=(Quota(accelerator="b200-sxm", gpus=8),)), space=WIDER)
    limits = Limits(quotas=(Quota(accelerator="b200-sxm", gpus=8),
                            Quota(accelerator="h100-sxm", gpus=8)))  # fmt: skip
    alone_, fleet = (made([file], limits, space=WIDER, fleets=f) for f in (False, True))
    assert single.served == 1
    assert alone_.served == 0
    assert alone_.plans[0].would_do
    assert fleet.served == 1
    assert len(fleet.plans[0].chosen.parts) == 2
    assert [use.used for use in fleet.uses] == [8, 8]


def test_no_fleet_of_a_plan_exceeds_its_own_limits(tmp_path):
    limited = NODES | {"purchase": NODES["purchase"] | {"max_gpus": 8}}
    record = made([write_slo(tmp_path, "nodes", **limited)], space=WIDER, fleets=True)
    assert record.plans[0].fleets == ()


def test_kinds_of_request_are_divided_in_every_way():
    kinds = [
        {"name": name, "share": share, "prompt_tokens": 100.0, "output_tokens": 50.0}
        for name, share in (("a", 0.5), ("b", 0.3), ("c", 0.2))
    ]
    asked = slo(traffic={"rate_per_s": 10.0, "burstiness": 3.0, "classes": tuple(kinds)})
    by_kind = [pair for pair in splits(asked) if pair[0].kinds]
    assert [pair[0].kinds for pair in by_kind] == [("a",), ("a", "b"), ("a", "c")]
    assert [pair[1].kinds for pair in by_kind] == [("b", "c"), ("c",), ("b",)]
    part = part_slo(asked, by_kind[0][1])
    assert part.traffic.rate_per_s == 5.0
    # Half of a stream with squared CV 3, by chance: 1 + 0.5 (3 - 1).
    assert part.traffic.burstiness == 2.0
    assert [(k.name, k.share) for k in part.traffic.classes] == [("b", 0.6), ("c", 0.4)]


def test_kinds_of_request_may_each_have_a_deployment(tmp_path):
    kinds = (
        {"name": "chat", "share": 0.8, "prompt_tokens": 200.0, "output_tokens": 150.0,
         "slo": {"ttft_p95_ms": 400.0, "tpot_p95_ms": 40.0}},
        {"name": "files", "share": 0.2, "prompt_tokens": 12000.0, "output_tokens": 200.0,
         "slo": {"ttft_p95_ms": 6000.0}},
    )  # fmt: skip
    changes = {"traffic": {"rate_per_s": 30.0, "classes": kinds}, "slo": {"tpot_p95_ms": 100.0}}
    record = made([write_slo(tmp_path, "kinds", **changes)], fleets=True)
    (one,) = record.plans
    assert one.chosen is not None
    for fleet in one.fleets:
        for part in fleet.parts:
            for target in part.option.targets:
                assert target.holds
                kind, _, _ = target.key.partition(".")
                assert not part.kinds or kind in part.kinds


def test_a_batch_job_costs_what_it_runs_and_is_not_divided(tmp_path):
    job = {
        "offline": {"requests": 200_000, "deadline_hours": 10.0},
        "prompt_tokens": 800.0,
        "output_tokens": 200.0,
    }
    file = write_slo(tmp_path, "job", traffic=job, slo={})
    (one,) = made([file], fleets=True).plans
    (part,) = one.chosen.parts
    assert one.fleets == ()
    assert one.chosen.mean_usd_per_hour == pytest.approx(
        part.option.money.usd_per_job / 10.0, rel=1e-4
    )
