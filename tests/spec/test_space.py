import json

import pytest

from planner.errors import InputError
from planner.files import parse_yaml
from planner.spec.load import load
from planner.spec.space import SearchSpace

SPACE = """\
id: small
description: Two degrees, for tests.
weights: all
kv: [bf16, fp8]
tensor_parallel: [1, 2]
pipeline_parallel: [1]
data_parallel: [1]
speculation:
  - {method: off}
  - {method: mtp, draft_tokens: [1, 3]}
max_num_seqs: [64, 256]
token_budget: [8192]
replicas: {max: 64, spread: [1, 1.25, 2]}
conditions: [tp_divides_node, dp_only_moe_or_mla]
"""


def space(text):
    return load(parse_yaml(text, "small.yaml"), SearchSpace)


def test_a_space_is_read_as_written():
    got = space(SPACE)
    assert (got.weights, got.kv, got.engines) == (("all",), ("bf16", "fp8"), ())
    assert [(s.method, s.draft_tokens) for s in got.speculation] == [("off", ()), ("mtp", (1, 3))]
    assert (got.replicas.max, got.replicas.spread) == (64, (1, 1.25, 2))


def test_a_space_reads_its_own_dump_as_text_and_as_dict_with_lists():
    got = space(SPACE)
    written = got.model_dump_json()
    assert SearchSpace.model_validate_json(written) == got
    assert SearchSpace.model_validate(json.loads(written)) == got


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[1, 2]", "[1, 0]", "line 5  tensor_parallel[1]: 0 must be at least 1"),
        ("[1, 2]", "[2, 2]", "line 5  tensor_parallel: one choice is named twice; keep one"),
        ("[1, 2]", "[]", "line 5  tensor_parallel: must not be empty; give a value"),
        (
            "{method: off}",
            "{method: off, draft_tokens: [1]}",
            "line 9  speculation[0].draft_tokens: off drafts nothing; remove it",
        ),
        (
            ", draft_tokens: [1, 3]",
            "",
            "line 10  speculation[1].draft_tokens: missing; add a list such as [1, 3]",
        ),
        ("1.25", "0.5", "line 13  replicas.spread[1]: 0.5 must be at least 1"),
        (
            "tp_divides_node",
            "tp_divide_node",
            "line 14  conditions[0]: 'tp_divide_node' is not one of tp_divides_node",
        ),
    ],
)
def test_a_bad_space_is_refused_with_the_place(old, new, expected):
    with pytest.raises(InputError) as caught:
        space(SPACE.replace(old, new))
    assert [str(fault)[: len(expected)] for fault in caught.value.faults] == [expected]
