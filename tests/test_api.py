"""The Python API: what ``import planner`` offers."""

from __future__ import annotations

import ast
import doctest
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import planner

SOURCE = Path(planner.__file__)
OURS = sorted(set(planner.__all__) - {"__version__"})


def test_the_examples_of_the_package_run():
    found = doctest.testmod(planner, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted >= 12
    assert found.failed == 0


@pytest.mark.parametrize("name", OURS)
def test_a_public_name_is_there_and_documented(name):
    value = getattr(planner, name)
    assert inspect.getdoc(value)
    assert value.__name__ == name


@pytest.mark.parametrize("name", [n for n in OURS if n[0].islower()])
def test_a_public_function_is_typed_throughout(name):
    signature = inspect.signature(getattr(planner, name))
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter


def test_type_checkers_see_the_names_that_the_program_sees():
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    imported = {
        alias.asname: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == planner._LAZY
    assert set(OURS) == set(imported)


def test_no_public_name_hides_a_subpackage():
    parts = {module.name for module in pkgutil.iter_modules(planner.__path__)}
    assert not parts & set(OURS)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'plann'"):
        _ = planner.plann


def test_the_directory_lists_the_public_names():
    assert dir(planner) == sorted(planner.__all__)


def test_importing_the_package_loads_nothing_heavy_and_takes_under_20_ms():
    # The best of three: what is measured is the import, not the machine's other work.
    program = (
        "import sys, time; begun = time.process_time(); import planner;"
        "print(time.process_time() - begun, *sys.modules)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(3)
    ]
    assert min(float(seconds) for seconds, *_ in runs) < 0.020
    loaded = set(runs[0][1:])
    assert not loaded & {"numpy", "pydantic", "yaml", "optuna", "rich", "typer", "planner.commands"}
