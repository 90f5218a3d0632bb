"""JSON Schemas of the objects that we export, as far as we use them; unknown keys are errors.

Sources, retrieved 2026-11-29: Kubernetes API reference (apps/v1 Deployment, v1 Service, ConfigMap,
Container, Probe, Volume); kubernetes-sigs/lws api/leaderworkerset/v1 and docs/examples;
kserve/kserve docs/samples/llmisvc (serving.kserve.io/v1alpha2); docs.skypilot.co
reference/yaml-spec and serving/service-yaml-spec; kubernetes-sigs/inference-perf docs/config.md.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

DNS_1123 = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
DNS_1035 = r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"


def record(required: Schema, **optional: Schema) -> Schema:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "properties": required | optional,
        "required": list(required),
        "additionalProperties": False,
    }


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


def either(*values: Any) -> Schema:
    return {"enum": list(values)}


TEXT: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 1}
PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
NUMBER: Schema = {"type": "number", "exclusiveMinimum": 0}
NAME: Schema = {"type": "string", "pattern": DNS_1123}
LABELS: Schema = {
    "type": "object",
    "propertyNames": {"pattern": LABEL_KEY},
    "additionalProperties": {"type": "string", "pattern": LABEL_VALUE},
}
ANNOTATIONS: Schema = {
    "type": "object",
    "propertyNames": {"pattern": LABEL_KEY},
    "additionalProperties": {"type": "string"},
}
METADATA = record({"name": NAME}, labels=LABELS, annotations=ANNOTATIONS)
RESOURCES: Schema = {
    "type": "object",
    "propertyNames": {"pattern": r"^([a-z0-9.-]+/)?[a-z0-9-]+$"},
    "additionalProperties": COUNT,
}
PROBE = record(
    {"httpGet": record({"path": TEXT, "port": either("http")})},
    periodSeconds=COUNT,
    failureThreshold=COUNT,
)
SECRET = record({"name": NAME, "key": TEXT}, optional={"type": "boolean"})
ENV = record(
    {"name": {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]*$"}},
    value=TEXT,
    valueFrom=record({"secretKeyRef": SECRET}),
)
CONTAINER = record(
    {"name": NAME, "image": {"type": "string", "pattern": r"^[a-z0-9./-]+:[A-Za-z0-9._-]+$"}},
    command=listed(TEXT),
    env=listed(ENV),
    resources=record({"limits": RESOURCES, "requests": RESOURCES}),
    volumeMounts=listed(record({"name": NAME, "mountPath": TEXT})),
    ports=listed(record({"name": either("http"), "containerPort": PORT})),
    startupProbe=PROBE,
    readinessProbe=PROBE,
)
VOLUME = record(
    {"name": NAME},
    emptyDir=record({}, medium=either("Memory")),
    configMap=record({"name": NAME}),
)
POD = record(
    {
        "metadata": record({"labels": LABELS, "annotations": ANNOTATIONS}),
        "spec": record(
            {"containers": listed(CONTAINER)}, volumes=listed(VOLUME), nodeSelector=LABELS
        ),
    }
)
DEPLOYMENT = record(
    {
        "apiVersion": either("apps/v1"),
        "kind": either("Deployment"),
        "metadata": METADATA,
        "spec": record(
            {
                "replicas": COUNT,
                "selector": record({"matchLabels": LABELS}),
                "template": POD,
                "strategy": record({"type": either("Recreate")}),
            }
        ),
    }
)
LEADER_WORKER_SET = record(
    {
        "apiVersion": either("leaderworkerset.x-k8s.io/v1"),
        "kind": either("LeaderWorkerSet"),
        "metadata": METADATA,
        "spec": record(
            {
                "replicas": COUNT,
                "leaderWorkerTemplate": record(
                    {"size": {"type": "integer", "minimum": 2}, "workerTemplate": POD},
                    leaderTemplate=POD,
                    restartPolicy=either("RecreateGroupOnPodRestart", "None"),
                ),
            }
        ),
    }
)
SERVICE = record(
    {
        "apiVersion": either("v1"),
        "kind": either("Service"),
        # A service's name is a DNS-1035 label.
        "metadata": record(
            {"name": {"type": "string", "pattern": DNS_1035}},
            labels=LABELS,
            annotations=ANNOTATIONS,
        ),
        "spec": record(
            {
                "selector": LABELS,
                "ports": listed(
                    record({"name": either("http"), "port": PORT, "targetPort": either("http")})
                ),
            }
        ),
    }
)
CONFIG_MAP = record(
    {
        "apiVersion": either("v1"),
        "kind": either("ConfigMap"),
        "metadata": METADATA,
        "data": {"type": "object", "additionalProperties": TEXT},
    }
)
KSERVE_TEMPLATE = record({"containers": listed(CONTAINER)})
LLM_INFERENCE_SERVICE = record(
    {
        "apiVersion": either("serving.kserve.io/v1alpha2"),
        "kind": either("LLMInferenceService"),
        "metadata": METADATA,
        "spec": record(
            {
                "model": record(
                    {"uri": {"type": "string", "pattern": r"^(hf|pvc|s3|oci|file)://.+"}},
                    name=TEXT,
                ),
                "replicas": COUNT,
                "template": KSERVE_TEMPLATE,
            },
            parallelism=record(
                {"tensor": COUNT},
                pipeline=COUNT,
                data=COUNT,
                dataLocal=COUNT,
                expert={"type": "boolean"},
            ),
            router=record({"route": {}, "gateway": {}, "scheduler": {}}),
            worker=KSERVE_TEMPLATE,
        ),
    }
)
KUBERNETES = {
    "Deployment": DEPLOYMENT,
    "LeaderWorkerSet": LEADER_WORKER_SET,
    "Service": SERVICE,
    "ConfigMap": CONFIG_MAP,
    "LLMInferenceService": LLM_INFERENCE_SERVICE,
}
"""By kind."""

SKYPILOT = record(
    {
        "name": {"type": "string", "pattern": r"^[a-zA-Z0-9]+(?:[._-]{1,2}[a-zA-Z0-9]+)*$"},
        "resources": record(
            {"infra": {"type": "string", "pattern": r"^[a-z]+/[^/]+$"}, "instance_type": TEXT},
            use_spot={"type": "boolean"},
            image_id={"type": "string", "pattern": r"^docker:.+"},
            disk_size=COUNT,
            ports={"anyOf": [PORT, {"type": "string", "pattern": r"^\d+-\d+$"}]},
            labels=LABELS,
        ),
        "run": TEXT,
    },
    num_nodes=COUNT,
    setup=TEXT,
    secrets={"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    service=record(
        {"readiness_probe": record({"path": TEXT}, initial_delay_seconds=COUNT)},
        replicas=COUNT,
    ),
)
DISTRIBUTION = record(
    {"min": COUNT, "max": COUNT, "mean": NUMBER, "std_dev": {"type": "number", "minimum": 0}},
    total_count=COUNT,
)
INFERENCE_PERF = record(
    {
        "api": record({"type": either("completion", "chat"), "streaming": either(True)}),
        "data": record(
            {"type": either("random", "shared_prefix")},
            input_distribution=DISTRIBUTION,
            output_distribution=DISTRIBUTION,
            shared_prefix=record(
                {
                    "num_groups": COUNT,
                    "num_prompts_per_group": COUNT,
                    "system_prompt_len": COUNT,
                    "question_len": COUNT,
                    "output_len": COUNT,
                },
                question_distribution=DISTRIBUTION,
                output_distribution=DISTRIBUTION,
            ),
        ),
        "load": record(
            {
                "type": either("constant", "poisson", "concurrent"),
                "stages": listed(record({"rate": NUMBER, "duration": COUNT})),
            }
        ),
        "server": record(
            {
                "type": either("vllm", "sglang", "tgi"),
                "model_name": TEXT,
                "base_url": {"type": "string", "pattern": r"^https?://"},
                "ignore_eos": {"type": "boolean"},
            }
        ),
        "tokenizer": record({"pretrained_model_name_or_path": TEXT}),
        "report": record(
            {},
            request_lifecycle=record(
                {name: {"type": "boolean"} for name in ("summary", "per_stage", "per_request")}
            ),
            goodput=record(
                {
                    "constraints": {
                        "type": "object",
                        "propertyNames": either("ttft", "tpot", "itl", "ntpot", "request_latency"),
                        "additionalProperties": NUMBER,
                    }
                }
            ),
        ),
    }
)
