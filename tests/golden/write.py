"""Whole plans of the examples, as their picks: `python -m tests.golden.write` after a change
that is meant to move them; the commit says why."""

from __future__ import annotations

import json
from pathlib import Path

from planner.commands.plan import plan
from planner.spec.record import PlanRecord

FOLDER = Path(__file__).parent
EXAMPLES = FOLDER.parent.parent / "examples"


def picture(record: PlanRecord) -> dict[str, object]:
    """Return what a plan comes down to: each pick's deployment, money and latencies."""
    by_id = {option.id: option for option in record.options}
    picks = {}
    for name, identity in record.picks.items():
        o = by_id[identity]
        picks[name] = {
            "deployment": f"{o.replicas} x {o.generation} {o.weights}/{o.kv} tp{o.tp} pp{o.pp}"
            f" dp{o.dp} {o.speculation} {o.draft_tokens}, {o.max_num_seqs} seqs",
            "buy": f"{o.instances} x {o.gpus // o.instances} {o.accelerator}, {o.provider}",
            "usd_per_mtok_output": o.money.usd_per_mtok_output,
            "ttft_p95_ms": o.ttft.p95_ms if o.ttft else None,
            "tpot_p95_ms": o.tpot.p95_ms if o.tpot else None,
        }
    return {"options": len(record.options), "misses": len(record.misses), "picks": picks}


if __name__ == "__main__":
    for slo in sorted(EXAMPLES.glob("*.yaml")):
        text = json.dumps(picture(plan(slo)), indent=1) + "\n"
        (FOLDER / f"{slo.stem}.json").write_text(text)
