"""Keys that several public config.json files share; facts only."""

# fmt: off
LLAMA = {
    "model_type": "llama", "vocab_size": 128256, "num_key_value_heads": 8,
    "max_position_embeddings": 131072, "tie_word_embeddings": False,
}
QWEN25 = {
    "model_type": "qwen2", "max_position_embeddings": 32768, "use_sliding_window": False,
    "sliding_window": 131072, "max_window_layers": 28,
}
QWEN3 = {
    "model_type": "qwen3", "vocab_size": 151936, "head_dim": 128, "max_position_embeddings": 40960,
    "use_sliding_window": False,
}
DEEPSEEK = {
    "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
    "moe_layer_freq": 1, "tie_word_embeddings": False,
}
V3 = DEEPSEEK | {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "q_lora_rank": 1536, "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
    "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "vocab_size": 129280,
    "max_position_embeddings": 163840, "num_nextn_predict_layers": 1,
}
GLM5 = DEEPSEEK | {
    "model_type": "glm_moe_dsa", "hidden_size": 6144, "intermediate_size": 12288,
    "num_hidden_layers": 78, "num_attention_heads": 64, "num_key_value_heads": 64, "head_dim": 64,
    "q_lora_rank": 2048, "qk_nope_head_dim": 192, "v_head_dim": 256, "n_routed_experts": 256,
    "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3, "vocab_size": 154880, "max_position_embeddings": 202752,
    "index_head_dim": 128, "index_n_heads": 32, "index_topk": 2048, "num_nextn_predict_layers": 1,
}
VISION = {
    "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "patch_size": 16,
    "temporal_patch_size": 2, "spatial_merge_size": 2, "num_position_embeddings": 2304,
}
NEMOTRON = {
    "model_type": "nemotron_h", "hidden_size": 2688, "vocab_size": 131072, "head_dim": 128,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "num_hidden_layers": 52, "num_attention_heads": 32, "num_key_value_heads": 2,
    "intermediate_size": 1856, "moe_intermediate_size": 1856, "n_routed_experts": 128,
    "num_experts_per_tok": 6, "n_shared_experts": 1, "moe_shared_expert_intermediate_size": 3712,
    "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
    "conv_kernel": 4, "max_position_embeddings": 262144, "tie_word_embeddings": False,
}
GPT_OSS = {
    "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "head_dim": 64,
    "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 36,
    "num_local_experts": 128, "num_experts_per_tok": 4, "vocab_size": 201088,
    "attention_bias": True, "sliding_window": 128, "max_position_embeddings": 131072,
    "layer_types": ["sliding_attention", "full_attention"] * 18, "tie_word_embeddings": False,
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
            "lm_head",
        ],
    },
}
QWEN35 = {
    "model_type": "qwen3_5_moe", "tie_word_embeddings": False,
    "text_config": {
        "model_type": "qwen3_5_moe_text", "hidden_size": 4096, "num_hidden_layers": 60,
        "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 248320,
        "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 1024,
        "shared_expert_intermediate_size": 1024,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 15,
        "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 64,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "attn_output_gate": True,
        "max_position_embeddings": 262144, "mtp_num_hidden_layers": 1,
    },
    "vision_config": VISION | {"out_hidden_size": 4096, "deepstack_visual_indexes": []},
}
