"""A slow, plain fleet (one step, one sequence at a time), and a candidate typed by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import ceil, floor, inf

import numpy as np
import pytest

from planner.model.arrays import (
    Candidates,
    ChipFigures,
    EngineFigures,
    LayoutFigures,
    ModelFigures,
    Parameters,
    WeightFigures,
)
from planner.simulate import Arrivals, Deployment


@dataclass
class Request:
    number: int
    prompt: int
    output: int
    made: int = 0
    computed: int = 0
    decoding: bool = False
    blocks: int = 0
    made_at_join: int = 0
    joined: int = 0
    first: float = inf
    done: float = inf
    lag: float = 0.0
    owed: float = 0.0
    preemptions: int = 0
    gaps: list[float] = field(default_factory=list)
    last_token: float = 0.0


@dataclass
class PlainServer:
    deployment: Deployment
    now: float = 0.0
    running: list[Request] = field(default_factory=list)
    waiting: list[Request] = field(default_factory=list)
    decode_steps: int = 0
    end: float = inf
    in_step: list[tuple[Request, int]] = field(default_factory=list)
    decoders: list[Request] = field(default_factory=list)
    lag: float = 0.0
    owed: float = 0.0
    most_blocks: int = 0
    most_tokens: int = 0

    @property
    def load(self) -> int:
        return len(self.running) + len(self.waiting)

    @property
    def free(self) -> int:
        return self.deployment.blocks - sum(r.blocks for r in self.running)

    def gained(self, steps: int) -> int:
        return floor(self.deployment.accepted * steps + 1e-9)

    def begin(self) -> None:
        preempted = self.grow()
        self.decoders = [r for r in self.running if r.decoding]
        self.in_step = self.prompts(preempted)
        self.most_blocks = max(self.most_blocks, self.deployment.blocks - self.free)
        if not self.decoders and not self.in_step:
            self.end = inf
        else:
            self.end = self.now + self.duration()

    def grow(self) -> bool:
        """Give each running sequence its blocks in order, as vLLM does; preempt the newest."""
        d = self.deployment
        preempted = False
        for r in list(self.running):
            if r not in self.running or not r.decoding or d.reserve_all:
                continue
            need = ceil((r.prompt + r.made + d.draft_tokens) / d.block)
            while need - r.blocks > self.free and r in self.running:
                victim = self.running.pop()
                victim.blocks = victim.computed = 0
                victim.owed = 0.0
                victim.decoding = False
                victim.preemptions += 1
                self.waiting.insert(0, victim)
                preempted = True
            if r in self.running:
                r.blocks = need
        return preempted

    def prompts(self, preempted: bool) -> list[tuple[Request, int]]:
        d = self.deployment
        left = d.budget
        if not d.prefill_first:
            left -= len(self.decoders) * (1 + d.draft_tokens)
        chunks = []
        for r in self.running:
            if not r.decoding and left > 0:
                chunks.append((r, min(r.prompt + r.made - r.computed, left)))
                left -= chunks[-1][1]
        looks = not self.decoders or self.decode_steps % d.poll_steps == 0
        while left > 0 and self.waiting and looks and not preempted:
            r = self.waiting[0]
            tokens = r.prompt + (r.output + d.draft_tokens if d.reserve_all else r.made)
            if len(self.running) >= d.slots or ceil(tokens / d.block) > self.free:
                break
            self.running.append(self.waiting.pop(0))
            r.blocks = ceil(tokens / d.block)
            r.computed = min(int(r.prompt * d.prefix_hit), r.prompt + r.made - 1)
            chunks.append((r, min(r.prompt + r.made - r.computed, left)))
            left -= chunks[-1][1]
        total = sum(tokens for _, tokens in chunks)
        if not d.prefill_first:
            total += len(self.decoders) * (1 + d.draft_tokens)
        self.most_tokens = max(self.most_tokens, total)
        return chunks

    def duration(self) -> float:
        d = self.deployment
        batch = len(self.decoders)
        context = sum(
            r.prompt + r.made_at_join + d.accepted * (self.decode_steps - r.joined)
            for r in self.decoders
        )
        decode = d.decode[batch] + d.decode_context[batch] * context
        if not self.in_step:
            return decode
        tokens = sum(tokens for _, tokens in self.in_step)
        attention = 0.0
        for r, taken in self.in_step:
            mean = r.computed + taken / 2
            attention += taken * min(mean, d.top_k) * d.full_prefill
            attention += taken * min(mean, d.window) * d.window_prefill
        alone = d.alone[tokens] + attention
        stall = d.stall[tokens] + attention
        self.lag = d.lag * alone
        if not batch:
            return alone
        if d.prefill_first:
            self.decoders = []
            self.lag += alone - stall
            for r, taken in self.in_step:
                unfinished = r.computed + taken < r.prompt + r.made
                r.owed = r.owed + alone - stall if unfinished else r.owed
            return stall
        return max(decode + stall, alone)

    def finish(self) -> None:
        self.now = self.end
        if self.decoders:
            gain = self.gained(self.decode_steps + 1) - self.gained(self.decode_steps)
            self.decode_steps += 1
            for r in self.decoders:
                r.made = min(r.made + gain, r.output)
                self.token(r)
        for r, taken in self.in_step:
            r.computed += taken
            if r.computed == r.prompt + r.made:
                r.made += 1
                if r.made == 1:
                    r.first = self.now
                    r.lag = self.lag + r.owed
                    r.last_token = self.now
                r.decoding = True
                r.joined = self.decode_steps
                r.made_at_join = r.made
                self.token(r)

    def token(self, r: Request) -> None:
        if self.now > r.last_token:
            r.gaps.append(self.now - r.last_token)
        r.last_token = self.now
        if r.made == r.output:
            r.done = self.now
            self.running.remove(r)


@pytest.fixture(scope="session")
def plain_fleet():
    return run_plain_fleet


def run_plain_fleet(d: Deployment, a: Arrivals) -> tuple[list[Request], list[PlainServer]]:
    """Run all requests through servers chosen by load, else in turn; return both."""
    servers = [PlainServer(d) for _ in range(d.servers)]
    requests = []
    lengths = zip(a.prompt.tolist(), a.output.tolist(), strict=True)
    for number, (prompt, output) in enumerate(lengths):
        r = Request(number, prompt, output)
        requests.append(r)
        now = float(a.time[number])
        for server in servers:
            run(server, now)
        chosen = servers[number % len(servers)]
        if d.routing == "least_loaded":
            chosen = min(servers, key=lambda server: server.load)
        if ceil((prompt + output + d.draft_tokens) / d.block) > d.blocks:
            continue
        chosen.waiting.append(r)
        if chosen.end == inf:
            chosen.now = now
            chosen.begin()
    for server in servers:
        run(server, inf)
    return requests, servers


def run(server: PlainServer, until: float) -> None:
    while server.end < until:
        server.finish()
        server.begin()


PARAMETERS = Parameters(
    attention_efficiency=0.5,
    softmax_slots=0.0,
    grouped_gemm_efficiency=0.35,
    grouped_gemm_half_tokens=512.0,
    grouped_gemm_width=14336.0,
    grouped_gemm_token_cap=8192.0,
    expert_activation_passes=0.0,
    token_activation_passes=0.0,
    block_fp8_promotion=1.0,
    weight_only_expert_read=0.7,
    weight_only_dense_read=0.8,
    block_fp8_layer=0.0,
    indexer_layer=0.0,
    expert_popularity=np.inf,
    unshared_prefill=0.2,
    first_token_steps=3.0,
    first_token=0.005,
    frontend_request=0.0057,
    frontend_token=3.8e-6,
    waves=10.0,
)
LLAMA_70B = {
    "layers": 80,
    "hidden": 8192,
    "vocab": 128256,
    "embedding_parameters": 2 * 128256 * 8192,
    "attention_parameters": 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024),
    "dense_parameters": 80 * 3 * 8192 * 28672,
    "experts": 1,
    "active": 1,
    "full_kv": 80 * 2 * 8 * 128,
    "full_kv_heads": 8,
    "window_kv_heads": 1,
    "full_decode_flops": 80 * 4 * 64 * 128,
    "full_prefill_flops": 80 * 4 * 64 * 128,
}
FP8 = {
    "attention_bytes": 1,
    "dense_bytes": 1,
    "expert_bytes": 1,
    "head_bytes": 2,
    "attention_peak": 1979e12,
    "dense_peak": 1979e12,
    "expert_peak": 1979e12,
}
H100 = {
    "memory": 85e9,
    "bandwidth": 3.35e12,
    "peak16": 989e12,
    "exponentials": 3.9e12,
    "link": 450e9,
    "internode": 50e9,
    "power": 700,
    "gpus_per_node": 8,
}
VLLM = {
    "hbm": 0.92,
    "kv_read": 0.73,
    "gemm": 0.63,
    "link_share": 0.44,
    "link_latency": 1e-5,
    "launch": 6.8e-5,
    "sequence": 1.2e-5,
    "prefill_layer": 1e-4,
    "cohort": 2,
    "bunching": 1,
    "step_factor": 1,
    "prompt_factor": 1,
    "mixed": 1,
    "block": 16,
    "memory_share": 0.9,
    "reserve": 3e9,
    "max_sequences": 256,
}
LAYOUT = {
    "tp": 4,
    "pp": 1,
    "dp": 1,
    "replicas": 1,
    "max_sequences": 256,
    "token_budget": 8192,
    "kv_bytes": 2,
}


def columns(kind, values):
    return kind(**{f.name: np.array([float(values.get(f.name, 0.0))]) for f in fields(kind)})


def chat_candidate(**changes):
    """Llama-3.3-70B in FP8 on 4 H100 under vLLM, with changed figures by name."""
    return Candidates(
        columns(ModelFigures, LLAMA_70B | changes),
        columns(WeightFigures, FP8 | changes),
        columns(ChipFigures, H100 | changes),
        columns(EngineFigures, VLLM | changes),
        columns(LayoutFigures, LAYOUT | changes),
    )


@pytest.fixture(scope="session")
def candidate():
    return chat_candidate


@pytest.fixture(scope="session")
def parameters():
    return PARAMETERS
