"""Problems of the tests: the examples, and small random ones to compare with enumeration."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from planner.catalog import Catalog, load_catalog
from planner.catalog.models import find_architecture
from planner.cost import allowed_offers
from planner.files import read_yaml
from planner.search.problem import Problem
from planner.search.setup import Setting, reach_of, setting, with_reach
from planner.spec.load import load
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace

ROOT = Path(__file__).parents[2]
MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen3-30B-A3B",
    "mistralai/Mixtral-8x7B-v0.1",
    "deepseek-ai/DeepSeek-V3",
    "openai/gpt-oss-20b",
)


@lru_cache(maxsize=1)
def catalog() -> Catalog:
    return load_catalog()


def some(draw: random.Random, choices, most: int):
    return tuple(sorted(draw.sample(choices, draw.randint(1, most))))


def random_slo(draw: random.Random) -> Slo:
    chips = sorted({offer.accelerator for offer in catalog().offers})
    prompt, output = draw.choice([200, 900, 4000]), draw.choice([80, 250, 1000])
    return Slo.model_validate(
        {
            "model": draw.choice(MODELS),
            "task": draw.choice(["chat", "rag", "code"]),
            "traffic": {
                "rate_per_s": draw.choice([0.5, 3.0, 20.0]),
                "prompt_tokens": {"p50": prompt, "p95": prompt * draw.choice([1, 3])},
                "output_tokens": {"p50": output, "p95": output * draw.choice([1, 2])},
                "burstiness": draw.choice([1.0, 4.0]),
            },
            "slo": {
                "ttft_p95_ms": draw.choice([500.0, 2000.0, 8000.0]),
                "tpot_p95_ms": draw.choice([20.0, 50.0, 150.0]),
            },
            "purchase": {
                "accelerators": tuple(draw.sample(chips, 4)),
                "terms": ("on_demand", "spot"),
                "allow_unvalidated": True,
            },
        }
    )


def random_space(draw: random.Random) -> SearchSpace:
    return SearchSpace.model_validate(
        {
            "id": "random",
            "description": "A small random space.",
            "weights": ("all",) if draw.random() < 0.5 else ("bf16", "fp8", "int4"),
            "kv": some(draw, ["bf16", "fp8", "int8"], 2),
            "tensor_parallel": some(draw, [1, 2, 4, 8], 3),
            "pipeline_parallel": some(draw, [1, 2, 4], 2),
            "data_parallel": some(draw, [1, 2, 4], 2),
            "speculation": (
                {"method": "off"},
                {"method": "ngram", "draft_tokens": (3,)},
                {"method": "mtp", "draft_tokens": (1, 3)},
            ),
            "max_num_seqs": some(draw, [8, 32, 128, 512], 3),
            "token_budget": some(draw, [1024, 4096, 16384], 2),
            "replicas": {"max": 200, "spread": (1.0, 1.5, 2.5)},
            "conditions": ("tp_divides_node", "dp_only_moe_or_mla") if draw.random() < 0.5 else (),
        }
    )


def random_setting(seed: int) -> tuple[Slo, Setting]:
    draw = random.Random(seed)
    slo, space = random_slo(draw), random_space(draw)
    offers = allowed_offers(catalog(), slo.purchase, catalog().newest_seen)
    return slo, setting(slo, catalog(), space, find_architecture(slo.model), offers)


def example_problem(example: str, space: str) -> Problem:
    """An example on a shipped space."""
    return asked_problem(load(read_yaml(ROOT / "examples" / f"{example}.yaml"), Slo), space)


def asked_problem(slo: Slo, space: str) -> Problem:
    """A problem on a shipped space."""
    explored = load(read_yaml(ROOT / "search_spaces" / f"{space}.yaml"), SearchSpace)
    offers = allowed_offers(catalog(), slo.purchase, catalog().newest_seen)
    made = setting(slo, catalog(), explored, find_architecture(slo.model), offers)
    return with_reach(made.problem, reach_of(slo, 1.5))


def random_problem(seed: int) -> Problem:
    slo, made = random_setting(seed)
    return with_reach(made.problem, reach_of(slo, 1.5))


def vectors(entries) -> set[tuple[float, ...]]:
    """Objective vectors of an archive, with their hardware class."""
    both = zip(entries.hardware.tolist(), entries.points.tolist(), strict=True)
    return {(float(hardware), *point) for hardware, point in both}


def offline(problem: Problem, requests: float, deadline_s: float) -> Problem:
    from planner.search.problem import Job

    tables = problem.tables
    margins = 1.0 + 0.1 * np.arange(len(tables.hardware) * len(tables.stacks))
    margins = margins.reshape(len(tables.hardware), len(tables.stacks))
    job = Job(requests, deadline_s, margins)
    demand = replace(problem.demand, job=job, rate=requests / deadline_s)
    return replace(problem, demand=demand, reach=replace(problem.reach, run=deadline_s))


def everything(table) -> np.ndarray:
    return np.arange(len(table), dtype=np.intp)
