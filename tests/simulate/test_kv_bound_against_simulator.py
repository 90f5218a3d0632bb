"""Capacity and recomputation where KV memory limits the batch, against the step simulator."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from planner.model.arrays import Candidates
from planner.model.memory import kv_pool_bytes
from planner.model.queueing import capacity
from planner.model.queueing.resident import resident
from planner.model.queueing.saturation import saturation
from planner.model.queueing.service import service
from planner.simulate import deployment, random_arrivals, simulate
from tests.model.queueing_candidates import with_layout
from tests.random_candidates import Kinds, parameters, random_candidates
from tests.simulate.test_formula_against_simulator import Lengths, Scenario, capacity_ratio

TURNS = 15
"""Times that all slots turn over, at least: sequences fill memory only once they have grown."""
LEAST = 6_000


@dataclass(frozen=True)
class Bound:
    """A scenario, and the requests that it takes to measure it."""

    scenario: Scenario
    requests: int

    @property
    def ratio(self) -> float:
        """Predicted capacity / simulated one."""
        return capacity_ratio(self.scenario, self.requests)


def kv_bound(count: int, seed: int, engine: int) -> list[Bound]:
    """Random servers for whose batch limit there is hardly or not enough KV memory."""
    rng = np.random.default_rng(seed)
    rows = random_candidates(8 * count, seed, Kinds(engines=(engine,)))
    rows = with_layout(rows, max_sequences=rng.choice([32, 64, 128, 256, 512], len(rows)))
    found: list[Bound] = []
    for number in range(len(rows)):
        prompt = Lengths(
            np.exp(rng.uniform(np.log(32), np.log(16_000))), rng.choice([0, 0.5, 1, 1.5])
        )
        output = Lengths(
            np.exp(rng.uniform(np.log(32), np.log(4_000))), rng.choice([0, 0.5, 1, 1.3])
        )
        output = replace(output, mean=max(output.mean, 16 * (1 + output.cv**2)))
        one = rows.take(np.array([number]))
        s = Scenario(one, prompt, output, 1.0, 1.0, seed=int(rng.integers(1 << 30)))
        room = resident(service(one, parameters(), s.workload))
        if room.held[0] >= 8 and room.memory[0] < 1.3 * room.limit[0] and len(found) < count:
            found.append(Bound(s, int(max(LEAST, TURNS * room.limit[0]))))
    return found


@pytest.mark.parametrize(
    ("engine", "low", "high"),
    [(0, 0.96, 1.03), (1, 0.96, 1.04), (2, 0.95, 1.04)],
    ids=["vllm", "tensorrt-llm", "sglang"],
)
def test_capacity_where_kv_memory_limits_the_batch(engine, low, high):
    ratio = [bound.ratio for bound in kv_bound(80, 31, engine)]
    assert len(ratio) == 80
    least, median, most = np.quantile(ratio, [0.05, 0.5, 0.95])
    assert least >= low
    assert median == pytest.approx(1, abs=0.005)
    assert most <= high


@pytest.mark.parametrize("engine", [0, 2], ids=["vllm", "sglang"])
def test_prompts_are_computed_again_as_often_as_the_simulator_preempts(engine):
    ratio = []
    for bound in kv_bound(100, 32, engine):
        s = bound.scenario
        w, p = s.workload, parameters()
        full = saturation(service(s.candidates, p, w))
        # What was made until then is little beside a prompt, and sequences rarely end together.
        if w.steps_mean < w.prompt_mean and full.prompts[0] < 0.5 and full.rework[0] > 0.02:
            rate = 1.6 * float(capacity(s.candidates, p, w)[0])
            arrivals = random_arrivals(
                rate, bound.requests, s.prompt.quantile, s.output.quantile, seed=s.seed
            )
            run = simulate(deployment(s.candidates, p, w), arrivals, seed=s.seed)
            ratio.append(run.preemptions / bound.requests / full.rework[0])
    assert len(ratio) >= 15
    assert np.median(ratio) == pytest.approx(1, abs=0.1)


def with_memory_for(c: Candidates, sequences: float, s: Scenario) -> Candidates:
    """The same server with KV memory for so many sequences."""
    half = replace(c, chip=replace(c.chip, memory=0.5 * c.chip.memory))
    pool, more = kv_pool_bytes(c), kv_pool_bytes(c) - kv_pool_bytes(half)
    holds = resident(service(c, parameters(), s.workload)).memory
    short = pool * (1.0 - sequences / holds)
    return replace(c, chip=replace(c.chip, memory=c.chip.memory * (1.0 - 0.5 * short / more)))


@pytest.mark.parametrize("limit", [50, 80, 90, 100, 110, 130, 160, 260])
def test_capacity_where_batch_limit_and_kv_memory_run_out_together(limit):
    # Of 100 sequences; up to half a prompt a prompt is computed again, at 80 next to none.
    one = with_layout(random_candidates(1, 4), max_sequences=512)
    # Else an engine sets the more memory aside the larger the batch.
    one = replace(one, engine=replace(one.engine, startup_sequences=np.array([512.0])))
    s = Scenario(one, Lengths(1_000, 0.5), Lengths(600, 0.8), 1.0, 1.0, seed=3)
    small = with_layout(with_memory_for(one, 100.0, s), max_sequences=limit)
    assert capacity_ratio(replace(s, candidates=small), LEAST) == pytest.approx(1, abs=0.02)
