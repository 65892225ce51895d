"""Graphs: every family is what theory says, draws are fair, and bad input gets one clear line.

Random tests have fixed seeds, so they pass or fail for good. Where a statistic is compared with its
law, the bound is set so that fresh seeds would raise a false alarm about once in 10,000 times.
"""

from __future__ import annotations

import importlib
import itertools
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import sparse, stats

import gosta
from gosta import graphs
from gosta.cli.graph import graph as show
from gosta.errors import InputError, MissingExtraError
from gosta.graphs import random_families
from gosta.graphs.edges import pair_numbers, pairs_from_numbers
from gosta.graphs.graph import Graph, SizeError

nx: Any = importlib.import_module("networkx")
FALSE_ALARM = 1e-4

RANDOM = ["watts-strogatz", "erdos-renyi", "random-regular", "barabasi-albert", "geometric"]
SIZES = {"hypercube": [2, 8, 64, 1024], "torus": [9, 12, 36, 1260], "grid": [4, 6, 100, 1599]}
CASES = [(name, n) for name in graphs.GRAPHS for n in SIZES.get(name, [6, 10, 100, 570])]


def pair_set(graph: Graph) -> set[tuple[int, int]]:
    assert graph.edges is not None
    return {(min(a, b), max(a, b)) for a, b in graph.edges.tolist()}


def says(message: str, function: Callable[..., object], *args: Any, **kwargs: Any) -> None:
    with pytest.raises(InputError) as caught:
        function(*args, **kwargs)
    assert "\n" not in str(caught.value)
    assert re.search(message, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(("name", "n"), CASES)
def test_every_family_is_simple_and_connected(name: str, n: int) -> None:
    graph = graphs.make(name, n, seed=3)
    assert graph.check() is graph
    assert graph.n == n
    assert graph.degrees.sum() == 2 * graph.m
    assert graph.components().tolist() == [n]
    if graph.edges is not None:
        assert graph.edges.dtype == np.int32
        assert graph.edges.flags.c_contiguous
        assert len(pair_set(graph)) == graph.m
        assert nx.is_connected(nx.Graph(graph.edges.tolist()))


@pytest.mark.parametrize(
    ("graph", "degrees"),
    [
        (graphs.complete(7), {6}),
        (graphs.torus(3, 5), {4}),
        (graphs.cycle(9), {2}),
        (graphs.path(9), {1, 2}),
        (graphs.star(9), {1, 8}),
        (graphs.grid(4, 5), {2, 3, 4}),
        (graphs.hypercube(6), {6}),
        (graphs.random_regular(60, 3, seed=1), {3}),
        (graphs.random_regular(61, 2, seed=1), {2}),
        (graphs.random_regular(30, 20, seed=1), {20}),
        (graphs.random_regular(30, 29, seed=1), {29}),
        (graphs.random_regular(2, 1), {1}),
        (graphs.two_cliques(10), {4, 5}),
    ],
)
def test_degrees(graph: Graph, degrees: set[int]) -> None:
    assert set(graph.degrees.tolist()) == degrees
    graph.check()


def relabelled(theirs: Any) -> set[tuple[int, int]]:
    number = {node: k for k, node in enumerate(sorted(theirs.nodes))}
    return {(min(number[u], number[v]), max(number[u], number[v])) for u, v in theirs.edges}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (graphs.torus(4, 7), nx.grid_2d_graph(4, 7, periodic=True)),
        (graphs.grid(4, 7), nx.grid_2d_graph(4, 7)),
        (graphs.grid(1, 7), nx.path_graph(7)),
        (graphs.cycle(11), nx.cycle_graph(11)),
        (graphs.path(11), nx.path_graph(11)),
        (graphs.star(11), nx.star_graph(10)),
        (graphs.two_cliques(12), nx.barbell_graph(6, 0)),
        (graphs.watts_strogatz(20, 5, 0.0), nx.watts_strogatz_graph(20, 5, 0.0)),
        (graphs.erdos_renyi(9, 1.0), nx.complete_graph(9)),
        (graphs.random_regular(9, 8), nx.complete_graph(9)),
        (graphs.barabasi_albert(5, 4), nx.star_graph(4)),
        (graphs.hypercube(5), nx.hypercube_graph(5)),
    ],
    ids=lambda graph: graph.name if isinstance(graph, Graph) else "",
)
def test_edges_equal_those_of_networkx(ours: Graph, theirs: Any) -> None:
    assert pair_set(ours) == relabelled(theirs)


def test_watts_strogatz_agrees_with_networkx() -> None:
    ours, theirs = np.zeros(12), np.zeros(12)
    for seed in range(40):
        graph = graphs.watts_strogatz(200, 5, 0.3, seed=seed)
        other = nx.connected_watts_strogatz_graph(200, 5, 0.3, seed=seed)
        assert graph.m == other.number_of_edges() == 400
        ours += np.bincount(np.minimum(graph.degrees, 11), minlength=12)
        theirs += np.bincount(np.minimum([d for _, d in other.degree], 11), minlength=12)
    seen = (ours + theirs) > 20
    # Degrees within a graph are nearly independent, so the chi-square law holds nearly.
    assert stats.chi2_contingency([ours[seen], theirs[seen]]).pvalue > FALSE_ALARM


def test_watts_strogatz_keeps_the_share_of_ring_edges_and_one_end_of_each() -> None:
    n, p = 50_000, 0.3
    graph = graphs.watts_strogatz(n, 5, p, seed=5)
    assert graph.edges is not None
    kept = int((pair_numbers(graph.edges[:, 0], graph.edges[:, 1], n) < 2 * n).sum())
    # One edge in n/4 that moves lands on a ring edge again, which is far below what the test can
    # see.
    assert stats.binomtest(2 * n - kept, 2 * n, p).pvalue > FALSE_ALARM
    assert graph.degrees.min() >= 2  # each node keeps its end of the k // 2 edges it began


@pytest.mark.parametrize(("n", "k"), [(5, 5), (10, 9), (30, 29), (31, 20)])
def test_dense_watts_strogatz_has_all_its_edges(n: int, k: int) -> None:
    for seed in range(5):
        assert graphs.watts_strogatz(n, k, 0.9, seed=seed).check().m == n * (k // 2)


def test_erdos_renyi_edges_are_uniform() -> None:
    n, p, seeds = 12, 0.5, 2000
    count = np.zeros(n * (n - 1) // 2)
    for seed in range(seeds):
        edges = graphs.erdos_renyi(n, p, seed=seed).edges
        assert edges is not None
        count[pair_numbers(edges[:, 0], edges[:, 1], n)] += 1
    # Being connected is nearly certain (isolated nodes: 12 · 2^-11), so the counts are binomial to
    # 1 part in 200.
    spread = np.sqrt(seeds * p * (1 - p))
    bound = stats.norm.isf(FALSE_ALARM / 2 / len(count))
    assert np.abs(count - count.mean()).max() < bound * spread
    assert abs(count.mean() / seeds - p) < 0.01


def test_random_regular_edges_are_uniform() -> None:
    n, seeds = 9, 2000
    for degree in (4, 6):
        count = np.zeros(n * (n - 1) // 2)
        for seed in range(seeds):
            edges = graphs.random_regular(n, degree, seed=seed).edges
            assert edges is not None
            count[pair_numbers(edges[:, 0], edges[:, 1], n)] += 1
        share = degree / (n - 1)
        bound = stats.norm.isf(FALSE_ALARM / 2 / len(count))
        assert np.abs(count - seeds * share).max() < bound * np.sqrt(seeds * share * (1 - share))


def test_barabasi_albert_agrees_with_networkx() -> None:
    ours = np.array([graphs.barabasi_albert(300, 2, seed=seed).degrees for seed in range(60)])
    theirs = np.array(
        [[d for _, d in nx.barabasi_albert_graph(300, 2, seed=seed).degree] for seed in range(60)]
    )
    assert (ours.sum(axis=1) == theirs.sum(axis=1)).all()
    assert ours.min() >= 1
    hubs = stats.ks_2samp(ours.max(axis=1), theirs.max(axis=1))
    assert hubs.pvalue > FALSE_ALARM
    leaves = stats.ttest_ind((ours == 2).mean(axis=1), (theirs == 2).mean(axis=1))
    assert leaves.pvalue > FALSE_ALARM


def test_geometric_joins_near_points() -> None:
    graph = graphs.geometric(60, 0.4, seed=2)
    points = np.random.default_rng(2).random((60, 2))  # the first draw, which is connected
    near = np.linalg.norm(points[:, None] - points, axis=2) <= 0.4
    assert pair_set(graph) == {
        (i, j) for i, j in itertools.combinations(range(60), 2) if near[i, j]
    }


@pytest.mark.parametrize("name", RANDOM)
def test_the_seed_determines_the_graph(name: str) -> None:
    one, same, other = (graphs.make(name, 80, seed=seed).edges for seed in (1, 1, 2))
    assert one is not None
    assert same is not None
    assert other is not None
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_barabasi_albert_is_the_same_compiled_and_interpreted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = graphs.barabasi_albert(500, 3, seed=4)
    monkeypatch.setattr(random_families, "MAX_PLAIN_ENDS", 0)
    compiled = graphs.barabasi_albert(500, 3, seed=4)
    np.testing.assert_array_equal(plain.edges, compiled.edges)


@given(st.integers(2, 40), st.data())
def test_components_agree_with_networkx(n: int, data: st.DataObject) -> None:
    node = st.integers(0, n - 1)
    edges = data.draw(
        st.lists(st.tuples(node, node).filter(lambda pair: pair[0] != pair[1]), max_size=60)
    )
    theirs = nx.Graph(edges)
    theirs.add_nodes_from(range(n))
    graph = Graph("drawn", n, np.array(edges, dtype=np.int32).reshape(-1, 2))
    wanted = sorted((len(part) for part in nx.connected_components(theirs)), reverse=True)
    assert graph.components().tolist() == wanted


def test_a_random_graph_is_redrawn_until_connected() -> None:
    # With p = ln(n)/n about a third of the draws are connected.
    graph = [graphs.erdos_renyi(100, np.log(100) / 100, seed=seed) for seed in range(10)]
    assert all(g.components().tolist() == [100] for g in graph)


@pytest.mark.parametrize(
    ("name", "n", "shown"),
    [
        ("torus", 1599, "torus 39 x 41"),
        ("torus", 1260, "torus 35 x 36"),
        ("torus", 9, "torus 3 x 3"),
        ("grid", 14, "grid 2 x 7"),
    ],
)
def test_the_most_nearly_square_sides(name: str, n: int, shown: str) -> None:
    assert graphs.make(name, n).name == shown


@given(st.integers(2, 60), st.data())
def test_pairs_have_numbers(n: int, data: st.DataObject) -> None:
    every = np.arange(n * (n - 1) // 2)
    ends = pairs_from_numbers(every, n)
    assert len({frozenset(pair) for pair in ends.tolist()}) == len(every)
    assert np.array_equal(pair_numbers(ends[:, 0], ends[:, 1], n), every)
    assert np.array_equal(pair_numbers(ends[:, 1], ends[:, 0], n), every)
    node = np.array([data.draw(st.integers(0, n - 1))])
    assert pair_numbers(node, node, n)[0] < 0


def test_draws_are_uniform_over_edges() -> None:
    graph = graphs.watts_strogatz(50, seed=1)
    assert graph.edges is not None
    drawn = graph.draw(np.random.default_rng(7), 100_000)
    assert drawn.dtype == np.int32
    assert drawn.flags.c_contiguous
    place = {tuple(edge): k for k, edge in enumerate(graph.edges.tolist())}
    count = np.bincount([place[tuple(edge)] for edge in drawn.tolist()], minlength=graph.m)
    assert stats.chisquare(count).pvalue > FALSE_ALARM


def test_draws_follow_weights() -> None:
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    weights = np.array([1.0, 2.0, 4.0, 0.5])
    drawn = graphs.from_edges(edges, weights=weights).draw(np.random.default_rng(8), 100_000)
    count = np.bincount(drawn[:, 0], minlength=4)
    assert (drawn[:, 1] == (drawn[:, 0] + 1) % 4).all()
    assert stats.chisquare(count, 100_000 * weights / weights.sum()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("n", [2, 3, 12])
def test_draws_of_the_complete_graph_are_uniform(n: int) -> None:
    drawn = graphs.complete(n).draw(np.random.default_rng(9), 100_000)
    count = np.zeros((n, n))
    np.add.at(count, (drawn[:, 0], drawn[:, 1]), 1)
    assert (np.diag(count) == 0).all()
    assert stats.chisquare(count[~np.eye(n, dtype=bool)]).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "graph",
    [
        graphs.complete(10),
        graphs.complete(100_000),
        graphs.torus(3, 4),
        graphs.from_edges([[0, 1], [1, 2]], weights=[1, 3]),
    ],
)
def test_two_blocks_equal_one_block(graph: Graph) -> None:
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    blocks = np.concatenate([graph.draw(one, size) for size in (1, 0, 7, 92)])
    assert np.array_equal(blocks, graph.draw(two, 100))


def test_a_million_nodes_of_the_complete_graph_are_not_stored() -> None:
    graph = graphs.complete(10**6)
    assert graph.edges is None
    assert graph.m == 499_999_500_000
    drawn = graph.draw(np.random.default_rng(0), 10_000)
    assert drawn.min() >= 0
    assert drawn.max() < 10**6
    assert (drawn[:, 0] != drawn[:, 1]).all()


def test_edges_in_any_layout_can_be_drawn() -> None:
    table = np.array([[0, 1, 9], [1, 2, 9], [2, 0, 9]], dtype=np.int32)
    shifted = np.frombuffer(b"pad_" + table[:, :2].tobytes(), dtype=np.int32)[1:].reshape(-1, 2)
    for edges in (table[:, :2], np.asfortranarray(table[:, :2]), table[:, 1::-1], shifted):
        drawn = Graph("slices", 3, edges).draw(np.random.default_rng(1), 50)
        assert {tuple(edge) for edge in drawn.tolist()} == {tuple(edge) for edge in edges.tolist()}


@st.composite
def connected(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[float]]:
    """A random tree, some more edges in any direction, and weights."""
    n = draw(st.integers(2, 20))
    tree = [(draw(st.integers(0, k - 1)), k) for k in range(1, n)]
    more = draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30))
    joined = dict.fromkeys(tree + [(min(e), max(e)) for e in more if e[0] != e[1]])
    edges = [edge if draw(st.booleans()) else edge[::-1] for edge in joined]
    weights = st.floats(1e-6, 1e6)
    return (
        n,
        draw(st.permutations(edges)),
        draw(st.lists(weights, min_size=len(edges), max_size=len(edges))),
    )


@given(connected(), st.booleans())
def test_edges_round_trip(
    parts: tuple[int, list[tuple[int, int]], list[float]], weighted: bool
) -> None:
    n, edges, weights = parts
    graph = graphs.from_edges(edges, weights=weights if weighted else None)
    assert (graph.n, graph.m) == (n, len(edges))
    assert graph.edges is not None
    assert graph.edges.tolist() == [list(edge) for edge in edges]
    table = np.column_stack([edges, weights])
    again = graphs.load(table if weighted else table[:, :2], n)
    assert again.edges is not None
    assert np.array_equal(again.edges, graph.edges)
    assert (again.weights is not None) == weighted
    if weighted:
        assert again.weights is not None
        assert again.weights.tolist() == weights


@given(
    connected(),
    st.booleans(),
    st.sampled_from([" ", ",", ";", "\t", " , "]),
    st.sampled_from(["", "# why\n\n"]),
)
def test_files_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    parts: tuple[int, list[tuple[int, int]], list[float]],
    weighted: bool,
    separator: str,
    top: str,
) -> None:
    n, edges, weights = parts
    path = tmp_path_factory.mktemp("edges") / "some.edges"
    rows = [[*edge, *[weight] * weighted] for edge, weight in zip(edges, weights, strict=True)]
    path.write_text(top + "\n".join(separator.join(map(str, row)) for row in rows))
    graph = graphs.load(str(path), n)
    assert graph.edges is not None
    assert graph.edges.tolist() == [list(edge) for edge in edges]
    assert graph.name == str(path)
    assert (None if graph.weights is None else graph.weights.tolist()) == (
        weights if weighted else None
    )


@pytest.mark.parametrize(
    ("text", "edges", "weights"),
    [
        ("source,target\nann,bob\nbob,cyd\n", [[0, 1], [1, 2]], None),
        ("a,b\n0,1\n1,2\n", [[0, 1], [1, 2]], None),
        ("a,b,rate\nx,y,1\ny,z,2.5\n", [[0, 1], [1, 2]], [1, 2.5]),
        ("New York;Rome\nRome;Oslo # by ship\n", [[0, 1], [1, 2]], None),
        ("ann 7\n7 bob\n", [[0, 1], [1, 2]], None),
        ("0.0 2.000e+00\n2 1\n", [[0, 2], [2, 1]], None),
        ("\ufeff0\t1\r\n1\t2\r\n", [[0, 1], [1, 2]], None),
    ],
)
def test_kinds_of_files(
    text: str, edges: list[list[int]], weights: list[float] | None, tmp_path: Path
) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(text, encoding="utf-8")
    graph = graphs.read(path)
    assert graph.edges is not None
    assert graph.edges.tolist() == edges
    assert (None if graph.weights is None else graph.weights.tolist()) == weights


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"g\.csv has no edges"),
        (b"# nothing\n", r"g\.csv has no edges"),
        (b"from,to\n", r"g\.csv has no edges"),
        (b"0,1\n# so\n1,1\n", r"g\.csv, line 3: an edge from a node to itself"),
        (
            b"0,1\n1,2\n\n1,0\n",
            r"g\.csv, line 4: the same edge as .*g\.csv, line 1; give each edge once",
        ),
        (b"a,b\nb,c\nb,c\n", r"line 3: the same edge as .*line 2"),
        (b"0,1\n1,2,3\n", r"line 2: 3 values where 2 are expected"),
        (b"0,1,2\n1,2\n", r"line 2: 2 values where 3 are expected"),
        (b"0,1,\n1,2,1\n", r"line 1: 2 values where 3 are expected"),
        (b"0\n1\n", r"line 1: 1 values; an edge is two nodes"),
        (b"0,1,2,3\n", r"line 1: 4 values; an edge is two nodes"),
        (b"0,1,1\n1,2,fast\n", r"line 2: weight 'fast' is not a number"),
        (b"0,1,fast\n1,2,1\n", r"line 1: weight 'fast' is not a number"),
        (b"0,1,1\n1,2,-1\n", r"line 2: weight -1.0 is not positive and finite"),
        (b"0,1,1\n1,2,nan\n", r"line 2: weight nan is not positive"),
        (b"1,2\n2,3\n", r"node 0 has no edge though node 3 has; number the nodes 0 to n - 1"),
        (b"0,1\n1,-2\n", r"node numbers run from -2 to 1"),
        (b"0,1\n1,99999999999\n", r"node numbers run from 0 to 1e\+11"),
        (b"0,1\n2,3\n4,5\n5,6\n", r"is not connected: it has 3 components of 3, 2 and 2 nodes"),
        (b"0,\xff\xfe\n", r"not text in UTF-8"),
    ],
)
def test_broken_files(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_bytes(content)
    says(message, graphs.read, path)
    says(message, graphs.load, str(path))


def test_parameters_of_a_family_follow_its_name() -> None:
    named = graphs.load("watts-strogatz:k=8,p=0.1", 100, seed=3)
    assert named.name == "watts-strogatz:k=8,p=0.1"
    assert pair_set(named) == pair_set(random_families.watts_strogatz(100, 8, 0.1, seed=3))
    assert set(graphs.load("random-regular:degree=6", 50).degrees) == {6}
    names = {
        name: list(family.parameters) for name, family in graphs.GRAPHS.items() if family.parameters
    }
    assert names == {
        "watts-strogatz": ["k", "p"],
        "erdos-renyi": ["p"],
        "random-regular": ["degree"],
        "barabasi-albert": ["m"],
        "geometric": ["radius"],
    }
    says(
        "unknown parameter 'q'; the parameters of watts-strogatz are k and p",
        graphs.load,
        "watts-strogatz:q=1",
        9,
    )
    says("unknown parameter 'k'; torus has none", graphs.load, "torus:k=3", 9)
    says("k = '2.5' must be a whole number", graphs.load, "watts-strogatz:k=2.5", 9)
    says("radius = 'wide' must be a number", graphs.load, "geometric:radius=wide", 9)
    says("p = 2.0 must lie between 0 and 1", graphs.load, "erdos-renyi:p=2", 9)
    says(
        "unknown graph or file 'wats-strogatz'; did you mean 'watts-st",
        graphs.load,
        "wats-strogatz:k=8",
        9,
    )


def test_missing_files(tmp_path: Path) -> None:
    says("no such file: nowhere.csv", graphs.load, "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    says("is not a file", graphs.load, tmp_path / "folder.csv")
    path = tmp_path / "g.csv"
    path.write_text("0 1\n1 2\n")
    says(r"g\.csv has 3 nodes where 7 are needed", graphs.load, path, 7)


def test_networkx_graphs() -> None:
    theirs = nx.Graph([("ann", "bob"), ("bob", (1, 2)), ((1, 2), None.__class__)])
    graph = graphs.from_networkx(theirs)
    assert graph.edges is not None
    assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert (graph.name, graph.weights) == ("networkx graph", None)
    nx.set_edge_attributes(theirs, 2.0, "weight")
    weights = graphs.load(theirs, 4).weights
    assert weights is not None
    assert weights.tolist() == [2, 2, 2]
    assert graphs.load(nx.petersen_graph()).name == "Petersen Graph"


@pytest.mark.parametrize("family", ["complete", "torus", "watts-strogatz"])
def test_graphs_go_to_networkx_and_back(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.make(family, 12)
    theirs = graph.to_networkx()
    assert (theirs.name, theirs.number_of_nodes(), theirs.number_of_edges()) == (
        graph.name,
        graph.n,
        graph.m,
    )
    back = graphs.load(theirs)
    assert (back.name, back.weights) == (graph.name, None)
    assert np.array_equal(back.degrees, graph.degrees)
    weighted = replace(back, weights=np.arange(1.0, graph.m + 1))
    again = graphs.load(weighted.to_networkx())
    assert back.edges is not None
    assert again.edges is not None
    assert again.weights is not None
    rates = {
        frozenset(edge): rate
        for edge, rate in zip(back.edges.tolist(), range(1, graph.m + 1), strict=True)
    }
    assert {
        frozenset(e): w for e, w in zip(again.edges.tolist(), again.weights, strict=True)
    } == rates
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(
        MissingExtraError,
        match=r"Graph.to_networkx needs .*; install it with: pip install 'gosta\[netw",
    ):
        graph.to_networkx()


def test_invalid_networkx_graphs() -> None:
    says("is directed; networkx.Graph", graphs.load, nx.DiGraph([(0, 1)]))
    says("is a multigraph", graphs.load, nx.MultiGraph([(0, 1)]))
    says("n = 0; a graph needs at least two nodes", graphs.load, nx.Graph())
    says("n = 1; a graph needs at least two", graphs.load, nx.path_graph(1))
    says("edge 1 - 1: an edge from a node to itself", graphs.load, nx.Graph([(0, 1), (1, 1)]))
    says("2 components of 1 and 1 nodes", graphs.load, nx.empty_graph(2))
    says("Petersen Graph has 10 nodes where 12 are needed", graphs.load, nx.petersen_graph(), 12)
    partly = nx.path_graph(3)
    partly.edges[0, 1]["weight"] = 1
    says(r"without a weight, such as \(1, 2\)", graphs.load, partly)
    partly.edges[1, 2]["weight"] = "heavy"
    says("weights are not all numbers", graphs.load, partly)
    partly.edges[1, 2]["weight"] = 0
    says("edge 1 - 2: weight 0.0 is not positive", graphs.load, partly)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_matrix, sparse.csc_array])
def test_sparse_matrices(kind: Any) -> None:
    dense = np.array([[0, 1, 0], [1, 0, 3], [0, 3, 0]])
    graph = graphs.load(kind(dense), 3)
    assert graph.weights is not None
    assert sorted(graph.weights.tolist()) == [1, 3]
    assert pair_set(graph) == {(0, 1), (1, 2)}
    equal = graphs.from_scipy(kind(dense > 0))
    assert equal.weights is None
    assert pair_set(equal) == {(0, 1), (1, 2)}


def test_invalid_sparse_matrices() -> None:
    says(r"shape \(2, 3\)", graphs.load, sparse.csr_array((2, 3)))
    says("not symmetric", graphs.load, sparse.csr_array(np.array([[0, 1], [0, 0]])))
    says("not symmetric", graphs.load, sparse.csr_array(np.array([[0, 1], [2, 0]])))
    says(
        r"has 4 at \[1, 1\]; leave self-loops out",
        graphs.load,
        sparse.csr_array(np.array([[0, 1], [1, 4]])),
    )
    says(
        r"matrix\[0, 1\]: weight -1.0 is not positive",
        graphs.load,
        sparse.csr_array(np.array([[0, -1], [-1, 0]])),
    )
    says("complex", graphs.load, sparse.csr_array(np.array([[0, 1j], [1j, 0]])))
    says(
        "3 components of 2, 1 and 1",
        graphs.load,
        sparse.csr_array(([1, 1], ([0, 1], [1, 0])), shape=(4, 4)),
    )


def test_invalid_edges() -> None:
    says("edge 1 .*an edge from a node to itself", graphs.from_edges, [[0, 1], [1, 1]])
    says("edge 2 .*the same edge as edges, edge 0", graphs.from_edges, [[0, 1], [1, 2], [1, 0]])
    says(
        "edge 1 .*there is no node 2; the 2 nodes are numbered 0 to 1",
        graphs.from_edges,
        [[0, 1], [1, 2]],
        n=2,
    )
    says("run from -1 to 1", graphs.from_edges, [[0, -1], [1, 0]])
    says("run from 0 to inf", graphs.from_edges, [[0, np.inf], [1, 0]])
    says("whole numbers from 0", graphs.from_edges, [[0, 0.5], [1, 0]])
    says("whole numbers from 0", graphs.from_edges, [["a", "b"]])
    says("there are no edges", graphs.from_edges, np.empty((0, 2)))
    says(r"shape \(2, 3\)", graphs.from_edges, [[0, 1, 2], [1, 2, 3]])
    says("rows of different lengths", graphs.load, [[0, 1], [1, 2, 3]])
    says(r"list of shape \(1, 4\) is not a graph; give a name", graphs.load, [[0, 1, 2, 3]])
    says("NoneType of shape", graphs.load, None)
    says(r"weights of shape \(1,\) for 2 edges", graphs.from_edges, [[0, 1], [1, 2]], weights=[1])
    says(
        "edge 1 .*weight inf is not positive and finite",
        graphs.from_edges,
        [[0, 1], [1, 2]],
        weights=[1, np.inf],
    )
    says("weights are not all numbers", graphs.from_edges, [[0, 1]], weights=["x"])
    says("2 components of 2 and 1", graphs.from_edges, [[0, 1]], n=3)
    says("n = 2.5 must be a whole number", graphs.from_edges, [[0, 1]], n=2.5)


def test_long_lists_of_components_are_shortened() -> None:
    says("98 components of 3, 1, 1, 1, 1, ... nodes", graphs.from_edges, [[0, 1], [1, 2]], n=100)


def test_bipartite_graphs_are_accepted() -> None:
    for graph in (graphs.torus(4, 6), graphs.path(2), graphs.star(5), graphs.hypercube(3)):
        assert graphs.load(graph) is graph.check()


def test_names_and_sizes() -> None:
    says("unknown graph 'toros'; did you mean 'torus'", graphs.make, "toros", 9)
    says("unknown graph or file 'toros'; did you mean 'torus'", graphs.load, "toros", 9)
    says("graph 'torus' needs a number of nodes; give n", graphs.load, "torus")
    says(
        r"torus: 569 nodes do not fill a rectangle with both sides above 2; the nearest sizes are "
        r"567 and 570: "
        r"take n=567 \(--n 567\), or another graph",
        graphs.make,
        "torus",
        569,
    )
    says(r"torus: 8 nodes .*; take n=9 \(--n 9\), or another graph", graphs.make, "torus", 8)
    says("grid: 7 nodes .* 6 and 8", graphs.make, "grid", 7)
    says(
        "hypercube: 1000 nodes are not a power of two.* 512 and 1024",
        graphs.make,
        "hypercube",
        1000,
    )
    says(
        "two-cliques: 9 nodes cannot form two equal halves.* 8 and 10",
        graphs.make,
        "two-cliques",
        9,
    )
    for name in graphs.GRAPHS:
        says(f"{name}: n = 1 must be a whole number of at least", graphs.make, name, 1)
        says(f"{name}: n = 2.5 must be a whole number", graphs.make, name, 2.5)
        says(f"{name}: n = .* at most 2147483647|{name}: k|GiB", graphs.make, name, 2**32)


def test_advice_on_sizes_names_the_argument_that_was_given() -> None:
    """It can be followed, in Python and on the command line."""

    def advice(**settings: Any) -> str:
        with pytest.raises(InputError) as raised:
            gosta.simulate("breast-cancer", "auc", runs=1, **settings)
        return str(raised.value)

    assert advice(graph="torus").endswith(
        "; take the first 567 rows (--n 567; in Python data.head(567)), or another graph"
    )
    assert advice(graph="torus", nodes=7).endswith("; take nodes=9 (--nodes 9), or another graph")
    assert advice(graph="watts-strogatz", nodes=3).endswith(
        "; take nodes=5 (--nodes 5), or another graph"
    )
    assert advice(graph="torus", by="diagnosis").endswith("; take another graph, such as complete")
    assert advice(graph=graphs.path(4), nodes=3).endswith(
        "; take nodes=4 (--nodes 4), or another graph"
    )
    error = pickle.loads(pickle.dumps(SizeError.of("torus: 7 nodes", [9])))
    assert (str(error), error.sizes) == ("torus: 7 nodes; take n=9 (--n 9), or another graph", (9,))


def test_how_fast_a_large_graph_is_is_computed_only_on_request(  # type: ignore[no-untyped-def]
    capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    monkeypatch.setattr("gosta.cli.graph.MAX_QUICK_NODES", 100)
    show("cycle", n=30_000)
    assert "spectral gap" in capsys.readouterr().out  # known without eigenvalues
    show("watts-strogatz", n=101)
    assert "speed         not computed above 100 nodes" in capsys.readouterr().out
    show("watts-strogatz", n=101, as_json=True)
    assert "spectral_gap" not in json.loads(capsys.readouterr().out)
    show("watts-strogatz", n=101, speed=True)
    shown = capsys.readouterr().out
    assert "spectral gap" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("n", [2, 3, 5, 6])
def test_the_default_graph_exists_for_few_nodes(n: int, capsys: pytest.CaptureFixture[str]) -> None:
    show(None, n=n, as_json=True)
    assert json.loads(capsys.readouterr().out)["graph"] == (
        "watts-strogatz" if n > 5 else "complete"
    )
    trace = gosta.simulate(
        [float(k * k) for k in range(n)], "variance", runs=1, iterations=10, engine="reference"
    )
    assert trace.setting.graph_name == ("watts-strogatz" if n > 5 else "complete")


def test_parameters() -> None:
    says("torus: columns = 2 must be a whole number of at least 3", graphs.torus, 5, 2)
    says("grid: rows = 0", graphs.grid, 0, 5)
    says("grid: n = 1", graphs.grid, 1, 1)
    says("cycle: n = 2 must be", graphs.cycle, 2)
    says("hypercube: dimension = 0", graphs.hypercube, 0)
    says("hypercube: n = .* at most", graphs.hypercube, 1000)
    says("watts-strogatz: k = 5 neighbours on 4 nodes; take n=5", graphs.watts_strogatz, 4)
    says("watts-strogatz: k = 1 must", graphs.watts_strogatz, 10, 1)
    says("watts-strogatz: p = 1.5 must lie between 0 and 1", graphs.watts_strogatz, 10, 4, 1.5)
    says("erdos-renyi: p = nan must lie", graphs.erdos_renyi, 10, float("nan"))
    says("random-regular: degree = 4 on 4 nodes; take n=5", graphs.random_regular, 4)
    says(
        "random-regular: 9 nodes cannot have the odd degree 3.* 8 and 10",
        graphs.random_regular,
        9,
        3,
    )
    says("degree = 1 joins 10 nodes in pairs", graphs.random_regular, 10, 1)
    says("barabasi-albert: m = 2 on 2 nodes; take n=3", graphs.barabasi_albert, 2)
    says("geometric: radius = -1.0", graphs.geometric, 10, -1)
    says("seed = -1 must be a whole number of at least 0", graphs.watts_strogatz, 10, seed=-1)
    says("seed = None must", graphs.barabasi_albert, 10, seed=None)


def test_families_that_are_never_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    says(
        "none of 100 draws on 50 nodes was connected; take a p above 0.01",
        graphs.erdos_renyi,
        50,
        0.01,
    )
    says("take a radius above 0.01", graphs.geometric, 50, 0.01)
    monkeypatch.setattr(random_families, "MAX_DRAWS", 1)
    says("take a k of at least 4", graphs.watts_strogatz, 5000, 3, 0.9)


def test_memory_is_checked_before_it_is_allocated() -> None:
    for make in (
        graphs.two_cliques,
        graphs.watts_strogatz,
        graphs.random_regular,
        graphs.barabasi_albert,
    ):
        says("GiB of memory", make, 2 * 10**9)
    says("GiB of memory", graphs.erdos_renyi, 10**7, 0.5)
    says("GiB of memory", graphs.geometric, 10**7, 0.5)
    says("GiB of memory", graphs.torus, 40_000, 50_000)


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    show("torus", n=1599)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["torus 39 x 41", "  nodes         1,599", "  edges         3,198"]
    assert lines[5] == "  spectral gap  3.66e-06: differences shrink by e in 272,877 exchanges"
    assert [line.split()[:3] for line in lines[7:10]] == [
        ["to", share, "%"] for share in ("10", "1", "0.1")
    ]
    show("two-cliques", n=100)
    assert (
        "  bottleneck    nodes 0-49 and 50-99 are joined by 1 of 2,451 edges\n"
        in capsys.readouterr().out
    )
    show(as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert (record["graph"], record["n"], record["edges"], record["seed"]) == (
        "watts-strogatz",
        1000,
        2000,
        0,
    )
    assert record["degrees"]["mean"] == 4
    assert record["components"] == 1
    path = tmp_path / "friends.csv"
    path.write_text("ann,bob,1\nbob,cyd,2\n")
    show(str(path))
    out = capsys.readouterr().out
    assert "edges         2, weighted" in out
    assert "degrees       1 to 2, mean 1.333" in out
    with pytest.raises(InputError, match=r"has 3 nodes \(ann, bob, cyd\) where 5 are needed"):
        show(str(path), n=5)


def test_import_needs_numpy_alone() -> None:
    heavy = "{'scipy', 'numba', 'networkx', 'pyarrow', 'psutil'}"
    code = f"import sys, gosta.graphs; print(sorted({heavy} & sys.modules.keys()))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_every_family_is_documented() -> None:
    for name in graphs.__all__:
        assert getattr(graphs, name) is not None
    text = (Path(__file__).parents[2] / "docs" / "reference" / "graphs.md").read_text()
    assert [name for name in graphs.GRAPHS if f"| `{name}` |" not in text] == []
