"""The order of a graph's nodes in which neighbours are near each other, and how alike neighbours are.

>>> from gosta.graphs import path
>>> round(assortativity(path(4), np.array([1.0, 2.0, 3.0, 4.0])), 3)
0.455
"""

from __future__ import annotations

import numpy as np

from gosta.graphs.graph import Graph
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.extras import require

SMOOTHING_STEPS = 100  # on random graphs ten give 90 % of what a thousand do


def neighbouring_order(graph: Graph) -> Integers:
    """Return the nodes in an order in which neighbours are near each other.

    It begins with that of Cuthill and McKee, which goes from neighbour to neighbour. Then each node takes the mean of
    its own place and its neighbours' places, again and again, which tends to the slowest mode of a random walk.
    """
    if graph.edges is None:
        return np.arange(graph.n)
    sparse = require("scipy.sparse", "sim", "homophily")
    csgraph = require("scipy.sparse.csgraph", "sim", "homophily")
    one, two = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    neighbours = sparse.csr_array((np.ones(len(one)), (one, two)), shape=(graph.n, graph.n))
    places, degrees = np.empty(graph.n), graph.degrees
    places[csgraph.reverse_cuthill_mckee(sparse.csr_matrix(neighbours), symmetric_mode=True)] = (
        np.arange(graph.n)
    )
    for _ in range(SMOOTHING_STEPS):
        places -= (degrees * places).sum() / degrees.sum()
        places = (places + neighbours @ places / degrees) / 2
    return np.argsort(places, kind="stable")


def assortativity(graph: Graph, values: Floats) -> float:
    """Return the correlation between a number of a node and that of its neighbour, over all edges; 0 if all are equal.

    It is 1 where neighbours have equal numbers, about 0 where these are placed at random.
    """
    if np.ptp(values) == 0:
        return 0.0
    if graph.edges is None:
        return -1.0 / (graph.n - 1)
    ends = values[graph.edges] - np.average(values, weights=graph.degrees)
    return float(2.0 * (ends[:, 0] * ends[:, 1]).sum() / (ends**2).sum())
