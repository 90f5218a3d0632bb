"""A commented slo.yaml to start from."""

from __future__ import annotations

from planner.candidates.models import architecture_of

DEFAULT_MODEL = "meta-llama/Llama-3.3-70B-Instruct"

TEMPLATE = """\
# What you need. `plan --slo slo.yaml` answers what to buy. Full reference: README, "slo.yaml".
model: {model}   # known name, or path to a Hugging Face config.json or model folder
task: chat                       # chat, rag, summarization, reasoning, code, long_context

traffic:
  rate_per_s: 12                 # requests per second in the hour you size for
  mean_rate_per_s: 7             # what you pay for on average (default: rate_per_s)
  prompt_tokens: {{p50: 900, p95: 3200}}   # log-normal; also {{mean, cv}}; a number is constant
  output_tokens: {{p50: 250, p95: 700}}
  # burstiness: 1.0              # squared CV of the gaps between arrivals; 1 = Poisson
  # prefix_hit_rate: 0.3         # share of prompt tokens served from the prefix cache
  # max_context_tokens: 32768    # longest prompt + output to accept

slo:                             # any of ttft, tpot, itl, e2e x p50, p90, p95, p99, in ms
  ttft_p95_ms: 800
  tpot_p95_ms: 40
  confidence: 0.8                # each target holds with this chance, given our measured error

quality:
  max_loss_percent: 3.0          # against the released checkpoint, pessimistic end of the evidence

purchase:
  terms: [on_demand]             # on_demand, spot, reserved_1y, reserved_3y, owned
  # providers: [aws, lambda]     # also: regions, accelerators
  # max_gpus: 64
  # budget_usd_per_hour: 200

# engines: [vllm]                # default: vllm, sglang and tensorrt-llm
"""


def init(*, model: str | None = None) -> str:
    """Return the text of an slo.yaml that plans as it is.

    Args:
        model: Model to fill in: a known name or a config path.

    Raises:
        InputError: The model is unknown.
    """
    if model is not None:
        architecture_of(model)
    return TEMPLATE.format(model=model or DEFAULT_MODEL)
