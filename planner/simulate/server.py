"""One server: the step loop of an engine, leaping over stretches in which it only decodes.

A step begins when the last one ends. It serves the running sequences first (a token each, or the
rest of a prompt), then waiting prompts in order of arrival, within a token budget, a limit of
sequences and KV blocks; a prompt is admitted once its whole KV fits, and computed in chunks if
the budget cuts it. When growing sequences run out of blocks, the newest running request is
preempted, returns to the head of the queue and is computed again.

Source: the scheduler of vLLM v1 (vllm-project/vllm, vllm/v1/core/sched/scheduler.py).

Between two events (an arrival, a sequence's end, KV running out) a decoding batch is constant and
its context grows by the same number of tokens each step, so k steps take k*u + v*k*(k-1)/2.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import ceil, inf, isnan, nan, sqrt

from planner.simulate.deployment import Deployment
from planner.simulate.pool import Pool

TINY = 1e-9
"""Rounding of sums of fractional tokens."""


class Book:
    """What happens to each request, kept by number; shared by all servers.

    Attributes:
        prompt, output: Lengths [tokens].
        admitted, first, done: Times of first admission, first and last token [s]; nan = never.
        lag: Time that its tokens are behind the schedule: in the pipeline, say [s].
        rejected: Too long for the KV memory of a server.
        preemptions: Times that it lost its KV.
        target, computed, made: Tokens to compute before its next token, computed ones, output.
        held: KV blocks held outside the growing pool.
        end: The server's decode step with which it ends; -1 = not decoding.
        base, offset: Its tokens less the growth of a sequence since the server's start: whole
            with drafts as the pool counts, smooth as the step time does.
    """

    def __init__(self, prompt: list[int], output: list[int]) -> None:
        count = len(prompt)
        self.prompt = prompt
        self.output = output
        self.admitted = [nan] * count
        self.first = [nan] * count
        self.done = [nan] * count
        self.lag = [0.0] * count
        self.rejected = [False] * count
        self.preemptions = [0] * count
        self.target = list(prompt)
        self.computed = [0] * count
        self.made = [0] * count
        self.held = [0] * count
        self.end = [-1] * count
        self.base = [0] * count
        self.offset = [0.0] * count


class Server:
    """One server between events; see the module's text.

    Attributes:
        until: End of the running step or leap [s]; infinity = idle.
        load: Requests queued or running.
        idle: Beginnings and ends of idle times in turn [s].
        gaps: End [s], mean length [s] and number of the gaps between a sequence's tokens, in
            threes.
    """

    def __init__(self, deployment: Deployment, book: Book) -> None:
        self.until = inf
        self.load = 0
        self.idle = [0.0]
        self.gaps: list[float] = []
        self._deployment = deployment
        self._book = book
        self._pool = Pool(deployment.blocks, deployment.block)
        self._slots = deployment.slots
        self._waiting: deque[int] = deque()
        self._count = len(book.prompt)
        self._target, self._computed, self._made = book.target, book.computed, book.made
        self._held, self._end = book.held, book.end
        self._base, self._offset = book.base, book.offset
        # When preempted requests had their last token.
        self._lost: dict[int, float] = {}
        # Running requests in order of admission; the decoding ones as a number and a sum of
        # offsets, their ends in a heap; the one prompt that is computed in part.
        self._running: dict[int, None] = {}
        self._batch = 0
        self._offsets = 0.0
        self._ends: list[int] = []
        self._partial = -1
        self._decoded = 0
        # The running step or leap: decode steps in it, time of the first, growth of the next ones.
        self._steps = 0
        self._start = 0.0
        self._first = 0.0
        self._growth = 0.0
        self._ready: list[int] = []
        self._lag = 0.0
        # By how much the earlier chunks of a prompt were short of what it takes alone.
        self._owed: dict[int, float] = {}
        # Where prompts ran alone since the last decode step: since when, and how many waited.
        self._pauses: list[tuple[float, int]] = []

    def enqueue(self, request: int, now: float) -> None:
        """Take in a request; every event before `now` must have happened."""
        deployment, book = self._deployment, self._book
        tokens = book.prompt[request] + book.output[request] + deployment.draft_tokens
        if deployment.blocks_of(tokens) > deployment.blocks:
            book.rejected[request] = True
            return
        self.load += 1
        self._waiting.append(request)
        if self.until == inf:
            self.idle.append(now)
            self._begin(now)
        elif self._steps > 1 and len(self._waiting) == 1 and len(self._running) < self._slots:
            self._cut(now)

    def advance(self) -> None:
        """Go past the end of the running step or leap."""
        now = self.until
        if self._steps:
            self._end_steps(now)
        for request in self._ready:
            self._emit(request, now)
        self._ready.clear()
        self._begin(now)

    def _tokens(self, steps: int) -> int:
        """Tokens that a sequence gains in the first `steps` decode steps of the server."""
        accepted = self._deployment.accepted
        return steps if accepted == 1.0 else int(accepted * steps + TINY)

    def _end_steps(self, now: float) -> None:
        """Book the decode steps that end now, and the sequences that end with them."""
        self._log(now)
        self._decoded += self._steps
        # Ends are numbered step * requests + request, so that the step compares first.
        limit = (self._decoded + 1) * self._count
        ends = self._ends
        while ends and ends[0] < limit:
            step, request = divmod(heappop(ends), self._count)
            if self._end[request] == step:
                self._drop(request)
                self._leave(request, now)

    def _log(self, now: float) -> None:
        """Book the gaps of the steps that end now; prompts that ran alone widen the first ones."""
        mean = (now - self._start) / self._steps
        paused = 0
        for since, batch in self._pauses:
            more = min(batch, self._batch) - paused
            self.gaps += (self._start + mean, self._start + mean - since, more)
            paused += more
        self._pauses.clear()
        self.gaps += (now, mean, self._steps * self._batch - paused)

    def _emit(self, request: int, now: float) -> None:
        """A prompt is computed: its next token is out, and it decodes from here on."""
        book = self._book
        self._made[request] += 1
        made = self._made[request]
        if made == 1:
            book.first[request] = now
            book.lag[request] = self._lag + self._owed.pop(request, 0.0)
        else:
            self.gaps += (now, now - self._lost.pop(request), 1)
        if made == book.output[request]:
            self._leave(request, now)
        else:
            self._join(request, book.prompt[request] + made, book.output[request] - made)

    def _join(self, request: int, context: int, rest: int) -> None:
        """Let a sequence decode that has `context` tokens and `rest` more to make."""
        deployment, decoded = self._deployment, self._decoded
        accepted, grown = deployment.accepted, self._tokens(decoded)
        end = decoded + rest if accepted == 1.0 else ceil((grown + rest) / accepted - TINY)
        self._end[request] = end
        heappush(self._ends, end * self._count + request)
        self._offset[request] = context - accepted * decoded
        self._offsets += self._offset[request]
        self._batch += 1
        if not deployment.reserve_all:
            pool = self._pool
            pool.used -= self._held[request]
            self._held[request] = 0
            base = context + deployment.draft_tokens - grown
            self._base[request] = base
            pool.join(base + pool.clock)

    def _drop(self, request: int) -> None:
        """Take a sequence out of the decoding batch."""
        self._end[request] = -1
        self._batch -= 1
        self._offsets -= self._offset[request]
        if not self._deployment.reserve_all:
            self._pool.leave(self._base[request] + self._pool.clock)

    def _leave(self, request: int, now: float) -> None:
        self._book.done[request] = now
        self._pool.used -= self._held[request]
        self.load -= 1
        del self._running[request]

    def _begin(self, now: float) -> None:
        """Begin the next step or leap, or rest."""
        deployment, pool = self._deployment, self._pool
        self._start = now
        preempted = False
        if self._batch and not deployment.reserve_all:
            pool.advance(self._tokens(self._decoded))
            if pool.used > pool.blocks:
                self._preempt(now)
                preempted = True
        if self._waiting or self._partial >= 0:
            polled = deployment.poll_steps == 1 or self._decoded % deployment.poll_steps == 0
            admit = not preempted and (polled or not self._batch)
            tokens, attention = self._take_prompts(now, admit)
            if tokens:
                self._mix(now, tokens, attention)
                return
        if self._batch:
            self._leap(now, preempted)
        else:
            self._steps = 0
            self.until = inf
            self.idle.append(now)

    def _preempt(self, now: float) -> None:
        """Take the KV of the newest running requests until the others fit."""
        pool, book = self._pool, self._book
        while pool.used > pool.blocks:
            request = next(reversed(self._running))
            del self._running[request]
            if request == self._partial:
                self._partial = -1
                self._owed.pop(request, None)
                pool.used -= self._held[request]
            else:
                tokens = self._base[request] + pool.clock - self._deployment.draft_tokens
                self._made[request] = tokens - book.prompt[request]
                self._target[request] = tokens
                self._drop(request)
                self._lost[request] = now
            book.preemptions[request] += 1
            self._waiting.appendleft(request)

    def _take_prompts(self, now: float, admit: bool) -> tuple[int, float]:
        """Return the prompt tokens of this step and the time of their attention [s]."""
        deployment = self._deployment
        left = budget = deployment.budget
        if not deployment.prefill_first:
            left = budget = budget - self._batch * (1 + deployment.draft_tokens)
        attention = 0.0
        while left > 0:
            request = self._partial
            if request < 0:
                request = self._admit(now) if admit else -1
                if request < 0:
                    break
            done = self._computed[request]
            taken = self._target[request] - done
            if taken <= left:
                self._ready.append(request)
                self._partial = -1
            else:
                taken = left
                self._computed[request] = done + taken
                self._partial = request
            left -= taken
            attention += deployment.attention_time(done, taken)
        return budget - left, attention

    def _admit(self, now: float) -> int:
        """Return the head of the queue if there is a slot and KV for it, else -1."""
        if not self._waiting or len(self._running) >= self._slots:
            return -1
        deployment, book, pool = self._deployment, self._book, self._pool
        request = self._waiting[0]
        tokens = self._target[request]
        if deployment.reserve_all:
            tokens = book.prompt[request] + book.output[request] + deployment.draft_tokens
        blocks = deployment.blocks_of(tokens)
        if pool.used + blocks > pool.blocks:
            return -1
        self._waiting.popleft()
        self._running[request] = None
        self._held[request] = blocks
        pool.used += blocks
        if isnan(book.admitted[request]):
            book.admitted[request] = now
        self._computed[request] = min(
            int(book.prompt[request] * deployment.prefix_hit), self._target[request] - 1
        )
        return request

    def _mix(self, now: float, tokens: int, attention: float) -> None:
        """Begin a step with prompt tokens."""
        deployment, batch = self._deployment, self._batch
        alone = deployment.alone[tokens] + attention
        duration = alone
        self._steps = 0
        self._lag = deployment.lag * alone
        if batch and deployment.prefill_first:
            duration = deployment.stall[tokens] + attention
            # The prompt takes as long as alone; only what decodes is held up for less.
            self._lag += alone - duration
            if self._partial >= 0:
                owed = self._owed.get(self._partial, 0.0)
                self._owed[self._partial] = owed + alone - duration
            self._pauses.append((now, batch))
        elif batch:
            decode = self._decode_time() + deployment.stall[tokens] + attention
            duration = max(decode, alone)
            self._steps = 1
        self.until = now + duration

    def _decode_time(self) -> float:
        deployment, batch = self._deployment, self._batch
        context = self._offsets + batch * deployment.accepted * self._decoded
        return deployment.decode[batch] + deployment.decode_context[batch] * context

    def _leap(self, now: float, preempted: bool) -> None:
        """Decode until a sequence ends or KV runs out."""
        deployment, batch = self._deployment, self._batch
        steps = 1 if preempted else self._ends[0] // self._count - self._decoded
        if self._waiting and deployment.poll_steps > 1:
            steps = min(steps, deployment.poll_steps - self._decoded % deployment.poll_steps)
        if steps > 1 and not deployment.reserve_all:
            steps = self._fitting(steps)
        self._steps = steps
        self._first = self._decode_time()
        self._growth = deployment.decode_context[batch] * batch * deployment.accepted
        self.until = now + steps * self._first + self._growth * (steps * (steps - 1) // 2)

    def _fitting(self, steps: int) -> int:
        """Decode steps, up to `steps`, for which KV is left."""
        clock, decoded = self._pool.clock, self._decoded
        ticks = self._tokens(decoded + steps - 1) - clock
        room = self._pool.room(ticks)
        if room == ticks:
            return steps
        steps = min(steps, ceil((clock + room + 1) / self._deployment.accepted) - decoded + 1)
        while self._tokens(decoded + steps - 1) - clock > room:
            steps -= 1
        return steps

    def _cut(self, now: float) -> None:
        """End the running leap with the step that is under way at `now`."""
        past, growth = now - self._start, self._growth
        middle = self._first - 0.5 * growth
        # Smallest k with k*first + growth*k*(k-1)/2 >= past, in the form free of cancellation.
        root = 2.0 * past / (middle + sqrt(middle * middle + 2.0 * growth * past))
        steps = max(ceil(root), 1)
        if self._end_of(steps) < now:
            steps += 1
        steps += -(self._decoded + steps) % self._deployment.poll_steps
        if steps < self._steps:
            self._steps = steps
            self.until = self._end_of(steps)

    def _end_of(self, steps: int) -> float:
        return self._start + steps * self._first + self._growth * (steps * (steps - 1) // 2)
