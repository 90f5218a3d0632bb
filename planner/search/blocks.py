"""Rows of a search, a block at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from planner.model.arrays import Indices

Result = TypeVar("Result")

BLOCK = 6144
"""Rows of one call of the model: its arrays stay in the processor's cache."""


def by_block(work: Callable[[Indices], Result], count: int) -> list[Result]:
    """Return what each block of row numbers gives, in order; of no rows, that of an empty block."""
    return [work(np.arange(s, min(s + BLOCK, count))) for s in range(0, max(count, 1), BLOCK)]
