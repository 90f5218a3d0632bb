"""Reading the keys of a Hugging Face config by any of their names, all faults at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from planner.counting import counted
from planner.errors import Fault

KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
        "vocabulary": ("vocab_size", "padded_vocab_size", "embedding_size"),
        "context": (
            "max_position_embeddings",
            "n_positions",
            "max_seq_len",
            "seq_length",
            "max_sequence_length",
            "n_ctx",
        ),
        "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
        "kv_heads": (
            "num_key_value_heads",
            "num_kv_heads",
            "n_head_kv",
            "n_kv_heads",
            "kv_n_heads",
            "multi_query_group_num",
            "num_attention_groups",
        ),
        "head_dim": ("head_dim", "attention_head_dim", "kv_channels"),
        "width": (
            "intermediate_size",
            "ffn_dim",
            "ffn_hidden_size",
            "n_inner",
            "hidden_dim",
            "ffn_intermediate_size",
        ),
        "experts": (
            "num_local_experts",
            "n_routed_experts",
            "num_experts",
            "moe_num_experts",
            "num_moe_experts",
        ),
        "active": (
            "num_experts_per_tok",
            "num_experts_per_token",
            "experts_per_token",
            "top_k_experts",
            "moe_topk",
            "moe_top_k",
            "moe_k",
            "num_selected_experts",
        ),
        "expert_width": (
            "moe_intermediate_size",
            "expert_intermediate_size",
            "moe_ffn_hidden_size",
            "intermediate_size",
            "ffn_hidden_size",
        ),
        "shared_experts": (
            "n_shared_experts",
            "num_shared_experts",
            "moe_num_shared_experts",
            "num_shared_expert",
        ),
        "shared_width": (
            "shared_expert_intermediate_size",
            "moe_shared_expert_intermediate_size",
            "share_expert_dim",
            "shared_intermediate_size",
        ),
        "expert_input": ("moe_latent_size", "routed_expert_hidden_size"),
        "dense_first": ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"),
        "window": (
            "sliding_window",
            "sliding_window_size",
            "attention_chunk_size",
            "local_attention_window",
        ),
        "mtp": ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers"),
    }
)

_LARGEST = 10**10


class Config:
    """A text model's config; a missing or unusable key becomes a fault, not an exception.

    Attributes:
        faults: What stands in the way, in the order of reading.
        notes: What had to be assumed.
        layers: Layers of the model, once they are counted.
    """

    def __init__(self, data: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        """Args: data: keys as in the file; defaults: what the model's class sets by default."""
        self._data = data
        self._defaults = defaults
        self.faults: list[Fault] = []
        self.notes: list[str] = []
        self.layers = 0

    def get(self, key: str) -> Any:
        """Return a key's value; null and a missing key both give the default or None."""
        value = self._data.get(key)
        return self._defaults.get(key) if value is None else value

    def whole(self, word: str, default: int | None = None) -> int:
        """Return a whole number, at least 0.

        Args:
            word: A word of ``KEYS``, or a key.
            default: Value where no such key is given; None = the key is required.
        """
        keys = KEYS.get(word, (word,))
        key = next((key for key in keys if self.get(key) is not None), None)
        if key is None:
            if default is None:
                self._require(keys)
            return 1 if default is None else default
        value = self._single(self.get(key))
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
            return self.refuse(key, f"{value!r:.40} is not a whole number; give one")
        if not 0 <= value <= _LARGEST or (default is None and value == 0):
            least = 1 if default is None else 0
            return self.refuse(key, f"{value} must be between {least} and {_LARGEST}")
        return int(value)

    def flag(self, *keys: str, default: bool = False) -> bool:
        """Return the first of several switches that is given."""
        found = (self.get(key) for key in keys)
        return next((bool(value) for value in found if value is not None), default)

    def per_layer(self, key: str, layers: int) -> tuple[Any, ...] | None:
        """Return a list with one entry a layer, or None where the key holds no list."""
        value = self.get(key)
        if isinstance(value, str) or not isinstance(value, Sequence):
            return None
        if len(value) < layers:
            held = counted(len(value), "entry", "entries")
            self.refuse(key, f"has {held} for {layers} layers; give one a layer")
            return (tuple(value) * layers)[:layers] if value else None
        return tuple(value[:layers])

    def numbers(self, key: str) -> tuple[int, ...] | None:
        """Return a list of whole numbers (also as text with commas), or None."""
        value = self.get(key)
        if value is None:
            return None
        items = value.split(",") if isinstance(value, str) else value
        if isinstance(items, Sequence) and all(str(item).strip().isdigit() for item in items):
            return tuple(int(str(item)[:12]) for item in items)
        self.refuse(key, "is not a list of layer numbers; give one")
        return ()

    def block(self, key: str) -> Config:
        """Return a nested block, empty where there is none; its faults are this one's."""
        value = self.get(key)
        inner = Config(value if isinstance(value, Mapping) else {}, {})
        inner.faults, inner.notes, inner.layers = self.faults, self.notes, self.layers
        return inner

    def refuse(self, word: str, message: str) -> int:
        """Note that a word's or key's value cannot be used; return 1 to read on with."""
        keys = KEYS.get(word, (word,))
        key = next((key for key in keys if self.get(key) is not None), keys[0])
        fault = Fault("", key, message)
        if fault not in self.faults:
            self.faults.append(fault)
        return 1

    def _single(self, value: Any) -> Any:
        """Return a number given once for each layer as one number."""
        same = isinstance(value, Sequence) and not isinstance(value, str) and value
        return value[0] if same and all(item == value[0] for item in value) else value

    def _require(self, keys: tuple[str, ...]) -> None:
        others = f" (or as {', '.join(keys[1:3])})" if keys[1:] else ""
        fault = Fault("", keys[0], f"missing; add it{others}")
        if fault not in self.faults:
            self.faults.append(fault)
