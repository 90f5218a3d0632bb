"""Runs that check an option: the planned rate and lengths, the targets as goodput constraints.

Sources: vllm-project/vllm vllm/benchmarks/serve.py and docs.vllm.ai benchmarking/sweeps;
vllm-project/guidellm docs/guides (v0.7 command line, service_level_objectives);
kubernetes-sigs/inference-perf docs/config.md and goodput.md; retrieved 2026-11-29. None of these
tools draws log-normal lengths. vLLM reads the lengths of each request from a file in the form of
BurstGPT (vllm/benchmarks/datasets.py: columns 3 and 4 of the rows of model GPT-4; prompts share no
prefix). The others, and vLLM for prompts with a shared prefix, get the same mean and, as far as
they can, the same spread, and the file says so.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.deploy.deployment import Deployment
from planner.deploy.text import Shell, header, script, shell_join
from planner.deploy.vllm import command
from planner.errors import InputError
from planner.files import dump_yaml
from planner.spec.lengths import MAX_TOKENS, Lengths

LEAST_REQUESTS = 1000
"""For a p99: ten requests beyond it."""
LEAST_SECONDS = 300
LEAST_BATCHES = 2
"""Offline: full batches of every replica; with fewer, most of a run is its start and its end."""
LENGTHS = 2000
"""Rows of a file of lengths; a longer run draws some of them again."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Steps of this size along 0 to 1 fill it evenly, in an order that no other rank follows."""
GOODPUT = {"ttft": "ttft", "tpot": "tpot", "e2e": "e2el"}
"""Metrics that every tool can hold requests to; our names and vLLM's."""
PERF_GOODPUT = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "request_latency"}
STEPS = (0.5, 1.0, 2.0)
"""Limits tried around the planned ones, as shares of them."""
RATES = (0.8, 1.0, 1.2)
SQRT3 = math.sqrt(3.0)
PERF_SERVERS = {"sglang": "sglang"}
"""Engine -> server type of inference-perf; the others are asked as vLLM is."""


@dataclass(frozen=True)
class Load:
    """What a benchmark tool is asked to do.

    Attributes:
        rate: Requests per second on the whole deployment; None = all at once (offline).
        requests, seconds: Length of the run.
        prompt, output: Mean lengths without the shared prefix [tokens].
        prefix: Tokens at the start of every prompt that all share.
        prompt_spread, output_spread: Standard deviations [tokens].
        pairs: Prompt and output of a file's requests, in the plan's own distribution; empty = the
            lengths are constant, or prompts share a prefix.
        longest: Prompt and output that one request in 20 of the plan exceeds [tokens].
        burstiness: Squared CV of the gaps.
        limits: Limit of each metric [ms].
    """

    rate: float | None
    requests: int
    seconds: int
    prompt: int
    output: int
    prefix: int
    prompt_spread: float
    output_spread: float
    pairs: tuple[tuple[int, int], ...]
    longest: tuple[int, int]
    burstiness: float
    limits: Mapping[str, float]


def load(d: Deployment) -> Load:
    """Return the planned load.

    Raises:
        InputError: The plan has no one pair of lengths.
    """
    traffic = d.slo.traffic
    prompts, outputs = traffic.prompt_tokens, traffic.output_tokens
    if prompts is None or outputs is None:
        raise InputError(d.option.id, ["the plan's lengths are a trace or classes; replay those"])
    rate = None if traffic.offline is not None else d.option.rate_per_s
    many = LEAST_BATCHES * d.option.replicas * _batch(d) if rate is None else rate * LEAST_SECONDS
    requests = max(LEAST_REQUESTS, math.ceil(many))
    prefix = round(prompts.mean * traffic.prefix_hit_rate)
    return Load(
        rate=rate,
        requests=requests,
        seconds=math.ceil(requests / rate) if rate is not None else LEAST_SECONDS,
        prompt=max(round(prompts.mean) - prefix, 1),
        output=max(round(outputs.mean), 2),
        prefix=prefix,
        prompt_spread=prompts.mean * math.sqrt(math.expm1(prompts.sigma**2)),
        output_spread=outputs.mean * math.sqrt(math.expm1(outputs.sigma**2)),
        pairs=() if prefix else _pairs(prompts, outputs, d.context),
        longest=(round(prompts.quantile(0.95)), round(outputs.quantile(0.95))),
        burstiness=traffic.burstiness,
        limits=_limits(d),
    )


def _batch(d: Deployment) -> int:
    """Return the sequences that one replica may have in flight."""
    return d.option.max_num_seqs * d.option.dp


def _pairs(prompts: Lengths, outputs: Lengths, context: int | None) -> tuple[tuple[int, int], ...]:
    """Return lengths of requests at even ranks of both distributions, independent of each other."""
    if not prompts.sigma and not outputs.sigma:
        return ()
    most = context or MAX_TOKENS
    pairs = []
    for number in range(LENGTHS):
        output = min(max(round(outputs.quantile((number * GOLDEN + 0.5) % 1.0)), 2), most - 1)
        prompt = max(round(prompts.quantile((number + 0.5) / LENGTHS)), 1)
        pairs.append((min(prompt, most - output), output))
    return tuple(pairs)


def _lengths_file(work: Load) -> str:
    """Return the lengths as vLLM reads them from a file of BurstGPT."""
    head = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    rows = (f"0,GPT-4,{prompt},{output},{prompt + output},plan" for prompt, output in work.pairs)
    return head + "\n".join(rows) + "\n"


def _symmetric(work: Load) -> str:
    """Return what lengths that lie evenly around their mean change, as a line; empty = nothing."""
    if not work.prompt_spread and not work.output_spread:
        return ""
    prompt, output = work.longest
    return (
        "\nNOTE: the lengths of this run lie evenly around the plan's means. In the plan one prompt"
        f" in 20 is longer than {prompt:,} tokens, and one output in 20 than {output:,}: with"
        " fewer long requests, high percentiles of TTFT and E2E come out lower here."
    )


def _even(mean: int, spread: float) -> float:
    """Return the spread of a bell that may be cut two spreads away on both sides.

    Cut on one side alone, its mean would no longer be the plan's.
    """
    return min(spread, (mean - 2) / 2)


def _limits(d: Deployment) -> dict[str, float]:
    """Return the limit of each metric: that of its highest percentile."""
    limits: dict[str, float] = {}
    for metric, _, limit in sorted(d.slo.targets.items(), key=lambda target: target[1]):
        limits[metric] = limit
    return limits


def _setup(d: Deployment, work: Load) -> list[str]:
    lines = [
        f'URL="${{URL:-http://localhost:{d.runtime.port}}}"',
        f"MODEL={shlex.quote(d.model)}",
    ]
    if work.rate is not None:
        lines.append(f'RATE="${{RATE:-{work.rate:g}}}"')
    return lines


def _about(d: Deployment, work: Load, result: str) -> str:
    one = d.option.rate_per_s / d.option.replicas
    share = f"RATE={one:g}" if work.rate else f"1/{d.option.replicas} of the requests"
    return (
        f"{header(d)}\n"
        f"URL: the whole deployment; for one replica alone run with {share}.\n"
        f"Then: plan verify PLAN {result} --option {d.option.id}"
        f"\n  or: plan calibrate {result} ... --plan PLAN --option {d.option.id}"
    )


def vllm_bench(d: Deployment) -> dict[str, str]:
    """Return a script with ``vllm bench serve``."""
    work, result = load(d), f"{d.name}-vllm-bench.json"
    data, files = _dataset(d, work)
    bench = _bench(work, data, (Shell('"${URL}"'), Shell('"${MODEL}"'), Shell('"${RATE}"')))
    words = [*bench, "--save-result", "--result-filename", result]
    about = _about(d, work, result) + _lengths_note(work, files)
    return {f"{d.name}-vllm-bench.sh": script(words, about, _setup(d, work)), **files}


def _dataset(d: Deployment, work: Load) -> tuple[list[str], dict[str, str]]:
    """Return the words that say what vLLM's requests are, and the file that they name, if any."""
    if work.pairs:
        name = f"{d.name}-lengths.csv"
        return ["--dataset-name", "burstgpt", "--dataset-path", name], {name: _lengths_file(work)}
    ratio = min(SQRT3 * work.output_spread / work.output, 0.99)
    words = [
        "--dataset-name", "random",
        "--random-input-len", str(work.prompt),
        "--random-output-len", str(work.output),
        "--random-range-ratio", f"{ratio:.2f}",
        "--random-prefix-len", str(work.prefix),
    ]  # fmt: skip
    return words, {}


def _lengths_note(work: Load, files: Mapping[str, str]) -> str:
    """Return where the lengths come from, as a line."""
    named = "".join(f"\nRun it in the folder of {name}, the plan's own lengths." for name in files)
    return named or _symmetric(work)


def _bench(work: Load, data: list[str], where: tuple[str, str, str]) -> list[str]:
    """Return the command of a run; `where`: address, model and rate, as words."""
    url, model, rate = where
    words: list[str] = [
        "vllm", "bench", "serve",
        "--backend", "openai",
        "--base-url", url,
        "--endpoint", "/v1/completions",
        "--model", model,
        *data,
        "--ignore-eos",
        "--num-prompts", str(work.requests),
        "--percentile-metrics", "ttft,tpot,itl,e2el",
        "--metric-percentiles", "50,90,95,99",
    ]  # fmt: skip
    if work.rate is not None:
        shape = 1.0 / max(work.burstiness, 1e-3)
        words += ["--request-rate", rate, "--burstiness", f"{shape:.4g}"]
    good = [f"{GOODPUT[metric]}:{v:g}" for metric, v in work.limits.items() if metric in GOODPUT]
    return [*words, *(["--goodput", *good] if good else [])]


def vllm_sweep(d: Deployment) -> dict[str, str]:
    """Return limits around the option and rates around the plan, for ``vllm bench sweep serve``.

    Raises:
        InputError: A replica over several servers.
    """
    if d.nodes > 1:
        reason = f"vLLM's sweep starts one server, not {d.nodes}"
        raise InputError(d.option.id, [f"{reason}; use guidellm, vllm-bench or inference-perf"])
    work, o = load(d), d.option
    serve = [
        {"max_num_seqs": max(round(o.max_num_seqs * a), 1),
         "max_num_batched_tokens": max(round(o.token_budget * b), 256)}
        for a in STEPS for b in STEPS
    ]  # fmt: skip
    one = o.rate_per_s / o.replicas
    bench: list[dict[str, float]] = [
        {"request_rate": float(f"{one * share:.4g}")} for share in RATES
    ]
    said = "One replica under its share of the rate."
    if work.rate is None:
        # Enough for the largest batch limit that is tried.
        most = LEAST_BATCHES * math.ceil(max(STEPS) * _batch(d))
        bench = [{"num_prompts": max(LEAST_REQUESTS, most)}]
        said = "One replica, its requests all at once."
    data, files = _dataset(d, work)
    where = (f"http://localhost:{d.runtime.port}", d.model, f"{one:g}")
    bench_words = _bench(work, data, where)
    name, note = f"{d.name}-sweep", _lengths_note(work, files)
    words = [
        "vllm", "bench", "sweep", "serve",
        "--serve-cmd", shell_join(command(d)),
        "--bench-cmd", shell_join(bench_words),
        "--serve-params", f"{name}-serve.json",
        "--bench-params", f"{name}-bench.json",
        "--output-dir", name,
    ]  # fmt: skip
    return {
        f"{name}.sh": script(words, f"{header(d)}\n{said}{note}"),
        f"{name}-serve.json": json.dumps(serve, indent=1) + "\n",
        f"{name}-bench.json": json.dumps(bench, indent=1) + "\n",
        **files,
    }


def guidellm(d: Deployment) -> dict[str, str]:
    """Return a script with ``guidellm run``."""
    work, result = load(d), f"{d.name}-guidellm.json"
    data: dict[str, Any] = {
        "kind": "synthetic_text",
        "prompt_tokens": work.prompt,
        "output_tokens": work.output,
    }
    for key, mean, spread in (
        ("prompt", work.prompt, work.prompt_spread),
        ("output", work.output, work.output_spread),
    ):
        even = _even(mean, spread)
        if even >= 1:
            data |= {
                f"{key}_tokens_stdev": round(even),
                f"{key}_tokens_min": round(mean - 2 * even),
                f"{key}_tokens_max": round(mean + 2 * even),
            }
    if work.prefix:
        data["prefix_buckets"] = [{"prefix_count": 1, "prefix_tokens": work.prefix}]
    slo = {f"{GOODPUT[m]}_ms": v for m, v in work.limits.items() if m in GOODPUT}
    profile = Shell('"kind=poisson,rate=${RATE}"') if work.rate is not None else "kind=throughput"
    words = [
        "guidellm", "run",
        "--backend", Shell('"kind=openai_http,target=${URL},model=${MODEL}"'),
        "--profile", profile,
        "--data", json.dumps(data),
        "--metrics", json.dumps({"kind": "generative", "slo": slo}),
        "--constraint", f"kind=max_duration,seconds={work.seconds}",
        "--output", f"kind=json,path={result}",
    ]  # fmt: skip
    about = _about(d, work, result) + _symmetric(work)
    if work.burstiness != 1:
        about += f"\nNOTE: the plan's gaps have a squared CV of {work.burstiness:g}; these have 1."
    return {f"{d.name}-guidellm.sh": script(words, about, _setup(d, work))}


def inference_perf(d: Deployment) -> dict[str, str]:
    """Return a configuration for ``inference-perf --config_file``."""
    work = load(d)
    rate = work.rate if work.rate is not None else work.requests / 1.0
    limits = {PERF_GOODPUT[m]: v / 1e3 for m, v in work.limits.items() if m in PERF_GOODPUT}
    config: dict[str, Any] = {
        "api": {"type": "completion", "streaming": True},
        "data": _perf_data(work),
        "load": {
            "type": "poisson",
            "stages": [{"rate": rate, "duration": work.seconds if work.rate is not None else 1}],
        },
        "server": {
            "type": PERF_SERVERS.get(d.engine.id, "vllm"),
            "model_name": d.model,
            "base_url": f"http://localhost:{d.runtime.port}",
            "ignore_eos": True,
        },
        "tokenizer": {"pretrained_model_name_or_path": d.model},
        "report": {
            "request_lifecycle": {"summary": True, "per_stage": True, "per_request": False},
            **({"goodput": {"constraints": limits}} if limits else {}),
        },
    }
    about = _about(d, work, "stage_0_lifecycle_metrics.json") + _symmetric(work)
    use = f"Use: inference-perf --config_file {d.name}-inference-perf.yaml"
    name = f"{d.name}-inference-perf.yaml"
    return {name: dump_yaml(config, comment=f"{about}\n{use}")}


def _perf_data(work: Load) -> dict[str, Any]:
    output = _distribution(work.output, work.output_spread, work.requests)
    if not work.prefix:
        prompt = _distribution(work.prompt, work.prompt_spread, work.requests)
        return {"type": "random", "input_distribution": prompt, "output_distribution": output}
    question = _distribution(work.prompt, work.prompt_spread, None)
    return {
        "type": "shared_prefix",
        "shared_prefix": {
            "num_groups": 1,
            "num_prompts_per_group": work.requests,
            "system_prompt_len": work.prefix,
            "question_len": work.prompt,
            "output_len": work.output,
            "question_distribution": question,
            "output_distribution": {k: v for k, v in output.items() if k != "total_count"},
        },
    }


def _distribution(mean: int, spread: float, count: int | None) -> dict[str, Any]:
    even = max(_even(mean, spread), 0.0)
    shape = {
        "min": round(mean - 2 * even),
        "max": round(mean + 2 * even),
        "mean": mean,
        "std_dev": round(even, 1),
    }
    return shape | ({"total_count": count} if count is not None else {})
