"""A stored plan and benchmark results in, a verdict for every target out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planner.commands.explain import find_option
from planner.errors import InputError
from planner.importers.benchmarks import read_results
from planner.measured.verify import Checked, Planned
from planner.measured.verify import verify as judge
from planner.spec.option import Option
from planner.spec.record import PlanRecord
from planner.spec.record_file import asked_slo, read_record


def verify(
    plan: Path,
    results: Sequence[Path],
    *,
    option: str = "cheapest",
    replicas: int | None = None,
) -> tuple[Checked, ...]:
    """Judge an option of a plan by benchmark results.

    Args:
        plan: ``plan.json``.
        results: Result files of vLLM bench, SGLang bench, GuideLLM, inference-perf or llm-d.
        option: Option id, or the name of a pick.
        replicas: Replicas that the runs went to; None = all of the option.

    Returns:
        One for each run that can be used.

    Raises:
        InputError: A file cannot be read, the plan has no such option, or `replicas` is none of
            1 to the option's.
    """
    record = read_record(plan)
    chosen = find_option(record, option, str(plan))
    measured = chosen.replicas if replicas is None else replicas
    if not 1 <= measured <= chosen.replicas:
        raise InputError(
            "--replicas", [f"{measured} is not between 1 and the option's {chosen.replicas}"]
        )
    planned = _planned(record, chosen, measured / chosen.replicas)
    return tuple(
        judge(record, chosen, run, planned)
        for path in results
        for run in read_results(path).results
    )


def _planned(record: PlanRecord, option: Option, share: float) -> Planned:
    traffic = asked_slo(record).traffic
    kinds = [(kind.share, kind.prompt_tokens, kind.output_tokens) for kind in traffic.classes or ()]
    if traffic.prompt_tokens is not None and traffic.output_tokens is not None:
        kinds.append((1.0, traffic.prompt_tokens, traffic.output_tokens))
    total = sum(part for part, _, _ in kinds)
    return Planned(
        rate_per_s=option.rate_per_s * share,
        prompt_tokens=sum(part * p.mean for part, p, _ in kinds) / total if kinds else None,
        output_tokens=sum(part * o.mean for part, _, o in kinds) / total if kinds else None,
    )
