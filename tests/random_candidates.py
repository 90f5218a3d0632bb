"""Random deployments of the real catalog, for tests that need many of all kinds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.candidates.choices import Choices, Tables, build
from planner.candidates.efficiency import Stack, global_parameters
from planner.candidates.hardware import hardware_class
from planner.catalog import load_catalog
from planner.catalog.models import find_architecture
from planner.model.arrays import Candidates, Floats, Parameters
from planner.model.memory import kv_pool_bytes

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-30B-A3B",
    "openai/gpt-oss-120b",
    "deepseek-ai/DeepSeek-V3",
)
FIRST_MOE = 3
CHIPS = ("h100-sxm", "a100-sxm-80", "h200-sxm", "b200-sxm", "l40s", "mi300x")
ENGINES = ("vllm", "tensorrt-llm", "sglang")
LEAST_POOL = 2e9


@dataclass(frozen=True)
class Kinds:
    """Which deployments to draw: engines by number, draft tokens, replicas."""

    engines: tuple[int, ...] = (0, 0, 1)
    draft_tokens: tuple[float, ...] = (0, 0, 0, 3)
    replicas: tuple[float, ...] = (1,)


@lru_cache(maxsize=1)
def tables() -> Tables:
    catalog = load_catalog()
    return Tables(
        catalog.efficiency,
        tuple(find_architecture(name) for name in MODELS),
        tuple(hardware_class(catalog.accelerator(name), 8) for name in CHIPS),
        tuple(Stack(catalog.generation(name)) for name in ENGINES),
        catalog.precisions.weights,
        catalog.precisions.kv,
    )


def parameters() -> Parameters:
    return global_parameters(tables().efficiency)


def random_candidates(count: int, seed: int, kinds: Kinds = Kinds()) -> Candidates:
    """Deployments whose weights fit with room for KV."""
    rng = np.random.default_rng(seed)
    drawn = 3 * count + 30

    def pick(*values: float) -> Floats:
        return rng.choice(np.array(values, dtype=float), drawn)

    model = rng.integers(0, len(MODELS), drawn)
    tp = pick(1, 2, 4, 8)
    nothing = np.zeros(drawn)
    made = build(
        tables(),
        Choices(
            architecture=model,
            hardware=rng.integers(0, len(CHIPS), drawn),
            stack=pick(*kinds.engines).astype(int),
            weights=pick(0, 1, 1, 1).astype(int),
            kv=pick(0, 0, 1).astype(int),
            method=np.zeros(drawn, dtype=int),
            tp=tp,
            pp=pick(1, 1, 1, 2),
            dp=np.where((model >= FIRST_MOE) & (tp < 4), pick(1, 1, 2), 1.0),
            replicas=pick(*kinds.replicas),
            max_sequences=pick(16, 32, 64, 128, 256, 512),
            token_budget=pick(1024, 2048, 4096, 8192, 16384),
            draft_tokens=pick(*kinds.draft_tokens),
            accept_first=np.full(drawn, 0.7),
            accept_decay=np.full(drawn, 0.9),
            poll_steps=nothing,
            batch_wait_steps=nothing,
        ),
    )
    return made.take(np.flatnonzero(kv_pool_bytes(made) > LEAST_POOL)[:count])
