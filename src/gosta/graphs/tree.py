"""Spanning trees, along which protocols pass on sums, and how often their edges fire.

Visitors have to travel everywhere, sums only along the tree: two of three exchanges are on edges of
the tree. The edge above a part of s of the n nodes is on s (n − s) paths between nodes; the mean
time that a sum takes along a path is least for rates proportional to the square root of that. With
equal rates and every other exchange on the tree, a mean error of 1 % takes 1.4 to 2 times as many
exchanges (Gini on torus, small world, complete and random regular graphs).
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gosta.runtime.arrays import Booleans, Floats, Integers

if TYPE_CHECKING:
    from gosta.graphs.graph import Graph

TREE_SHARE = 2 / 3  # least share of exchanges that are on edges of the tree
ROOT = -1  # parent of the root
MAX_LENGTH = 1e200  # of an edge, relative to the shortest, so that lengths of paths are finite
GOLDEN = (5**0.5 - 1) / 2


def with_tree(graph: Graph) -> Graph:
    """Return the graph with a spanning tree, whose edges fire in two of three exchanges at least.

    Weights remain as they are relative to each other: among edges that are not in the tree, and
    among those that are but for the factors above. So does their sum.

    >>> from gosta.graphs import from_edges
    >>> graph = with_tree(from_edges([[0, 1], [0, 2], [1, 2], [2, 3], [1, 3]]))
    >>> graph.parents.tolist(), graph.rates.round(2).tolist()
    ([1, -1, 1, 1], [1.11, 0.83, 1.11, 0.83, 1.11])
    """
    graph = replace(graph, parents=spanning_tree(graph))
    if graph.edges is None:
        return graph  # draws accordingly
    assert graph.parents is not None
    (left, right), is_tree = graph.edges.T, tree_edges(graph)
    rates = graph.rates * np.where(
        is_tree, tree_rates(graph.parents)[np.where(graph.parents[left] == right, left, right)], 1
    )
    before, on_tree = float(graph.rates.sum()), float(rates[is_tree].sum())
    share = max(TREE_SHARE, float(graph.rates[is_tree].sum()) / before)
    rates[is_tree] *= share * before / on_tree
    if not is_tree.all():
        rates[~is_tree] *= (1.0 - share) * before / float(rates[~is_tree].sum())
    return replace(graph, weights=rates, spectrum=None)


def tree_edges(graph: Graph) -> Booleans:
    """Return whether each edge of a graph is one of its tree."""
    assert graph.edges is not None
    assert graph.parents is not None
    left, right = graph.edges.T
    return np.asarray((graph.parents[left] == right) | (graph.parents[right] == left))


def tree_share(graph: Graph) -> float:
    """Return the share of exchanges that are on edges of the graph's tree."""
    if graph.edges is None:
        return TREE_SHARE + (1.0 - TREE_SHARE) * (graph.n - 1) / graph.m
    return float(graph.rates[tree_edges(graph)].sum() / graph.rates.sum())


def tree_rates(parents: Integers) -> Floats:
    """Return the relative rate of the edge from each node to its parent; 0 for the root."""
    n, sizes = len(parents), np.ones(len(parents))
    waiting, above = np.bincount(parents[parents >= 0], minlength=n).tolist(), parents.tolist()
    ready = [node for node in range(n) if not waiting[node]]
    for node in ready:  # grows: a node is ready once all its children are
        parent = above[node]
        if parent != ROOT:
            sizes[parent] += sizes[node]
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
    return np.sqrt(sizes * (n - sizes))


def spanning_tree(graph: Graph) -> Integers:
    """Return the parent of each node in a tree of shortest paths from a node in the middle.

    The length of an edge is the mean time between its exchanges, one over its rate. To find a node
    in the middle, go to the farthest node twice, then to the middle of the path between the two; do
    that again from there; take the best of the nodes found and the one with most neighbours, from
    which the farthest node is nearest.

    In a complete graph, the tree has two levels of equally many children. Rows may be in order, so
    the numbers of nodes are spread over the tree by multiples of the golden ratio.
    """
    if graph.edges is None:
        return _two_levels(graph.n)
    search, most = _Search(graph), int(np.argmax(graph.degrees))
    candidates = [most]
    for _ in range(2):
        far = int(np.argmax(search.paths_from(candidates[-1])[1]))
        parents, lengths = search.paths_from(far)
        candidates.append(_middle(parents, lengths, int(np.argmax(lengths))))
    trees = [search.paths_from(root) for root in dict.fromkeys(candidates)]
    return min(trees, key=lambda paths: float(paths[1].max()))[0]


def _two_levels(n: int) -> Integers:
    order, children = np.argsort(np.arange(n) * GOLDEN % 1.0), int(np.ceil(np.sqrt(n)))
    parents = np.full(n, ROOT)
    parents[order[1:]] = order[np.arange(n - 1) // children]
    return parents


def _middle(parents: Integers, lengths: Floats, end: int) -> int:
    """Return the node in the middle of the path from the root to a node."""
    node = end
    while lengths[parents[node]] >= lengths[end] / 2:
        node = int(parents[node])
    return node


class _Search:
    """Shortest paths from single nodes of a graph."""

    def __init__(self, graph: Graph) -> None:
        assert graph.edges is not None
        ends, order = graph.edges.ravel(), np.argsort(graph.edges.ravel(), kind="stable")
        self.n, self.is_weighted = graph.n, graph.weights is not None
        self.starts: list[int] = np.concatenate([[0], np.cumsum(graph.degrees)]).tolist()
        self.neighbours: list[int] = ends[order ^ 1].tolist()
        with np.errstate(over="ignore"):
            lengths = np.minimum(graph.rates.max() / graph.rates[order // 2], MAX_LENGTH)
        self.lengths: list[float] = lengths.tolist()

    def paths_from(self, root: int) -> tuple[Integers, Floats]:
        """Return each node's parent on its shortest path from a root, and the path's length."""
        parents, lengths = self._weighted(root) if self.is_weighted else self._breadth_first(root)
        return np.array(parents), np.array(lengths)

    def _breadth_first(self, root: int) -> tuple[list[int], list[float]]:
        parents, lengths = [ROOT] * self.n, [-1.0] * self.n
        lengths[root], queue = 0.0, [root]
        for node in queue:
            for other in self.neighbours[self.starts[node] : self.starts[node + 1]]:
                if lengths[other] < 0:
                    parents[other], lengths[other] = node, lengths[node] + 1.0
                    queue.append(other)
        return parents, lengths

    def _weighted(self, root: int) -> tuple[list[int], list[float]]:
        parents, lengths = [ROOT] * self.n, [np.inf] * self.n
        lengths[root], heap = 0.0, [(0.0, root)]
        while heap:
            length, node = heapq.heappop(heap)
            if length > lengths[node]:
                continue
            for k in range(self.starts[node], self.starts[node + 1]):
                other, longer = self.neighbours[k], length + self.lengths[k]
                if longer < lengths[other]:
                    parents[other], lengths[other] = node, longer
                    heapq.heappush(heap, (longer, other))
        return parents, lengths
