"""An explanation as text."""

from __future__ import annotations

from collections.abc import Iterator

from planner.counting import counted
from planner.report import words
from planner.spec.explanation import Explanation


def render(explanation: Explanation) -> str:
    """Return the explanation as text, a number a line."""
    return "\n".join(_lines(explanation)) + "\n"


def _lines(explanation: Explanation) -> Iterator[str]:
    o = explanation.option
    yield f"{o.id}  {words.hardware(o)}, {words.instance(o)}"
    yield (
        f"{words.engine(o)}, {o.weights} weights, {o.kv} KV cache, {words.parallelism(o)},"
        f" at most {counted(o.max_num_seqs, 'sequence')}, speculation {words.speculation(o)}"
    )
    for section in explanation.sections:
        yield ""
        yield section.title
        for item in section.items:
            line = f"  {item.name}: {item.value}"
            line += f"  = {item.formula}" if item.formula else ""
            yield line
            if item.source:
                yield f"      source: {item.source}"
