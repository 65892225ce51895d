"""Who meets whom, and when: the only randomness of a run.

Everything comes in blocks that follow from (seed, run, block) alone. So every engine sees the same edges, a run can
go on from anywhere, and runs are independent streams: run r of a seed is child r of its SeedSequence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gosta.graphs.graph import Graph

BLOCK = 1 << 16

EDGES, CHANCES, GAPS, ORDER = range(4)


class Schedule:
    """The edges, chances and clocks of one run."""

    def __init__(self, graph: Graph, seed: int, run: int) -> None:
        self.graph, self.seed, self.run = graph, seed, run

    def _rng(self, kind: int, block: int) -> np.random.Generator:
        key = (self.run, kind, block)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)))

    def edges(self, block: int) -> NDArray[np.int32]:
        """The edges drawn in a block: BLOCK × 2."""
        return self.graph.draw(self._rng(EDGES, block), BLOCK)

    def chances(self, block: int) -> NDArray[np.float64]:
        """Uniform numbers for choices within a meeting: BLOCK × 2."""
        return self._rng(CHANCES, block).random((BLOCK, 2))

    def gaps(self, block: int) -> NDArray[np.float64]:
        """Times between meetings, where each edge has a Poisson clock of rate 1, or of its weight."""
        rate = self.graph.m if self.graph.weights is None else self.graph.weights.sum()
        return self._rng(GAPS, block).exponential(1.0 / rate, BLOCK)

    def order(self) -> NDArray[np.int64]:
        """A random order of the nodes."""
        return self._rng(ORDER, 0).permutation(self.graph.n)
