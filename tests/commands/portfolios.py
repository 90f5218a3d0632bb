"""Portfolios of small plans, as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.catalog import load_catalog
from planner.commands.plan import plan
from planner.commands.portfolio import portfolio
from planner.files import dump_yaml
from planner.spec.portfolio import Limits, PortfolioRecord
from planner.spec.record import PlanRecord
from tests.commands.small_plans import slo, space

CATALOG = load_catalog()
SPACE = space()

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-32B",
    "meta-llama/Llama-3.3-70B-Instruct",
    "mistralai/Mistral-7B-v0.3",
    "google/gemma-2-9b",
    "google/gemma-2-27b",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-14B",
    "microsoft/phi-4",
    "mistralai/Mistral-Small-24B-Base-2501",
)


def made(files: list[Path], limits: Limits | None = None, **options: Any) -> PortfolioRecord:
    """The portfolio of these files on the small space."""
    options = {"catalog": CATALOG, "space": SPACE, "prove": True} | options
    return portfolio(files, limits, **options)


def alone(**changes: Any) -> PlanRecord:
    """The plan that a file of these changes gets by itself."""
    return plan(slo(**changes), catalog=CATALOG, space=SPACE, prove=True, verify=False)


def write_slo(folder: Path, name: str, **changes: Any) -> Path:
    """Write a small plan's slo.yaml with some keys changed."""
    asked = slo(**changes).model_dump(mode="json", by_alias=True, exclude_unset=True)
    path = folder / f"{name}.yaml"
    path.write_text(dump_yaml(asked), encoding="utf-8")
    return path


def traffic(rate: float, **changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "rate_per_s": rate,
        "prompt_tokens": {"p50": 500.0, "p95": 2000.0},
        "output_tokens": {"p50": 150.0, "p95": 400.0},
    }
    return base | changes


def targets(ttft: float, tpot: float, **changes: float) -> dict[str, float]:
    return {"ttft_p95_ms": ttft, "tpot_p95_ms": tpot, **changes}


def stated(files: Mapping[Path, bytes]) -> dict[str, bytes]:
    """Contents by file name, whatever the folder."""
    return {path.name: data for path, data in files.items()}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
