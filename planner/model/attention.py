"""What one layer of each attention kind stores, reads and computes.

``KINDS`` holds one row a kind; the fields of a row are those of the spec of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class LayerFigures:
    """One layer's attention; elements are per token unless said otherwise.

    Attributes:
        parameters: Weights.
        full_kv: Cached elements a token, kept for all tokens.
        window_kv: Cached elements a token, kept for the last `window` tokens.
        window: Window [tokens]; 0 = none.
        kv_heads: Heads over which tensor parallelism splits the cache; 1 = replicated.
        decode_flops, prefill_flops: Arithmetic per query token and attended token [FLOP].
        top_k: Tokens attended at most; 0 = all.
        index_bytes: Index cache stored and read per context token [B].
        indexer: 1 if the layer selects tokens with an indexer of its own, else 0.
        state_elements: Recurrent state per sequence.
        special: 1 if the layer launches more kernels than plain attention, else 0.
    """

    parameters: float
    full_kv: float = 0.0
    window_kv: float = 0.0
    window: float = 0.0
    kv_heads: float = 1.0
    decode_flops: float = 0.0
    prefill_flops: float = 0.0
    top_k: float = 0.0
    index_bytes: float = 0.0
    indexer: float = 0.0
    state_elements: float = 0.0
    special: float = 0.0


@dataclass(frozen=True)
class FullLayer:
    """Multi-head, grouped-query and multi-query attention, over all tokens or a window.

    Keys and values cost kv_heads * (head_dim + value_dim) elements a token. A layer that reuses
    an earlier layer's cache (own_kv False) computes as much but stores nothing.

    Source:
        J. Ainslie et al., "GQA", arXiv:2305.13245; arithmetic: Q K^T and A V, two FLOP a
        multiply-add each.

    >>> llama_8b = FullLayer(heads=32, kv_heads=8, head_dim=128).figures(4096)
    >>> llama_8b.full_kv, llama_8b.decode_flops, llama_8b.parameters
    (2048.0, 16384.0, 41943040.0)
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int | None = None
    window: int | None = None
    gate: bool = False
    bias: bool = False
    own_kv: bool = True
    key_is_value: bool = False
    extra_parameters: int = 0
    index_dim: int = 0
    index_top_k: int = 0

    def figures(self, hidden: float) -> LayerFigures:
        """Return the layer's figures for a hidden size of `hidden`."""
        value_dim = self.value_dim or self.head_dim
        kv = self.own_kv * self.kv_heads * (self.head_dim + value_dim)
        flops = 2.0 * self.heads * (self.head_dim + value_dim)
        return LayerFigures(
            parameters=float(self._parameters(hidden, value_dim)),
            full_kv=0.0 if self.window else float(kv),
            window_kv=float(kv) if self.window else 0.0,
            window=float(self.window or 0),
            kv_heads=float(self.kv_heads),
            decode_flops=flops,
            prefill_flops=flops,
            top_k=float(self.index_top_k),
            index_bytes=float(self.index_dim),
            indexer=float(self.index_dim > 0),
        )

    def _parameters(self, hidden: float, value_dim: int) -> float:
        query = self.heads * self.head_dim
        key = self.own_kv * self.kv_heads * self.head_dim
        value = self.own_kv * self.kv_heads * value_dim * (not self.key_is_value)
        weights = hidden * (query * (1 + self.gate) + key + value + self.heads * value_dim)
        return weights + self.bias * (query + key + value) + self.extra_parameters


@dataclass(frozen=True)
class LatentLayer:
    """Multi-head latent attention: one latent of kv_rank + rope_dim a token, for all heads.

    Decode multiplies the up-projections into query and output (the absorbed form), so every head
    works on the latent itself; prefill expands keys and values. The indexer caches one key of
    index_dim one-byte elements a token (engines add 4 bytes of scale, which the fit left out).

    Source:
        DeepSeek-V2, arXiv:2405.04434, section 2.1; indexer: DeepSeek-V3.2-Exp report, section 1.

    >>> v3 = LatentLayer(
    ...     heads=128, q_rank=1536, kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128
    ... ).figures(7168)
    >>> v3.full_kv, v3.decode_flops, v3.prefill_flops
    (576.0, 278528.0, 81920.0)
    """

    heads: int
    q_rank: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    gate_parameters: int = 0
    index_heads: int = 0
    index_dim: int = 0
    index_top_k: int = 0
    shares_index: bool = False

    def figures(self, hidden: float) -> LayerFigures:
        """Return the layer's figures for a hidden size of `hidden`."""
        latent = float(self.kv_rank + self.rope_dim)
        own_index = self.index_dim > 0 and not self.shares_index
        return LayerFigures(
            parameters=float(self._projections(hidden) + own_index * self._indexer(hidden)),
            full_kv=latent,
            decode_flops=2.0 * self.heads * (latent + self.kv_rank),
            prefill_flops=2.0 * self.heads * (self.nope_dim + self.rope_dim + self.value_dim),
            top_k=float(self.index_top_k),
            index_bytes=float(own_index * self.index_dim),
            indexer=float(own_index),
            special=1.0,
        )

    def _projections(self, hidden: float) -> float:
        query = self.heads * (self.nope_dim + self.rope_dim)
        queries = self.q_rank * (hidden + query) if self.q_rank else hidden * query
        latent = hidden * (self.kv_rank + self.rope_dim)
        expand = self.kv_rank * self.heads * (self.nope_dim + self.value_dim)
        output = self.heads * self.value_dim * hidden
        return queries + latent + expand + output + self.gate_parameters

    def _indexer(self, hidden: float) -> float:
        queries = (self.q_rank or hidden) * self.index_heads * self.index_dim
        return queries + hidden * (self.index_dim + self.index_heads)


@dataclass(frozen=True)
class RecurrentLayer:
    """Linear attention, delta rule, Mamba: a state of fixed size per sequence, no KV cache.

    The convolution state (2 to 4 % of the recurrent one, in half the bytes) is not counted: the
    fitted read of the state was made without it.
    """

    parameters: int
    state_elements: int
    conv_elements: int = 0

    def figures(self, hidden: float) -> LayerFigures:  # noqa: ARG002
        """Return the layer's figures; they do not depend on `hidden`."""
        return LayerFigures(
            parameters=float(self.parameters),
            state_elements=float(self.state_elements),
            special=1.0,
        )


@dataclass(frozen=True)
class ExplicitLayer:
    """A kind without a formula of its own (compressed attention ...): figures as stated.

    A layer that caches nothing (cross attention to images) counts as a plain one.
    """

    parameters: int
    kv_elements: float
    decode_flops: float
    prefill_flops: float
    kv_heads: int = 1
    window_elements: float = 0.0
    window: int = 0
    top_k: int = 0
    index_elements: float = 0.0

    def figures(self, hidden: float) -> LayerFigures:  # noqa: ARG002
        """Return the layer's figures; they do not depend on `hidden`."""
        return LayerFigures(
            parameters=float(self.parameters),
            full_kv=self.kv_elements,
            window_kv=self.window_elements,
            window=float(self.window),
            kv_heads=float(self.kv_heads),
            decode_flops=self.decode_flops,
            prefill_flops=self.prefill_flops,
            top_k=float(self.top_k),
            index_bytes=self.index_elements,
            indexer=float(self.index_elements > 0),
            special=float(self.kv_elements + self.window_elements > 0),
        )


Kind = type[FullLayer] | type[LatentLayer] | type[RecurrentLayer] | type[ExplicitLayer]

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "full": FullLayer,
        "mla": LatentLayer,
        "recurrent": RecurrentLayer,
        "explicit": ExplicitLayer,
    }
)
