"""Small SLO files of other tools, typed by hand in their own keys."""

TEMPLATES = """{
  "_description": "SLO templates for use cases",
  "use_cases": {
    "chatbot_conversational": {
      "use_case": "Chatbot Conversational",
      "description": "Conversational chatbots",
      "traffic_profile": {"prompt_tokens": 512, "output_tokens": 256},
      "experience_class": "conversational",
      "slo_targets": {"ttft_p95_ms": 1500, "itl_p95_ms": 200, "e2e_p95_ms": 60000},
      "rationale": "TTFT<1.5s",
      "business_context": {"user_facing": true, "latency_sensitivity": "high"}
    },
    "code_generation_detailed": {
      "use_case": "Code Generation",
      "traffic_profile": {"prompt_tokens": 1024, "output_tokens": 1024},
      "slo_targets": {"ttft_p95_ms": 1000, "itl_p95_ms": 500, "e2e_mean_ms": 70000}
    }
  }
}
"""

DGDR = """
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeploymentRequest
metadata: {name: qwen}
spec:
  model: Qwen/Qwen3-32B
  backend: trtllm
  searchStrategy: rapid
  workload: {isl: 3000, osl: 500, requestRate: 2.5}
  sla: {ttft: 1500.0, itl: 40.0}
  hardware: {gpuSku: h200_sxm, totalGpus: 16, numGpusPerNode: 8}
  modelCache: {pvcName: weights}
"""

INFERENCE_PERF = """
api:
  type: completion
  streaming: true
server:
  type: vllm
  model_name: meta-llama/Llama-3.1-8B-Instruct
  base_url: http://localhost:8000
data:
  type: random
  input_distribution: {min: 10, max: 4096, mean: 1200, std_dev: 600, total_count: 100}
  output_distribution: {mean: 200, std_dev: 50}
load:
  type: poisson
  stages:
    - {rate: 2, duration: 60}
    - {rate: 6, duration: 60}
report:
  goodput:
    constraints: {ttft: 0.8, tpot: 0.05, ntpot: 0.06, request_latency: 15}
"""

SERVICE_CLASSES = """
apiVersion: v1
kind: ConfigMap
metadata: {name: service-classes-config}
data:
  premium.yaml: |
    name: Premium
    priority: 1
    data:
      - model: meta-llama/Llama-3.1-8B-Instruct
        slo-tpot: 24
        slo-ttft: 500
      - model: meta-llama/Llama-3.3-70B-Instruct
        slo-tpot: 80
        slo-ttft: 1500
  freemium.yaml: |
    name: Freemium
    priority: 10
    data:
      - model: ibm-granite/granite-3.3-8b-instruct
        slo-tpot: 200
        slo-ttft: 2000
"""

AISIMULATE = """
evaluation:
  sla: {ttft_ms: 1000, itl_ms: 50, strict: true}
optimization:
  target: throughput
  hardware: {h200_sxm: 8}
  constraints: {min_candidate_gpus: 1, max_candidate_gpus: 8}
traffic: {source: mooncake, load: 1.0}
"""

FILES = {
    "templates": ("slo_templates.json", TEMPLATES, "chatbot_conversational"),
    "dgdr": ("dgdr.yaml", DGDR, ""),
    "inference-perf": ("perf.yml", INFERENCE_PERF, ""),
    "service classes": ("classes.yaml", SERVICE_CLASSES, "Freemium"),
    "aisimulate": ("sim.yaml", AISIMULATE, ""),
    "goodput": ("goodput.json", '{"ttft": 800, "tpot": 40, "e2el": 20000}', ""),
}
"""Kind -> file name, content, entry to choose."""
