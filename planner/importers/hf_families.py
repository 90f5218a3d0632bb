"""What a model class implies where its config does not say: one row a ``model_type``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Family:
    """Defaults of a model class.

    Attributes:
        tied: The head is the embedding table.
        gated: The FFN has three matrices, else two.
        bias: Biases on Q, K and V.
        ffn_bias: Biases in the FFN.
        ffn_ratio: FFN width over hidden size where no width is given.
        router_beside_dense: The dense FFN of a layer runs beside its experts.
        keys: Keys that the class sets where the file leaves them out.
    """

    tied: bool = False
    gated: bool = True
    bias: bool = False
    ffn_bias: bool = False
    ffn_ratio: int = 0
    router_beside_dense: bool = False
    keys: Mapping[str, Any] = field(default_factory=dict)


_PLAIN = Family()
_NO_WINDOW = {"use_sliding_window": False}
_POSITIONS = {"position_table": True}
_GPT2 = Family(tied=True, gated=False, bias=True, ffn_bias=True, ffn_ratio=4)
_QWEN = Family(keys=_NO_WINDOW)
_QWEN2 = Family(bias=True, keys=_NO_WINDOW)
_QWEN3_NEXT = Family(keys={"attn_output_gate": True, "full_attention_interval": 4})
_FALCON = Family(
    tied=True, gated=False, ffn_ratio=4, keys={"max_position_embeddings": 2048, "multi_query": True}
)
_GEMMA3 = Family(
    tied=True,
    keys={
        "sliding_window_pattern": 6,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
)
_COHERE = Family(tied=True)
_COHERE2 = Family(tied=True, keys={"sliding_window_pattern": 4})
_LLAMA4 = Family(keys={"num_shared_experts": 1, "no_rope_layer_interval": 4})
_MINICPM = Family(tied=True)

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "llama",
                "mistral",
                "mixtral",
                "ministral",
                "yi",
                "deepseek_v2",
                "deepseek_v3",
                "deepseek_v32",
                "deepseek_v4",
                "deepseek_ref",
                "deepseek",
                "kimi_k2",
                "kimi_linear",
                "minimax_m2",
                "minimax_m3",
                "minimax_m3_vl",
                "deci",
                "minimax_text_01",
                "minimax_m1",
                "minimax",
                "glm4",
                "glm4_moe",
                "glm4_moe_lite",
                "glm_moe_dsa",
                "mimo_v2_flash",
                "phi3",
                "phimoe",
                "olmo",
                "olmo2",
                "olmo3",
                "olmoe",
                "jamba",
                "granitemoehybrid",
                "seed_oss",
                "exaone",
                "exaone4",
                "exaone_moe",
                "internlm2",
                "internlm3",
                "baichuan",
                "step3p7",
                "step3p5",
                "step3_text",
                "solar",
                "nemotron-nas",
                "smollm3",
                "mllama",
                "ernie4_5",
                "ernie4_5_moe",
                "hunyuan_v1_dense",
                "hunyuan_v1_moe",
                "hunyuan",
                "mistral3",
                "mistral4",
                "arcee",
                "stablelm",
            ),
            _PLAIN,
        ),
        **dict.fromkeys(("qwen3", "qwen3_moe", "qwen3_vl", "qwen3_vl_moe"), _QWEN),
        **dict.fromkeys(("qwen3_omni_moe", "qwen3_omni_moe_thinker"), _QWEN),
        **dict.fromkeys(
            ("qwen2", "qwen2_vl", "qwen2_5_vl", "qwen2_5_omni", "qwen2_moe", "mimo"), _QWEN2
        ),
        **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_moe"), _QWEN3_NEXT),
        "qwen": Family(bias=True),
        "chatglm": Family(bias=True),
        "internlm": Family(bias=True),
        "gpt2": replace(_GPT2, keys=_POSITIONS),
        "opt": replace(_GPT2, keys=_POSITIONS),
        "bloom": _GPT2,
        "gpt_bigcode": replace(_GPT2, keys={**_POSITIONS, "multi_query": True}),
        "gpt_neox": Family(gated=False, bias=True, ffn_bias=True, ffn_ratio=4),
        "gptj": Family(gated=False, ffn_bias=True, ffn_ratio=4),
        "mpt": Family(tied=True, gated=False, ffn_ratio=4),
        "phi": Family(gated=False, bias=True, ffn_bias=True, ffn_ratio=4),
        "starcoder2": Family(tied=True, gated=False, bias=True, ffn_bias=True),
        "nemotron": Family(gated=False),
        "nemotron_h": Family(gated=False),
        "arctic": _PLAIN,
        "falcon": _FALCON,
        "RefinedWeb": _FALCON,
        "RefinedWebModel": _FALCON,
        "gemma": Family(tied=True),
        "gemma2": Family(tied=True, keys={"sliding_window_pattern": 2}),
        "gemma3": _GEMMA3,
        "gemma3n": _GEMMA3,
        "gemma4": Family(tied=True, router_beside_dense=True),
        "cohere": _COHERE,
        "cohere2": _COHERE2,
        "llama4": _LLAMA4,
        "minicpm": _MINICPM,
        "minicpm3": _MINICPM,
        "granite": Family(tied=True),
        "granitemoe": Family(tied=True),
        "gpt_oss": Family(bias=True, keys={"attention_sinks": True, "expert_bias": True}),
        "dbrx": _PLAIN,
    }
)

_SUFFIXES = ("_text", "_text_model", "_thinker")


def family_of(model_type: str) -> Family | None:
    """Return the family of a ``model_type``, or None if it is not known."""
    for suffix in _SUFFIXES:
        if model_type not in FAMILIES:
            model_type = model_type.removesuffix(suffix)
    return FAMILIES.get(model_type)
