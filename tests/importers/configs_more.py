"""The second half of the shapes of public config.json files; see ``configs.py``."""

from tests.importers.shapes import GPT_OSS, NEMOTRON

# fmt: off
MORE: dict[str, tuple[dict[str, object], float]] = {
    "mistralai/Mistral-7B-v0.1": (
        {
            "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "vocab_size": 32000, "sliding_window": 4096, "max_position_embeddings": 32768,
        },
        7.242,
    ),
    "mistralai/Mistral-Nemo-Base-2407": (
        {
            "model_type": "mistral", "hidden_size": 5120, "intermediate_size": 14336,
            "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
            "head_dim": 128, "vocab_size": 131072, "sliding_window": None,
            "max_position_embeddings": 131072,
        },
        12.248,
    ),
    "mistralai/Mixtral-8x7B-v0.1": (
        {
            "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
            "sliding_window": None, "max_position_embeddings": 32768,
        },
        46.703,
    ),
    "google/gemma-2-9b": (
        {
            "model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336,
            "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8,
            "head_dim": 256, "vocab_size": 256000, "sliding_window": 4096,
            "max_position_embeddings": 8192,
        },
        9.242,
    ),
    "google/gemma-3-4b-pt": (
        {
            "model_type": "gemma3",
            "text_config": {
                "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
                "num_hidden_layers": 34, "sliding_window": 1024,
            },
            "vision_config": {
                "hidden_size": 1152, "intermediate_size": 4304, "num_attention_heads": 16,
                "num_hidden_layers": 27, "patch_size": 14,
            },
        },
        4.300,
    ),
    "google/gemma-4-31B": (
        {
            "model_type": "gemma4",
            "text_config": {
                "model_type": "gemma4_text", "hidden_size": 5376, "intermediate_size": 21504,
                "num_hidden_layers": 60, "num_attention_heads": 32, "num_key_value_heads": 16,
                "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 4,
                "attention_k_eq_v": True,
                "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10,
                "sliding_window": 1024, "vocab_size": 262144, "max_position_embeddings": 262144,
            },
        },
        30.7,  # without the vision tower of 0.55
    ),
    "openai/gpt-oss-120b": (GPT_OSS, 116.829),
    "openai/gpt-oss-20b": (
        GPT_OSS
        | {
            "num_hidden_layers": 24, "num_local_experts": 32,
            "layer_types": ["sliding_attention", "full_attention"] * 12,
        },
        20.915,
    ),
    "zai-org/GLM-4.5-Air": (
        {
            "model_type": "glm4_moe", "hidden_size": 4096, "intermediate_size": 10944,
            "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8,
            "head_dim": 128, "n_routed_experts": 128, "num_experts_per_tok": 8,
            "n_shared_experts": 1, "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
            "attention_bias": True, "vocab_size": 151552, "max_position_embeddings": 131072,
            "num_nextn_predict_layers": 1, "tie_word_embeddings": False,
        },
        106.852,
    ),
    "microsoft/phi-2": (
        {
            "model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240,
            "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 51200,
            "max_position_embeddings": 2048, "tie_word_embeddings": False,
        },
        2.780,
    ),
    "microsoft/phi-4": (
        {
            "model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920,
            "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 10,
            "vocab_size": 100352, "sliding_window": None, "max_position_embeddings": 16384,
        },
        14.660,
    ),
    "XiaomiMiMo/MiMo-V2-Flash": (
        {
            "model_type": "mimo_v2_flash", "hidden_size": 4096, "intermediate_size": 16384,
            "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 4,
            "head_dim": 192, "v_head_dim": 128, "swa_num_attention_heads": 64,
            "swa_num_key_value_heads": 8, "swa_head_dim": 192, "swa_v_head_dim": 128,
            "sliding_window": 128, "attention_chunk_size": 128,
            "hybrid_layer_pattern": [0, 1, 1, 1, 1] + ([0] + [1] * 5) * 7 + [0],
            "moe_layer_freq": [0] + [1] * 47, "n_routed_experts": 256, "num_experts_per_tok": 8,
            "n_shared_experts": None, "moe_intermediate_size": 2048, "vocab_size": 152576,
            "max_position_embeddings": 262144, "tie_word_embeddings": False,
        },
        308.8,
    ),
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (NEMOTRON, 31.578),
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16": (
        NEMOTRON
        | {
            "hidden_size": 4096, "num_hidden_layers": 88, "mamba_num_heads": 128,
            "hybrid_override_pattern": (
                "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*"
                "EMEMEMEME"
            ),
            "intermediate_size": 2688, "moe_intermediate_size": 2688, "moe_latent_size": 1024,
            "moe_shared_expert_intermediate_size": 5376, "n_routed_experts": 512,
            "num_experts_per_tok": 22,
        },
        120.6,
    ),
    "ai21labs/Jamba-v0.1": (
        {
            "model_type": "jamba", "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "num_experts": 16, "num_experts_per_tok": 2, "expert_layer_period": 2,
            "expert_layer_offset": 1, "attn_layer_period": 8, "attn_layer_offset": 4,
            "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256,
            "vocab_size": 65536, "max_position_embeddings": 262144, "tie_word_embeddings": False,
            "sliding_window": None,
        },
        51.570,
    ),
    "ibm-granite/granite-4.0-h-small": (
        {
            "model_type": "granitemoehybrid", "hidden_size": 4096, "intermediate_size": 768,
            "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
            "num_local_experts": 72, "num_experts_per_tok": 10, "shared_intermediate_size": 1536,
            "layer_types": (["mamba"] * 9 + ["attention"]) * 4, "mamba_n_heads": 128,
            "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4,
            "vocab_size": 100352, "max_position_embeddings": 131072, "tie_word_embeddings": True,
        },
        32.2,
    ),
    "tencent/Hunyuan-A13B-Instruct": (
        {
            "model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "head_dim": 128, "num_experts": 64, "moe_topk": [8] * 32,
            "num_shared_expert": [1] * 32, "moe_intermediate_size": [3072] * 32,
            "vocab_size": 128167, "max_position_embeddings": 32768, "tie_word_embeddings": True,
        },
        80.393,
    ),
    "baidu/ERNIE-4.5-21B-A3B-PT": (
        {
            "model_type": "ernie4_5_moe", "hidden_size": 2560, "intermediate_size": 12288,
            "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4,
            "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2,
            "moe_intermediate_size": 1536, "moe_layer_start_index": 1, "moe_layer_interval": 1,
            "vocab_size": 103424, "max_position_embeddings": 131072, "tie_word_embeddings": True,
        },
        21.825,
    ),
    "databricks/dbrx-base": (
        {
            "model_type": "dbrx", "d_model": 6144, "n_layers": 40, "n_heads": 48,
            "max_seq_len": 32768, "vocab_size": 100352, "attn_config": {"kv_n_heads": 8},
            "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
        },
        131.597,
    ),
    "bigscience/bloom": (
        {
            "model_type": "bloom", "n_embed": 14336, "hidden_size": 14336, "n_layer": 70,
            "n_head": 112, "vocab_size": 250880, "seq_length": 2048,
        },
        176.247,
    ),
    "facebook/opt-6.7b": (
        {
            "model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384, "num_hidden_layers": 32,
            "num_attention_heads": 32, "vocab_size": 50272, "max_position_embeddings": 2048,
        },
        6.658,
    ),
    "EleutherAI/gpt-j-6b": (
        {
            "model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_inner": None,
            "vocab_size": 50400, "n_positions": 2048, "tie_word_embeddings": False,
        },
        6.051,
    ),
    "tiiuae/falcon-7b": (
        {
            "model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
            "num_attention_heads": 71, "multi_query": True, "new_decoder_architecture": False,
            "bias": False, "vocab_size": 65024,
        },
        6.922,
    ),
    "tiiuae/falcon-40b": (
        {
            "model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60,
            "num_attention_heads": 128, "num_kv_heads": 8, "multi_query": True,
            "new_decoder_architecture": True, "bias": False, "vocab_size": 65024,
        },
        41.303,
    ),
    "bigcode/starcoder": (
        {
            "model_type": "gpt_bigcode", "n_embd": 6144, "n_inner": 24576, "n_layer": 40,
            "n_head": 48, "multi_query": True, "vocab_size": 49152, "n_positions": 8192,
        },
        15.517,
    ),
    "mosaicml/mpt-7b": (
        {
            "model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32,
            "expansion_ratio": 4, "max_seq_len": 2048, "vocab_size": 50432, "no_bias": True,
            "attn_config": {"attn_impl": "torch"},
        },
        6.649,
    ),
    "Deci/DeciLM-7B": (
        {
            "model_type": "deci", "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000,
            "num_key_value_heads_per_layer": [4] * 5 + [2] * 5 + [4] + [2] * 9 + [1] * 11 + [4],
            "max_position_embeddings": 8192,
        },
        7.044,
    ),
}
