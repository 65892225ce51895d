"""Which edges fire, when, and which of the exchanges fail: the only randomness of a run.

Everything is drawn in blocks that follow from (seed, run, block) alone. So every engine sees the same edges, a run can
continue from anywhere, and runs are independent streams: run r of a seed is child r of its SeedSequence.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.faults import NAMES, Faults
from gosta.graphs.changing import ChangingGraph
from gosta.graphs.edges import Edges
from gosta.graphs.graph import Graph
from gosta.runtime.arrays import Booleans, Floats, Integers

BLOCK = 1 << 16  # draws in a block: half a MiB of edges

EDGES, UNIFORMS, GAPS, ORDER, LOSSES, ABSENCES, PHASES = range(7)  # independent streams of a run
LOST, AWAY, SEPARATED = (
    -1,
    -2,
    -3,
)  # both ends of an edge whose exchange does not take place, in the order of NAMES


class Schedule:
    """The draws of one run. Ranges `first` to `last` lie within one block."""

    def __init__(
        self, graph: Graph | ChangingGraph, seed: int, run: int, failures: Failures | None = None
    ) -> None:
        self.graph = graph if isinstance(graph, ChangingGraph) else ChangingGraph((0,), (graph,))
        self.seed, self.run, self.failures = seed, run, failures
        self._blocks: dict[int, tuple[int, Any]] = {}  # the last block of each stream
        self._elapsed = 0, 0.0  # number of whole blocks, and the time at their end
        self._failed = (
            0,
            np.zeros(len(NAMES), dtype=np.int64),
        )  # likewise, how many exchanges did not take place

    def edges(self, first: int, last: int) -> NDArray[np.int32]:
        """Return the edges drawn, two node numbers each; those whose exchange does not take place are negative."""
        return np.asarray(self._block(EDGES, first // BLOCK)[0][_within_block(first, last)])

    def edge_shares(self, first: int, last: int) -> Floats:
        """Return the share of each drawn edge in the exchanges of its ends; one number where all are equal."""
        shares: Floats = self._block(EDGES, first // BLOCK)[1]
        return shares if len(shares) == 1 else shares[_within_block(first, last)]

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

    def failed(self, draws: int) -> Integers:
        """Return how many of so many exchanges did not take place, for each of the reasons in `faults.NAMES`."""
        blocks, count = (
            self._failed
            if self._failed[0] <= draws // BLOCK
            else (0, np.zeros_like(self._failed[1]))
        )
        while blocks < draws // BLOCK:
            count = count + _count_failed(self._block(EDGES, blocks)[0])
            blocks += 1
        self._failed = blocks, count
        return np.asarray(count + _count_failed(self._block(EDGES, blocks)[0][: draws % BLOCK]))

    @cached_property
    def order(self) -> Integers:
        """Random order of the nodes."""
        return _rng(self.seed, self.run, ORDER, 0).permutation(self.graph.graphs[0].n)

    def _block(self, stream: int, block: int) -> Any:
        if self._blocks.get(stream, (-1,))[0] != block:
            drawn = self._draw(stream, block, _rng(self.seed, self.run, stream, block))
            self._blocks[stream] = block, drawn
        return self._blocks[stream][1]

    def _draw(self, stream: int, block: int, rng: np.random.Generator) -> Any:
        if stream == UNIFORMS:
            return rng.random((BLOCK, 2))
        pieces = list(self.graph.pieces(block * BLOCK, (block + 1) * BLOCK))
        if stream == GAPS:
            return np.concatenate(
                [rng.exponential(1.0 / self._rates[k], last - first) for k, first, last in pieces]
            )
        drawn = [
            self.graph.graphs[k].draw_with_numbers(rng, last - first) for k, first, last in pieces
        ]
        shares = [
            self.graph.graphs[k].edge_shares_of(drawn[p][1]) for p, (k, _, _) in enumerate(pieces)
        ]
        if len(pieces) > 1:
            shares = [
                np.broadcast_to(own, last - first)
                for own, (_, first, last) in zip(shares, pieces, strict=True)
            ]
        edges = drawn[0][0] if len(pieces) == 1 else np.concatenate([ends for ends, _ in drawn])
        if self.failures is not None:
            self.failures.mark(self.run, block * BLOCK, edges)
        return edges, np.concatenate(shares)

    @cached_property
    def _rates(self) -> list[float]:
        """Rate at which any edge of each graph fires."""
        return [
            graph.m if graph.weights is None else float(graph.weights.sum())
            for graph in self.graph.graphs
        ]


class Failures:
    """Which of the exchanges that are drawn do not take place, by the faults of a network, for all runs of a seed.

    The time of each node is cut into slots of equal length, which begin at another moment for each node. A node is away
    in a slot or not, each with the same probability, whatever it did before: absences last one slot, two, and so on,
    on average 1 / (1 - away) slots.
    """

    def __init__(self, faults: Faults, nodes: int, seed: int, draws_per_iteration: int = 1) -> None:
        self.faults, self.nodes, self.seed = faults, nodes, seed
        self.slot = (
            faults.away_for * (1.0 - faults.away) * nodes / 2
        )  # draws; a draw is an exchange of two nodes
        self.group = max(1, BLOCK // nodes)  # slots drawn at a time
        start, end = faults.partition or (0, 0)
        self.partition = start * draws_per_iteration, end * draws_per_iteration
        self._losses: dict[
            int, tuple[int, Booleans]
        ] = {}  # of each run the last block, and which draws are lost
        self._phases: dict[int, Floats] = {}  # of each run, when slots begin at each node
        self._absences: dict[
            int, tuple[range, Booleans]
        ] = {}  # of each run groups of slots; slots × nodes

    def mark(self, run: int, first: int, edges: Edges) -> None:
        """Replace both ends of edges, drawn from `first` on, by the reason why their exchange does not take place."""
        for start in range(first // BLOCK * BLOCK, first + len(edges), BLOCK):
            begin = max(first, start)
            self._mark_in_block(run, begin, edges[begin - first : start + BLOCK - first])

    def _mark_in_block(self, run: int, first: int, edges: Edges) -> None:
        faults, last, ends = self.faults, first + len(edges), edges.copy()
        if faults.loss:
            edges[self._lost(run, first // BLOCK)[_within_block(first, last)]] = LOST
        start, end = self.partition
        if start < last and first < end:
            part = slice(max(start - first, 0), max(end - first, 0))
            edges[part][np.diff(ends[part] < self.nodes // 2, axis=1)[:, 0]] = SEPARATED
        if faults.away:
            edges[self._is_away(run, first, ends).any(axis=1)] = AWAY

    def _lost(self, run: int, block: int) -> Booleans:
        if self._losses.get(run, (-1,))[0] != block:
            drawn = _rng(self.seed, run, LOSSES, block).random(BLOCK)
            self._losses[run] = block, drawn < self.faults.lost_share
        return self._losses[run][1]

    def _is_away(self, run: int, first: int, ends: Edges) -> Booleans:
        """Return whether each end of some edges, drawn from `first` on, is away."""
        if run not in self._phases:
            self._phases[run] = _rng(self.seed, run, PHASES, 0).random(self.nodes)
        draws = np.arange(first, first + len(ends))
        slots = (draws[:, None] / self.slot + self._phases[run][ends]).astype(np.int64)
        groups = range(
            int(first / self.slot) // self.group, int((draws[-1] / self.slot + 1) // self.group) + 1
        )
        if self._absences.get(run, (range(0),))[0] != groups:
            drawn = (
                _rng(self.seed, run, ABSENCES, group).random((self.group, self.nodes))
                for group in groups
            )
            self._absences[run] = (
                groups,
                np.concatenate([numbers < self.faults.away for numbers in drawn]),
            )
        return np.asarray(self._absences[run][1][slots - groups[0] * self.group, ends])


def _count_failed(edges: Edges) -> Integers:
    return np.array([np.count_nonzero(edges[:, 0] == reason) for reason in (LOST, AWAY, SEPARATED)])


def _rng(seed: int, run: int, stream: int, block: int) -> np.random.Generator:
    key = (run, stream, block)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def _within_block(first: int, last: int) -> slice:
    start = first // BLOCK * BLOCK
    return slice(first - start, last - start)
