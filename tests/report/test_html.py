from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.report.html import render
from planner.report.pack import Pack
from tests.cli.runner import run
from tests.report.records import firmness, money, offer, option, price, record

pytest.importorskip("plotly")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EVIL = "<img src=x onerror=document.title='hit'></script><b>acme</b>"
PROBE = """
<script>
const seen = [];
for (const name of ["error", "warn"]) console[name] = (...words) => seen.push(words.join(" "));
window.addEventListener("error", (event) => seen.push(event.message));
window.addEventListener("securitypolicyviolation", (event) => seen.push(event.violatedDirective));
</script>
"""
ASK = """
<script>
setTimeout(() => {
  const front = document.getElementById("front");
  if (front) Plotly.Fx.hover(front, [{ curveNumber: 0, pointNumber: 0 }]);
  setTimeout(() => {
    const box = [...document.querySelectorAll("#filters input")].find((b) => b.name === "weights");
    const hover = front?.querySelector(".hoverlayer").textContent;
    box?.click();
    const answer = document.createElement("pre");
    answer.id = "answer";
    answer.textContent = JSON.stringify({
      seen, hover, title: document.title,
      count: document.getElementById("count")?.textContent,
      heading: document.getElementById("model").textContent,
      images: document.images.length,
      wide: document.documentElement.scrollWidth <= window.innerWidth,
      bars: document.querySelectorAll("#memory .barlayer .point").length,
      facts: document.getElementById("facts")?.textContent,
      tornado: document.querySelectorAll("#tornado-cost .barlayer .point").length,
      firm: document.getElementById("firm-words")?.textContent,
      picks: document.getElementById("picks").textContent,
    });
    document.body.append(answer);
  }, 500);
}, 500);
</script>
"""


def page_data(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="plan">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found.group(1))


def evil_record() -> Any:
    row = offer(provider=EVIL)
    sold = option(provider=EVIL, money=money(price(row), 4.0))
    given = record(offers=(row,), options=(sold,), picks={"cheapest": sold.id})
    slo = given.inputs.slo | {"model": EVIL}
    return given.model_copy(update={"inputs": given.inputs.model_copy(update={"slo": slo})})


def test_the_page_needs_no_other_file():
    page = render(Pack(record())).decode()
    outside = page.replace(re.search(r"<script>[^<]{0,200}plotly\.js", page).group(0), "")
    head = outside[: outside.index('id="plan"')]
    assert not re.search(r'(src|href)\s*=\s*["\']', head)
    assert "default-src 'none'" in head


def test_the_page_carries_the_money_of_the_plan():
    options = page_data(render(Pack(record())).decode())["options"]
    assert options[0]["mtok"] == 2.46914
    assert ["Per Mtok output, full load", "$0.741"] in options[0]["facts"]
    assert ["Per Mtok output", "$2.47 at the mean rate"] in options[0]["facts"]


def test_the_time_of_the_median_request_adds_up():
    # By hand: E2E 2500 ms, first token after 200 ms, TPOT 10 ms of which 5 are the bound.
    time = page_data(render(Pack(record())).decode())["options"][0]["time"]
    assert time == {"first": 200.0, "bound": 1150.0, "above": 1150.0}


def test_names_with_markup_end_no_element_of_the_page():
    page = render(Pack(evil_record())).decode()
    assert "<img src=x" not in page
    assert page_data(page)["title"] == EVIL


def test_a_missing_extra_is_one_line_that_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(InputError, match=r"pip install 'slo-planner\[html\]'"):
        render(Pack(record()))


def test_a_missing_extra_is_told_before_the_search(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.setitem(sys.modules, "plotly", None)
    outcome = run(capsys, "--slo", "gone.yaml", "--report", str(tmp_path / "plan.html"))
    assert outcome.code == 2
    assert "needs plotly for its charts; pip install 'slo-planner[html]'" in outcome.err


def answer(page: bytes, folder: Path, width: int = 1280) -> Any:
    """Open a page in a browser without a window, ask it, and return its answer."""
    text = page.decode()
    text = text.replace("<style>", PROBE + "<style>", 1).replace("</body>", ASK + "</body>")
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    command = [
        str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu",
        f"--user-data-dir={folder}/profile", f"--window-size={width},1000",
        "--virtual-time-budget=10000", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, timeout=120)
    found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout.decode(), re.S)
    assert found, done.stderr.decode()[-500:]
    plain = found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return json.loads(plain)


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@needs_browser
def test_in_a_browser_the_charts_draw_hover_and_filter_without_a_complaint(tmp_path: Path):
    other = option(id="o-00000003", weights="bf16")
    given = record(options=(*record().options, other))
    got = answer(render(Pack(given, firmness())), tmp_path)
    assert got["seen"] == []
    assert got["tornado"] == 2
    assert "From $9.00 per instance-hour on (+125%)" in got["firm"]
    assert "Reserved 1 y from acme pays from 50% of all hours on." in got["firm"]
    assert "$2.47 per Mtok output" in got["hover"]
    assert got["count"].startswith("2 of 3 options")
    assert got["bars"] == 4
    assert "o-00000001" in got["facts"]


@needs_browser
def test_in_a_browser_markup_in_names_is_shown_as_text(tmp_path: Path):
    got = answer(render(Pack(evil_record())), tmp_path)
    assert got["heading"] == EVIL
    assert got["title"] == f"Deployment plan for {EVIL}"
    assert got["images"] == 0
    assert got["seen"] == []
    assert "<b>acme</b>" in got["hover"]


@needs_browser
def test_on_a_narrow_screen_nothing_is_wider_than_the_page(tmp_path: Path):
    assert answer(render(Pack(record())), tmp_path, width=500)["wide"]


@needs_browser
def test_a_plan_without_an_option_says_so_without_a_complaint(tmp_path: Path):
    got = answer(render(Pack(record(options=(), picks={}))), tmp_path)
    assert got["seen"] == []
    assert "No candidate meets every target (20 considered)." in got["picks"]
