"""Why named deployments are not on the front, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.report import words
from planner.select.why import WhyNot
from planner.spec.option import Option

SHOWN = 3
"""Options that beat it, named at most."""


def render(answers: Sequence[WhyNot]) -> str:
    """Return the answers as text, a blank line between two; notes follow, each once."""
    parts = ["\n".join(_lines(answer)) for answer in answers]
    notes = dict.fromkeys(note for answer in answers for note in answer.notes)
    return "\n\n".join([*parts, *(f"note: {note}" for note in notes)]) + "\n"


def _lines(answer: WhyNot) -> Iterator[str]:
    yield f"{answer.name}: {answer.verdict}"
    if answer.option is not None:
        yield f"  as bought  {_option(answer.option)}"
    for reason in answer.because:
        yield f"  because    {reason}"
    if answer.would_do:
        yield f"  would do   {', or '.join(answer.would_do)}"
    for other in answer.beaten_by[:SHOWN]:
        yield f"  beaten by  {_option(other)}"
    if len(answer.beaten_by) > SHOWN:
        yield f"             and {len(answer.beaten_by) - SHOWN} more"


def _option(option: Option) -> str:
    money = option.money
    return (
        f"{option.id}  {words.hardware(option)}, {words.instance(option)},"
        f" {words.engine(option)}, {option.weights}/{option.kv}, {words.parallelism(option)}:"
        f" {words.money(money.usd_per_mtok_output)} per Mtok, {words.money(money.usd_per_hour)}/h"
    )
