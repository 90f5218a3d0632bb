"""Do picks hold, and what do they cost too much? A study over random SLOs with other seeds.

``python -m tests.select.random_slos 200 7`` prints the shares for 200 SLOs drawn with seed 7.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median

import numpy as np

from planner.candidates.models import architecture_of
from planner.catalog import Catalog, load_catalog
from planner.commands.plan import plan
from planner.cost import instances_needed, quote
from planner.select.deploy import Scene
from planner.select.resize import Desk, Sized
from planner.select.verification import Effort, Requests, observe
from planner.simulate import deployment
from planner.spec.record import PlanRecord
from planner.spec.slo import Slo

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-32B",
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen3-30B-A3B",
)
CHIPS = ("h100-sxm", "h200-sxm", "b200-sxm", "l40s", "a100-sxm-80")
OTHER_SEED = 50_000
THOROUGH = Effort(measured=6000, servers=64)
UNVERIFIED = 3
"""Rows of a front that are simulated besides."""


@lru_cache(maxsize=1)
def catalog() -> Catalog:
    return load_catalog()


def random_slo(draw: random.Random) -> Slo:
    prompt, output = draw.choice([150, 500, 1500, 4000]), draw.choice([30, 150, 400])
    return Slo.model_validate(
        {
            "model": draw.choice(MODELS),
            "traffic": {
                "rate_per_s": 10 ** draw.uniform(-0.3, 2.4),
                "prompt_tokens": {"p50": prompt, "p95": prompt * draw.choice([1, 2, 4])},
                "output_tokens": {"p50": output, "p95": output * draw.choice([1, 2, 4])},
            },
            "slo": {
                "ttft_p95_ms": draw.choice([300, 800, 2500]),
                "tpot_p95_ms": draw.choice([15, 30, 60]),
                "confidence": 0.5,
            },
            "purchase": {
                "accelerators": tuple(draw.sample(CHIPS, 2)),
                "allow_unvalidated": True,
            },
        }
    )


@dataclass(frozen=True)
class Verdict:
    """One option under other seeds.

    Attributes:
        replicas: Of the option.
        holds: Whether every simulated percentile is within its target.
        excess: Its instances over those of the fewest replicas of its shape that hold; nan = the
            option does not hold or is not sized for money.
        verified: Whether the plan had simulated it.
        name: For the reader.
    """

    replicas: int
    holds: bool
    excess: float
    verified: bool
    name: str


def study(count: int, seed: int) -> Iterator[Verdict]:
    """Yield verdicts on the cheapest picks, and on some unverified rows of each front."""
    draw = random.Random(seed)
    for number in range(count):
        slo = random_slo(draw)
        record = plan(slo, catalog=catalog(), space="quick")
        if not record.options:
            continue
        yield _judge(record, slo, record.picks["cheapest"], OTHER_SEED + number)
        fresh = plan(slo, catalog=catalog(), space="quick", verify=False)
        for option in draw.sample(fresh.options, min(UNVERIFIED, len(fresh.options))):
            yield replace(
                _judge(fresh, slo, option.id, OTHER_SEED + number, scan=False), verified=False
            )


def _judge(record: PlanRecord, slo: Slo, identity: str, seed: int, *, scan: bool = True) -> Verdict:
    option = next(o for o in record.options if o.id == identity)
    place = [a.hardware.id for a in record.archive].index(option.hardware)
    scene = Scene(catalog(), architecture_of(slo.model), record.archive)
    offers = record.archive[place].hardware
    quotes = {offers.id: quote(catalog(), record.offers)}
    desk = Desk(scene, quotes, slo, (16, 32, 64, 128, 256, 512), seed)
    sized = Sized(desk, scene, place, option.archive_row, ())
    requests = Requests(slo, seed)

    def holds(replicas: int) -> bool:
        fleet = deployment(sized.resized(replicas), scene.parameters, desk.workload)
        in_flight = (1.3 * float(sized.state(replicas).batch[0]) + 1.0) * fleet.servers
        seen = observe(fleet, requests, sized.wanted, in_flight, THOROUGH).seen
        return all(seen[want.key].value <= want.limit for want in sized.wanted)

    good, now = holds(option.replicas), option.replicas
    fewest = now
    while good and scan and fewest > 1 and _use(sized, fewest - 1) < 1.0 and holds(fewest - 1):
        fewest -= 1
    per_instance = offers.gpus_per_instance
    have, need = (
        float(
            instances_needed(
                np.array([float(n)]), np.array([float(option.gpus_per_replica)]), per_instance
            )[0]
        )
        for n in (now, fewest)
    )
    excess = have / need - 1.0 if good and scan else float("nan")
    name = f"{option.id} {slo.model} {option.accelerator} {option.weights} x{now}"
    return Verdict(now, good, excess, verified=scan, name=name)


def _use(sized: Sized, replicas: int) -> float:
    return float(sized.state(replicas).utilization[0])


def summary(verdicts: list[Verdict]) -> str:
    """Return shares that hold, what picks cost above the fewest replicas, and the failures."""
    picks = [v for v in verdicts if v.verified]
    rows = [v for v in verdicts if not v.verified]
    excess = [v.excess for v in picks if v.holds]
    sizes = [v.replicas for v in picks]
    lines = [
        f"{len(picks)} picks, {min(sizes)} to {max(sizes)} replicas: {share_held(picks):.1%} hold",
        f"cost above the fewest that hold: median {median(excess):.1%}, "
        f"mean {sum(excess) / len(excess):.1%}, most {max(excess):.1%}",
        f"{len(rows)} unverified rows: {share_held(rows):.1%} hold",
    ]
    lines += [str(v) for v in verdicts if not v.holds or v.excess > 0.2]
    return "\n".join(lines) + "\n"


def share_held(verdicts: list[Verdict]) -> float:
    return sum(v.holds for v in verdicts) / len(verdicts)


if __name__ == "__main__":
    sys.stdout.write(summary(list(study(int(sys.argv[1]), int(sys.argv[2])))))
