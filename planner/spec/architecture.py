"""A model architecture: layers, widths and published counts; no weights, no code."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.base import Count, Name, NonNegative, Positive, Spec, Whole


class FullAttention(Spec):
    """Multi-head, grouped-query or multi-query attention, over all tokens or a window.

    Attributes:
        heads: Query heads.
        kv_heads: Key-value heads.
        head_dim: Size of a query and key head.
        value_dim: Size of a value head; None = head_dim.
        window: Sliding (or chunked) window [tokens]; None = all tokens.
        gate: Output gate, which doubles the query projection.
        bias: Biases on Q, K and V.
        own_kv: False = reuses the KV cache (and K, V weights) of an earlier layer.
        key_is_value: One projection serves keys and values.
        extra_parameters: Further weights of the layer (indexer, sinks, norms ...).
        index_dim, index_top_k: Sparse selection: cached index elements a token, tokens attended.
    """

    kind: Literal["full"]
    heads: Count
    kv_heads: Count
    head_dim: Count
    value_dim: Count | None = None
    window: Count | None = None
    gate: bool = False
    bias: bool = False
    own_kv: bool = True
    key_is_value: bool = False
    extra_parameters: Whole = 0
    index_dim: Whole = 0
    index_top_k: Whole = 0


class LatentAttention(Spec):
    """Multi-head latent attention (MLA, DeepSeek-V2, arXiv:2405.04434).

    Attributes:
        heads: Query heads.
        q_rank: Rank of the query compression; 0 = none.
        kv_rank, rope_dim: The cache holds kv_rank + rope_dim elements a token and layer.
        nope_dim, value_dim: Sizes of the uncompressed key and value heads.
        gate_parameters: Output gate weights.
        index_heads, index_dim, index_top_k: Sparse indexer (DeepSeek-V3.2); 0 = none.
        shares_index: Reuses an earlier layer's selection (no indexer weights of its own).
    """

    kind: Literal["mla"]
    heads: Count
    q_rank: Whole
    kv_rank: Count
    rope_dim: Whole
    nope_dim: Count
    value_dim: Count
    gate_parameters: Whole = 0
    index_heads: Whole = 0
    index_dim: Whole = 0
    index_top_k: Whole = 0
    shares_index: bool = False


class RecurrentAttention(Spec):
    """A layer with a fixed state per sequence: linear attention, delta rule, Mamba.

    Attributes:
        variant: gated-deltanet, kda, lightning, mamba1, mamba2 ...: for people.
        parameters: Weights of one layer.
        state_elements: Recurrent state per sequence and layer.
        conv_elements: Convolution state per sequence and layer.
    """

    kind: Literal["recurrent"]
    variant: Name
    parameters: Count
    state_elements: Count
    conv_elements: Whole = 0


class ExplicitAttention(Spec):
    """A kind without a formula of its own: its figures are stated (compressed attention ...).

    Attributes:
        variant: For people.
        parameters: Weights of one layer.
        kv_elements: Cache elements per token and layer (averages allowed, e.g. 576 / 4).
        kv_heads: Heads over which tensor parallelism can split the cache; 1 = replicated.
        window_elements, window: Additional elements per token kept for the last `window` tokens.
        decode_flops, prefill_flops: Arithmetic per query token and attended token [FLOP].
        top_k: Tokens attended at most; 0 = all.
        index_elements: Index elements cached and read per token.
    """

    kind: Literal["explicit"]
    variant: Name
    parameters: Count
    kv_elements: NonNegative
    kv_heads: Count = 1
    window_elements: NonNegative = 0.0
    window: Whole = 0
    decode_flops: NonNegative
    prefill_flops: NonNegative
    top_k: Whole = 0
    index_elements: NonNegative = 0.0


Attention = Annotated[
    FullAttention | LatentAttention | RecurrentAttention | ExplicitAttention,
    Field(discriminator="kind"),
]


class DenseFfn(Spec):
    """A feed-forward block; gated = three matrices, else two."""

    kind: Literal["dense"]
    width: Count
    gated: bool = True
    bias: bool = False


class MoeFfn(Spec):
    """A mixture of experts.

    Attributes:
        experts, active: Routed experts of the layer, and how many a token takes.
        width: Width of one routed expert.
        shared_width: Summed width of the experts that every token takes; 0 = none.
        latent: Input width of the routed experts where it is not the hidden size; 0 = hidden.
        gated: Three matrices, else two.
        extra_parameters: Router biases, latent projections, shared-expert gate ...
    """

    kind: Literal["moe"]
    experts: Count
    active: Count
    width: Count
    shared_width: Whole = 0
    latent: Whole = 0
    gated: bool = True
    bias: bool = False
    extra_parameters: Whole = 0


Ffn = Annotated[DenseFfn | MoeFfn, Field(discriminator="kind")]


class LayerGroup(Spec):
    """Equal layers, not necessarily adjacent; a block of hybrid models may lack either part."""

    count: Count
    attention: Attention | None = None
    ffn: Ffn | None = None


class Checkpoint(Spec):
    """What a quantized release of this model holds.

    Attributes:
        groups: Weight groups in the format; the others stay BF16 (or the native format).
        scaling: ``static``, or ``block-dynamic`` (activations scaled per block at run time).
        bytes_per_parameter: Where this release stores other block scales than the format's usual
            ones; None = as the format.
    """

    groups: tuple[Literal["attention", "dense", "experts"], ...]
    scaling: Literal["static", "block-dynamic"] = "static"
    bytes_per_parameter: Positive | None = None


class Architecture(Spec):
    """Everything about a model that decides memory and speed.

    Attributes:
        id: Catalog id (file stem), or the name given by the user.
        name: Main hub name.
        aliases: Other releases with the same architecture, compared without case.
        native_format: Weight-format id of the released checkpoint.
        checkpoints: What each weight format quantizes; formats without an entry follow the rule
            of design.md section 4.
        layers: Groups of equal layers, main model only (no MTP).
        mtp_layers: Multi-token-prediction layers; > 0 makes speculation method mtp available.
        mtp_trained_steps: True = head trained for several steps, False = one module reused.
        heads_public: Speculation methods with a public head (eagle3 ...).
        encoder_parameters: Vision or audio encoder.
        extra_parameters: Position tables, per-layer embeddings, norms not counted elsewhere.
        position_rows: Positions that the rotary tables hold, where these are not
            max_context_tokens (linear scaling multiplies them; several tables add up).
        published_parameters, published_active_parameters: As published; the source says where.
        uncounted_parameters: What the published count holds and the layers do not (MTP, a stored
            copy of a tied head).
        trust: ``seen`` = read in a public file; ``recalled`` = from memory.
    """

    id: Name
    name: Name
    aliases: tuple[Name, ...] = ()
    native_format: Name = "bf16"
    checkpoints: dict[Name, Checkpoint] = Field(default_factory=dict)
    hidden_size: Count
    vocab_size: Count
    tied_embeddings: bool
    layers: Annotated[tuple[LayerGroup, ...], Field(min_length=1)]
    mtp_layers: Whole = 0
    mtp_trained_steps: bool = False
    heads_public: tuple[Name, ...] = ()
    encoder_parameters: Whole = 0
    extra_parameters: Whole = 0
    max_context_tokens: Count
    position_rows: Count | None = None
    published_parameters: Positive | None = None
    published_active_parameters: Positive | None = None
    uncounted_parameters: Whole = 0
    published_source: str = ""
    source: Name
    trust: Literal["seen", "recalled", "given"]
    notes: str = ""
