"""What the picks of a plan need beside the engine that predictions rest on."""

import pytest

from planner.catalog import load_catalog
from planner.deploy.needs import needs, picks_need
from tests.deploy.plans import record
from tests.deploy.test_engines import of

CATALOG = load_catalog()
DRAFTS = {"speculation": "eagle3", "draft_tokens": 3, "acceptance": [0.7, 0.9]}


def option(**changes):
    return record(**changes).options[0]


def told(*options, native="bf16"):
    picks = {f"pick {number}": one.id for number, one in enumerate(options)}
    return list(picks_need(CATALOG, native, options, picks))


@pytest.mark.parametrize(
    ("changes", "native", "said"),
    [
        ({}, "bf16", ""),
        ({"weights": "int4"}, "int4", ""),
        (
            {"weights": "int4"},
            "bf16",
            "supply a checkpoint with int4 weights, the release is bf16",
        ),
        ({"weights": "fp8"}, "mxfp4", "supply a checkpoint with fp8 weights, the release is mxfp4"),
        (
            {"kv": "int8"},
            "bf16",
            "needs vLLM 0.20.0, predictions rest on 0.19.0 and earlier",
        ),
        (DRAFTS, "bf16", "supply the draft head or model of eagle3"),
        ({"speculation": "ngram", "draft_tokens": 3, "acceptance": [0.3, 1.0]}, "bf16", ""),
        (of("tensorrt-llm", weights="fp8"), "bf16",
         "supply a checkpoint with fp8 weights, the release is bf16"),
    ],
    ids=[
        "fp8 of a bf16 release: vLLM quantizes as it loads",
        "as released",
        "int4 of a bf16 release",
        "another format of a quantized release",
        "an int8 cache",
        "a draft head",
        "n-grams need none",
        "TensorRT-LLM quantizes nothing as it loads",
    ],
)  # fmt: skip
def test_what_a_pick_needs_is_said_in_one_sentence(changes, native, said):
    assert told(option(**changes), native=native) == (
        [f"To deploy pick 0: {said}."] if said else []
    )


def test_picks_with_the_same_needs_share_a_sentence():
    four = [option(id=f"o-0000000{number}", weights="int4") for number in (1, 2)]
    both = option(id="o-00000003", weights="int4", **DRAFTS)
    assert told(*four, both) == [
        "To deploy pick 0, pick 1: supply a checkpoint with int4 weights, the release is bf16.",
        "To deploy pick 2: supply a checkpoint with int4 weights, the release is bf16;"
        " supply the draft head or model of eagle3.",
    ]


def test_a_checkpoint_that_must_be_supplied_is_never_quantized_as_it_loads():
    for engine in CATALOG.engines.values():
        for generation in engine.generations:
            if generation.runtime is None:
                continue
            for weights in ("bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4"):
                found = needs(generation.runtime, option(weights=weights), "bf16")
                assert found.checkpoint == (weights != "bf16" and not found.quantization)
