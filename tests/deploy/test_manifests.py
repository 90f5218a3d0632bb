"""Kubernetes, KServe and SkyPilot files: they fit their schemas and start what was planned."""

import json
import shlex

import jsonschema
import pytest
import yaml

from planner.errors import InputError
from tests.deploy.known_flags import SERVE
from tests.deploy.schemas import KUBERNETES, SKYPILOT
from tests.deploy.test_engines import of, value

TWO_SERVERS = {"tp": 8, "pp": 2, "gpus_per_replica": 16, "replicas": 3, "instances": 6, "gpus": 48}
ONE_EACH = {"tp": 8, "gpus_per_replica": 8, "replicas": 2, "instances": 2, "gpus": 16}
SHAPES = {
    "two replicas on one server": {},
    "a replica a server": ONE_EACH,
    "a spare": {"spare_replicas": 1},
    "over two servers": TWO_SERVERS,
    "experts over two servers": {
        "model": "deepseek-ai/DeepSeek-R1", "tp": 1, "dp": 16, "gpus_per_replica": 16,
        "replicas": 1, "instances": 2, "gpus": 16,
    },
    "SGLang": of("sglang"),
    "SGLang over two servers": of("sglang", **TWO_SERVERS),
    "TensorRT-LLM": of("tensorrt-llm", **ONE_EACH),
    "AMD": {"accelerator": "mi300x", "hardware": "mi300x x8 mesh 50"},
    "speculating": {"speculation": "ngram", "draft_tokens": 3, "acceptance": [0.3, 1.0]},
    "a name that starts with a digit": {"model": "org/01-model_x.v2", "checkpoint": "org/x"},
}  # fmt: skip
each_shape = pytest.mark.parametrize("shape", list(SHAPES))


def objects(made):
    (text,) = made.files.values()
    return list(yaml.safe_load_all(text))


def by_kind(made):
    return {thing["kind"]: thing for thing in objects(made)}


@each_shape
def test_every_kubernetes_object_fits_its_schema(shape, exported):
    found = objects(exported("kubernetes", **SHAPES[shape]))
    for thing in found:
        jsonschema.validate(thing, KUBERNETES[thing["kind"]])
    assert {"Service"} < {thing["kind"] for thing in found}


@each_shape
def test_kubernetes_own_schemas_take_every_object(shape, exported):
    checker = pytest.importorskip(
        "kubernetes_validate", reason="optional job: pip install kubernetes-validate"
    )
    for thing in objects(exported("kubernetes", **SHAPES[shape])):
        if thing["kind"] != "LeaderWorkerSet":
            checker.validate(thing, checker.latest_version(), strict=True)
            continue
        # Its pods are Kubernetes' own; the set around them is checked above.
        metadata, spec = thing["metadata"], thing["spec"]["leaderWorkerTemplate"]
        for part in ("leaderTemplate", "workerTemplate"):
            selector = {"matchLabels": spec[part]["metadata"]["labels"]}
            pods = {"selector": selector, "template": spec[part]}
            wrapped = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
            checker.validate(wrapped | {"spec": pods}, checker.latest_version(), strict=True)


def test_the_schema_refuses_what_kubernetes_would(exported):
    thing = by_kind(exported("kubernetes"))["Deployment"]
    thing["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(jsonschema.ValidationError, match="imagee"):
        jsonschema.validate(thing, KUBERNETES["Deployment"])


def test_every_replica_and_spare_is_a_pod_with_its_gpus(exported):
    thing = by_kind(exported("kubernetes", spare_replicas=1))["Deployment"]
    assert thing["spec"]["replicas"] == 3
    (container,) = thing["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 4}
    assert container["image"] == "vllm/vllm-openai:v0.19.0"


def test_a_service_finds_the_pods_of_its_deployment(exported):
    found = by_kind(exported("kubernetes"))
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"].items() <= labels.items()
    selector = found["Deployment"]["spec"]["selector"]["matchLabels"]
    assert selector.items() <= labels.items()


def test_a_service_of_several_servers_finds_the_leaders_alone(exported):
    found = by_kind(exported("kubernetes", **TWO_SERVERS))
    template = found["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    assert (found["LeaderWorkerSet"]["spec"]["replicas"], template["size"]) == (3, 2)
    roles = [template[part]["metadata"]["labels"]["role"] for part in
             ("leaderTemplate", "workerTemplate")]  # fmt: skip
    assert roles == ["leader", "worker"]
    selector = found["Service"]["spec"]["selector"]
    assert selector["role"] == "leader"
    name = found["LeaderWorkerSet"]["metadata"]["name"]
    assert selector["leaderworkerset.sigs.k8s.io/name"] == name


def test_servers_of_a_replica_know_their_rank_and_leader(exported, words):
    template = by_kind(exported("kubernetes", **TWO_SERVERS))["LeaderWorkerSet"]["spec"][
        "leaderWorkerTemplate"
    ]
    for part, rank in (("leaderTemplate", "0"), ("workerTemplate", "1")):
        (container,) = template[part]["spec"]["containers"]
        shell, flag, text = container["command"]
        assert (shell, flag) == ("/bin/sh", "-c")
        called = words(text, LWS_WORKER_INDEX=rank, LWS_LEADER_ADDRESS="leader.svc")
        assert value(called, "--node-rank") == rank
        assert value(called, "--master-addr") == "leader.svc"
        assert value(called, "--nnodes") == "2"
        assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}


def test_the_plan_and_option_are_annotated(exported):
    made = exported("kubernetes")
    for thing in objects(made):
        notes = thing["metadata"]["annotations"]
        assert notes["slo-planner/plan-digest"] == f"sha256:{made.digest}"
        assert notes["slo-planner/option"] == "o-1a2b3c4d"
        assert notes["slo-planner/engine"] == "vllm 0.19.0"


def test_tensorrt_llms_file_is_mounted_where_its_command_looks(exported):
    found = by_kind(exported("kubernetes", **SHAPES["TensorRT-LLM"]))
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    path = value(container["command"], "--extra_llm_api_options")
    folder, name = path.rsplit("/", 1)
    assert folder in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert name in found["ConfigMap"]["data"]
    inner = yaml.safe_load(found["ConfigMap"]["data"][name])
    assert inner["kv_cache_config"] == {"dtype": "fp8"}


def test_amd_pods_ask_for_amd_gpus_and_images(exported):
    found = by_kind(exported("kubernetes", **SHAPES["AMD"]))
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "vllm/vllm-openai-rocm:v0.19.0"
    assert container["resources"]["limits"] == {"amd.com/gpu": 4}


@pytest.mark.parametrize(
    ("instance", "selector"),
    [
        ("p5en.48xlarge", {"node.kubernetes.io/instance-type": "p5en.48xlarge"}),
        ("8x H200 SXM", None),
    ],
)
def test_pods_go_to_the_planned_instances_where_a_label_can_say_so(instance, selector, exported):
    thing = by_kind(exported("kubernetes", price={"instance_type": instance}))["Deployment"]
    assert thing["spec"]["template"]["spec"].get("nodeSelector") == selector


KSERVE = [name for name, shape in SHAPES.items() if shape.get("engine", "vllm") == "vllm"]


@pytest.mark.parametrize("shape", KSERVE)
def test_an_inference_service_fits_its_schema(shape, exported):
    (thing,) = objects(exported("kserve", **SHAPES[shape]))
    jsonschema.validate(thing, KUBERNETES["LLMInferenceService"])
    (container,) = thing["spec"]["template"]["containers"]
    extra = shlex.split(container["env"][0]["value"])
    assert {word for word in extra if word.startswith("--")} <= SERVE["vllm"]
    assert value(extra, "--max-num-seqs") == "128"
    assert not {"--port", "--pipeline-parallel-size", "--data-parallel-size"} & set(extra)


def test_an_inference_service_over_servers_states_its_parallelism(exported):
    (thing,) = objects(exported("kserve", **TWO_SERVERS))
    assert thing["spec"]["parallelism"] == {"tensor": 8, "pipeline": 2}
    assert "worker" in thing["spec"]
    (thing,) = objects(exported("kserve", **SHAPES["experts over two servers"]))
    assert thing["spec"]["parallelism"] == {
        "tensor": 1,
        "data": 16,
        "dataLocal": 8,
        "expert": True,
    }


@each_shape
def test_a_skypilot_task_fits_its_schema(shape, exported):
    amd = {"price": {"provider": "azure", "instance_type": "Standard_ND96isr_MI300X_v5"}}
    (thing,) = objects(exported("skypilot", **(SHAPES[shape] | (amd if shape == "AMD" else {}))))
    jsonschema.validate(thing, SKYPILOT)


def test_skypilot_loads_the_task(exported, tmp_path):
    sky = pytest.importorskip("sky", reason="optional job: pip install skypilot")
    for shape in SHAPES.values():
        (text,) = exported("skypilot", **shape).files.values()
        path = tmp_path / "task.yaml"
        path.write_text(text)
        assert sky.Task.from_yaml(str(path)).run


def test_a_task_asks_for_the_instance_that_was_priced(exported):
    (thing,) = objects(exported("skypilot", price={"term": "spot"}))
    resources = thing["resources"]
    assert resources["infra"] == "aws/us-east-1"
    assert resources["instance_type"] == "p5en.48xlarge"
    assert resources["use_spot"] is True
    assert resources["image_id"] == "docker:vllm/vllm-openai:v0.19.0"
    # Four GPUs hold 20 GiB of weights each.
    assert resources["disk_size"] == round(80 * 1.1 + 64)


def test_replicas_that_share_a_server_get_their_own_gpus_and_ports(exported):
    (thing,) = objects(exported("skypilot"))
    lines = thing["run"].splitlines()
    assert "service" not in thing
    assert [line.split()[0] for line in lines[:2]] == [
        "CUDA_VISIBLE_DEVICES=0,1,2,3",
        "CUDA_VISIBLE_DEVICES=4,5,6,7",
    ]
    ports = [value(shlex.split(line), "--port") for line in lines[:2]]
    assert ports == ["8000", "8001"]
    assert thing["resources"]["ports"] == "8000-8001"


def test_a_replica_a_server_is_a_service(exported):
    (thing,) = objects(exported("skypilot", **ONE_EACH))
    assert thing["service"]["replicas"] == 2
    assert thing["service"]["readiness_probe"]["path"] == "/health"
    assert "num_nodes" not in thing


@pytest.mark.parametrize("rank", ["0", "1"])
def test_the_servers_of_a_task_find_each_other(rank, exported, words):
    (thing,) = objects(exported("skypilot", **TWO_SERVERS))
    assert thing["num_nodes"] == 2
    called = words(thing["run"], SKYPILOT_NODE_RANK=rank, SKYPILOT_NODE_IPS="10.0.0.1\n10.0.0.2")
    assert value(called, "--master-addr") == "10.0.0.1"
    assert ("--headless" in called) == (rank == "1")


REFUSED = {
    "KServe with SGLang": ("kserve", of("sglang"), "runs on SGLang, not vllm; export to sglang"),
    "SkyPilot on a cloud it lacks": (
        "skypilot",
        {"price": {"provider": "coreweave"}},
        "SkyPilot has no cloud 'coreweave'",
    ),
    "an engine's target for another engine": ("sglang", {}, "runs on vLLM, not sglang"),
    "Kubernetes without an image": (
        "kubernetes",
        {"accelerator": "gaudi3", "hardware": "gaudi3 x8 mesh 50"},
        "no container image of vLLM is known for gaudi3",
    ),
    "a target nobody knows": ("kubernets", {}, "unknown target 'kubernets'; did you mean 'kub"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_a_target_cannot_express_is_refused_with_the_reason(case, exported):
    target, changes, reason = REFUSED[case]
    with pytest.raises(InputError, match=reason):
        exported(target, **changes)


CONFIG = (
    '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,'
    ' "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,'
    ' "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 32768,'
    ' "torch_dtype": "bfloat16"}'
)


@pytest.mark.parametrize("target", ["kubernetes", "kserve", "skypilot"])
@pytest.mark.parametrize("model", ["./myhf", "./myhf/config.json", "myhf/config.json"])
def test_a_model_folder_is_served_from_where_the_file_says_to_mount_it(
    model, target, exported, tmp_path
):
    (tmp_path / "myhf").mkdir()
    (tmp_path / "myhf" / "config.json").write_text(CONFIG)
    made = exported(target, model=model, weights="bf16", kv="bf16", **ONE_EACH)
    (text,) = made.files.values()
    said = "Mount the folder ./myhf at /models/myhf in every container"
    assert f"# NOTE: {said}" in text
    assert any(said in note for note in made.notes)
    served = yaml.safe_load(text.split("---\n")[0])
    words = {
        "kubernetes": lambda: served["spec"]["template"]["spec"]["containers"][0]["command"],
        "kserve": lambda: [served["spec"]["model"]["uri"].removeprefix("file://")],
        "skypilot": lambda: shlex.split(served["run"]),
    }[target]()
    assert "/models/myhf" in words
    assert not [word for word in words if word.startswith("./")]


def test_folders_of_checkpoint_and_head_are_mounted_too(exported):
    drafts = {"speculation": "eagle3", "draft_tokens": 3, "acceptance": [0.7, 0.9]}
    made = exported("kubernetes", checkpoint="/data/fp8", head="../heads/eagle", **drafts)
    text = by_kind(made)["Deployment"]["spec"]["template"]["spec"]["containers"][0]["command"]
    assert "/data/fp8" in text
    assert json.loads(value(text, "--speculative-config"))["model"] == "/models/eagle"
    mounts = [note for note in made.notes if note.startswith("Mount the folder ")]
    assert [note.split(" in ")[0].removeprefix("Mount the folder ") for note in mounts] == [
        "/data/fp8 at /data/fp8",
        "../heads/eagle at /models/eagle",
    ]


def test_a_script_of_this_machine_mounts_nothing(exported, tmp_path):
    (tmp_path / "myhf").mkdir()
    (tmp_path / "myhf" / "config.json").write_text(CONFIG)
    made = exported("vllm", model="./myhf", weights="bf16", kv="bf16")
    assert "vllm serve ./myhf" in next(iter(made.files.values()))
    assert not any("Mount" in note for note in made.notes)
