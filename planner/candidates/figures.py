"""An architecture as the model sees it: its row of ``ModelFigures``, and its parameter counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.candidates.memory_figures import memory_columns
from planner.model.attention import KINDS, LayerFigures
from planner.spec.architecture import Architecture, DenseFfn, LayerGroup, MoeFfn


@dataclass(frozen=True)
class ParameterCounts:
    """Parameters of an architecture by group.

    Attributes:
        embedding: Embedding table and head; once if tied.
        attention: Attention weights, recurrent layers and indexers included.
        dense: Dense FFN, shared experts, routers and latent projections.
        expert: One routed expert, summed over the MoE layers.
        routed: All routed experts of all layers.
        routed_active: Those of them that a token takes.
        norm: Norms: one of the hidden size per attention or FFN block, and the last one.
        encoder: Vision or audio encoder.
        extra: Position tables, per-layer embeddings ...
    """

    embedding: float
    attention: float
    dense: float
    expert: float
    routed: float
    routed_active: float
    norm: float
    encoder: float
    extra: float

    @property
    def total(self) -> float:
        """Stored parameters, without MTP layers and stored copies of a tied head."""
        fixed = self.embedding + self.attention + self.dense + self.norm + self.extra
        return fixed + self.routed + self.encoder

    @property
    def active(self) -> float:
        """Parameters that a text token uses: the total without encoders and idle experts."""
        return self.total - self.encoder - self.routed + self.routed_active


def parameter_counts(architecture: Architecture) -> ParameterCounts:
    """Count an architecture's parameters by group.

    ``uncounted_parameters`` says what a published count holds beyond this total.
    """
    hidden = architecture.hidden_size
    moe = [(group, group.ffn) for group in architecture.layers if isinstance(group.ffn, MoeFfn)]
    blocks = sum(
        group.count * ((group.attention is not None) + (group.ffn is not None))
        for group in architecture.layers
    )
    return ParameterCounts(
        embedding=float(architecture.vocab_size * hidden * (2 - architecture.tied_embeddings)),
        attention=sum(
            group.count * _attention(group, hidden).parameters for group in architecture.layers
        ),
        dense=sum(group.count * _dense(group.ffn, hidden) for group in architecture.layers),
        expert=sum(group.count * _expert(ffn, hidden) for group, ffn in moe),
        routed=sum(group.count * ffn.experts * _expert(ffn, hidden) for group, ffn in moe),
        routed_active=sum(group.count * ffn.active * _expert(ffn, hidden) for group, ffn in moe),
        norm=float((blocks + 1) * hidden),
        encoder=float(architecture.encoder_parameters),
        extra=float(architecture.extra_parameters),
    )


def model_figures(architecture: Architecture) -> dict[str, float]:
    """Return an architecture's row of ``planner.model.arrays.ModelFigures``, field by field.

    Sums run over the layers. Where layers of a kind differ, one figure stands for all:

    * heads of the cache: so that the bytes per GPU are exact without tensor parallelism and with
      as much of it as the widest layer has heads;
    * window: weighted by cache size, so that a full window holds the right bytes;
    * a model that selects tokens in some full layers and reads all in others: the latter count
      as layers whose window is the longest context, unless there are real windows too (then
      they count as selecting);
    * routed experts: those of the widest MoE layer, and the mean width.
    """
    hidden = architecture.hidden_size
    counts = parameter_counts(architecture)
    moe = [
        (group.count, group.ffn) for group in architecture.layers if isinstance(group.ffn, MoeFfn)
    ]
    moe_layers = sum(count for count, _ in moe)
    return {
        "layers": float(sum(group.count for group in architecture.layers)),
        "hidden": float(hidden),
        "vocab": float(architecture.vocab_size),
        "embedding_parameters": counts.embedding,
        "attention_parameters": counts.attention,
        "dense_parameters": counts.dense,
        "expert_parameters": counts.expert,
        "other_parameters": counts.norm + counts.encoder + counts.extra,
        "experts": float(max((ffn.experts for _, ffn in moe), default=1)),
        "active": float(max((ffn.active for _, ffn in moe), default=1)),
        "moe_layers": float(moe_layers),
        "expert_width": sum(count * ffn.width for count, ffn in moe) / max(moe_layers, 1),
        **_attention_columns(architecture),
        **memory_columns(architecture),
    }


def _attention_columns(architecture: Architecture) -> dict[str, float]:
    layers = [
        (group.count, _attention(group, architecture.hidden_size)) for group in architecture.layers
    ]
    top_k = max(figures.top_k for _, figures in layers)
    spans = [span for count, figures in layers for span in _spans(count, figures)]
    if top_k and not any(span.window for span in spans):
        longest = float(architecture.max_context_tokens)
        spans = [span if span.top_k else replace(span, window=longest) for span in spans]
    full = [span for span in spans if not span.window]
    windowed = [span for span in spans if span.window]
    return {
        "full_kv": sum(span.kv for span in full),
        "full_kv_heads": _kv_heads(full),
        "full_decode_flops": sum(span.decode_flops for span in full),
        "full_prefill_flops": sum(span.prefill_flops for span in full),
        "top_k": top_k,
        "index_bytes": sum(count * figures.index_bytes for count, figures in layers),
        "indexer_layers": sum(count * figures.indexer for count, figures in layers),
        "window_kv": sum(span.kv for span in windowed),
        "window_kv_heads": _kv_heads(windowed),
        "window_decode_flops": sum(span.decode_flops for span in windowed),
        "window_prefill_flops": sum(span.prefill_flops for span in windowed),
        "window": _window(windowed),
        "state_elements": sum(count * figures.state_elements for count, figures in layers),
        "special_layers": sum(count * figures.special for count, figures in layers),
    }


@dataclass(frozen=True)
class _Span:
    """Equal layers' reads of all tokens (window 0) or of the last `window`; sums over them."""

    kv: float
    kv_heads: float
    decode_flops: float
    prefill_flops: float
    window: float
    top_k: float


def _spans(count: int, figures: LayerFigures) -> list[_Span]:
    """Split layers into what they read of all tokens and of a window; arithmetic goes with it."""
    parts = [(figures.full_kv, 0.0)] if figures.full_kv or not figures.window else []
    parts += [(figures.window_kv, figures.window)] if figures.window else []
    unit = figures.full_kv or figures.window_kv
    return [
        _Span(
            kv=count * kv,
            kv_heads=figures.kv_heads,
            decode_flops=count * figures.decode_flops * (kv / unit if unit else 1.0),
            prefill_flops=count * figures.prefill_flops * (kv / unit if unit else 1.0),
            window=window,
            top_k=figures.top_k,
        )
        for kv, window in parts
        if figures.decode_flops
    ]


def _kv_heads(spans: Iterable[_Span]) -> float:
    held = [span for span in spans if span.kv]
    per_gpu = sum(span.kv / span.kv_heads for span in held)
    return sum(span.kv for span in held) / per_gpu if held else 1.0


def _window(spans: Sequence[_Span]) -> float:
    total = sum(span.kv for span in spans)
    if not total:
        return max((span.window for span in spans), default=0.0)
    return sum(span.kv * span.window for span in spans) / total


def _attention(group: LayerGroup, hidden: int) -> LayerFigures:
    if group.attention is None:
        return LayerFigures(parameters=0.0)
    fields = group.attention.model_dump(exclude={"kind", "variant"})
    return KINDS[group.attention.kind](**fields).figures(hidden)


def _dense(ffn: DenseFfn | MoeFfn | None, hidden: int) -> float:
    """Weights of a block that every token reads."""
    if ffn is None:
        return 0.0
    matrices = 2 + ffn.gated
    if isinstance(ffn, DenseFfn):
        biases = ffn.bias * (ffn.width * (1 + ffn.gated) + hidden)
        return float(matrices * hidden * ffn.width + biases)
    router = hidden * ffn.experts + ffn.bias * ffn.experts
    return float(router + matrices * hidden * ffn.shared_width + ffn.extra_parameters)


def _expert(ffn: MoeFfn, hidden: int) -> float:
    """Weights of one routed expert."""
    outer = ffn.latent or hidden
    biases = ffn.bias * (ffn.width * (1 + ffn.gated) + outer)
    return float((2 + ffn.gated) * outer * ffn.width + biases)
