"""Inputs that people get wrong, and what they must be told: place, key and repair.

Each case is one file. `kind` says how it is read; every case of kind ``slo`` can also be run
through ``plan --slo FILE``, where the same text must appear on stderr with exit code 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GOOD = """\
model: meta-llama/Llama-3.3-70B-Instruct
traffic:
  rate_per_s: 12
  prompt_tokens: {p50: 900, p95: 3200}
  output_tokens: 250
slo:
  ttft_p95_ms: 800
  tpot_p95_ms: 40
"""


@dataclass(frozen=True)
class Case:
    """One bad file.

    Attributes:
        id: What is wrong, as a sentence fragment.
        content: Text or bytes of the file, or a function that makes the path itself.
        faults: Start of each fault line that must appear, as ``line 3  key: message``.
        count: Faults in total.
        kind: slo, yaml, space, json or csv.
    """

    id: str
    content: str | bytes | Callable[[Path], None]
    faults: tuple[str, ...]
    count: int = 1
    kind: str = "slo"

    def write(self, folder: Path) -> Path:
        """Make the file and return its path."""
        suffix = self.kind if self.kind in {"json", "csv"} else "yaml"
        path = folder / f"bad.{suffix}"
        if callable(self.content):
            self.content(path)
        elif isinstance(self.content, str):
            path.write_bytes(self.content.encode())
        else:
            path.write_bytes(self.content)
        return path


def changed(old: str, new: str) -> str:
    """Return the good file with one piece replaced."""
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def laughs(levels: int) -> str:
    """Return a billion-laughs bomb: each level names the one before ten times."""
    rows = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(rows)


def hundred_megabytes(path: Path) -> None:
    """Write 100 MB of valid YAML."""
    row = b"- 'this file is far too large to be an SLO'\n"
    with path.open("wb") as handle:
        for _ in range(100):
            handle.write(row * (1_000_000 // len(row) + 1))


WHOLE_FILE = (
    Case("missing file", lambda path: None, ("no such file; check the path",)),
    Case("a folder", lambda path: path.mkdir(), ("a folder, not a file; name the file in it",)),
    Case("empty file", b"", ("the file is empty; write its content first",)),
    Case("only blanks", "\n  \n", ("the file is empty; write its content first",)),
    Case("only comments", "# todo\n", ("the file is empty; write its content first",)),
    Case("binary file", b"\x7fELF\x02\0\0\0\1", ("a binary file, not text; name a text file",)),
    Case("UTF-16", GOOD.encode("utf-16"), ("UTF-16 text; save it as UTF-8",)),
    Case("Latin-1", "model: caf\xe9\n".encode("latin-1"), ("line 1: not UTF-8; save it as UTF-8",)),
    Case("100 MB of YAML", hundred_megabytes, ("larger than 4 MB; is it the right file?",)),
    Case("billion laughs", laughs(12), ("line 6: more than 400000 values once aliases",)),
    Case("alias to itself", "a: &a [*a]\n", ("line 1: alias *a has no anchor before it; write",)),
    Case("65 levels", "a: " + "[" * 70 + "]" * 70, ("line 1: nested deeper than 64 levels",)),
    Case("10,000 levels", "[" * 10_000, ("line 1: ",)),
    Case("a Python object", "model: !!python/object:os.system x\n", ("line 1  model: tag ",)),
    Case("list at the top", "- model: x\n", ("line 1: a list is not a block of keys; write",)),
    Case("text at the top", "hello\n", ("line 1: 'hello' is not a block of keys; write",)),
    Case("two documents", f"{GOOD}---\n{GOOD}", ("line 9: a second document (---); keep one",)),
    Case("tab as indentation", changed("  rate", "\trate"), ("line 3: not valid YAML: a tab; i",)),
    Case("bracket left open", "engines: [vllm\n", ("line 2: not valid YAML: a bracket, brace",)),
    Case("quote left open", 'model: "x\n', ("line 2: not valid YAML: a quote is not closed",)),
    Case("no blank after colon", "model:x\ntraffic: 1\n", ("line 2: not valid YAML: a second",)),
    Case("colon in text", "model: a: b\n", ("line 1: not valid YAML: a second ': ' in one v",)),
    Case("indentation off", "slo:\n  a: 1\n b: 2\n", ("line 3: not valid YAML: the indentation",)),
    Case("begins with @", "model: @x\n", ("line 1: not valid YAML: text may not begin with",)),
    Case("list as a key", "? [a]\n: 1\n", ("line 1: a list, mapping or alias as a key; write",)),
    Case("key twice", GOOD + "model: other\n", ("line 9  model: written twice; keep one",)),
    Case("nested key twice", GOOD + "  tpot_p95_ms: 9\n", ("line 9  slo.tpot_p95_ms: written tw",)),
    Case(
        "BOM and CRLF do not move the lines",
        b"\xef\xbb\xbf" + changed("12", "-12").replace("\n", "\r\n").encode(),
        ("line 3  traffic.rate_per_s: -12 must be above 0",),
    ),
)

VALUES = (
    Case("misspelt key", changed("traffic", "trafic"), ("line 2  trafic: unknown key; did yo",)),
    Case(
        "misspelt nested key",
        changed("rate_per_s", "rate_per_sec"),
        ("line 3  traffic.rate_per_sec: unknown key; did you mean 'rate_per_s'?",),
    ),
    Case("unit missing", changed("ttft_p95_ms", "ttft_p95"), ("line 7  slo.ttft_p95: unknown",)),
    Case(
        "wrong unit in the key",
        changed("tpot_p95_ms: 40", "tpot_p95_s: 0.04"),
        ("line 8  slo.tpot_p95_s: unknown key; did you mean 'tpot_p95_ms'?",),
    ),
    Case(
        "unit in the value",
        changed("800", "800ms"),
        ("line 7  slo.ttft_p95_ms: '800ms' is not a number; write the bare number, without u",),
    ),
    Case(
        "thousands separator",
        changed("output_tokens: 250", "output_tokens: {p50: '1,000', p95: 2000}"),
        ("line 5  traffic.output_tokens.p50: '1,000' is not a number; write the bare number",),
    ),
    Case(
        "key in the wrong block",
        changed("  rate_per_s: 12", "  rate_per_s: 12\n  confidence: 0.8"),
        ("line 4  traffic.confidence: unknown key here; it belongs under `slo`",),
    ),
    Case("unknown key", GOOD + "zzz: 1\n", ("line 9  zzz: unknown key; remove it, or use one o",)),
    Case("negative rate", changed("12", "-12"), ("line 3  traffic.rate_per_s: -12 must be abov",)),
    Case("zero rate", changed("12", "0"), ("line 3  traffic.rate_per_s: 0 must be above 0",)),
    Case("NaN", changed("12", ".nan"), ("line 3  traffic.rate_per_s: .nan is not a finite numb",)),
    Case("nan without a dot", changed("800", "nan"), ("line 7  slo.ttft_p95_ms: nan is not a",)),
    Case("infinity", changed("12", "-.inf"), ("line 3  traffic.rate_per_s: -.inf is not a fini",)),
    Case("overflow", changed("12", "1e999"), ("line 3  traffic.rate_per_s: 1e999 is too large",)),
    Case("endless digits", changed("12", "9" * 50), ("line 3  traffic.rate_per_s: a number of m",)),
    Case("rate absurd", changed("12", "1e12"), ("line 3  traffic.rate_per_s: 1000000000000 must",)),
    Case("true as a number", changed("800", "true"), ("line 7  slo.ttft_p95_ms: true is not a n",)),
    Case("no value", changed(" 12", ""), ("line 3  traffic.rate_per_s: no load; add one of",)),
    Case(
        "block without value", "model: x\ntraffic:\nslo:\n", ("line 2  traffic: has no value",), 2
    ),
    Case("number as the model", "model: 70\n" + GOOD[41:], ("line 1  model: 70 is not text; put",)),
    Case("model left out", GOOD[41:], ("line 1  model: missing; add it",)),
    Case("model empty", "model: ''\n" + GOOD[41:], ("line 1  model: must not be empty; give a v",)),
    Case(
        "control character in the model",
        'model: "x\\e[31m"\n' + GOOD[41:],
        ("line 1  model: 'x\\x1b[31m' holds a control or invisible character; remove it",),
    ),
    Case("unknown task", GOOD + "task: Chta\n", ("line 9  task: 'Chta' is not one of chat, rag,",)),
    Case(
        "no length", changed("  output_tokens: 250\n", ""), ("line 2  traffic.output_tokens: mi",)
    ),
    Case("length of 0", changed("250", "0"), ("line 5  traffic.output_tokens: 0 must be at leas",)),
    Case("length as text", changed("250", "short"), ("line 5  traffic.output_tokens: not a len",)),
    Case(
        "quantiles swapped",
        changed("{p50: 900, p95: 3200}", "{p50: 3200, p95: 900}"),
        ("line 4  traffic.prompt_tokens.p95: 900 is below p50 3200; swap or mend them",),
    ),
    Case(
        "a quantile that is not read",
        changed("p95: 3200", "p99: 3200"),
        ("line 4  traffic.prompt_tokens.p99: unknown key; did you mean 'p95'?",),
    ),
    Case("half a distribution", changed(", p95: 3200", ""), ("line 4  traffic.prompt_tokens.p9",)),
    Case(
        "rate and offline",
        changed("12", "12\n  offline: {requests: 5, deadline_hours: 1}"),
        ("line 4  traffic.offline: stands beside rate_per_s; keep one of",),
    ),
    Case(
        "targets for offline work",
        changed("rate_per_s: 12", "offline: {requests: 5, deadline_hours: 1}"),
        ("line 6  slo: offline work has a deadline, not a latency target; remove",),
    ),
    Case(
        "burstiness for offline work",
        changed("rate_per_s: 12", "offline: {requests: 5, deadline_hours: 1}\n  burstiness: 2"),
        ("line 4  traffic.burstiness: goes with rate_per_s, not with offline; remove it",),
    ),
    Case(
        "mean above the peak",
        changed("12", "12\n  mean_rate_per_s: 20"),
        ("line 4  traffic.mean_rate_per_s: 20 is above rate_per_s 12; size for the busy hour",),
    ),
    Case(
        "23 hours",
        changed("12", f"12\n  load_profile: {[1] * 23}"),
        ("line 4  traffic.load_profile: holds 23; give at least 24 entries",),
    ),
    Case(
        "context below the lengths",
        changed("12", "12\n  max_context_tokens: 512"),
        ("line 4  traffic.max_context_tokens: 512 is below the median prompt and output",),
    ),
    Case(
        "shares of classes",
        changed(
            "12\n  prompt_tokens: {p50: 900, p95: 3200}\n  output_tokens: 250",
            "12\n  classes:\n"
            "    - {name: a, share: 0.5, prompt_tokens: 9, output_tokens: 9}\n"
            "    - {name: b, share: 0.6, prompt_tokens: 9, output_tokens: 9}",
        ),
        ("line 4  traffic.classes: the shares add up to 1.1; make them 1",),
    ),
    Case(
        "every token cached", changed("12", "12\n  prefix_hit_rate: 1"), ("line 4  traffic.pref",)
    ),
    Case(
        "no target",
        GOOD.split("slo:", maxsplit=1)[0],
        ("line 1  slo: no target; add one such as ttft_p95_ms: 800, or traffic.offline",),
    ),
    Case("target of 0", changed("800", "0"), ("line 7  slo.ttft_p95_ms: 0 must be above 0",)),
    Case(
        "p95 tighter than p50",
        changed("  tpot_p95_ms: 40", "  ttft_p50_ms: 900"),
        ("line 7  slo.ttft_p95_ms: 800 is below ttft_p50_ms 900, which then never binds",),
    ),
    Case(
        "confidence in percent",
        GOOD + "  confidence: 80\n",
        ("line 9  slo.confidence: 80 must be at most 0.99",),
    ),
    Case(
        "headroom in percent", GOOD + "headroom: 80%\n", ("line 9  headroom: '80%' is not a num",)
    ),
    Case(
        "unknown objective",
        GOOD + "objectives: [usd_per_mtok, gpus]\n",
        ("line 9  objectives[0]: 'usd_per_mtok' is not one of usd_per_mtok_output, ",),
    ),
    Case("one objective", GOOD + "objectives: [gpus]\n", ("line 9  objectives: holds 1; give at",)),
    Case(
        "same objective twice", GOOD + "objectives: [gpus, gpus]\n", ("line 9  objectives: one ",)
    ),
    Case(
        "term in other words",
        GOOD + "purchase:\n  terms: [ondemand]\n",
        ("line 10  purchase.terms[0]: 'ondemand' is not one of on_demand, ",),
    ),
    Case(
        "owned without costs",
        GOOD + "purchase:\n  terms: [owned]\n",
        ("line 10  purchase.terms: owned hardware has no costs; add `owned: ",),
    ),
    Case(
        "owned without power",
        GOOD + "purchase:\n  terms: owned\n  owned: {capex_usd: 3e4, lifetime_years: 4}\n",
        ("line 11  purchase.owned: nothing pays for power; add power_usd_per_kwh with pue",),
    ),
    Case(
        "power paid for twice",
        GOOD + "purchase:\n  terms: owned\n  accelerators: h100-sxm\n  owned:\n"
        "    capex_usd: 3e4\n    lifetime_years: 4\n    power_usd_per_kwh: 0.1\n    pue: 1.2\n"
        "    colocation_usd_per_kw_month: 184\n",
        ("line 17  purchase.owned.colocation_usd_per_kw_month: rent by the kW includes power",),
    ),
    Case(
        "owned without hardware",
        GOOD + "purchase:\n  terms: owned\n  owned: {capex_usd: 3e4, lifetime_years: 4,"
        " colocation_usd_per_kw_month: 184}\n",
        ("line 9  purchase.accelerators: owned hardware needs to be named; add `accel",),
    ),
    Case(
        "owned hardware at no price",
        GOOD + "purchase:\n  terms: owned\n  accelerators: h100-sxm\n"
        "  owned: {capex_usd: {h100-sxm: 0}, lifetime_years: 4, colocation_usd_per_kw_month: 1}\n",
        ("line 12  purchase.owned.capex_usd.h100-sxm: 0 must be above 0",),
    ),
    Case("half a GPU", GOOD + "purchase: {max_gpus: 0.5}\n", ("line 9  purchase.max_gpus: 0.5 i",)),
    Case("zero budget", GOOD + "purchase: {budget_usd_per_hour: 0}\n", ("line 9  purchase.budge",)),
    Case(
        "yes for true",
        GOOD + "purchase: {allow_unvalidated: yes}\n",
        ("line 9  purchase.allow_unvalidated: 'yes' is not true or false",),
    ),
    Case(
        "acceptance in percent",
        GOOD + "speculation: {acceptance: {eagle3: 74}}\n",
        ("line 9  speculation.acceptance.eagle3: 74 must be below 1",),
    ),
    Case(
        "no method", GOOD + "speculation: {methods: []}\n", ("line 9  speculation.methods: must",)
    ),
    Case("number as engines", GOOD + "engines: 5\n", ("line 9  engines: 5 is not a list; write",)),
    Case(
        "autoscale alone", GOOD + "autoscale: {boot_minutes: 5}\n", ("line 9  autoscale: has no",)
    ),
    Case(
        "many faults at once, in the order of their lines",
        changed("12", "-1").replace("800", "0") + "tsk: chat\nheadroom: 2\n",
        (
            "line 3  traffic.rate_per_s: -1 must be above 0",
            "line 7  slo.ttft_p95_ms: 0 must be above 0",
            "line 9  tsk: unknown key; did you mean 'task'?",
            "line 10  headroom: 2 must be at most 1",
        ),
        4,
    ),
)

OTHER_FILES = (
    Case("JSON: trailing comma", '{"a": 1,\n}', ("line 2: not valid JSON (",), kind="json"),
    Case("JSON: NaN", '{"a": 1,\n "b": [NaN]}', ("line 2  b[0]: not a finite",), kind="json"),
    Case("JSON: overflow", '{"a": 1e999}', ("line 1  a: not a finite number",), kind="json"),
    Case("JSON: key twice", '{"a": 1,\n "a": 2}', ("line 2  a: written twice",), kind="json"),
    Case("JSON: 100,000 levels", "[" * 100_000, ("nested deeper than 64",), kind="json"),
    Case("JSON: 65 levels", "[" * 65 + "]" * 65, ("nested deeper than 64",), kind="json"),
    Case("JSON: endless digits", "1" * 9999, ("holds a number that is too long",), kind="json"),
    Case("CSV: ragged", "a,b\n1,2\n\n3\n", ("line 4: 1 value for 2 columns; give",), kind="csv"),
    Case("CSV: column twice", "a,b,a\n", ("line 1  a: two columns have this name",), kind="csv"),
    Case("CSV: column unnamed", "a,,b\n", ("line 1  column 2: has no name; name",), kind="csv"),
    Case("CSV: semicolons", "a;b\n1;2\n", ("line 1: columns are not parted by c",), kind="csv"),
    Case("CSV: quote left open", 'a,b\n"1,2\n', ("line 2: not valid CSV (",), kind="csv"),
    Case("CSV: only commas", ",,\n,,\n", ("no header line; name the columns",), kind="csv"),
)
