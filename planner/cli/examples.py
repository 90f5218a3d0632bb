"""Examples that the help of each command ends with."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": (
        "plan init > slo.yaml",
        "plan --slo slo.yaml --out plan.json --report pack.xlsx",
        "plan --slo slo.yaml --format csv > options.csv",
        "plan explain plan.json --option o-1f3c5a7b",
    ),
    "init": (
        "plan init --model Qwen/Qwen3-32B > slo.yaml",
        "plan init --from dgdr.yaml --out slo.yaml",
        "plan init --from slo_templates.json --entry chatbot_conversational > slo.yaml",
        "curl -s localhost:8000/metrics > m.txt; plan init --from-metrics m.txt > slo.yaml",
    ),
    "score": (
        "plan score points.csv > scores.csv",
        "plan score deployment.yaml --out scores.csv",
    ),
    "schema": (
        "plan schema",
        "plan schema slo > slo.schema.json",
    ),
    "explain": (
        "plan explain plan.json",
        "plan explain plan.json --option o-1f3c5a7b",
        "plan explain plan.json --deployment mine.yaml",
    ),
    "report": (
        "plan report plan.json --to pack.xlsx",
        "plan report plan.json --to options.csv",
    ),
    "simulate": (
        "plan simulate plan.json --option cheapest",
        "plan simulate plan.json --trace requests.csv --timeline queue.csv",
        "plan simulate points.csv --out simulated.csv",
    ),
    "reprice": ("plan reprice plan.json --prices new.csv --out repriced.json",),
    "diff": ("plan diff plan.json repriced.json",),
    "portfolio": (
        "plan portfolio slos/*.yaml --out plans/",
        "plan portfolio chat.yaml rag.yaml --max-gpus 64 --budget 200 --fleets",
        "plan portfolio slos/*.yaml --quota quota.yaml --cluster tcp://host:8786 --out plans/",
    ),
    "calibrate": (
        "plan calibrate run-*.json --deployment deployment.yaml --date 2026-11-20 --out own.yaml",
        "plan calibrate run.json --plan plan.json --option cheapest --date 2026-11-20",
    ),
    "verify": (
        "plan verify plan.json run.json --option cheapest",
        "plan verify plan.json run.json --replicas 1",
    ),
    "export": (
        "plan export plan.json --to vllm",
        "plan export plan.json --option o-1f3c5a7b --to kubernetes --folder deploy/",
        "plan export plan.json --to guidellm --folder check/",
    ),
    "prices import": (
        "plan prices import skypilot aws.csv --seen 2026-11-20 --out mine.csv",
        "plan prices import sheet quote.csv --provider acme --column accelerator=GPU",
    ),
    "prices list": ("plan prices list --accelerator h100-sxm --prices mine.csv",),
    "prices check": ("plan prices check --as-of 2026-11-29",),
}
"""Command -> lines; the empty name is the program itself."""


def epilog(command: str) -> str:
    """Return the end of a command's help."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command])])
