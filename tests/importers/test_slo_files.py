from __future__ import annotations

import contextlib
import copy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.files import dump_yaml, parse_yaml
from planner.importers.draft import Draft
from planner.importers.slo_files import read_slo_file
from tests.importers.foreign_slos import (
    AISIMULATE,
    DGDR,
    INFERENCE_PERF,
    SERVICE_CLASSES,
    TEMPLATES,
)


def read(tmp_path: Path, text: str, entry: str = "", name: str = "file.yaml") -> Draft:
    path = tmp_path / name
    path.write_text(text)
    return read_slo_file(path, entry)


def values(draft: Draft) -> dict[str, object]:
    return {key: given.value for key, given in draft.values.items()}


def test_a_template_gives_task_lengths_and_targets_in_ms(tmp_path):
    draft = read(tmp_path, TEMPLATES, "chatbot_conversational")
    assert values(draft) == {
        "task": "chat",
        "traffic.prompt_tokens": 512,
        "traffic.output_tokens": 256,
        "slo.ttft_p95_ms": 1500,
        "slo.itl_p95_ms": 200,
        "slo.e2e_p95_ms": 60000,
    }
    assert draft.left_out == (
        "experience_class: conversational",
        "business_context.user_facing: True",
        "business_context.latency_sensitivity: high",
    )


def test_a_target_that_is_no_percentile_of_ours_is_named_as_left_out(tmp_path):
    draft = read(tmp_path, TEMPLATES, "Code_Generation_Detailed")
    assert "slo_targets.e2e_mean_ms: 70000" in draft.left_out
    assert draft.values["task"].value == "code"


def test_one_use_case_alone_is_a_file_too(tmp_path):
    text = '{"use_case": "Document RAG", "slo_targets": {"ttft_p95_ms": 900}}'
    assert values(read(tmp_path, text)) == {"task": "rag", "slo.ttft_p95_ms": 900}


def test_several_entries_must_be_chosen_from(tmp_path):
    with pytest.raises(InputError, match="name one with --entry: chatbot_conversational, code_"):
        read(tmp_path, TEMPLATES)
    with pytest.raises(InputError, match="did you mean 'chatbot_conversational'"):
        read(tmp_path, TEMPLATES, "chatbot_conversion")


def test_a_dgdr_gives_model_engine_load_targets_and_hardware(tmp_path):
    draft = read(tmp_path, DGDR)
    assert values(draft) == {
        "model": "Qwen/Qwen3-32B",
        "engines": ("tensorrt-llm",),
        "traffic.prompt_tokens": 3000,
        "traffic.output_tokens": 500,
        "traffic.rate_per_s": 2.5,
        "slo.ttft_p95_ms": 1500,
        "slo.tpot_p95_ms": 40,  # AIPerf's ITL is a mean per request, which we call TPOT
        "purchase.accelerators": ("h200_sxm",),
        "purchase.max_gpus": 16,
    }
    assert draft.left_out == (
        "spec.searchStrategy: rapid",
        "spec.hardware.numGpusPerNode: 8",
        "spec.modelCache.pvcName: weights",
    )


def test_a_dgdr_that_names_little_has_the_defaults_of_dynamo(tmp_path):
    # dgdr_v1beta1_types.py: isl 4000, osl 1000, ttft 2000 ms, itl 30 ms.
    text = "{kind: DynamoGraphDeploymentRequest, spec: {model: Qwen/Qwen3-32B}}"
    draft = read(tmp_path, text)
    assert values(draft) == {
        "model": "Qwen/Qwen3-32B",
        "traffic.prompt_tokens": 4000,
        "traffic.output_tokens": 1000,
        "slo.ttft_p95_ms": 2000,
        "slo.tpot_p95_ms": 30,
    }
    assert "not given: Dynamo's default" in draft.values["slo.ttft_p95_ms"].comment


def test_an_end_to_end_target_of_a_dgdr_replaces_the_two_others(tmp_path):
    text = DGDR.replace("{ttft: 1500.0, itl: 40.0}", "{e2eLatency: 20000}")
    targets = {key: v for key, v in values(read(tmp_path, text)).items() if key.startswith("slo.")}
    assert targets == {"slo.e2e_p95_ms": 20000}


@pytest.mark.parametrize(
    ("sla", "rate"),
    [
        # 64 in flight, 1.5 s + 499 * 40 ms = 21.46 s each: 64 / 21.46 = 2.98229 per second.
        ("{ttft: 1500, itl: 40}", 2.98229),
        ("{e2eLatency: 20000}", 3.2),
    ],
)
def test_a_concurrency_becomes_a_rate_by_littles_law(sla, rate, tmp_path):
    text = DGDR.replace("requestRate: 2.5", "concurrency: 64")
    text = text.replace("{ttft: 1500.0, itl: 40.0}", sla)
    assert values(read(tmp_path, text))["traffic.rate_per_s"] == pytest.approx(rate, rel=1e-5)


def test_an_old_dgdr_has_load_and_targets_in_one_block(tmp_path):
    text = """
kind: DynamoGraphDeploymentRequest
apiVersion: nvidia.com/v1alpha1
spec:
  model: Qwen/Qwen3-0.6B
  backend: vllm
  profilingConfig: {config: {sla: {isl: 3000, osl: 150, ttft: 200.0, itl: 20.0}}}
"""
    draft = read(tmp_path, text)
    assert values(draft)["slo.tpot_p95_ms"] == 20
    assert values(draft)["traffic.output_tokens"] == 150
    assert draft.left_out == ()


def test_seconds_of_inference_perf_become_ms(tmp_path):
    draft = read(tmp_path, INFERENCE_PERF)
    assert values(draft) == {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "engines": ("vllm",),
        "traffic.rate_per_s": 6,
        "traffic.prompt_tokens": {"mean": 1200, "cv": 0.5},
        "traffic.output_tokens": {"mean": 200, "cv": 0.25},
        "slo.ttft_p95_ms": 800,
        "slo.tpot_p95_ms": 50,
        "slo.e2e_p95_ms": 15000,
    }
    assert "report.goodput.constraints.ntpot: 0.06" in draft.left_out
    assert "load.type: poisson" in draft.left_out


def test_an_engine_that_is_none_of_ours_is_left_out(tmp_path):
    draft = read(tmp_path, INFERENCE_PERF.replace("type: vllm", "type: tgi"))
    assert "engines" not in draft.values
    assert "server.type: tgi" in draft.left_out


def test_a_shared_prefix_becomes_a_share_of_prefix_hits(tmp_path):
    # 300 of 300 + 100 prompt tokens are shared: 0.75.
    text = """
goodput: {constraints: {ttft: 0.2}}
data:
  shared_prefix: {system_prompt_len: 300, question_len: 100, output_len: 50, num_groups: 4}
"""
    found = values(read(tmp_path, text))
    assert found["traffic.prefix_hit_rate"] == 0.75
    assert found["traffic.prompt_tokens"] == 400
    assert found["traffic.output_tokens"] == 50


@pytest.mark.parametrize(
    ("unit", "ms"), [("", 250), ("slo_unit: ms, ", 250), ("slo_unit: s, ", 250000)]
)
def test_slo_headers_have_a_unit_of_their_own(unit, ms, tmp_path):
    text = f"""
server: {{type: vllm}}
load: {{stages: [{{rate: 1}}]}}
api: {{{unit}headers: {{x-slo-ttft-ms: "250"}}}}
"""
    assert values(read(tmp_path, text))["slo.ttft_p95_ms"] == ms


@pytest.mark.parametrize(
    ("entry", "model", "ttft"),
    [
        ("Freemium", "ibm-granite/granite-3.3-8b-instruct", 2000),
        ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct", 1500),
        ("premium/meta-llama/llama-3.1-8b-instruct", "meta-llama/Llama-3.1-8B-Instruct", 500),
    ],
)
def test_a_service_class_is_found_by_class_by_model_or_by_both(entry, model, ttft, tmp_path):
    draft = read(tmp_path, SERVICE_CLASSES, entry)
    assert draft.values["model"].value == model
    assert draft.values["slo.ttft_p95_ms"].value == ttft
    assert [item.split(":")[0] for item in draft.left_out] == ["priority"]


def test_a_class_of_several_models_must_be_narrowed(tmp_path):
    with pytest.raises(InputError, match="'Premium' is no service class"):
        read(tmp_path, SERVICE_CLASSES, "Premium")


def test_one_file_of_the_config_map_is_read_alone(tmp_path):
    text = "{name: Gold, priority: 1, data: [{model: m, slo-tpot: 20, slo-ttft: 400}]}"
    assert values(read(tmp_path, text)) == {
        "model": "m", "slo.ttft_p95_ms": 400, "slo.tpot_p95_ms": 20,
    }  # fmt: skip


def test_a_fault_inside_the_config_map_names_its_part(tmp_path):
    with pytest.raises(InputError, match=r"data\.premium\.yaml"):
        read(tmp_path, SERVICE_CLASSES.replace("name: Premium", "name: [Premium"))


def test_limits_and_hardware_of_aisimulate(tmp_path):
    draft = read(tmp_path, AISIMULATE)
    assert values(draft) == {
        "slo.ttft_p95_ms": 1000,
        "slo.itl_p95_ms": 50,
        "purchase.accelerators": ("h200_sxm",),
        "purchase.max_gpus": 8,
    }
    assert "traffic.source: mooncake" in draft.left_out


def test_goodput_limits_of_vllm_are_ms(tmp_path):
    draft = read(tmp_path, '{"ttft": 800, "tpot": 40, "e2el": 20000}', name="goodput.json")
    assert values(draft) == {
        "slo.ttft_p95_ms": 800, "slo.tpot_p95_ms": 40, "slo.e2e_p95_ms": 20000,
    }  # fmt: skip


def test_all_faults_of_a_file_come_at_once_with_line_and_key(tmp_path):
    text = DGDR.replace("ttft: 1500.0", "ttft: -1").replace("isl: 3000", "isl: long")
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert [str(fault) for fault in caught.value.faults] == [
        "line 9  spec.workload.isl: long is not a number above 0; mend it",
        "line 10  spec.sla.ttft: -1 is not a number above 0; mend it",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: x\ntraffic: {rate_per_s: 1}\n", "is an slo.yaml already"),
        ("hello: world\n", "known are: slo_templates.json of llm-d-planner; Dynamo"),
        ("[1, 2]\n", "no SLO file that is known"),
        ("{kind: ConfigMap, data: {a: 'name: x  # slo-ttft'}}", "holds no service class"),
    ],
)
def test_a_file_of_no_known_kind_is_refused_with_the_known_ones(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


KEYS = st.sampled_from(
    ["kind", "spec", "data", "goodput", "constraints", "slo_targets", "use_cases", "evaluation",
     "sla", "ttft", "model", "workload", "hardware", "load", "stages", "server", "name", "slo-ttft"]
)  # fmt: skip
LEAVES = st.sampled_from(
    [None, True, 3, -1.5, "x", "5", "", "ConfigMap", "DynamoGraphDeploymentRequest", "name: x\n"]
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


@given(tree=st.dictionaries(KEYS, TREES, min_size=1))
def test_no_structure_whatever_raises_anything_but_an_input_error(tree, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "file.yaml"
    path.write_text(dump_yaml(tree))
    with contextlib.suppress(InputError):
        read_slo_file(path)


SAYS_NOTHING = ("apiVersion", "kind", "metadata")


def leaf_paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaf_paths(item, (*path, key))]
    if isinstance(value, list):
        return [leaf for n, item in enumerate(value) for leaf in leaf_paths(item, (*path, n))]
    return [path]


def listed(value: object) -> object:
    """Return data that can be changed."""
    if isinstance(value, dict):
        return {key: listed(item) for key, item in value.items()}
    return [listed(item) for item in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("text", [DGDR, INFERENCE_PERF, AISIMULATE], ids=["dgdr", "perf", "sim"])
def test_nothing_is_dropped_in_silence(text, tmp_path):
    # Whatever is taken out of a file, the values or the list of what was left out change.
    whole = read(tmp_path, text)
    data = listed(parse_yaml(text, "").data)
    for path in leaf_paths(data):
        if path[0] in SAYS_NOTHING:
            continue
        changed = copy.deepcopy(data)
        holder = changed
        for part in path[:-1]:
            holder = holder[part]
        del holder[path[-1]]
        draft = read(tmp_path, dump_yaml(changed))
        assert draft != whole, path
