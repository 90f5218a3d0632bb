"""Plans for recorded traffic, each beside the replay of its trace: the table of search/README.md.

``python -m tests.select.trace_replays conv.csv code.csv mooncake.csv`` prints it, of traces with
the columns arrival_s, prompt_tokens and output_tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from planner.commands.plan import plan
from planner.spec.option import Option
from planner.spec.record import PlanRecord
from planner.spec.slo import Slo

SMALL, LARGE = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"
METRICS = ("ttft", "tpot", "e2e")
# Trace -> model, accelerator, targets of TTFT, TPOT and E2E p95 [ms].
CASES = (
    (0, LARGE, "h100-sxm", (1_000, 50, 30_000)),
    (0, SMALL, "l40s", (1_000, 50, 30_000)),
    (1, SMALL, "l40s", (1_000, 150, 6_000)),
    (2, SMALL, "h100-sxm", (20_000, 100, 60_000)),
)
HEADER = "| trace, deployment | TTFT | TPOT | E2E |\n|---|---|---|---|\n"


def table(traces: Sequence[str]) -> str:
    """Return a row a case."""
    return HEADER + "".join(_row(Path(traces[at]), *rest) for at, *rest in CASES)


def _row(trace: Path, model: str, chip: str, targets: tuple[int, ...]) -> str:
    record = plan(_slo(trace.resolve(), model, chip, targets), space="quick")
    cells = (f"{trace.stem}, {_deployment(model, record)}", *_figures(record))
    return f"| {' | '.join(cells)} |\n"


def _slo(trace: Path, model: str, chip: str, targets: tuple[int, ...]) -> Slo:
    limits = {f"{m}_p95_ms": value for m, value in zip(METRICS, targets, strict=True)}
    return Slo.model_validate(
        {
            "model": model,
            "traffic": {"trace": str(trace)},
            "slo": {**limits, "confidence": 0.5},
            "purchase": {"accelerators": (chip,), "allow_unvalidated": True},
        }
    )


def _deployment(model: str, record: PlanRecord) -> str:
    pick = _cheapest(record)
    name = model.rpartition("/")[2]
    return f"{name} {pick.weights} on {pick.gpus} x {pick.accelerator}, {pick.engine}"


def _figures(record: PlanRecord) -> list[str]:
    check = next(c for c in record.verification if c.option == _cheapest(record).id)
    found = {latency.key.split("_")[0]: latency for latency in check.latencies}
    return [
        " / ".join(_figure(ms) for ms in (of.formula_ms, of.windows_ms, of.simulated_ms))
        for of in (found[metric] for metric in METRICS)
    ]


def _cheapest(record: PlanRecord) -> Option:
    return next(option for option in record.options if option.id == record.picks["cheapest"])


def _figure(milliseconds: float | None) -> str:
    return "without bound" if milliseconds is None else f"{milliseconds:,.0f}"


if __name__ == "__main__":
    sys.stdout.write(table(sys.argv[1:]))
