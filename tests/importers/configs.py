"""Shapes of public config.json files: the keys that decide the size, and the published count.

Facts only; the files themselves hold more keys. Counts are the safetensors totals or model cards
of the hub pages named, in billions, for the main model (no MTP layers, no copy of a tied head).
"""

from tests.importers.configs_more import MORE
from tests.importers.shapes import DEEPSEEK, GLM5, LLAMA, QWEN3, QWEN25, QWEN35, V3, VISION

# fmt: off
# hub name -> (config, parameters in billions)
PUBLISHED: dict[str, tuple[dict[str, object], float]] = {
    "meta-llama/Llama-3.1-8B": (
        LLAMA
        | {
            "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32,
        },
        8.030,
    ),
    "meta-llama/Llama-3.1-405B": (
        LLAMA
        | {
            "hidden_size": 16384, "intermediate_size": 53248, "num_hidden_layers": 126,
            "num_attention_heads": 128,
        },
        405.853,
    ),
    "meta-llama/Llama-3.2-1B": (
        LLAMA
        | {
            "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
            "num_attention_heads": 32, "head_dim": 64, "tie_word_embeddings": True,
        },
        1.236,
    ),
    "meta-llama/Llama-2-7b-hf": (
        {
            "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
            "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000,
            "max_position_embeddings": 4096,
        },
        6.738,
    ),
    "meta-llama/Llama-3.2-11B-Vision": (
        {
            "model_type": "mllama",
            "text_config": {
                "model_type": "mllama_text_model", "hidden_size": 4096, "intermediate_size": 14336,
                "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
                "vocab_size": 128256, "max_position_embeddings": 131072,
                "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
            },
        },
        9.775,  # the language model alone
    ),
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": (
        {
            "model_type": "llama4",
            "text_config": {
                "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
                "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
                "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 128,
                "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "vocab_size": 202048,
                "attention_chunk_size": 8192, "max_position_embeddings": 1048576,
            },
        },
        400.7,
    ),
    "Qwen/Qwen2.5-7B-Instruct": (
        QWEN25
        | {
            "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
            "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
        },
        7.616,
    ),
    "Qwen/Qwen2.5-0.5B-Instruct": (
        QWEN25
        | {
            "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
            "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
        0.494,
    ),
    "Qwen/Qwen3-32B": (
        QWEN3
        | {
            "hidden_size": 5120, "intermediate_size": 25600, "num_hidden_layers": 64,
            "num_attention_heads": 64, "num_key_value_heads": 8,
        },
        32.762,
    ),
    "Qwen/Qwen3-0.6B": (
        QWEN3
        | {
            "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
            "num_attention_heads": 16, "num_key_value_heads": 8, "tie_word_embeddings": True,
        },
        0.596,
    ),
    "Qwen/Qwen3-235B-A22B": (
        QWEN3
        | {
            "model_type": "qwen3_moe", "hidden_size": 4096, "intermediate_size": 12288,
            "num_hidden_layers": 94, "num_attention_heads": 64, "num_key_value_heads": 4,
            "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1536,
            "decoder_sparse_step": 1, "mlp_only_layers": [],
        },
        235.094,
    ),
    "Qwen/Qwen1.5-MoE-A2.7B": (
        {
            "model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632,
            "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
            "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1,
            "vocab_size": 151936, "max_position_embeddings": 8192,
        },
        14.316,
    ),
    "Qwen/Qwen2.5-VL-7B-Instruct": (
        {
            "model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944,
            "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
            "vocab_size": 152064, "max_position_embeddings": 128000, "use_sliding_window": False,
            "vision_config": {
                "depth": 32, "hidden_act": "silu", "hidden_size": 1280, "intermediate_size": 3420,
                "num_heads": 16, "out_hidden_size": 3584, "patch_size": 14,
                "spatial_merge_size": 2, "temporal_patch_size": 2,
            },
        },
        8.292,
    ),
    "Qwen/Qwen3-VL-8B-Instruct": (
        {
            "model_type": "qwen3_vl", "tie_word_embeddings": False,
            "text_config": QWEN3
            | {
                "model_type": "qwen3_vl_text", "hidden_size": 4096, "intermediate_size": 12288,
                "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
            },
            "vision_config": VISION | {"deepstack_visual_indexes": [8, 16, 24]},
        },
        8.767,
    ),
    "Qwen/Qwen3-Next-80B-A3B-Instruct": (
        {
            "model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48,
            "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
            "vocab_size": 151936, "num_experts": 512, "num_experts_per_tok": 10,
            "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
            "intermediate_size": 5120, "decoder_sparse_step": 1, "full_attention_interval": 4,
            "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 32,
            "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
            "max_position_embeddings": 262144, "tie_word_embeddings": False,
        },
        79.674,
    ),
    "Qwen/Qwen3.5-397B-A17B": (QWEN35, 396.8), "deepseek-ai/DeepSeek-V3": (V3, 671.0),
    "deepseek-ai/DeepSeek-V2-Lite": (
        DEEPSEEK
        | {
            "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944,
            "num_hidden_layers": 27, "num_attention_heads": 16, "q_lora_rank": None,
            "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2,
            "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "vocab_size": 102400,
            "max_position_embeddings": 163840,
        },
        15.706,
    ),
    "zai-org/GLM-5": (GLM5, 744.0),
    "moonshotai/Kimi-K2-Instruct": (
        V3
        | {
            "model_type": "kimi_k2", "num_attention_heads": 64, "num_key_value_heads": 64,
            "n_routed_experts": 384, "first_k_dense_replace": 1, "vocab_size": 163840,
            "num_nextn_predict_layers": 0,
        },
        1026.4,
    ),
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": (
        DEEPSEEK
        | {
            "model_type": "kimi_linear", "hidden_size": 2304, "intermediate_size": 9216,
            "num_hidden_layers": 27, "num_attention_heads": 32, "num_key_value_heads": 32,
            "head_dim": 72, "q_lora_rank": None, "num_experts": 256, "num_experts_per_token": 8,
            "num_shared_experts": 1, "moe_intermediate_size": 1024, "first_k_dense_replace": 1,
            "vocab_size": 163840, "model_max_length": 1048576, "max_position_embeddings": 1048576,
            "linear_attn_config": {
                "full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "num_heads": 32, "head_dim": 128,
                "short_conv_kernel_size": 4,
            },
        },
        49.1,
    ),
    "MiniMaxAI/MiniMax-M2.5": (
        {
            "model_type": "minimax_m2", "hidden_size": 3072, "intermediate_size": 1536,
            "num_hidden_layers": 62, "num_attention_heads": 48, "num_key_value_heads": 8,
            "head_dim": 128, "num_local_experts": 256, "num_experts_per_tok": 8,
            "shared_intermediate_size": 0, "vocab_size": 200064, "attn_type_list": [1] * 62,
            "max_position_embeddings": 196608, "tie_word_embeddings": False, "use_mtp": True,
            "num_mtp_modules": 3,
        },
        228.7,
    ),
    "MiniMaxAI/MiniMax-Text-01": (
        {
            "model_type": "minimax_text_01", "hidden_size": 6144, "intermediate_size": 9216,
            "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
            "head_dim": 128, "num_local_experts": 32, "num_experts_per_tok": 2,
            "shared_intermediate_size": 0, "attn_type_list": ([0] * 7 + [1]) * 10,
            "vocab_size": 200064, "max_position_embeddings": 10240000,
        },
        456.0,
    ),
    **MORE,
}
