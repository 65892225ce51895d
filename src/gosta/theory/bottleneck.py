"""Where a network is narrow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta import graphs
from gosta.graphs.graph import Graph
from gosta.theory.spectrum import slowest

SHOWN = 3  # ranges of node numbers in a sentence
NARROW = 0.25  # random graphs of four neighbours each have cuts down to 0.3 of the usual weight


class Bottleneck(NamedTuple):
    """Two sides of a network and what joins them."""

    side: NDArray[np.int64]
    """The nodes of the smaller side, in order."""
    edges: int
    """How many edges join the sides."""
    share: float
    """Edge weight that joins them, as a share of what joins two random sides of the same sizes."""
    words: str
    """The same as a sentence."""


def bottleneck(graph: Any, n: int | None = None, seed: int = 0) -> Bottleneck:
    """Find the cut that slows a network down most, by sweeping along Fiedler's vector.

    Of all ways to split the nodes by their order along that vector, it is the one with the least edge weight between
    the sides for their sizes.

    Examples
    --------
    >>> import gosta
    >>> print(gosta.theory.bottleneck("two-cliques", n=100).words)
    nodes 0-49 and 50-99 are joined by 1 of 2,451 edges
    """
    graph = graphs.load(graph, n, seed)
    if graph.edges is None:
        half = graph.n // 2
        words = f"none: {half:,} nodes and the other {graph.n - half:,} are joined by {half * (graph.n - half):,} edges"
        return Bottleneck(np.arange(half), half * (graph.n - half), 1.0, words)
    return _swept(graph, np.argsort(slowest(graph)[1], kind="stable"))


def _swept(graph: Graph, order: NDArray[np.int64]) -> Bottleneck:
    assert graph.edges is not None
    n, place = graph.n, np.empty(graph.n, dtype=np.int64)
    place[order] = np.arange(n)
    ends = np.sort(place[graph.edges], axis=1)
    weights = graph.rates
    # An edge crosses every cut that lies between its two ends.
    opened, closed = (np.bincount(ends[:, side], weights, minlength=n) for side in (0, 1))
    crossing = np.cumsum(opened - closed)[:-1]
    sizes = np.arange(1, n)
    usual = weights.sum() * 2 * sizes * (n - sizes) / (n * (n - 1))
    at = int(np.argmin(crossing / usual))
    side = np.sort(order[: at + 1] if 2 * (at + 1) <= n else order[at + 1 :])
    edges = int(((ends[:, 0] <= at) & (ends[:, 1] > at)).sum())
    share = float(crossing[at] / usual[at])
    return Bottleneck(side, edges, share, _words(graph, side, edges, share))


def _words(graph: Graph, side: NDArray[np.int64], edges: int, share: float) -> str:
    one, count, rest = _ranges(side), len(side), graph.n - len(side)
    other = np.setdiff1d(np.arange(graph.n), side, assume_unique=True)
    two = _ranges(other)
    if len(one) == 1 and len(two) == 1 and share <= NARROW:
        one, two = sorted([one, two], key=lambda ranges: int(ranges[0].partition("-")[0]))
        sides = f"node{'s' * ('-' in one[0])} {one[0]} and {two[0]}"
    else:
        named = ", ".join(one[:SHOWN]) + ", ..." * (len(one) > SHOWN)
        sides = f"{count:,} node{'s' * (count > 1)} ({named}) and the other {rest:,}"
    joined = f"{sides} are joined by {edges:,} of {graph.m:,} edges"
    if share > NARROW:
        return f"none to speak of: {joined}, {100 * share:.0f} % of what joins random sides of these sizes"
    return joined


def _ranges(nodes: NDArray[np.int64]) -> list[str]:
    """The first node numbers in order, as texts such as 0-49, one more than are shown."""
    breaks = np.flatnonzero(np.diff(nodes) > 1)[: SHOWN + 1] + 1
    parts = np.split(nodes, breaks)[: SHOWN + 1]
    return [f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts]
