"""Which edges fire, and when: the only randomness of a run.

Everything is drawn in blocks that follow from (seed, run, block) alone. So every engine sees the same edges, a run can
continue from anywhere, and runs are independent streams: run r of a seed is child r of its SeedSequence.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.graphs.graph import Graph
from gosta.runtime.arrays import Floats, Integers

BLOCK = 1 << 16  # draws in a block: half a MiB of edges

EDGES, UNIFORMS, GAPS, ORDER = range(4)  # independent streams of a run


class Schedule:
    """The draws of one run. Ranges `first` to `last` lie within one block."""

    def __init__(self, graph: Graph, seed: int, run: int) -> None:
        self.graph, self.seed, self.run = graph, seed, run
        self._blocks: dict[int, tuple[int, Any]] = {}  # the last block of each stream
        self._elapsed = 0, 0.0  # number of whole blocks, and the time at their end

    def edges(self, first: int, last: int) -> NDArray[np.int32]:
        """Return the edges drawn, two node numbers each."""
        return np.asarray(self._block(EDGES, first // BLOCK)[0][_within_block(first, last)])

    def edge_shares(self, first: int, last: int) -> Floats:
        """Return the share of each drawn edge in the exchanges of its ends; one number where all are equal."""
        numbers = self._block(EDGES, first // BLOCK)[1]
        return self.graph.edge_shares_of(None if numbers is None else numbers[_within_block(first, last)])

    def uniforms(self, first: int, last: int) -> Floats:
        """Return uniform numbers for choices within an exchange, two each."""
        return np.asarray(self._block(UNIFORMS, first // BLOCK)[_within_block(first, last)])

    def time(self, draws: int) -> float:
        """Return the time after so many draws, where each edge has a Poisson clock of rate 1, or of its weight."""
        blocks, elapsed = self._elapsed if self._elapsed[0] <= draws // BLOCK else (0, 0.0)
        while blocks < draws // BLOCK:
            elapsed += float(self._block(GAPS, blocks).sum())
            blocks += 1
        self._elapsed = blocks, elapsed
        return elapsed + float(self._block(GAPS, blocks)[: draws % BLOCK].sum())

    @cached_property
    def order(self) -> Integers:
        """Random order of the nodes."""
        return self._rng(ORDER, 0).permutation(self.graph.n)

    def _block(self, stream: int, block: int) -> Any:
        if self._blocks.get(stream, (-1,))[0] != block:
            self._blocks[stream] = block, self._draw(stream, self._rng(stream, block))
        return self._blocks[stream][1]

    def _draw(self, stream: int, rng: np.random.Generator) -> Any:
        if stream == EDGES:
            return self.graph.draw_with_numbers(rng, BLOCK)
        if stream == UNIFORMS:
            return rng.random((BLOCK, 2))
        rate = self.graph.m if self.graph.weights is None else self.graph.weights.sum()
        return rng.exponential(1.0 / rate, BLOCK)

    def _rng(self, stream: int, block: int) -> np.random.Generator:
        key = (self.run, stream, block)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)))


def _within_block(first: int, last: int) -> slice:
    start = first // BLOCK * BLOCK
    return slice(first - start, last - start)
