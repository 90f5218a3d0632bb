"""A small plan made by hand: two options whose money can be checked on paper."""

from __future__ import annotations

from typing import Any

from planner.select.firmness import (
    Bar,
    BreakEven,
    Effect,
    Firmness,
    Flip,
    PickFirmness,
    RateFlip,
    Regret,
)
from planner.spec.archive import ClassArchive, Hardware, Margin, Rows
from planner.spec.money import Money, Price
from planner.spec.offer import Offer
from planner.spec.option import Binding, Latency, MemoryUse, Option, QualityLoss, TargetResult
from planner.spec.record import Inputs, PlanRecord, SearchReport
from planner.spec.trace import TraceSummary
from planner.spec.verification import Compared, Trial, Verification


def offer(**changes: Any) -> Offer:
    values: dict[str, Any] = {
        "provider": "acme",
        "instance_type": "a.1x",
        "accelerator": "acme-x1",
        "gpus": 1,
        "region": "north",
        "term": "on_demand",
        "list_price_per_hour": 4.0,
        "seen": "2026-09-01",
        "seen_basis": "price page",
        "source": "acme price list",
    }
    return Offer(**(values | changes))


def price(row: Offer, number: int = 0) -> Price:
    return Price(
        offer=number,
        provider=row.provider,
        instance_type=row.instance_type,
        region=row.region,
        term=row.term,
        usd_per_instance_hour=row.price_per_hour,
        list_price_per_hour=row.list_price_per_hour,
        contracted_price_per_hour=row.contracted_price_per_hour,
        currency=row.currency,
        seen=row.seen,
        seen_basis=row.seen_basis,
        source=row.source,
        flag=row.flag,
    )


def trace(**changes: Any) -> TraceSummary:
    values: dict[str, Any] = {
        "file": "a.csv",
        "kind": "plain",
        "requests": 4200,
        "duration_s": 600.0,
        "mean_rate_per_s": 7.0,
        "peak_rate_per_s": 12.0,
        "window_s": 60.0,
        "dispersion_10s": 1.0,
        "dispersion_60s": 9.0,
    }
    return TraceSummary(**(values | changes))


def with_trace(made: PlanRecord, **changes: Any) -> PlanRecord:
    """Return a plan as if it had been made for a trace."""
    inputs = made.inputs.model_copy(update={"trace": trace(**changes)})
    return made.model_copy(update={"inputs": inputs})


def latency(p95_ms: float) -> Latency:
    return Latency(
        p50_ms=p95_ms / 2, p95_ms=p95_ms, p50_upper_ms=p95_ms * 0.6, p95_upper_ms=p95_ms * 1.2
    )


def money(row: Price, usd_per_hour: float, **amounts: float) -> Money:
    """$4 an hour and 1,500 tokens/s are $0.741 a million; at 30 % of them $2.47."""
    values: dict[str, Any] = {
        "usd_per_hour": usd_per_hour,
        "usd_per_mtok_full": 0.740741,
        "usd_per_mtok_output": 2.46914,
        "usd_per_mtok_total": 0.493827,
        "mean_utilization": 0.3,
        "usd_per_job": None,
        "price": row,
    }
    return Money(**(values | amounts))


def option(**changes: Any) -> Option:
    values: dict[str, Any] = {
        "id": "o-00000001",
        "hardware": "acme-x1 x1 nvlink 0",
        "accelerator": "acme-x1",
        "accelerator_name": "Acme X1",
        "archive_row": 0,
        "provider": "acme",
        "region": "north",
        "instances": 1,
        "gpus": 1,
        "gpus_per_replica": 1,
        "engine": "vllm",
        "generation": "vllm-v1",
        "weights": "fp8",
        "kv": "bf16",
        "tp": 1,
        "pp": 1,
        "dp": 1,
        "replicas": 1,
        "spare_replicas": 0,
        "max_num_seqs": 64,
        "token_budget": 2048,
        "speculation": "off",
        "draft_tokens": 0,
        "acceptance": None,
        "ttft": latency(400.0),
        "tpot": latency(20.0),
        "e2e": latency(5000.0),
        "bound_tpot_ms": 5.0,
        "targets": (
            TargetResult(key="ttft_p95_ms", limit=800, predicted=400, upper=480, holds=True),
        ),
        "utilization": 0.5,
        "wait_probability": 0.001,
        "slots": 64.0,
        "rate_per_s": 3.0,
        "output_tokens_per_s": 750.0,
        "capacity_tokens_per_s": 1500.0,
        "run_hours": None,
        "memory": MemoryUse(
            device_gib=80,
            weights_gib=20,
            kv_pool_gib=50,
            reserve_gib=4,
            unused_gib=6,
            kv_bytes_per_token=131072,
            sequences=100,
        ),
        "money": money(price(offer()), 4.0),
        "quality": QualityLoss(median=0.2, p90=0.9, grade="good", basis="87 results", rows=87),
        "power_w": 700.0,
        "evidence": "validated",
        "flags": (),
        "binding": Binding(limit="headroom", use=0.625, resource="memory"),
    }
    return Option(**(values | changes))


def rows(count: int = 2, **changes: Any) -> Rows:
    values: dict[str, Any] = {
        "engine": "vllm",
        "generation": "vllm-v1",
        "weights": "fp8",
        "kv": "bf16",
        "tp": 1,
        "pp": 1,
        "dp": 1,
        "speculation": "off",
        "draft_tokens": 0,
        "accept_first": 0.0,
        "accept_decay": 1.0,
        "max_num_seqs": 64,
        "token_budget": 2048,
        "replicas": 1,
        "instances": 1,
        "gpus": 1,
        "ttft_p50_ms": 200.0,
        "ttft_p95_ms": 400.0,
        "tpot_p50_ms": 10.0,
        "tpot_p95_ms": 20.0,
        "e2e_p50_ms": 2500.0,
        "e2e_p95_ms": 5000.0,
        "output_tokens_per_s": 750.0,
        "capacity_tokens_per_s": 1500.0,
        "utilization": 0.5,
        "wait_probability": 0.001,
        "slots": 64.0,
        "run_hours": None,
        "loss_objective": 1.0,
        "loss_p90": 0.9,
        "power_w": 700.0,
    }
    columns = {name: (value,) * count for name, value in values.items()}
    return Rows(**(columns | changes), further_ms={})


def record(**changes: Any) -> PlanRecord:
    second = offer(instance_type="a.2x", gpus=2, list_price_per_hour=9.0)
    dearer = option(
        id="o-00000002",
        archive_row=1,
        instances=1,
        gpus=2,
        tp=2,
        gpus_per_replica=2,
        ttft=latency(200.0),
        tpot=latency(8.0),
        money=money(price(second, 1), 9.0, usd_per_mtok_output=5.55556, usd_per_mtok_total=1.11111),
    )
    hardware = Hardware(
        id="acme-x1 x1 nvlink 0",
        accelerator="acme-x1",
        name="Acme X1",
        gpus_per_instance=1,
        link="nvlink",
        link_domain=8,
        link_gb_per_s=450,
        internode_gb_per_s=0,
        memory_gib=80,
        assumed=("tdp_w",),
    )
    margin = Margin(generation="vllm-v1", ttft=1.2, tpot=1.2, e2e=1.2, evidence="validated")
    values: dict[str, Any] = {
        "planner_version": "0.1.0",
        "inputs": Inputs(
            slo={
                "model": "acme/tiny",
                "task": "chat",
                "traffic": {"rate_per_s": 3.0, "prompt_tokens": 1000, "output_tokens": 250},
                "slo": {"ttft_p95_ms": 800, "confidence": 0.8},
            },
            catalog_digest="0" * 64,
            space={},
            seed=0,
            as_of="2026-09-06",
        ),
        "offers": (offer(), second),
        "archive": (ClassArchive(hardware=hardware, margins=(margin,), rows=rows(tp=(1, 2))),),
        "options": (option(), dearer),
        "picks": {"cheapest": "o-00000001", "lowest_tpot": "o-00000002"},
        "shown": (),
        "untrusted": (),
        "misses": (),
        "assumptions": ("Acme X1: assumed, not verified: tdp_w.",),
        "search": SearchReport(
            mode="search",
            shapes=10,
            candidates=20,
            scored=20,
            trials=5,
            proven=True,
            hypervolume=0.5,
            stopped="fixed point",
        ),
    }
    return PlanRecord(**(values | changes))


def check(checked: str, chosen: str, **changes: Any) -> Verification:
    """A check that went from one size to another: the formula's 2 replicas hold, 1 does, too."""
    standard = {
        "ttft_p50_ms": 200.0,
        "ttft_p95_ms": 400.0,
        "tpot_p50_ms": 10.0,
        "tpot_p95_ms": 20.0,
        "e2e_p50_ms": 2500.0,
        "e2e_p95_ms": 5000.0,
    }
    simulated = standard | changes.pop("simulated", {})
    values: dict[str, Any] = {
        "picks": ("cheapest",),
        "checked": checked,
        "option": chosen,
        "holds": True,
        "trials": (
            Trial(replicas=2, max_num_seqs=64, holds=True),
            Trial(replicas=1, max_num_seqs=64, holds=True),
        ),
        "latencies": tuple(
            Compared(key=key, formula_ms=value, simulated_ms=simulated[key], upper_ms=6000.0)
            for key, value in standard.items()
        ),
        "utilization": 0.5,
        "seeds": (0, 1),
        "requests": 1500,
        "replicas_simulated": 1,
    }
    return Verification(**(values | changes))


def firmness() -> Firmness:
    """How firm the first option of ``record()`` is, typed by hand."""
    now = Effect(usd_per_mtok_output=2.46914, usd_per_hour=4.0, use=0.625)
    dearer = Effect(usd_per_mtok_output=2.96296, usd_per_hour=4.8, use=0.625)
    cheaper = Effect(usd_per_mtok_output=1.97531, usd_per_hour=3.2, use=0.625)
    pick = PickFirmness(
        option="o-00000001",
        now=now,
        bars=(Bar("price", "-20 %", "+20 %", cheaper, dearer),),
        flip=Flip(9.0, 1.25, record().options[1]),
        highest_rate=4.5,
        fewer_rate=None,
        regrets=(Regret("traffic +20 %", holds=True, usd_per_hour=0.0, best="o-00000001"),),
        break_evens=(BreakEven(offer(term="reserved_1y", list_price_per_hour=2.0), offer(), 0.5),),
    )
    return Firmness(0.2, (pick,), (RateFlip(4.5, "o-00000002"),))
