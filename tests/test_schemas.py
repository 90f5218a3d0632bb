"""The published JSON Schemas: in step with the specs, and true of real files."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from planner.commands.init import init
from planner.commands.schema import FOLDER, names, schema
from planner.errors import InputError
from planner.files import Document, parse_yaml, read_csv, read_json, read_yaml
from planner.spec.load import load
from planner.spec.slo import Slo
from tests.bad_input.cases import GOOD
from tests.report.records import record

ROOT = Path(__file__).parents[1]
CATALOG = ROOT / "hardware_catalog"
FILES: list[tuple[str, Path, Callable[[Path], Document]]] = [
    *(("slo", path, read_yaml) for path in sorted((ROOT / "examples").glob("*.yaml"))),
    *(("space", path, read_yaml) for path in sorted((ROOT / "search_spaces").glob("*.yaml"))),
    *(("accelerator", path, read_yaml) for path in sorted(CATALOG.glob("accelerators/*.yaml"))),
    *(("engine", path, read_yaml) for path in sorted(CATALOG.glob("engines/*.yaml"))),
    *(
        (name, CATALOG / f"{name}.yaml", read_yaml)
        for name in ("efficiency", "precisions", "speculation", "terms")
    ),
    *(
        ("architecture", path, read_json)
        for path in sorted((ROOT / "planner/catalog/architectures").glob("*.json"))[::20]
    ),
]


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


def plain(value: Any) -> Any:
    """Return data as JSON has it: lists, and dates as text."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def complaints(name: str, data: Any) -> list[str]:
    return [f"{e.json_path}: {e.message}" for e in validator(name).iter_errors(plain(data))]


@pytest.mark.parametrize("name", names())
def test_a_published_schema_is_what_the_spec_says(name):
    # Out of step? `python -m planner.commands.schema` writes them anew.
    stored = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(stored) == json.loads(schema(name))


def test_every_published_schema_is_of_a_file_kind():
    assert {path.stem for path in FOLDER.iterdir()} == set(names())


@pytest.mark.parametrize("name", names())
def test_a_schema_is_a_valid_schema_of_its_dialect(name):
    body = json.loads(schema(name))
    assert body["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(body)


@pytest.mark.parametrize(
    ("name", "path", "read"), FILES, ids=[f"{name} {path.stem}" for name, path, _ in FILES]
)
def test_our_own_files_agree_with_their_schemas(name, path, read):
    assert complaints(name, read(path).data) == []


def test_the_file_that_init_writes_agrees_with_the_schema():
    assert complaints("slo", parse_yaml(init(), "slo.yaml").data) == []


def test_every_key_of_an_slo_is_explained_where_the_file_that_init_writes_sends_the_reader():
    (command,) = re.findall(r"`plan (schema \w+)`", init())
    body = json.loads(schema(command.split()[1]))
    blocks = {"the file": body} | body["$defs"]
    keys = {
        (name, key): text
        for name, block in blocks.items()
        for key, text in block.get("properties", {}).items()
    }
    assert ("Traffic", "burstiness") in keys
    assert [place for place, text in keys.items() if not text.get("description")] == []


def test_a_plan_agrees_with_the_schema():
    written = json.loads(record().model_dump_json(by_alias=True))
    assert complaints("plan", written) == []


def test_short_forms_agree_with_the_schema():
    # A number of tokens, one name for a list of names, a number for an acceptance.
    text = GOOD + "engines: vllm\nspeculation: {methods: ngram, acceptance: {eagle3: 0.7}}\n"
    data = parse_yaml(text, "slo.yaml").data
    data["traffic"]["output_tokens"] = 250
    data["purchase"] = {"terms": "spot", "providers": "aws"}
    assert load(Document("slo.yaml", data, {}), Slo).engines == ("vllm",)
    assert complaints("slo", data) == []


@pytest.mark.parametrize(
    "change",
    [
        {"traffick": {}},
        {"slo": {"ttft_p95_ms": 0}},
        {"slo": {"ttft_p97_ms": 800}},
        {"task": "chatting"},
        {"traffic": {"rate_per_s": 12, "prompt_tokens": 0.5, "output_tokens": 100}},
        {"purchase": {"terms": ["monthly"]}},
        {"engines": 3},
    ],
    ids=str,
)
def test_what_the_loader_refuses_the_schema_refuses_too(change):
    data = {**parse_yaml(GOOD, "slo.yaml").data, **change}
    with pytest.raises(InputError):
        load(Document("slo.yaml", data, {}), Slo)
    assert complaints("slo", data)


def test_the_rows_of_the_price_table_have_the_columns_of_their_schema():
    body = json.loads(schema("offer"))
    rows = read_csv(CATALOG / "offers.csv")
    assert set(rows[0].values) <= set(body["properties"])
    assert set(body["required"]) <= set(rows[0].values)
