"""Flags that each release takes, from its own documentation and argument parser.

Sources, retrieved 2026-11-29: vLLM 0.19: docs.vllm.ai v0.18.0 to v0.22.1 (cli/serve,
cli/bench/sweep), vllm-project/vllm vllm/config/cache.py, vllm/benchmarks/serve.py; SGLang 0.5.10:
sgl-project/sglang python/sglang/srt/server_args.py; TensorRT-LLM 1.2:
NVIDIA/TensorRT-LLM tensorrt_llm/commands/serve.py; GuideLLM 0.7: vllm-project/guidellm
docs/guides/v0.7.0_migration_guide.md.
"""

SERVE = {
    "vllm": {
        "--host", "--port", "--tensor-parallel-size", "--pipeline-parallel-size",
        "--data-parallel-size", "--data-parallel-size-local", "--data-parallel-start-rank",
        "--data-parallel-address", "--enable-expert-parallel", "--quantization",
        "--kv-cache-dtype", "--max-model-len", "--max-num-seqs", "--max-num-batched-tokens",
        "--gpu-memory-utilization", "--speculative-config", "--nnodes", "--node-rank",
        "--master-addr", "--headless", "--revision",
    },
    "sglang": {
        "--model-path", "--host", "--port", "--tp-size", "--pp-size", "--dp-size",
        "--enable-dp-attention", "--ep-size", "--quantization", "--kv-cache-dtype",
        "--context-length", "--max-running-requests", "--chunked-prefill-size",
        "--mem-fraction-static", "--speculative-algorithm", "--speculative-draft-model-path",
        "--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens",
        "--nnodes", "--node-rank", "--dist-init-addr", "--revision",
    },
    "tensorrt-llm": {
        "--host", "--port", "--tp_size", "--pp_size", "--ep_size", "--max_batch_size",
        "--max_num_tokens", "--max_seq_len", "--kv_cache_free_gpu_memory_fraction",
        "--extra_llm_api_options", "--revision",
    },
}  # fmt: skip
CACHE_TYPES = {
    "vllm": {
        "auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "int4_per_token_head",
        "int8_per_token_head", "fp8_per_token_head", "nvfp4",
    },
    "sglang": {"auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16", "fp4_e2m1"},
    "tensorrt-llm": {"auto", "fp8", "nvfp4"},
}  # fmt: skip
TRTLLM_KEYS = {
    "enable_attention_dp", "kv_cache_config", "speculative_config", "enable_chunked_prefill",
}  # fmt: skip
VLLM_BENCH = {
    "--backend", "--base-url", "--endpoint", "--model", "--dataset-name", "--dataset-path",
    "--random-input-len",
    "--random-output-len", "--random-range-ratio", "--random-prefix-len", "--ignore-eos",
    "--num-prompts", "--percentile-metrics", "--metric-percentiles", "--request-rate",
    "--burstiness", "--goodput", "--save-result", "--result-filename",
}  # fmt: skip
VLLM_SWEEP = {"--serve-cmd", "--bench-cmd", "--serve-params", "--bench-params", "--output-dir"}
GUIDELLM = {"--backend", "--profile", "--data", "--metrics", "--constraint", "--output"}
