"""The edges of `gosta.schedule`, with the same bits, drawn in compiled code for several runs."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.graphs.changing import ChangingGraph
from gosta.graphs.edges import Edges
from gosta.graphs.graph import Graph
from gosta.graphs.tree import TREE_SHARE
from gosta.runtime import compiler
from gosta.runtime.arrays import Floats, Integers
from gosta.schedule import BLOCK, EDGES, Failures

# Numbers in a stream, and the place of the number of draws among them: see edge_loop.py.
STREAM_SIZE = 8
DRAWN = 6
POOL_SIZE = 4  # words of a seed, at least
PIECE = 1 << 12  # draws at a time; they stay in the nearest cache

# Which numbers are drawn: of 32 bits or 64 bits below a bound, fractions of all weights, or those
# of a tree.
NARROW, WIDE, WEIGHTED, TREE = range(4)


class Network(NamedTuple):
    """What edges are drawn from, as compiled code takes it."""

    kind: int
    nodes: int
    bound: Any  # numbers that are drawn are less; an unsigned integer
    threshold: Any  # products with a lower half below it are rejected (Lemire's method)
    ends: Edges  # of each edge; empty for a complete graph
    cumulated: Floats  # weights of the edges, or of those of a tree
    guide: Integers  # about where each of equal parts of the last of them begins in `cumulated`
    shares: Floats  # of edges in the exchanges of their ends; one number where all are equal
    parents: Integers  # of a spanning tree


def network_of(graph: Graph, has_shares: bool) -> Network:
    """Return what the edges of a graph are drawn from.

    Their shares count as equal unless they are needed.
    """
    kind, cumulated = WEIGHTED, np.ones(1)
    bound = graph.n * (graph.n - 1) if graph.edges is None else graph.m
    if graph.weights is not None:
        cumulated = np.cumsum(graph.weights)
    elif graph.edges is None and graph.parents is not None:
        kind, cumulated, bound = TREE, graph.tree_cumulated, bound // 2
    else:
        kind = NARROW if bound <= 1 << 32 else WIDE
    word = 1 << (32 if kind == NARROW else 64)
    parts = np.linspace(0.0, cumulated[-1], len(cumulated) + 1)
    return Network(
        kind,
        graph.n,
        np.uint64(bound),
        np.uint64((word - bound) % bound),
        np.zeros((0, 2), dtype=np.int32) if graph.edges is None else graph.edges,
        cumulated,
        np.minimum(np.searchsorted(cumulated, parts), len(cumulated) - 1).astype(np.int64),
        graph.edge_shares if has_shares else np.ones(1),
        np.zeros(0, dtype=np.int64) if graph.parents is None else graph.parents,
    )


def entropy_of(seed: int) -> NDArray[np.uint32]:
    """Return the words of a seed, as SeedSequence has them where it has a spawn key."""
    words = [seed >> k & 0xFFFFFFFF for k in range(0, max(seed.bit_length(), 1), 32)]
    return np.array(words + [0] * (POOL_SIZE - len(words)), dtype=np.uint32)


def loop_text() -> str:
    """Return the text of edge_loop.py with its constants."""
    constants = {"BLOCK": BLOCK, "EDGES": EDGES, "PIECE": PIECE, "TREE_SHARE": TREE_SHARE}
    constants |= {"NARROW": NARROW, "WIDE": WIDE, "WEIGHTED": WEIGHTED, "TREE": TREE}
    text = Path(__file__).with_name("edge_loop.py").read_text(encoding="utf-8")
    return text + "".join(f"{name} = {value!r}\n" for name, value in constants.items())


class EdgeDrawer:
    """Draws the edges of runs."""

    def __init__(
        self,
        graph: Graph | ChangingGraph,
        seed: int,
        has_shares: bool,
        failures: Failures | None = None,
    ) -> None:
        self.graph = graph if isinstance(graph, ChangingGraph) else ChangingGraph((0,), (graph,))
        self.networks = [network_of(each_graph, has_shares) for each_graph in self.graph.graphs]
        self.entropy, self.failures = entropy_of(seed), failures
        compiler.specialise(loop_text(), {}, self._trial)

    def _trial(self, module: ModuleType) -> None:
        self.module = module
        self._draw(
            self.networks[0],
            np.zeros((0, STREAM_SIZE), dtype=np.uint64),
            np.zeros(0, dtype=np.int64),
            0,
            0,
        )

    def draw(
        self, streams: NDArray[np.uint64], runs: Integers, first: int, last: int
    ) -> tuple[Edges, Floats]:
        """Return the edges of runs from draw `first` to `last`, and their shares.

        The edges are runs × draws × 2, the shares runs × draws.

        `streams` is where each run is in its stream, all zeros at first; where all shares are
        equal, there is one. Both ends of an edge whose exchange does not take place are negative.
        """
        if len(self.networks) == 1:
            edges, shares = self._draw(self.networks[0], streams, runs, first, last)
        else:
            edges, shares = self._draw_pieces(streams, runs, first, last)
        if self.failures is not None:
            for k, run in enumerate(runs.tolist()):
                self.failures.mark(run, first, edges[k])
        return edges, shares

    def _draw_pieces(
        self, streams: NDArray[np.uint64], runs: Integers, first: int, last: int
    ) -> tuple[Edges, Floats]:
        """Draw from several graphs in turn."""
        block = first // BLOCK * BLOCK
        if block < first and (streams[:, DRAWN] != first).any():  # a run that is continued
            self._draw_pieces(streams, runs, block, first)
        edges, shares = [np.empty((len(runs), 0, 2), dtype=np.int32)], [np.empty((len(runs), 0))]
        for k, begin, end in self.graph.pieces(first, last):
            ends, ends_shares = self._draw(self.networks[k], streams, runs, begin, end)
            edges.append(ends)
            shares.append(np.broadcast_to(ends_shares, (len(runs), end - begin)))
        return np.concatenate(edges, axis=1), np.concatenate(shares, axis=1)

    def _draw(
        self, network: Network, streams: NDArray[np.uint64], runs: Integers, first: int, last: int
    ) -> tuple[Edges, Floats]:
        edges = np.empty((len(runs), last - first, 2), dtype=np.int32)
        shares = np.empty((len(runs), last - first if len(network.shares) > 1 else 0))
        self.module.draw_runs(streams, self.entropy, runs, network, first, edges, shares)
        return edges, shares if shares.size else np.full((len(runs), 1), network.shares[0])
