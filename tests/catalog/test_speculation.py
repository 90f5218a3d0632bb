"""The speculation catalog: acceptance against the published acceptance lengths."""

from pathlib import Path

import pytest

from planner.files import read_yaml
from planner.spec.load import load
from planner.spec.speculation import Acceptance, Speculation

CATALOG = Path(__file__).parents[2] / "hardware_catalog"
SPECULATION = load(read_yaml(CATALOG / "speculation.yaml"), Speculation)
METHODS = {method.id: method for method in SPECULATION.methods}
ROWS = [
    pytest.param(method, row, id=f"{method.id} {row.tier} {row.task}")
    for method in SPECULATION.methods
    for row in method.acceptance
]


def row(method: str, task: str, tier: str = "") -> Acceptance:
    (found,) = [r for r in METHODS[method].acceptance if (r.task, r.tier) == (task, tier)]
    return found


def length(c1: float, d: float, drafts: int) -> float:
    """Tokens per verification, the bonus token included, one draft token at a time."""
    total, reach = 1.0, 1.0
    for position in range(drafts):
        reach *= min(c1 * d**position, 1.0)
        total += reach
    return total


# Published lengths at 1, 3, 5 and 7 draft tokens, and at 3 over the range of the evidence.
PUBLISHED = [
    ("mtp", "coding", "multi-step", (1.89, 3.27, 4.14, 4.59), (2.95, 3.43)),
    ("mtp", "math", "multi-step", (1.84, 3.04, 3.71, 4.03), (2.76, 3.45)),
    ("mtp", "chat", "multi-step", (1.82, 2.95, 3.55, 3.82), (2.61, 3.35)),
    ("mtp", "coding", "single-module", (1.85, 2.62, 2.71, 2.72), (2.46, 2.95)),
    ("mtp", "chat", "single-module", (1.8, 2.47, 2.54, 2.55), (2.29, 2.92)),
    ("eagle3", "coding", "", (1.79, 2.83, 3.33, 3.55), (2.65, 3.05)),
    ("eagle3", "math", "", (1.82, 2.91, 3.42, 3.61), (2.84, 3.09)),
    ("eagle3", "chat", "", (1.74, 2.64, 3.05, 3.22), (2.3, 2.8)),
    ("eagle3", "rag", "", (1.8, 2.89, 3.47, 3.75), (2.46, 3.09)),
    ("eagle3", "summarization", "", (1.69, 2.38, 2.59, 2.63), (2.12, 2.8)),
    ("eagle3", "any", "weak", (1.56, 2.03, 2.16, 2.2), (1.84, 2.18)),
    ("dflash", "coding", "", (1.84, 3.04, 3.71, 4.03), (2.73, 3.26)),
    ("dflash", "chat", "", (1.7, 2.5, 2.85, 2.99), (2.32, 2.57)),
    ("dflash", "rag", "", (1.64, 2.27, 2.47, 2.52), (2.07, 2.8)),
    ("eagle", "chat", "", (1.68, 2.3, 2.44, 2.46), (1.87, 2.39)),
    ("draft-model", "any", "", (1.65, 2.35, 2.64, 2.77), (1.84, 2.95)),
    ("ngram", "chat", "", (1.27, 1.36, 1.37, 1.37), (1.33, 1.42)),
    ("ngram", "rag", "", (1.6, 2.18, 2.38, 2.46), (1.62, 2.83)),
    ("ngram", "coding", "", (1.68, 2.46, 2.82, 2.98), (2.18, 2.7)),
]


@pytest.mark.parametrize(("method", "task", "tier", "lengths", "bounds"), PUBLISHED)
def test_acceptance_gives_the_published_lengths(method, task, tier, lengths, bounds):
    found = row(method, task, tier)
    got = [length(found.c1, found.d, drafts) for drafts in (1, 3, 5, 7)]
    assert got == pytest.approx(lengths, abs=0.02)
    # The published bounds move d as well, so c1 alone stays inside them.
    assert bounds[0] - 0.02 <= length(found.c1_low, found.d, 3)
    assert length(found.c1_high, found.d, 3) <= bounds[1] + 0.07


@pytest.mark.parametrize(("method", "found"), ROWS)
def test_the_default_lies_inside_the_range_of_its_evidence(method, found):
    assert found.c1_low <= found.c1 <= found.c1_high


def test_every_row_is_checked_against_published_lengths_but_one_that_repeats_another():
    checked = {(method, task, tier) for method, task, tier, *_ in PUBLISHED}
    entered = {(m.id, r.task, r.tier) for m in SPECULATION.methods for r in m.acceptance}
    assert entered - checked == {("dflash", "summarization", "")}
    assert row("dflash", "summarization") == row("dflash", "rag").model_copy(
        update={"task": "summarization"}
    )


@pytest.mark.parametrize(
    ("rule", "methods"),
    [
        ("always", {"ngram"}),
        ("mtp-layers", {"mtp"}),
        ("public-head", {"eagle3"}),
        ("asked", {"draft-model", "eagle", "dflash"}),
    ],
)
def test_methods_are_offered_by_their_rule(rule, methods):
    assert {m.id for m in SPECULATION.methods if m.available == rule} == methods


def test_a_head_costs_one_layer_and_the_output_head_and_a_look_up_costs_nothing():
    for method in ("mtp", "eagle3", "eagle", "dflash"):
        assert (METHODS[method].draft_layers, METHODS[method].draft_head) == (1, True)
    assert METHODS["ngram"].draft_layers == METHODS["ngram"].draft_parameters_share == 0
    assert not METHODS["ngram"].draft_head
    assert [m.id for m in SPECULATION.methods if m.draft_parameters_share] == ["draft-model"]


def test_names_and_aliases_of_methods_are_unique():
    names = [name.casefold() for m in SPECULATION.methods for name in (m.id, *m.aliases)]
    assert len(names) == len(set(names))
