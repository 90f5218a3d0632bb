"""The columns that the model works on: row i of every array is candidate i.

SI units throughout (s, B, B/s, FLOP, FLOP/s, tokens), float64, shape (n,); flags are 0.0 or 1.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

LEAST = 1e-300
"""Stands for nothing where it is divided by, or a logarithm is taken."""
KEPT = 30 * 2**20
"""Memory that freed arrays may leave with the process [B]; glibc takes 32 MiB at most."""


def _keep_freed_memory() -> None:
    """Have the C library keep the memory of freed arrays for the next ones.

    Otherwise the system takes back and clears each page again, a tenth of the time. glibc keeps
    blocks up to the size of the largest that it mapped and freed; other libraries take no notice.
    The memory is never touched.

    Source: mallopt(3), M_MMAP_THRESHOLD.
    """
    np.empty(KEPT, dtype=np.uint8)


_keep_freed_memory()


@dataclass(frozen=True)
class Columns:
    """A struct of arrays (or of such structs) with one row a candidate."""

    def __len__(self) -> int:
        first: Any = getattr(self, fields(self)[0].name)
        return len(first)

    def take(self, rows: Indices | NDArray[np.bool_]) -> Self:
        """Return the named rows, in that order."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        picked: dict[str, Any] = {}
        for field in fields(self):
            column = getattr(self, field.name)
            picked[field.name] = column.take(index)
        return type(self)(**picked)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of all parts, one after the other."""
        joined: dict[str, Any] = {}
        for field in fields(cls):
            columns: list[Any] = [getattr(part, field.name) for part in parts]
            first = columns[0]
            joined[field.name] = (
                first.join(columns) if isinstance(first, Columns) else np.concatenate(columns)
            )
        return cls(**joined)


@dataclass(frozen=True)
class ModelFigures(Columns):
    """What an architecture is to the model.

    "full" attention reads all tokens of the context (MLA too: one latent head, replicated over
    tensor parallelism, so full_kv_heads = 1); "window" attention reads the last `window` tokens.

    Attributes:
        layers: Decoder layers.
        hidden: Hidden size.
        vocab: Vocabulary.
        embedding_parameters: Embedding table and output head as stored (once if tied).
        attention_parameters: All attention weights, recurrent layers and indexers included.
        dense_parameters: Dense FFN and shared-expert weights, routers included.
        expert_parameters: Weights of ONE routed expert, summed over the MoE layers.
        other_parameters: Encoders and the rest: stored, not read in a text step.
        experts, active: Routed experts of a layer, and how many a token takes (1, 1 if dense).
        moe_layers: Layers with routed experts.
        expert_width: Width of one routed expert (0 if dense).
        full_kv: KV elements per token, summed over the layers with full attention.
        full_kv_heads: Heads over which tensor parallelism splits it.
        full_decode_flops, full_prefill_flops: Arithmetic per query token and attended token,
            summed over those layers (MLA: absorbed form in decode, expanded in prefill).
        top_k: Tokens attended at most by full layers; 0 = all.
        index_bytes: Index cache read per context token, summed over indexer layers [B].
        indexer_layers: Layers with a sparse indexer.
        window_kv, window_kv_heads, window_decode_flops, window_prefill_flops: As above, for the
            layers with a window.
        window: Window [tokens]; 0 = no such layers.
        state_elements: Recurrent state per sequence, summed over the recurrent layers.
        special_layers: MLA and recurrent layers, which launch more kernels.
        replicated_parameters: Part of attention_parameters that every GPU of a tensor-parallel
            group holds whole (down-projections of latents, indexers).
        kv_parameters: Part of attention_parameters in key and value projections, which are
            replicated beyond the KV heads.
        absorbed_parameters: Copies of a latent's up-projections, kept for the absorbed form.
        router_parameters: Part of dense_parameters in routers: never quantized, replicated.
        position_elements: Rotary tables, of which every GPU holds a copy.
        full_padding, window_padding, state_padding: Layers that an engine which pages caches in
            equal groups allots, over the layers of that kind.
        state_page: Recurrent and convolution state of one layer [B], over the cached elements a
            token of one layer that keeps all tokens; 0 = the model has not both.
        single_byte_extra: Bytes per token, summed over layers, that a one-byte cache holds on top
            (scales and the 16-bit rotary part of a latent read by a sparse indexer).
        index_scale: Scales of the index cache per token, summed over layers [B].
        ffn_elements: Elements a token needs between the matrices of the widest dense block.
        encoder: 1 = has an image or audio encoder.
    """

    layers: Floats
    hidden: Floats
    vocab: Floats
    embedding_parameters: Floats
    attention_parameters: Floats
    dense_parameters: Floats
    expert_parameters: Floats
    other_parameters: Floats
    experts: Floats
    active: Floats
    moe_layers: Floats
    expert_width: Floats
    full_kv: Floats
    full_kv_heads: Floats
    full_decode_flops: Floats
    full_prefill_flops: Floats
    top_k: Floats
    index_bytes: Floats
    indexer_layers: Floats
    window_kv: Floats
    window_kv_heads: Floats
    window_decode_flops: Floats
    window_prefill_flops: Floats
    window: Floats
    state_elements: Floats
    special_layers: Floats
    replicated_parameters: Floats
    kv_parameters: Floats
    absorbed_parameters: Floats
    router_parameters: Floats
    position_elements: Floats
    full_padding: Floats
    window_padding: Floats
    state_padding: Floats
    state_page: Floats
    single_byte_extra: Floats
    index_scale: Floats
    ffn_elements: Floats
    encoder: Floats


@dataclass(frozen=True)
class WeightFigures(Columns):
    """What a checkpoint's formats are on an accelerator.

    Attributes:
        attention_bytes, dense_bytes, expert_bytes: Bytes per parameter of each group, scales
            included.
        head_bytes: Bytes per parameter of embeddings and head.
        attention_peak, dense_peak, expert_peak: Dense compute rate of each group's GEMM [FLOP/s].
        block_scaled: Activations are scaled per block at run time (dynamic block FP8).
        weight_only_experts: Experts are 4-bit weights with BF16 compute.
        weight_only_dense: Dense weights are dequantised in the kernel.
    """

    attention_bytes: Floats
    dense_bytes: Floats
    expert_bytes: Floats
    head_bytes: Floats
    attention_peak: Floats
    dense_peak: Floats
    expert_peak: Floats
    block_scaled: Floats
    weight_only_experts: Floats
    weight_only_dense: Floats


@dataclass(frozen=True)
class ChipFigures(Columns):
    """An accelerator inside a hardware class.

    Attributes:
        memory: Device memory as the driver reports it [B].
        bandwidth: Peak memory bandwidth [B/s].
        peak16: Dense BF16 peak [FLOP/s].
        exponentials: Rate of the special-function units [1/s].
        link: One-way rate per GPU of the link that tensor parallelism of this width uses [B/s].
        internode: Network per GPU between servers [B/s].
        power: Board power limit [W]; NaN where unknown.
        gpus_per_node: GPUs inside the fast domain.
    """

    memory: Floats
    bandwidth: Floats
    peak16: Floats
    exponentials: Floats
    link: Floats
    internode: Floats
    power: Floats
    gpus_per_node: Floats


@dataclass(frozen=True)
class EngineFigures(Columns):
    """An engine generation on an accelerator: fitted efficiencies and rules.

    Attributes:
        hbm: Share of peak bandwidth when streaming weights.
        kv_read: KV reads relative to that.
        gemm: Dense GEMM share of peak.
        link_share: Usable share of the link's one-way rate.
        link_latency: Latency of one collective [s].
        launch: Launch and synchronisation per layer [s].
        sequence: Host cost per running sequence and step [s].
        step_constant: Fixed cost per step [s].
        special_layer: The same on top, for an MLA or recurrent layer [s].
        weight_only_layer: The same on top, for a MoE layer with weight-only 4-bit experts [s].
        prefill_layer: Eager prefill overhead per layer [s].
        prefill_special: Extra for an MLA or recurrent layer [s].
        cohort: Prompts prefilled in one step that finish together (identical lengths).
        bunching: Bunching of waves at the admission gate (1 = none).
        mixed: Prompts are batched with decodes (else prefill first).
        full_length: KV is reserved for the full length at admission.
        block: KV block [tokens].
        memory_share: Share of memory the engine may fill; NaN = 1 - static reserve / memory.
        of_free: That share is of what weights, activations and context leave free.
        of_start: That share is of what the context leaves free before weights are loaded, and
            activations and graphs live outside it. Neither = of the total, activations inside.
        driver: Memory that the driver keeps from programs [B].
        reserve: CUDA context and what else one GPU holds outside weights, activations, KV [B].
        group_reserve: Communication buffers where a replica's stages span GPUs [B].
        static_reserve, static_token, static_gpu: Default share: kept back, per token of the
            budget, per GPU of a replica [B].
        static_floor, static_floor_above: At least this, on GPUs with more memory than that [B].
        sampler_bytes: Peak of sampling per sampled sequence and vocabulary entry [B].
        forward_copies: Hidden states alive at the peak of a forward pass; 0 = no activations.
        graph, graph_layer: CUDA graphs counted against the share, and those per layer [B].
        startup_sequences, startup_tokens: Batch limit and token budget of the start-up profile;
            NaN = those of the layout.
        window_saves: Layers with a window hold the window only (else all tokens).
        grouped: Caches are paged in equal groups of layers, a window is admitted with a whole
            step's tokens in flight.
        by_request: The engine prints its pool in tokens of its longest request.
        max_sequences: Engine's own default limit of running sequences.
        step_factor: Own measurements: factor on reads, launches and host work; 1 = none.
        prompt_factor: The same on arithmetic and on a prefill's overhead.
    """

    hbm: Floats
    kv_read: Floats
    gemm: Floats
    link_share: Floats
    link_latency: Floats
    launch: Floats
    sequence: Floats
    step_constant: Floats
    special_layer: Floats
    weight_only_layer: Floats
    prefill_layer: Floats
    prefill_special: Floats
    cohort: Floats
    bunching: Floats
    mixed: Floats
    full_length: Floats
    block: Floats
    memory_share: Floats
    of_free: Floats
    of_start: Floats
    driver: Floats
    reserve: Floats
    group_reserve: Floats
    static_reserve: Floats
    static_token: Floats
    static_gpu: Floats
    static_floor: Floats
    static_floor_above: Floats
    sampler_bytes: Floats
    forward_copies: Floats
    graph: Floats
    graph_layer: Floats
    startup_sequences: Floats
    startup_tokens: Floats
    window_saves: Floats
    grouped: Floats
    by_request: Floats
    max_sequences: Floats
    step_factor: Floats
    prompt_factor: Floats


@dataclass(frozen=True)
class LayoutFigures(Columns):
    """Choices of a deployment.

    Attributes:
        tp, pp, dp: Tensor, pipeline and attention-data parallel degree; a replica has
            tp * pp * dp GPUs and experts spread over tp * dp of them.
        replicas: Running copies of the model.
        max_sequences: Batch limit per dp rank.
        token_budget: Tokens of one step per dp rank.
        kv_bytes: Bytes per KV element.
        draft_tokens: Draft tokens per verification; 0 = speculation off.
        accept_first, accept_decay: c1 and d of c_i = c1 * d^(i-1).
        draft_layers: Decoder layers (of the target's shape) one draft token costs.
        draft_head: Whether a draft token reads the head.
        draft_share: Share of the target's parameters in a separate draft model.
        poll_steps: Decode steps between admissions (SGLang scheduler-recv-interval); 0 = each.
        batch_wait_steps: Steps TensorRT-LLM waits to fill a batch; 0 = none.
    """

    tp: Floats
    pp: Floats
    dp: Floats
    replicas: Floats
    max_sequences: Floats
    token_budget: Floats
    kv_bytes: Floats
    draft_tokens: Floats
    accept_first: Floats
    accept_decay: Floats
    draft_layers: Floats
    draft_head: Floats
    draft_share: Floats
    poll_steps: Floats
    batch_wait_steps: Floats


@dataclass(frozen=True)
class Candidates(Columns):
    """The columns of all candidates."""

    model: ModelFigures
    weights: WeightFigures
    chip: ChipFigures
    engine: EngineFigures
    layout: LayoutFigures


@dataclass(frozen=True)
class Parameters:
    """Fitted values that hold for every candidate (``efficiency.yaml`` ``parameters``).

    Attributes:
        attention_efficiency: Share of the BF16 peak that the matrix part of attention reaches.
        softmax_slots: Special-function slots per attention score of a head of 128.
        grouped_gemm_efficiency: Expert GEMM relative to dense GEMM at few tokens per expert.
        grouped_gemm_half_tokens: Width-scaled tokens per expert at which half the penalty is gone.
        grouped_gemm_width: Expert width of a full-width GEMM.
        grouped_gemm_token_cap: Tokens beyond which a batch is split.
        expert_activation_passes: Times a token's hidden state crosses memory per expert it takes.
        token_activation_passes: Times a decoding token's hidden state crosses memory per layer.
        block_fp8_promotion: Share of the FP32 rate that the promotion of dynamic block FP8 sums
            reaches.
        weight_only_expert_read: Bandwidth of weight-only 4-bit experts relative to hbm.
        weight_only_dense_read: Same for weight-only dense kernels.
        block_fp8_layer: Extra launch time of a layer with dynamic block FP8 [s].
        indexer_layer: Extra launch time of a sparse-indexer layer [s].
        expert_popularity: Shape of the gamma distribution of the experts' popularity; infinity =
            uniform routing.
        unshared_prefill: Unshared part of a prefill's fixed cost.
        first_token_steps: Decode steps until the first token is out.
        first_token: Constant part of TTFT [s].
        frontend_request, frontend_token: Serial front end per request [s], per prompt token [s].
        waves: Prompts per slot of a benchmark run.
    """

    attention_efficiency: float
    softmax_slots: float
    grouped_gemm_efficiency: float
    grouped_gemm_half_tokens: float
    grouped_gemm_width: float
    grouped_gemm_token_cap: float
    expert_activation_passes: float
    token_activation_passes: float
    block_fp8_promotion: float
    weight_only_expert_read: float
    weight_only_dense_read: float
    block_fp8_layer: float
    indexer_layer: float
    expert_popularity: float
    unshared_prefill: float
    first_token_steps: float
    first_token: float
    frontend_request: float
    frontend_token: float
    waves: float
