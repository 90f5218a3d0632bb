r"""Which LLM-inference deployment to buy, what it costs, and whether it holds its targets.

The functions behind the commands, typed, without printing. What cannot be used raises
:class:`InputError`, which names every fault with its place and its repair.

A plan. ``Slo`` holds what slo.yaml says; the path of one does as well:

>>> import planner
>>> slo = planner.Slo.model_validate(
...     {
...         "model": "meta-llama/Llama-3.1-8B-Instruct",
...         "traffic": {"rate_per_s": 4.0, "prompt_tokens": 1000.0, "output_tokens": 200.0},
...         "slo": {"ttft_p95_ms": 1500.0, "tpot_p95_ms": 50.0},
...         "purchase": {"accelerators": ["h100-sxm"]},
...     }
... )
>>> record = planner.plan(slo, space="quick", verify=False)
>>> cheapest = next(o for o in record.options if o.id == record.picks["cheapest"])
>>> cheapest.accelerator, all(target.holds for target in cheapest.targets)
('h100-sxm', True)
>>> cheapest.money.usd_per_hour == min(o.money.usd_per_hour for o in record.options)
True

Scores of given deployments, one row a point, from the columns of a CSV file:

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> points = "model,accelerator,concurrency\nllama-3.1-8b,h100-sxm,8\nllama-3.1-405b,l4,8\n"
>>> with TemporaryDirectory() as folder:
...     file = Path(folder, "points.csv")
...     _ = file.write_text(points)
...     table = planner.score(file)
>>> [dict(zip(table.columns, row, strict=True))["status"] for row in table.rows]
['ok', 'does_not_fit']

A file to start from, and a mistake:

>>> planner.init(model="Qwen/Qwen3-32B").splitlines()[2].split()[:2]
['model:', 'Qwen/Qwen3-32B']
>>> try:
...     planner.init(model="Qwen/Qwen3-33B")
... except planner.InputError as error:
...     print(error)
model: 1 problem
  model: unknown model 'Qwen/Qwen3-33B'; did you mean 'Qwen/Qwen3-32B'?
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from planner.catalog import load_catalog as load_catalog
    from planner.commands.calibrate import calibrate as calibrate
    from planner.commands.diff import diff as diff
    from planner.commands.explain import explain as explain
    from planner.commands.export import export as export
    from planner.commands.init import init as init
    from planner.commands.plan import plan as plan
    from planner.commands.portfolio import portfolio as portfolio
    from planner.commands.report import write_report as write_report
    from planner.commands.reprice import reprice as reprice
    from planner.commands.schema import schema as schema
    from planner.commands.score import score as score
    from planner.commands.verify import verify as verify
    from planner.errors import InputError as InputError
    from planner.spec.record import PlanRecord as PlanRecord
    from planner.spec.record_file import read_record as read_record
    from planner.spec.slo import Slo as Slo

_LAZY = {
    "InputError": "planner.errors",
    "PlanRecord": "planner.spec.record",
    "Slo": "planner.spec.slo",
    "calibrate": "planner.commands.calibrate",
    "diff": "planner.commands.diff",
    "explain": "planner.commands.explain",
    "export": "planner.commands.export",
    "init": "planner.commands.init",
    "load_catalog": "planner.catalog",
    "plan": "planner.commands.plan",
    "portfolio": "planner.commands.portfolio",
    "read_record": "planner.spec.record_file",
    "reprice": "planner.commands.reprice",
    "schema": "planner.commands.schema",
    "score": "planner.commands.score",
    "verify": "planner.commands.verify",
    "write_report": "planner.commands.report",
}
"""Public name -> module that holds it: importing the package loads nothing heavy.

Names of subpackages (simulate, search, report) stay theirs.
"""

__all__ = [
    "InputError",
    "PlanRecord",
    "Slo",
    "__version__",
    "calibrate",
    "diff",
    "explain",
    "export",
    "init",
    "load_catalog",
    "plan",
    "portfolio",
    "read_record",
    "reprice",
    "schema",
    "score",
    "verify",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
