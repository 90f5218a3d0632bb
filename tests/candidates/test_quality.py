"""Which cell of the loss table a pair of formats takes, and when it needs the user's word."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.quality import TASKS, QualityCase, quality_loss, size_band
from planner.files import read_yaml
from planner.spec.load import load
from planner.spec.precision import KvFormat, Precisions, QualityCell, WeightFormat

CATALOG = Path(__file__).parents[2] / "hardware_catalog"
PRECISIONS = load(read_yaml(CATALOG / "precisions.yaml"), Precisions)
WEIGHTS = {fmt.id: fmt for fmt in PRECISIONS.weights}
KV = {fmt.id: fmt for fmt in PRECISIONS.kv}
CHAT_70B = QualityCase(total_parameters=70.6e9, task="chat", context_tokens=4000)


def cell(size: str, task: str, median: float, p90: float) -> QualityCell:
    return QualityCell.model_validate(
        {"size": size, "task": task, "median": median, "p10": -9.0, "p90": p90, "rows": 12}
        | {"models": 4, "grade": "fair"}
    )


def weights(*cells: QualityCell, **changes: object) -> WeightFormat:
    entry = {"id": "w", "name": "made up", "bytes_per_parameter": 1.0, "source": "here"}
    entry |= {"default_groups_dense": (), "default_groups_moe": (), "quality": cells}
    return WeightFormat.model_validate(entry | changes)


def cache(*cells: QualityCell, **changes: object) -> KvFormat:
    entry = {"id": "k", "name": "made up", "bytes_per_element": 1.0, "source": "here"}
    return KvFormat.model_validate(entry | {"quality": cells} | changes)


PLAIN_CACHE = cache(id="bf16", bytes_per_element=2.0)


@pytest.mark.parametrize(
    ("parameters", "band"),
    [(4.99e9, "<5B"), (5e9, "5-15B"), (14.8e9, "5-15B"), (15e9, "15-80B"), (79.7e9, "15-80B"),
     (80e9, ">80B"), (1.04e12, ">80B")],
)  # fmt: skip
def test_the_size_band_follows_the_total_parameters(parameters, band):
    assert size_band(parameters) == band


@pytest.mark.parametrize("task", TASKS)
def test_the_released_checkpoint_loses_nothing_at_any_task_and_context(task):
    case = QualityCase(671e9, task, 200_000, native_format="fp8")
    loss = quality_loss(WEIGHTS["fp8"], KV["bf16"], case)
    assert (loss.median, loss.p90, loss.objective) == (0, 0, 0)
    assert (loss.grade, loss.supported, loss.basis) == ("native", True, "the released checkpoint")


def test_upcasting_a_released_checkpoint_loses_nothing():
    case = replace(CHAT_70B, native_format="fp8")
    assert quality_loss(WEIGHTS["bf16"], KV["bf16"], case).p90 == 0


@pytest.mark.parametrize(
    ("task", "median"), [("chat", 1.0), ("rag", 1.0), ("summarization", 1.0), ("code", 2.0)]
)
def test_the_task_of_the_slo_picks_the_column(task, median):
    fmt = weights(cell("all", "easy", 1.0, 3.0), cell("all", "hard", 2.0, 4.0))
    loss = quality_loss(fmt, PLAIN_CACHE, replace(CHAT_70B, task=task))
    assert loss.median == pytest.approx(median)


def test_the_cell_of_the_size_band_wins_over_the_one_of_all_sizes():
    fmt = weights(cell("all", "easy", 1.0, 3.0), cell("15-80B", "easy", 0.4, 0.9))
    assert quality_loss(fmt, PLAIN_CACHE, CHAT_70B).p90 == pytest.approx(0.9)
    small = replace(CHAT_70B, total_parameters=8e9)
    assert quality_loss(fmt, PLAIN_CACHE, small).p90 == pytest.approx(3.0)


@pytest.mark.parametrize(("tokens", "p90"), [(64_000, 3.0), (64_001, 7.0)])
def test_beyond_64k_tokens_the_long_context_cell_counts_too(tokens, p90):
    fmt = weights(cell("all", "easy", 1.0, 3.0), cell("all", "long_context", 2.0, 7.0))
    loss = quality_loss(fmt, PLAIN_CACHE, replace(CHAT_70B, context_tokens=tokens))
    assert loss.p90 == pytest.approx(p90)


def test_a_long_context_never_hides_a_larger_loss_at_the_task_itself():
    fmt = weights(cell("all", "hard", 4.0, 12.0), cell("all", "long_context", 1.0, 2.0))
    loss = quality_loss(fmt, PLAIN_CACHE, QualityCase(70e9, "code", 100_000))
    assert (loss.median, loss.p90) == pytest.approx((4.0, 12.0))


def test_fp8_weights_with_an_fp8_cache_compose_as_by_hand():
    # Published: weights 0.20 (p90 0.90), cache 0.76 (2.47), both 15-80B and easy.
    # Median 100 (1 - 0.998 * 0.9924) = 0.95848; spread hypot(0.70, 1.71) = 1.84773.
    loss = quality_loss(WEIGHTS["fp8"], KV["fp8"], CHAT_70B)
    assert loss.median == pytest.approx(0.95848, abs=1e-5)
    assert loss.p90 == pytest.approx(2.80621, abs=1e-5)
    assert loss.objective == pytest.approx(1.0)
    assert (loss.grade, loss.rows, loss.supported) == ("thin", 25, True)
    assert loss.basis == (
        "fp8, easy tasks, 15-80B: 87 rows, 20 models, good; "
        "kv-fp8, easy tasks, 15-80B: 25 rows, 3 models, thin"
    )


def test_your_own_measurement_replaces_the_table():
    case = replace(CHAT_70B, measured={"int4": 2.0, "kv-fp8": -0.4})
    loss = quality_loss(WEIGHTS["int4"], KV["fp8"], case)
    assert (loss.median, loss.p90) == pytest.approx((2.0, 2.0))
    assert (loss.grade, loss.rows, loss.supported) == ("measured", 0, True)
    assert loss.basis == "int4: 2 % measured by you; kv-fp8: -0.4 % measured by you"


def test_a_measurement_of_one_part_leaves_the_other_on_the_table():
    case = replace(CHAT_70B, measured={"fp8": 0.0})
    loss = quality_loss(WEIGHTS["fp8"], KV["fp8"], case)
    assert (loss.median, loss.p90) == pytest.approx((0.76, 2.47))
    assert loss.grade == "thin"


WITHOUT_EVIDENCE = [
    ("bf16", "nvfp4", CHAT_70B, "kv-nvfp4"),
    ("bf16", "mxfp4", CHAT_70B, "kv-mxfp4"),
    ("mxfp4", "bf16", replace(CHAT_70B, task="reasoning"), "mxfp4"),
    ("int4", "bf16", replace(CHAT_70B, context_tokens=65_000), "int4"),
    ("nvfp4", "bf16", replace(CHAT_70B, task="long_context"), "nvfp4"),
    ("bf16", "int4", replace(CHAT_70B, context_tokens=65_000), "kv-int4"),
    ("int4", "int4", CHAT_70B, "kv-int4"),
    ("nvfp4", "int4", CHAT_70B, "kv-int4"),
]


@pytest.mark.parametrize(("weight_id", "kv_id", "case", "key"), WITHOUT_EVIDENCE)
def test_what_has_no_evidence_is_offered_only_if_allowed_or_measured(weight_id, kv_id, case, key):
    pair = WEIGHTS[weight_id], KV[kv_id]
    refused = quality_loss(*pair, case)
    assert not refused.supported
    assert key in refused.reason
    allowed = quality_loss(*pair, replace(case, allow=(key,)))
    assert (allowed.supported, allowed.reason) == (True, "")
    assert allowed.grade in ("thin", "none")
    measured = {weight_id: 1.0, f"kv-{kv_id}": 1.0}
    assert quality_loss(*pair, replace(case, measured=measured)).supported


def test_one_measured_half_of_a_4_bit_pair_does_not_vouch_for_the_pair():
    case = replace(CHAT_70B, measured={"int4": 0.5})
    loss = quality_loss(WEIGHTS["int4"], KV["int4"], case)
    assert (loss.supported, loss.grade) == (False, "none")
    assert loss.reason == (
        "no evidence for the quality of int4 with kv-int4 together; measure both or allow one"
    )


def test_an_allowed_format_without_a_cell_loses_at_least_what_the_nearest_task_shows():
    # MXFP4 at 15-80B: easy tasks 5.74 (p90 6.93); one row of reasoning is no cell.
    case = replace(CHAT_70B, task="reasoning", allow=("mxfp4",))
    loss = quality_loss(WEIGHTS["mxfp4"], KV["bf16"], case)
    assert (loss.median, loss.p90) == pytest.approx((5.74, 6.93))
    assert (loss.grade, loss.rows) == ("none", 0)
    assert "no evidence for hard tasks; at least as on easy tasks" in loss.basis


def test_an_allowed_format_without_any_cell_counts_as_no_loss_and_says_so():
    loss = quality_loss(WEIGHTS["bf16"], KV["nvfp4"], replace(CHAT_70B, allow=("kv-nvfp4",)))
    assert (loss.median, loss.p90, loss.grade) == (0, 0, "none")
    assert loss.basis == "kv-nvfp4: no evidence for easy tasks; counted as no loss"


def test_a_model_released_in_mxfp4_reasons_without_loss_on_its_own_weights():
    case = QualityCase(117e9, "reasoning", 8000, native_format="mxfp4")
    assert quality_loss(WEIGHTS["mxfp4"], KV["fp8"], case).supported


cases = st.builds(
    QualityCase,
    total_parameters=st.floats(1e8, 2e12),
    task=st.sampled_from(list(TASKS)),
    context_tokens=st.floats(1, 1e6),
    native_format=st.sampled_from(["bf16", "fp8", "int4", "mxfp4"]),
    allow=st.sampled_from([(), ("int4", "kv-int4"), ("kv-nvfp4", "kv-mxfp4", "mxfp4", "nvfp4")]),
)
weight_formats = st.sampled_from(PRECISIONS.weights)
kv_formats = st.sampled_from(PRECISIONS.kv)


@given(weight=weight_formats, kv=kv_formats, case=cases)
def test_a_pair_loses_at_least_as_much_as_either_part(weight, kv, case):
    both = quality_loss(weight, kv, case)
    alone = quality_loss(weight, KV["bf16"], case), quality_loss(WEIGHTS["bf16"], kv, case)
    assert both.median >= max(part.median for part in alone) - 1e-9
    assert both.p90 >= max(part.p90 for part in alone) - 1e-9
    assert both.objective >= both.median - 1e-6
    assert both.supported == (both.reason == "")


@given(weight=weight_formats, kv=kv_formats, case=cases)
def test_allowing_more_never_takes_a_pair_away(weight, kv, case):
    wider = replace(case, allow=(*case.allow, weight.id, f"kv-{kv.id}"))
    assert quality_loss(weight, kv, wider).supported


@given(weight=weight_formats, case=cases)
def test_a_longer_context_never_lowers_the_pessimistic_loss_where_there_is_evidence(weight, case):
    short = quality_loss(weight, KV["bf16"], replace(case, context_tokens=1000))
    long = quality_loss(weight, KV["bf16"], replace(case, context_tokens=100_000))
    assert long.supported <= short.supported
    if long.grade != "none":
        assert long.p90 >= short.p90
