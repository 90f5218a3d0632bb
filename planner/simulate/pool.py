"""Paged KV memory of one server, counted exactly without visiting every sequence."""

from __future__ import annotations


class Pool:
    """KV blocks in use by sequences that all grow by one token a tick.

    A sequence of t tokens holds ceil(t / block) blocks and takes one more whenever t is a
    multiple of the block. As all sequences grow together, those that take a block at the same
    tick do so for ever: counting them by that phase gives the growth of any number of ticks.

    Attributes:
        used: Blocks in use, those taken directly included.
        clock: Ticks passed.
        growing: Sequences that grow.
    """

    __slots__ = ("block", "blocks", "clock", "growing", "turns", "used")

    def __init__(self, blocks: int, block: int) -> None:
        self.blocks = blocks
        self.block = block
        self.used = 0
        self.clock = 0
        self.growing = 0
        # Twice over, so that any run of up to one block of phases is one slice.
        self.turns = [0] * (2 * block)

    def join(self, tokens: int) -> None:
        """Add a sequence that has `tokens` tokens now."""
        self._count(tokens, 1)

    def leave(self, tokens: int) -> None:
        """Take out a sequence that has `tokens` tokens now."""
        self._count(tokens, -1)

    def _count(self, tokens: int, change: int) -> None:
        phase = (self.clock - tokens) % self.block
        self.turns[phase] += change
        self.turns[phase + self.block] += change
        self.growing += change
        self.used -= change * (-tokens // self.block)

    def advance(self, clock: int) -> None:
        """Let all sequences grow until the clock shows `clock`."""
        cycles, rest = divmod(clock - self.clock, self.block)
        if rest:
            start = self.clock % self.block
            self.used += sum(self.turns[start : start + rest])
        self.used += cycles * self.growing
        self.clock = clock

    def room(self, ticks: int) -> int:
        """Ticks, up to `ticks`, after which the sequences still fit."""
        free = self.blocks - self.used
        growing = self.growing
        if growing * (ticks // self.block + 1) <= free:
            return ticks
        cycles, free = divmod(free, growing)
        room = cycles * self.block
        phase = self.clock % self.block
        # Fewer blocks are left than sequences, so the walk ends within one block.
        while room < ticks:
            free -= self.turns[phase]
            if free < 0:
                break
            room += 1
            phase = (phase + 1) % self.block
        return min(room, ticks)
