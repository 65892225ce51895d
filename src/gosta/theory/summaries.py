"""Summaries of a network, of a kernel, and of errors, which predictions consist of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gosta.graphs.graph import Graph
from gosta.protocols.tracking import RARE_EDGE_FACTOR
from gosta.runtime.arrays import Floats
from gosta.theory.spectrum import density, merge_close

PACE_DIGITS = 2  # of the logarithm of nodes' paces: closer ones are merged
# `merged` joins rates whose logarithms differ by less: each rate costs a prediction time.
CLOSE_RATES = 0.1


class KernelMoments(NamedTuple):
    """Moments of a statistic's kernel, each relative to the statistic's value.

    The defaults are those of a typical kernel: the Gini mean difference of normally distributed
    numbers.
    """

    rows: float = 0.1278  # variance of row means, u
    pairs: float = 0.3150  # variance of the remainder, r
    # mean deviation of the kernel of a row with itself from the mean kernel value
    own: float = -1.0
    start: float = -1.0  # deviation of an estimate before any exchange
    # variance of row means along the network's slowest mode, relative to the average mode
    slowest: float = 1.0


class ErrorMoments(NamedTuple):
    """Predicted moments of a node's relative error."""

    bias: float  # mean over nodes and runs
    # Variance over nodes of the mean over runs: it depends on which rows are at which nodes.
    placement: float
    noise: float  # variance over runs
    lacking: float = 0.0  # share of nodes that have no estimate yet: their error is 100 %


@dataclass(frozen=True, eq=False)
class NetworkSummary:
    """Properties of a graph on which predictions depend."""

    n: int  # number of nodes
    rates: Floats  # rates of the modes (see `spectrum`)
    counts: Floats  # number of modes of each rate
    # Mean over nodes of 1/(probability to be drawn), in units of n/2: 1 if all are equally likely.
    rarity: float
    mean_squared_rarity: float  # mean over nodes of its square
    push: float  # mean over edges of the share of momentum that tracking gives to them
    paces: Floats  # exchanges of a node, relative to the mean over nodes; close ones merged
    pace_shares: Floats  # share of nodes of each pace

    def merged(self) -> tuple[Floats, Floats]:
        """Return fewer rates, and the number of modes of each."""
        return merge_close(self.rates, self.counts, CLOSE_RATES)


@lru_cache(maxsize=4)
def summarise(graph: Graph) -> NetworkSummary:
    """Return the properties of a graph on which predictions depend."""
    rates, counts = density(graph)
    if graph.edges is None:
        push, even = min(1.0, RARE_EDGE_FACTOR / (graph.n - 1)), np.ones(1)
        return NetworkSummary(graph.n, rates, counts, 1.0, 1.0, push, even, even)
    weights = graph.rates / graph.rates.sum()
    drawn: Floats = np.zeros(graph.n)
    for ends in graph.edges.T:
        drawn += np.bincount(ends, weights, minlength=graph.n)
    paces = drawn * graph.n / 2
    rarity = 1 / paces
    push = weights @ np.minimum(1.0, RARE_EDGE_FACTOR * weights / drawn[graph.edges].max(axis=1))
    _, group, nodes = np.unique(
        np.round(np.log(paces), PACE_DIGITS), return_inverse=True, return_counts=True
    )
    return NetworkSummary(
        graph.n,
        rates,
        counts,
        float(rarity.mean()),
        float((rarity**2).mean()),
        float(push),
        np.bincount(group, paces) / nodes,
        nodes / graph.n,
    )
