"""A small plan on the shipped catalog, quick enough to search again and again."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from planner.catalog import Catalog
from planner.commands.plan import plan
from planner.spec.offer import Offer
from planner.spec.record import PlanRecord
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace

CHIPS = ("l40s", "h100-sxm", "a100-sxm-80")


def slo(**changes: Any) -> Slo:
    values: dict[str, Any] = {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "traffic": {
            "rate_per_s": 20.0,
            "prompt_tokens": {"p50": 500.0, "p95": 2000.0},
            "output_tokens": {"p50": 150.0, "p95": 400.0},
        },
        "slo": {"ttft_p95_ms": 1000.0, "tpot_p95_ms": 60.0},
        "purchase": {"accelerators": CHIPS, "allow_flagged_prices": True},
        "engines": ("vllm",),
    }
    return Slo.model_validate(values | changes)


def space(**changes: Any) -> SearchSpace:
    values: dict[str, Any] = {
        "id": "tiny",
        "description": "For tests.",
        "weights": ("bf16", "fp8"),
        "kv": ("bf16",),
        "tensor_parallel": (1, 2),
        "pipeline_parallel": (1,),
        "data_parallel": (1,),
        "speculation": ({"method": "off"},),
        "max_num_seqs": (64, 256),
        "token_budget": (2048,),
        "replicas": {"max": 64, "spread": (1.0, 1.5)},
        "conditions": (),
    }
    return SearchSpace.model_validate(values | changes)


def small_plan(catalog: Catalog, asked: Slo | None = None) -> PlanRecord:
    return plan(asked or slo(), catalog=catalog, space=space(), prove=True, verify=False)


def price_rows(offers: Iterable[Offer], seed: int, spread: float) -> list[dict[str, Any]]:
    """Rows that move every list price by up to `spread`, either way."""
    draw = random.Random(seed)
    return [
        {
            **dict(zip(("provider", "instance_type", "region", "term"), offer.key, strict=True)),
            "list_price_per_hour": round(
                offer.list_price_per_hour * draw.uniform(1 - spread, 1 + spread), 4
            ),
            "seen": offer.seen,
        }
        for offer in offers
    ]


def write_prices(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    rows = list(rows)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path
