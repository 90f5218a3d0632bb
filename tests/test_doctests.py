"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import planner

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(planner.__path__, "planner.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_there_are_examples_to_run():
    finder = doctest.DocTestFinder()
    modules = (importlib.import_module(name) for name in MODULES)
    assert sum(bool(test.examples) for module in modules for test in finder.find(module)) >= 3
