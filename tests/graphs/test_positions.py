"""Where nodes are drawn: in the unit square, the same each time, neighbours near each other."""

from __future__ import annotations

import numpy as np
import pytest

from gosta import graphs
from gosta.graphs.graph import Graph
from gosta.graphs.pictures import positions
from gosta.runtime.arrays import Floats

SIZES = {"hypercube": 256}


def distances(places: Floats, pairs: object) -> Floats:
    ends = places[np.asarray(pairs)]
    return np.asarray(np.hypot(*(ends[:, 0] - ends[:, 1]).T))


def random_pairs(n: int) -> object:
    return graphs.complete(n).draw(np.random.default_rng(0), 2000)


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_neighbours_are_nearer_than_other_pairs(name: str) -> None:
    graph = graphs.make(name, SIZES.get(name, 200), seed=1)
    places = positions(graph)
    assert places.shape == (graph.n, 2)
    assert places.min() >= 0.0
    assert places.max() <= 1.0
    assert np.ptp(places, axis=0).max() == pytest.approx(1.0)
    np.testing.assert_array_equal(places, positions(graph))
    assert len(np.unique(places.round(9), axis=0)) == graph.n  # no node hides another
    if graph.edges is not None:
        assert (
            distances(places, graph.edges).mean()
            < 0.9 * distances(places, random_pairs(graph.n)).mean()
        )


def without_name(graph: Graph) -> Graph:
    return Graph("edges", graph.n, graph.edges)


def test_a_grid_without_its_name_is_drawn_as_a_grid() -> None:
    graph = without_name(graphs.grid(12, 12))
    places = positions(graph)
    assert (
        distances(places, graph.edges).mean() < 0.25 * distances(places, random_pairs(144)).mean()
    )


def test_only_a_graph_that_is_of_its_family_is_placed_by_it() -> None:
    path = graphs.path(6)
    for name in ("cycle", "hypercube", "torus 2 x 3", "grid a x b", "grid"):
        places = positions(Graph(name, 6, path.edges))
        assert np.isfinite(places).all()
        steps = np.diff(places[:, 0])
        assert steps.min() > 0 or steps.max() < 0  # in order, from one end to the other


@pytest.mark.parametrize("n", [2, 3])
def test_the_smallest_graphs(n: int) -> None:
    assert np.isfinite(positions(without_name(graphs.path(n)))).all()


def test_another_seed_draws_another_picture() -> None:
    graph = graphs.watts_strogatz(50, seed=1)
    assert not np.array_equal(positions(graph, seed=1), positions(graph, seed=2))
