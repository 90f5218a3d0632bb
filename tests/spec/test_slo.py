import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.files import parse_yaml, read_yaml
from planner.spec.load import load
from planner.spec.slo import DEFAULT_OBJECTIVES, Slo

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))

EVERY_OPTION = """\
model: "=cmd|' /C calc'!A0 <script>"
task: long_context
traffic:
  rate_per_s: 12
  load_profile: [1, 1, 1, 1, 1, 1, 2, 4, 6, 8, 8, 8, 8, 8, 8, 8, 8, 6, 4, 4, 2, 2, 1, 1]
  classes:
    - {name: ask, share: 0.7, prompt_tokens: 300, output_tokens: {mean: 200, cv: 1}}
    - {name: read, share: 0.3, prompt_tokens: {p50: 9000, p95: 30000}, output_tokens: 400,
       slo: {ttft_p95_ms: 9000}}
  burstiness: 2.25
  prefix_hit_rate: 0.3
  max_context_tokens: 32768
slo: {ttft_p50_ms: 300, ttft_p90_ms: 500, itl_p99_ms: 90, e2e_p95_ms: 60000, confidence: 0.5}
headroom: 0.7
routing: random
autoscale: {boot_minutes: 5}
quality: {max_loss_percent: 3.0, measured: {fp8: -0.2, kv-fp8: 0.3}, allow: [kv-nvfp4]}
speculation: {methods: [off, mtp], acceptance: {eagle3: 0.74, mtp: {c1: 0.85, d: 0.9}}}
objectives: [usd_per_mtok_total, e2e_p95_ms, gpus, power_w]
purchase:
  terms: [on_demand, owned]
  providers: [aws, lambda]
  regions: us-east-1
  accelerators: [h100-sxm]
  max_gpus: 64
  budget_usd_per_hour: 200
  spare_replicas: 1
  allow_unvalidated: true
  allow_flagged_prices: true
  max_power_kw: 100
  owned: {capex_usd: 30000, lifetime_years: 4, residual_share: 0.3, power_usd_per_kwh: 0.08,
          pue: 1.2, capital_rate: 0.08, maintenance_share: 0.05, staff_usd_per_year: 900}
  carbon_g_per_kwh: 380
engines: vllm
"""


def slo(text):
    return load(parse_yaml(text, "slo.yaml"), Slo)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_a_valid_file(path):
    assert load(read_yaml(path), Slo).model


def test_there_are_the_examples_that_people_start_from():
    names = {path.stem for path in EXAMPLES}
    assert names >= {
        "chat-70b",
        "rag-8b",
        "code-moe-mla",
        "long-context",
        "offline-batch",
        "infeasible",
    }


def test_every_option_of_the_format_is_read():
    got = slo(EVERY_OPTION)
    assert got.model == "=cmd|' /C calc'!A0 <script>"
    assert got.targets.items() == (
        ("ttft", 50, 300),
        ("ttft", 90, 500),
        ("itl", 99, 90),
        ("e2e", 95, 60000),
    )
    assert got.speculation.methods == ("off", "mtp")
    acceptance = got.speculation.acceptance
    assert (acceptance["eagle3"].c1, acceptance["eagle3"].d) == (0.74, 1)
    assert (acceptance["mtp"].c1, acceptance["mtp"].d) == (0.85, 0.9)
    assert got.traffic.classes[1].slo.items() == (("ttft", 95, 9000),)
    assert (got.engines, got.purchase.regions) == (("vllm",), ("us-east-1",))


def test_what_is_left_out_takes_the_documented_default():
    got = slo(
        "model: m\ntraffic: {rate_per_s: 1, prompt_tokens: 9, output_tokens: 9}\n"
        "slo: {tpot_p95_ms: 40}\n"
    )
    assert got.objectives == DEFAULT_OBJECTIVES
    assert (got.task, got.routing, got.headroom) == ("chat", "least_loaded", 0.8)
    assert (got.targets.confidence, got.traffic.burstiness) == (0.8, 1.0)
    assert (got.purchase.terms, got.engines) == (("on_demand",), ())
    assert got.traffic.average_rate_per_s == 1


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ("rate_per_s: 12, prompt_tokens: 9, output_tokens: 9", 12),
        ("rate_per_s: 12, mean_rate_per_s: 7, prompt_tokens: 9, output_tokens: 9", 7),
        # 12 full hours and 12 at half: three quarters of the peak.
        (
            f"rate_per_s: 12, load_profile: {[2] * 12 + [1] * 12}, prompt_tokens: 9, "
            "output_tokens: 9",
            9,
        ),
        ("offline: {requests: 7200, deadline_hours: 2}, prompt_tokens: 9, output_tokens: 9", 1),
        ("trace: day.csv", None),
    ],
)
def test_the_average_rate_is_what_tokens_are_paid_for(arrivals, expected):
    target = "" if "offline" in arrivals else "slo: {tpot_p95_ms: 40}\n"
    got = slo(f"model: m\ntraffic: {{{arrivals}}}\n{target}")
    assert got.traffic.average_rate_per_s == expected


@given(shares=st.lists(st.floats(0, 100), min_size=24, max_size=24).filter(any))
def test_the_average_of_a_profile_never_exceeds_its_peak(shares):
    got = Slo.model_validate(
        {
            "model": "m",
            "traffic": {
                "rate_per_s": 5.0,
                "load_profile": tuple(shares),
                "prompt_tokens": 9,
                "output_tokens": 9,
            },
            "slo": {"tpot_p95_ms": 40},
        }
    )
    assert 0 < got.traffic.average_rate_per_s <= 5 * (1 + 1e-12)


def test_a_file_written_back_means_the_same():
    got = slo(EVERY_OPTION)
    assert Slo.model_validate(got.model_dump(by_alias=True, exclude_unset=True)) == got


def test_targets_of_the_classes_alone_are_enough():
    text = EVERY_OPTION.replace("slo: {ttft_p50_ms", "extra: {ttft_p50_ms")
    with pytest.raises(InputError) as caught:
        slo(text)
    assert [fault.key for fault in caught.value.faults] == ["extra"]


def lists(value):
    """Data as Python reads YAML and JSON, with lists."""
    if isinstance(value, dict):
        return {key: lists(item) for key, item in value.items()}
    return [lists(item) for item in value] if isinstance(value, tuple | list) else value


def assert_reads_its_own_dump(made):
    written = made.model_dump_json(by_alias=True)
    assert Slo.model_validate_json(written) == made
    assert Slo.model_validate(json.loads(written)) == made


@pytest.mark.parametrize(
    "document",
    [*map(read_yaml, EXAMPLES), parse_yaml(EVERY_OPTION, "slo.yaml")],
    ids=[*(path.stem for path in EXAMPLES), "every option"],
)
def test_a_dict_with_lists_and_the_json_of_a_file_mean_the_same(document):
    made = load(document, Slo)
    assert Slo.model_validate(lists(document.data)) == made
    assert_reads_its_own_dump(made)


NAMES = st.lists(st.sampled_from(["aws", "lambda", "vast"]), max_size=3, unique=True)
LENGTHS = st.one_of(
    st.integers(1, 9000),
    st.fixed_dictionaries({"mean": st.floats(1, 9000), "cv": st.floats(0, 2)}),
    st.lists(st.floats(1, 9000), min_size=2, max_size=9).map(lambda x: {"shares": sorted(x)}),
)


@given(
    providers=NAMES,
    allow=NAMES,
    methods=st.none() | NAMES.filter(bool),
    prompt=LENGTHS,
    profile=st.none() | st.lists(st.floats(1, 10), min_size=24, max_size=24),
    objectives=st.lists(st.sampled_from(DEFAULT_OBJECTIVES), min_size=2, max_size=4, unique=True),
)
def test_what_is_made_from_lists_reads_its_own_dump(
    providers, allow, methods, prompt, profile, objectives
):
    traffic = {"rate_per_s": 5.0, "prompt_tokens": prompt, "output_tokens": 9}
    values = {
        "model": "m",
        "traffic": traffic | {"load_profile": profile},
        "slo": {"tpot_p95_ms": 40},
        "quality": {"allow": allow},
        "speculation": {"methods": methods},
        "objectives": objectives,
        "purchase": {"providers": providers},
    }
    made = Slo.model_validate(values)
    assert made.purchase.providers == tuple(providers)
    assert_reads_its_own_dump(made)


@pytest.mark.parametrize("engines", [["vllm", 1], {"vllm": 1}, 1], ids=str)
def test_a_list_of_other_things_is_no_list_of_names(engines):
    with pytest.raises(ValueError, match="engines"):
        Slo.model_validate(lists(read_yaml(EXAMPLES[0]).data) | {"engines": engines})
