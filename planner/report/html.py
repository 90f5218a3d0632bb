"""The pack as one page that opens without a network: charts to explore, tables to print."""

from __future__ import annotations

import html as markup
import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.errors import InputError, install
from planner.report.html_data import page_data
from planner.report.pack import Pack

TEMPLATES = Path(__file__).parent / "templates"


def check_extra() -> None:
    """Raise InputError unless plotly, which draws the charts, can be found; it is not loaded."""
    if find_spec("plotly") is None:
        raise _missing()


def render(pack: Pack) -> bytes:
    """Return an .html file that holds everything it needs.

    Raises:
        InputError: The extra ``html`` (plotly), which draws the charts, is not installed.
    """
    title = f"Deployment plan for {pack.record.inputs.slo['model']}"
    parts = {
        "title": markup.escape(title),
        "style": _template("plan.css"),
        "data": _json(page_data(pack)),
        "plotly": _plotly(),
        "script": _template("plan.js"),
    }
    return _filled(_template("plan.html"), parts).encode()


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Return the template with each ``<!--name-->`` replaced; what is filled in is not read."""
    return "".join(
        parts[piece] if number % 2 else piece
        for number, piece in enumerate(re.split(r"<!--(\w+)-->", template))
    )


def _json(data: Mapping[str, Any]) -> str:
    """Return JSON that can stand inside a script element: no text of it can end the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise _missing() from None
    return str(get_plotlyjs())


def _missing() -> InputError:
    return InputError(".html report", [f"needs plotly for its charts; {install('html')}"])
