"""Archives typed by hand, for the tests of selection."""

from __future__ import annotations

from planner.cost import Quotes
from planner.spec.archive import ClassArchive, Hardware, Margin, Rows
from planner.spec.offer import Offer
from planner.spec.slo import Slo

DEFAULTS = {
    "engine": "vllm",
    "generation": "vllm-v1",
    "weights": "bf16",
    "kv": "bf16",
    "tp": 8,
    "pp": 1,
    "dp": 1,
    "speculation": "off",
    "draft_tokens": 0,
    "accept_first": 0.0,
    "accept_decay": 1.0,
    "max_num_seqs": 64,
    "token_budget": 8192,
    "replicas": 1,
    "instances": 1,
    "gpus": 8,
    "ttft_p50_ms": 100.0,
    "ttft_p95_ms": 200.0,
    "tpot_p50_ms": 10.0,
    "tpot_p95_ms": 20.0,
    "e2e_p50_ms": 2000.0,
    "e2e_p95_ms": 6000.0,
    "output_tokens_per_s": 1000.0,
    "capacity_tokens_per_s": 2000.0,
    "utilization": 0.5,
    "wait_probability": 0.0,
    "slots": 64.0,
    "run_hours": None,
    "loss_objective": 0.0,
    "loss_p90": 0.0,
    "power_w": 5600.0,
}


def archive(accelerator: str, *rows: dict, evidence="validated", margin=1.0) -> ClassArchive:
    """A class of 8-GPU instances whose rows differ from DEFAULTS as given."""
    columns = {
        name: tuple(row.get(name, default) for row in rows) for name, default in DEFAULTS.items()
    }
    return ClassArchive(
        hardware=Hardware(
            id=f"{accelerator} x8 nvlink 50",
            accelerator=accelerator,
            name=accelerator.upper(),
            gpus_per_instance=8,
            link="nvlink",
            link_domain=8,
            link_gb_per_s=450.0,
            internode_gb_per_s=50.0,
            memory_gib=80.0,
        ),
        margins=(
            Margin(generation="vllm-v1", ttft=margin, tpot=margin, e2e=margin, evidence=evidence),
        ),
        rows=Rows(**columns, further_ms={}),
    )


def quotes(archives, *prices: float, flags=()) -> dict[str, Quotes]:
    """One offer a class, at these prices per instance-hour; flags by position."""
    made = {}
    for i, (one, price) in enumerate(zip(archives, prices, strict=True)):
        offer = Offer(
            provider="acme",
            instance_type="x8",
            accelerator=one.hardware.accelerator,
            gpus=8,
            region="here",
            term="on_demand",
            list_price_per_hour=price,
            seen="2026",
            seen_basis="by hand",
            source="this test",
            flag=dict(flags).get(i, ""),
        )
        made[one.hardware.id] = Quotes((offer,), (price,))
    return made


def slo(**changes) -> Slo:
    base = {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "traffic": {"rate_per_s": 10.0, "prompt_tokens": 900.0, "output_tokens": 100.0},
        "slo": {"ttft_p95_ms": 1000.0, "tpot_p95_ms": 50.0},
    }
    return Slo.model_validate({**base, **changes})
