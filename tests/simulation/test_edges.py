"""Edges drawn in compiled code against those of `Schedule`, which numpy draws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gosta import graphs
from gosta.graphs.graph import Graph
from gosta.graphs.tree import with_tree
from gosta.schedule import BLOCK, Schedule
from gosta.simulation.edges import STREAM_SIZE, EdgeDrawer

RING = graphs.load("watts-strogatz", n=300, seed=0)
assert RING.edges is not None
WEIGHTS = np.exp(np.random.default_rng(0).normal(0.0, 3.0, RING.m))
GRAPHS = {
    "edges": RING,
    "one edge": graphs.complete(2),
    "half of all numbers rejected": Graph("half", 2**15 + 1, None),  # n(n - 1) is just above 2^30
    "pairs beyond 32 bits": graphs.complete(100_000),
    "weights": Graph("weights", RING.n, RING.edges, WEIGHTS),
    "one heavy edge": Graph(
        "heavy", RING.n, RING.edges, np.where(np.arange(RING.m) == 7, 1e9, 1e-6)
    ),
    "tree": with_tree(RING),
    "tree of a complete graph": with_tree(graphs.complete(50)),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("seed", [0, 10**50])
def test_edges_and_shares_are_those_of_the_schedule(name: str, seed: int) -> None:
    graph, runs = GRAPHS[name], np.array([0, 3])
    drawer = EdgeDrawer(graph, seed, has_shares=True)
    streams, bounds = (
        np.zeros((2, STREAM_SIZE), dtype=np.uint64),
        [0, 1, 5000, BLOCK, 2 * BLOCK + 77],
    )
    parts = [drawer.draw(streams, runs, first, last) for first, last in pairwise(bounds)]
    edges = np.concatenate([part for part, _ in parts], axis=1)
    for k, run in enumerate(runs.tolist()):
        schedule = Schedule(graph, seed, run)
        blocks = [(first, min(first + BLOCK, bounds[-1])) for first in range(0, bounds[-1], BLOCK)]
        np.testing.assert_array_equal(
            edges[k], np.concatenate([schedule.edges(*block) for block in blocks])
        )
        if len(graph.edge_shares) > 1:
            shares = np.concatenate([part[k] for _, part in parts])
            np.testing.assert_array_equal(
                shares, np.concatenate([schedule.edge_shares(*block) for block in blocks])
            )
        else:
            assert all((part == graph.edge_shares[0]).all() for _, part in parts)


def test_a_stream_continues_anywhere() -> None:
    drawer, runs = EdgeDrawer(RING, 5, has_shares=False), np.array([1])
    for first, last in ((BLOCK + 1001, BLOCK + 1500), (3, 9), (9, 20), (2 * BLOCK, 2 * BLOCK + 5)):
        drawn, _ = drawer.draw(np.zeros((1, STREAM_SIZE), dtype=np.uint64), runs, first, last)
        np.testing.assert_array_equal(drawn[0], Schedule(RING, 5, 1).edges(first, last))
