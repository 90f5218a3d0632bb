"""Which LLM-inference deployment to buy, what it costs, and whether it holds its targets.

The functions behind the commands, typed, without printing:

>>> import planner
>>> record = planner.plan("examples/chat-70b.yaml")  # doctest: +SKIP
>>> record.picks["cheapest"]  # doctest: +SKIP
'o-1f3c5a7b'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from planner.commands.plan import plan as plan
    from planner.commands.score import score as score

_LAZY = {
    "plan": "planner.commands.plan",
    "score": "planner.commands.score",
}
"""Public name -> module that holds it: importing the package loads nothing heavy."""

__all__ = ["__version__", "plan", "score"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
