"""Which edges fire, when, and which of the exchanges fail: the only randomness of a run.

Everything is drawn in blocks that follow from (seed, run, block) alone. So every engine sees the
same edges, a run can continue from anywhere, and runs are independent streams: run r of a seed is
child r of its SeedSequence.

Faults are lost messages, nodes that go and come back, and a partition. Real nodes take part in an
exchange on both sides or on neither, so a fault does one thing to a simulation: exchanges that are
drawn do not take place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.graphs.changing import ChangingGraph
from gosta.graphs.edges import Edges
from gosta.graphs.graph import Graph
from gosta.runtime.arrays import Booleans, Floats, Integers

BLOCK = 1 << 16  # draws in a block: half a MiB of edges
EDGES, UNIFORMS, GAPS, ORDER, LOSSES, ABSENCES, PHASES = range(7)  # independent streams of a run
# Why an exchange did not take place, in the order in which such exchanges are counted.
FAULT_NAMES = ("loss", "away", "partition")
# Both ends of an edge whose exchange does not take place, for each of these reasons.
LOST, AWAY, SEPARATED = -1, -2, -3
AWAY_FOR = 10.0  # exchanges, unless another length is given


@dataclass(frozen=True)
class Faults:
    """What keeps exchanges of a simulation from taking place; by default nothing does."""

    loss: float = 0.0
    """Probability that a message is lost; an exchange takes one in each direction."""
    away: float = 0.0
    """Share of the nodes that are away at any time; they come back as they were."""
    away_for: float = AWAY_FOR
    """How long a node is away, on average: the exchanges that an average node has meanwhile."""
    partition: tuple[int, int] | None = None
    """Iterations from and up to which the first half of the nodes is separated from the others."""

    def __bool__(self) -> bool:
        return self.loss > 0 or self.away > 0 or self.partition is not None

    @property
    def lost_share(self) -> float:
        """Probability that an exchange is lost, because one of its two messages is."""
        return 1.0 - (1.0 - self.loss) ** 2


NO_FAULTS = Faults()


def check_faults(
    loss: Any = None, away: Any = None, away_for: Any = None, partition: Any = None
) -> Faults:
    """Return the faults that arguments of `gosta.simulate` describe, after checking them."""
    for name, value in (("loss", loss), ("away", away)):
        if value is not None and (not _is_number(value) or not 0 <= value < 1):
            raise InputError(
                f"{name} = {value!r} must be a number from 0 to less than 1, such as 0.1"
            )
    if away_for is not None and (not _is_number(away_for) or not 1 <= away_for < math.inf):
        raise InputError(f"away_for = {away_for!r} must be a number of exchanges, 1 or more")
    if away_for is not None and away is None:
        what = "the share of the nodes that are away, such as 0.05"
        raise InputError(f"away_for = {away_for!r} requires away, {what}")
    period = None
    if partition is not None:
        if not _is_pair(partition) or not 0 <= partition[0] < partition[1]:
            what = "two iterations, its start and its end: (5000, 15000)"
            raise InputError(f"partition = {partition!r} must be {what}")
        period = int(partition[0]), int(partition[1])
    return Faults(
        float(loss or 0.0),
        float(away or 0.0),
        AWAY_FOR if away_for is None else float(away_for),
        period,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_pair(value: Any) -> bool:
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    return all(isinstance(end, int | np.integer) for end in value)


class Schedule:
    """The draws of one run. Ranges `first` to `last` lie within one block."""

    def __init__(
        self, graph: Graph | ChangingGraph, seed: int, run: int, failures: Failures | None = None
    ) -> None:
        self.graph = graph if isinstance(graph, ChangingGraph) else ChangingGraph((0,), (graph,))
        self.seed, self.run, self.failures = seed, run, failures
        self._blocks: dict[int, tuple[int, Any]] = {}  # the last block of each stream
        self._elapsed = 0, 0.0  # number of whole blocks, and the time at their end
        # Likewise, how many exchanges did not take place.
        self._failed = 0, np.zeros(len(FAULT_NAMES), dtype=np.int64)

    def edges(self, first: int, last: int) -> NDArray[np.int32]:
        """Return the drawn edges, two node numbers each; negative where no exchange takes place."""
        return np.asarray(self._block(EDGES, first // BLOCK)[0][_within_block(first, last)])

    def edge_shares(self, first: int, last: int) -> Floats:
        """Return each drawn edge's share in its ends' exchanges; one number if all are equal."""
        shares: Floats = self._block(EDGES, first // BLOCK)[1]
        return shares if len(shares) == 1 else shares[_within_block(first, last)]

    def uniforms(self, first: int, last: int) -> Floats:
        """Return uniform numbers for choices within an exchange, two each."""
        return np.asarray(self._block(UNIFORMS, first // BLOCK)[_within_block(first, last)])

    def time(self, draws: int) -> float:
        """Return the time after a number of draws.

        Each edge has a Poisson clock, whose rate is 1 or the edge's weight.
        """
        blocks, elapsed = self._elapsed if self._elapsed[0] <= draws // BLOCK else (0, 0.0)
        while blocks < draws // BLOCK:
            elapsed += float(self._block(GAPS, blocks).sum())
            blocks += 1
        self._elapsed = blocks, elapsed
        return elapsed + float(self._block(GAPS, blocks)[: draws % BLOCK].sum())

    def failed(self, draws: int) -> Integers:
        """Return how many of the first `draws` exchanges failed, for each of `FAULT_NAMES`."""
        blocks, count = self._failed
        if blocks > draws // BLOCK:
            blocks, count = 0, np.zeros_like(count)
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
            gaps = [
                rng.exponential(1.0 / self._rates[k], stop - start) for k, start, stop in pieces
            ]
            return np.concatenate(gaps)
        edges_of_pieces, shares_of_pieces = [], []
        for k, start, stop in pieces:
            graph = self.graph.graphs[k]
            ends, numbers = graph.draw_with_numbers(rng, stop - start)
            shares = graph.edge_shares_of(numbers)
            edges_of_pieces.append(ends)
            is_alone = len(pieces) == 1
            shares_of_pieces.append(shares if is_alone else np.broadcast_to(shares, stop - start))
        edges = edges_of_pieces[0] if len(pieces) == 1 else np.concatenate(edges_of_pieces)
        if self.failures is not None:
            self.failures.mark(self.run, block * BLOCK, edges)
        return edges, np.concatenate(shares_of_pieces)

    @cached_property
    def _rates(self) -> list[float]:
        """Rate at which any edge of each graph fires."""
        return [
            graph.m if graph.weights is None else float(graph.weights.sum())
            for graph in self.graph.graphs
        ]


class Failures:
    """Which of the drawn exchanges fail by the faults of a network, for all runs of a seed.

    The time of each node is cut into slots of equal length, which begin at another moment for each
    node. A node is away in a slot or not, each with the same probability, whatever it did before:
    absences last one slot, two, and so on, on average 1 / (1 - away) slots.
    """

    def __init__(self, faults: Faults, nodes: int, seed: int, draws_per_iteration: int = 1) -> None:
        self.faults, self.nodes, self.seed = faults, nodes, seed
        # Draws in a slot; a draw is an exchange of two nodes.
        self.slot = faults.away_for * (1.0 - faults.away) * nodes / 2
        self.group = max(1, BLOCK // nodes)  # slots drawn at a time
        start, end = faults.partition or (0, 0)
        self.partition = start * draws_per_iteration, end * draws_per_iteration
        # By run: the last block, and which of its draws are lost.
        self._losses: dict[int, tuple[int, Booleans]] = {}
        # By run: when slots begin at each node, as shares of a slot.
        self._phases: dict[int, Floats] = {}
        # By run: the last groups of slots, and which nodes are away in them, slots × nodes.
        self._absences: dict[int, tuple[range, Booleans]] = {}

    def mark(self, run: int, first: int, edges: Edges) -> None:
        """Replace the ends of edges, drawn from `first` on, by the reason why an exchange fails."""
        for start in range(first // BLOCK * BLOCK, first + len(edges), BLOCK):
            begin = max(first, start)
            self._mark_in_block(run, begin, edges[begin - first : start + BLOCK - first])

    def _mark_in_block(self, run: int, first: int, edges: Edges) -> None:
        faults, ends = self.faults, edges.copy()
        last = first + len(edges)
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
        last_group = int((draws[-1] / self.slot + 1) // self.group)
        groups = range(int(first / self.slot) // self.group, last_group + 1)
        if self._absences.get(run, (range(0),))[0] != groups:
            shape = self.group, self.nodes
            drawn = [_rng(self.seed, run, ABSENCES, group).random(shape) for group in groups]
            is_away = np.concatenate([numbers < self.faults.away for numbers in drawn])
            self._absences[run] = groups, is_away
        return np.asarray(self._absences[run][1][slots - groups[0] * self.group, ends])


def _count_failed(edges: Edges) -> Integers:
    return np.array([np.count_nonzero(edges[:, 0] == reason) for reason in (LOST, AWAY, SEPARATED)])


def _rng(seed: int, run: int, stream: int, block: int) -> np.random.Generator:
    key = (run, stream, block)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def _within_block(first: int, last: int) -> slice:
    start = first // BLOCK * BLOCK
    return slice(first - start, last - start)
