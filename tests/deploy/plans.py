"""Small plans to export, calibrate and verify: one option, changed as a test needs it."""

from __future__ import annotations

import json
from typing import Any, get_origin

from planner.catalog import load_catalog
from planner.spec.archive import Hardware, Rows
from planner.spec.record import PlanRecord

ID = "o-1a2b3c4d"
MODEL = "meta-llama/Llama-3.3-70B-Instruct"
TARGETS = {"ttft_p95_ms": (800.0, 400.0, 560.0), "tpot_p95_ms": (40.0, 22.0, 28.0)}
"""Key -> limit, predicted, with margin."""


def _slo(model: str, traffic: dict[str, Any], targets: dict[str, Any]) -> dict[str, Any]:
    base = {
        "rate_per_s": 12.0,
        "prompt_tokens": {"p50": 900.0, "p95": 3200.0},
        "output_tokens": {"p50": 250.0, "p95": 700.0},
        "burstiness": 1.0,
        "prefix_hit_rate": 0.0,
        "max_context_tokens": 32768,
    }
    return {
        "model": model,
        "traffic": {key: v for key, v in (base | traffic).items() if v is not None},
        "slo": {key: limit for key, (limit, *_) in targets.items()},
    }


def _latency(p50: float, p95: float) -> dict[str, float]:
    return {
        "p50_ms": p50,
        "p95_ms": p95,
        "p50_upper_ms": 1.4 * p50,
        "p95_upper_ms": 1.4 * p95,
    }


def _option(targets: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    price = {
        "offer": 0, "provider": "aws", "instance_type": "p5en.48xlarge", "region": "us-east-1",
        "term": "on_demand", "usd_per_instance_hour": 40.0, "list_price_per_hour": 40.0,
        "contracted_price_per_hour": None, "currency": "USD", "seen": "2026-08",
        "seen_basis": "file date", "source": "made up", "flag": "",
    }  # fmt: skip
    option = {
        "id": ID, "hardware": "h200-sxm x8 nvlink 50", "accelerator": "h200-sxm",
        "accelerator_name": "NVIDIA H200 SXM", "archive_row": 0, "provider": "aws",
        "region": "us-east-1", "instances": 1, "gpus": 8, "gpus_per_replica": 4,
        "engine": "vllm", "generation": "vllm-v1", "weights": "fp8", "kv": "fp8", "tp": 4,
        "pp": 1, "dp": 1, "replicas": 2, "spare_replicas": 0, "max_num_seqs": 128,
        "token_budget": 8192, "speculation": "off", "draft_tokens": 0, "acceptance": None,
        "ttft": _latency(200.0, 400.0), "tpot": _latency(18.0, 22.0),
        "e2e": _latency(5000.0, 14000.0), "bound_tpot_ms": 6.0,
        "targets": [
            {"key": key, "limit": limit, "predicted": predicted, "upper": upper,
             "holds": upper is not None and upper <= limit}
            for key, (limit, predicted, upper) in targets.items()
        ],
        "utilization": 0.7, "wait_probability": 0.01, "slots": 128.0, "rate_per_s": 12.0,
        "output_tokens_per_s": 3600.0, "capacity_tokens_per_s": 5100.0, "run_hours": None,
        "memory": {
            "device_gib": 140.0, "weights_gib": 20.0, "kv_pool_gib": 100.0, "reserve_gib": 6.0,
            "unused_gib": 14.0, "kv_bytes_per_token": 163840.0, "sequences": 300.0,
        },
        "money": {
            "usd_per_hour": 40.0, "usd_per_mtok_output": 5.3, "usd_per_mtok_total": 1.0,
            "usd_per_mtok_full": 2.2, "mean_utilization": 0.41, "usd_per_job": None,
            "price": price,
        },
        "quality": {"median": 0.2, "p90": 0.9, "grade": "good", "basis": "test", "rows": 9},
        "power_w": 5600.0, "evidence": "validated", "flags": [],
        "binding": {"limit": "headroom", "use": 0.9, "resource": "batch"},
    }  # fmt: skip
    price |= changes.pop("price", {})
    made = option | changes
    paid = made["instances"] * price["usd_per_instance_hour"]
    return made | {"money": {**option["money"], "usd_per_hour": paid, "price": price}}


def record(
    *,
    model: str = MODEL,
    traffic: dict[str, Any] | None = None,
    targets: dict[str, Any] | None = None,
    gpus_per_instance: int = 8,
    verification: list[dict[str, Any]] | None = None,
    **changes: Any,
) -> PlanRecord:
    """A plan with one option; `changes` are fields of it, `price` fields of its price row."""
    limits = TARGETS if targets is None else targets
    option = _option(limits, changes)
    hardware = {
        "id": option["hardware"], "accelerator": option["accelerator"],
        "name": option["accelerator_name"], "gpus_per_instance": gpus_per_instance,
        "link": "nvlink", "link_gb_per_s": 450.0, "internode_gb_per_s": 50.0,
        "memory_gib": 140.0,
    }  # fmt: skip
    rows = {
        name: {} if get_origin(field.annotation) is dict else [option.get(name) or 1]
        for name, field in Rows.model_fields.items()
    }
    rows["draft_tokens"] = [option["draft_tokens"]]
    margin = {"generation": option["generation"], "ttft": 1.4, "tpot": 1.4, "e2e": 1.4}
    margins = [margin | {"evidence": option["evidence"]}]
    price = option["money"]["price"]
    sold = ("provider", "instance_type", "region", "term", "seen", "seen_basis", "source")
    offer = {
        **{name: price[name] for name in sold}, "list_price_per_hour": price["list_price_per_hour"],
        "accelerator": option["accelerator"], "gpus": gpus_per_instance,
    }  # fmt: skip
    if "link_domain" in Hardware.model_fields:
        hardware["link_domain"] = 8
    data = {
        "schema_version": 1,
        "planner_version": "0.1.0",
        "inputs": {
            "slo": _slo(model, traffic or {}, limits), "catalog_digest": "c" * 64, "space": {},
            "basis_digest": load_catalog().basis_digest, "seed": 0, "as_of": "2026-11-01",
        },
        "offers": [offer],
        "archive": [{"hardware": hardware, "margins": margins, "rows": rows}],
        "options": [option],
        "picks": {"cheapest": option["id"]},
        "shown": [],
        "untrusted": [],
        "misses": [],
        "assumptions": [],
        "search": {
            "mode": "search", "shapes": 1, "candidates": 1, "scored": 1, "trials": 1,
            "proven": True, "hypervolume": 0.5, "stopped": "fixed point",
        },
        "verification": verification or [],
    }  # fmt: skip
    return PlanRecord.model_validate_json(json.dumps(data))


def stored(path: Any, plan: PlanRecord) -> Any:
    """Write a plan as the program does, and return the path."""
    path.write_text(json.dumps(plan.model_dump(mode="json", by_alias=True)))
    return path
