"""Who meets whom, and when: the only randomness of a run.

Everything comes in blocks that follow from (seed, run, block) alone. So every engine sees the same edges, a run can
go on from anywhere, and runs are independent streams: run r of a seed is child r of its SeedSequence.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.graphs.graph import Graph

BLOCK = 1 << 16

EDGES, CHANCES, GAPS, ORDER = range(4)


class Schedule:
    """The edges, chances and clocks of one run, from any place to any other within a block."""

    def __init__(self, graph: Graph, seed: int, run: int) -> None:
        self.graph, self.seed, self.run = graph, seed, run
        self._last: dict[int, tuple[int, Any]] = {}

    def edges(self, first: int, last: int) -> NDArray[np.int32]:
        """The edges drawn, two node numbers each."""
        edges: NDArray[np.int32] = self._block(EDGES, first)[0][self._within(first, last)]
        return edges

    def paces(self, first: int, last: int) -> NDArray[np.float64]:
        """Their paces; one number where all edges are alike."""
        chosen = self._block(EDGES, first)[1]
        return self.graph.edge_shares_of(None if chosen is None else chosen[self._within(first, last)])

    def chances(self, first: int, last: int) -> NDArray[np.float64]:
        """Uniform numbers for choices within a meeting, two each."""
        chances: NDArray[np.float64] = self._block(CHANCES, first)[self._within(first, last)]
        return chances

    def gaps(self, first: int, last: int) -> NDArray[np.float64]:
        """Times between meetings, where each edge has a Poisson clock of rate 1, or of its weight."""
        gaps: NDArray[np.float64] = self._block(GAPS, first)[self._within(first, last)]
        return gaps

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """A random order of the nodes."""
        return self._rng(ORDER, 0).permutation(self.graph.n)

    def _within(self, first: int, last: int) -> slice:
        begun = first // BLOCK * BLOCK
        return slice(first - begun, last - begun)

    def _block(self, kind: int, first: int) -> Any:
        block = first // BLOCK
        if self._last.get(kind, (-1,))[0] != block:
            self._last[kind] = block, self._drawn(kind, self._rng(kind, block))
        return self._last[kind][1]

    def _drawn(self, kind: int, rng: np.random.Generator) -> Any:
        if kind == EDGES:
            return self.graph.draw_with_numbers(rng, BLOCK)
        if kind == CHANCES:
            return rng.random((BLOCK, 2))
        rate = self.graph.m if self.graph.weights is None else self.graph.weights.sum()
        return rng.exponential(1.0 / rate, BLOCK)

    def _rng(self, kind: int, block: int) -> np.random.Generator:
        key = (self.run, kind, block)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)))
