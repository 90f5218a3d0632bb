import json

import pytest

from planner.commands.plan import plan
from tests.golden.write import EXAMPLES, FOLDER, picture


@pytest.mark.parametrize("slo", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_plan_of_an_example_is_the_one_on_record(slo):
    stored = json.loads((FOLDER / f"{slo.stem}.json").read_text())
    made = picture(plan(slo))
    assert made["misses"] == stored["misses"]
    assert made["options"] == pytest.approx(stored["options"], rel=0.02)
    assert made["picks"].keys() == stored["picks"].keys()
    for name, pick in stored["picks"].items():
        for key, value in pick.items():
            got = made["picks"][name][key]
            numeric = isinstance(value, float)
            assert got == (pytest.approx(value, rel=1e-3) if numeric else value), (name, key)
