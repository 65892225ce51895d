"""Relay: sums along a spanning tree are exact, and count the rows that they include."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine_runs import advance, estimates, one_row_engine
from hypothesis import given, settings
from hypothesis import strategies as st

import gosta
from gosta import graphs
from gosta.estimation.setting import Setting, make_setting
from gosta.graphs.graph import Graph
from gosta.graphs.tree import TREE_SHARE, spanning_tree, tree_edges, tree_share, with_tree
from gosta.protocols import relay
from gosta.schedule import Schedule
from gosta.simulation import engines
from gosta.simulation.engines.compiled import engine as compiled
from gosta.simulation.engines.compiled.layouts import CarriedLayout

FAMILIES = [name for name in graphs.GRAPHS if name != "hypercube"]
VARIANTS: dict[str, dict[str, Any]] = {
    "one row": {"statistic": "gini-mean-difference"},
    "two statistics": {"statistic": "gini-mean-difference,variance"},
    "moments": {"statistic": "variance"},
    "moments of tables": {"statistic": "variance", "nodes": 12},
    "tables": {"statistic": "gini-mean-difference", "nodes": 12},
    "local": {"statistic": "gini-mean-difference", "interval": 0.95},
    "local, tables": {"statistic": "gini-mean-difference", "interval": 0.9, "nodes": 12},
}


def rows(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).lognormal(size=n)


def weighted(n: int, seed: int) -> Graph:
    """A Watts–Strogatz graph whose weights range over several orders of magnitude."""
    graph, rng = graphs.make("watts-strogatz", n), np.random.default_rng(seed)
    return Graph("weighted", n, graph.edges, np.exp(rng.normal(0.0, 2.0, graph.m)))


def depths(parents: Any) -> list[int]:
    """The number of steps from each node to the root; fails if there is a cycle."""
    found = []
    for node in range(len(parents)):
        steps = 0
        while (node := int(parents[node])) >= 0:
            steps += 1
            assert steps < len(parents)
        found.append(steps)
    return found


@pytest.mark.parametrize("family", graphs.GRAPHS)
@pytest.mark.parametrize("n", [2, 3, 16, 64])
def test_trees_span_the_graph_from_its_middle(family: str, n: int) -> None:
    try:
        graph = graphs.make(family, n)
    except gosta.InputError:
        return
    parents = spanning_tree(graph)
    assert (parents < 0).sum() == 1
    assert (parents == spanning_tree(graph)).all()
    if graph.edges is None:
        assert max(depths(parents)) <= 3
        return
    pairs = {frozenset(edge) for edge in graph.edges.tolist()}
    assert all(
        frozenset((k, int(parent))) in pairs for k, parent in enumerate(parents) if parent >= 0
    )
    longest = {"path": n // 2, "cycle": n // 2, "star": 1, "two-cliques": 2}.get(family, n)
    assert max(depths(parents)) <= longest


def test_heavy_edges_are_preferred_to_short_paths() -> None:
    """Around a ring of heavy edges it is faster than across a light one."""
    ring = [(k, (k + 1) % 6) for k in range(6)]
    graph = graphs.from_edges([*ring, (0, 3)], weights=[1.0] * 6 + [1e-3])
    assert not tree_edges(with_tree(graph))[6]


@settings(max_examples=25)
@given(n=st.integers(6, 40), seed=st.integers(0, 10**6))
def test_rates_of_the_tree_and_of_other_edges(n: int, seed: int) -> None:
    graph = weighted(n, seed)
    found = with_tree(graph)
    assert found.weights is not None
    is_tree, before, after = tree_edges(found), graph.rates, found.weights
    assert after.sum() == pytest.approx(before.sum())
    assert tree_share(found) >= TREE_SHARE - 1e-9
    factors = (after / before)[~is_tree]
    np.testing.assert_allclose(factors, np.broadcast_to(factors[:1], factors.shape))
    if before[is_tree].sum() >= TREE_SHARE * before.sum():
        np.testing.assert_allclose(factors, 1.0)


def test_complete_graphs_draw_from_their_tree() -> None:
    """Shares are within 5 standard errors but for one seed in a million, pairs within 6 but for one
    in a million.
    """
    graph, size = with_tree(graphs.make("complete", 50)), 200_000
    assert graph.parents is not None
    edges = graph.draw(np.random.default_rng(0), size)
    assert (edges[:, 0] != edges[:, 1]).all()
    one, two = edges.T
    is_tree = (graph.parents[one] == two) | (graph.parents[two] == one)
    assert is_tree.mean() == pytest.approx(tree_share(graph), abs=5 * 0.5 / np.sqrt(size))
    others = np.unique(np.sort(edges[~is_tree], axis=1), axis=0, return_counts=True)[1]
    assert len(others) == graph.m - 49
    expected = size * (1 - tree_share(graph)) / len(others)
    assert others == pytest.approx(expected, abs=6 * np.sqrt(expected))
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(
        np.concatenate([graph.draw(rng, 5), graph.draw(rng, 7)]), edges[:12]
    )


def test_weights_whose_ratio_is_not_a_float() -> None:
    """The tree of a path is the path, with its root in the middle, whatever the weights are."""
    path = Graph(
        "path",
        6,
        np.array([[k, k + 1] for k in range(5)]),
        np.array([1e300, 1e-300, 1e300, 1e-300, 1e300]),
    )
    parents = spanning_tree(path).tolist()
    assert parents.count(-1) == 1
    assert all(abs(node - parent) == 1 for node, parent in enumerate(parents) if parent >= 0)


@pytest.mark.parametrize("graph", ["complete", "two-cliques", "weighted"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_engines_agree_to_the_last_bit(variant: str, graph: str) -> None:
    given = VARIANTS[variant]
    network: Any = weighted(given.get("nodes", 36), 3) if graph == "weighted" else graph
    traces = [
        gosta.simulate(
            rows(36), graph=network, protocol="relay", iterations=600, runs=2, checkpoints=5,
            engine=engine, **given
        )
        for engine in ("compiled", "reference")
    ]  # fmt: skip
    np.testing.assert_array_equal(traces[0].estimates, traces[1].estimates)
    np.testing.assert_array_equal(traces[0].data["counted"], traces[1].data["counted"])


@pytest.mark.parametrize("variant", VARIANTS)
def test_simulations_can_be_continued(variant: str, tmp_path: Any) -> None:
    common: dict[str, Any] = {
        "graph": weighted(36, 1),
        "protocol": "relay",
        "runs": 2,
        **VARIANTS[variant],
    }
    if "nodes" in common:
        common["graph"] = "complete"
    part = gosta.simulate(rows(36), iterations=300, checkpoints=3, **common)
    part.save(tmp_path / "part.nc")
    whole = gosta.simulate(rows(36), iterations=600, checkpoints=6, **common)
    resumed = gosta.resume(tmp_path / "part.nc", iterations=600)
    np.testing.assert_array_equal(resumed.estimates, whole.estimates)
    np.testing.assert_array_equal(resumed.data["counted"], whole.data["counted"])


@pytest.mark.parametrize("nodes", [None, 24])
@pytest.mark.parametrize("family", FAMILIES)
def test_plain_means_are_exact_after_finitely_many_exchanges(
    family: str, nodes: int | None
) -> None:
    """And remain as they are: sums that are told again change nothing."""
    n = nodes or 64
    trace = gosta.simulate(
        rows(64),
        "variance",
        graph=family,
        protocol="relay",
        nodes=nodes,
        iterations=4000 * n,
        runs=2,
        checkpoints=4,
    )
    estimates = trace.estimates.values
    np.testing.assert_allclose(estimates[:, 1:], trace.target, rtol=1e-12)
    np.testing.assert_array_equal(estimates[:, 2], estimates[:, 3])
    assert (trace.data["counted"].values[:, 1:] == 64).all()


@pytest.mark.parametrize("graph", [[[0, 1]], "path", "star", "complete"])
def test_small_networks(graph: Any) -> None:
    for n in (2, 3) if isinstance(graph, str) else (2,):
        for statistic in ("variance", "gini-mean-difference"):
            trace = gosta.simulate(
                rows(n),
                statistic,
                graph=graph,
                protocol="relay",
                iterations=20_000,
                runs=1,
                checkpoints=2,
            )
            assert float(trace.error()["mean"][-1]) < 1e-3


def test_rare_edges_only_delay() -> None:
    """Weights over ten orders of magnitude, and tables of very different sizes: still exact."""
    edges = [[0, 1], [1, 2], [2, 3], [3, 0]]
    graph = graphs.from_edges(edges, weights=[1e5, 1.0, 1e-5, 1e5])
    trace = gosta.simulate(
        rows(60),
        "variance",
        graph=graph,
        protocol="relay",
        nodes=4,
        iterations=2_000_000,
        runs=1,
        checkpoints=1,
    )
    np.testing.assert_allclose(trace.estimates.values, trace.target, rtol=1e-12)


def two_cliques(n: int) -> tuple[Setting, Any, int]:
    """A setting, edges drawn within the two halves, and the number of the bridge."""
    setting = make_setting("relay", rows(n), "variance", "two-cliques", 0, {})
    edges = setting.graph.edges
    assert edges is not None
    (bridge,) = np.flatnonzero((edges[:, 0] < n // 2) != (edges[:, 1] < n // 2))
    drawn = Schedule(setting.graph, 0, 0).edges(0, 20_000)
    return setting, drawn[(drawn[:, 0] < n // 2) == (drawn[:, 1] < n // 2)], int(bridge)


def test_counts_tell_one_clique_from_two() -> None:
    """Until the edge between them is used, the nodes of each clique know of its rows, and that
    others are missing.
    """
    n = 20
    setting, inside, bridge = two_cliques(n)
    engine = compiled.make(setting, 0)
    batch = engine.start([0])
    advance(engine, batch, inside)
    np.testing.assert_array_equal(engines.read(engine, batch)[..., -1], n // 2)
    x = setting.estimand.x[:, 0]
    for half in (slice(None, n // 2), slice(n // 2, None)):
        moments = estimates(engine, batch)[0, half] + [setting.offset[0], 0.0]
        np.testing.assert_allclose(moments[:, 0], x[half].mean(), rtol=1e-12)
    assert setting.graph.edges is not None
    advance(engine, batch, setting.graph.edges[[bridge]])
    assert sorted(engines.read(engine, batch)[0, :, -1])[-2:] == [n, n]
    advance(engine, batch, inside)
    np.testing.assert_array_equal(engines.read(engine, batch)[..., -1], n)
    np.testing.assert_allclose(
        setting.values(estimates(engine, batch))[0], setting.target[0, 0], rtol=1e-12
    )


def test_nodes_do_not_stop_while_rows_are_missing() -> None:
    """Two cliques of equal rows each, and a bridge that is hardly ever used: within a clique
    nothing changes.
    """
    n = 20
    graph = graphs.make("two-cliques", n)
    assert graph.edges is not None
    is_bridge = (graph.edges[:, 0] < n // 2) != (graph.edges[:, 1] < n // 2)
    network = graphs.from_edges(graph.edges, weights=np.where(is_bridge, 1e-12, 1.0))
    data = np.repeat([1.0, 2.0, 1.0, 5.0], 5)
    trace = gosta.simulate(
        data,
        "gini-mean-difference",
        graph=network,
        protocol="relay",
        until=0.05,
        iterations=100_000,
        runs=3,
    )
    assert (trace.data["stopped"].values == 0).all()
    assert (trace.data["counted"].values[:, -1] == n // 2).all()
    even = gosta.simulate(
        data, "gini-mean-difference", graph="two-cliques", protocol="relay", until=0.05, runs=3
    )
    assert (even.data["stopped"].values > 0).all()
    assert (even.data["counted"].max("iteration") == n).all()


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 500))
def test_what_nodes_have_sent_up_is_in_the_sums_above(seed: int, count: int) -> None:
    """The invariant: `below` of a node is its own part, plus `up` of each of its children."""
    setting = make_setting("relay", rows(24), "gini-mean-difference", "watts-strogatz", 0, {})
    engine = one_row_engine(setting, is_inline=False)
    batch = engine.start([0])
    advance(engine, batch, setting.graph.draw(np.random.default_rng(seed), count))
    states = batch.state["nodes"][0, :, : engine.layout.columns.exchanges].reshape(24, 2, 3)
    below, up, _ = np.moveaxis(states, -1, 0)
    own = below.copy()
    for node, parent in enumerate(setting.parents.tolist()):
        if parent >= 0:
            own[parent] -= up[node]
    smooth = np.zeros(2)
    layout = engine.layout
    assert isinstance(layout, CarriedLayout)
    for start in range(layout.visitor, layout.rows, layout.visitor_size):
        smooth += np.column_stack(
            [batch.state["nodes"][0, :, start + 4], batch.state["nodes"][0, :, start + 2] > 0]
        ).sum(axis=0)
    np.testing.assert_allclose(own.sum(axis=0), smooth / 2, atol=1e-9)


def test_numbers_sent() -> None:
    """On an edge of the tree a sum and a count each way; everywhere the visitor and its luggage."""
    star = gosta.simulate(
        rows(30), "gini-mean-difference", graph="star", protocol="relay", iterations=100, runs=1
    )
    assert star.units[-1] == 100 * 2 * (1 + 3 + 2)
    cycle = gosta.simulate(
        rows(30), "gini-mean-difference", graph="complete", protocol="relay", iterations=900, runs=1
    )
    share = TREE_SHARE + (1 - TREE_SHARE) * 29 / 435
    assert cycle.units[-1] == round(900 * 2 * (1 + 3 + 2 * share))
    assert relay.protocol.sends == "2 d + 6 k + 4 numbers"
    moments = gosta.simulate(
        rows(30), "variance", graph="star", protocol="relay", iterations=100, runs=1
    )
    assert moments.units[-1] == 100 * 2 * (2 + 1 + 1)


@pytest.mark.parametrize(("family", "factor"), [("two-cliques", 10.0), ("barabasi-albert", 1.1)])
def test_fewer_exchanges_than_carried_means_where_there_is_a_bottleneck(
    family: str, factor: float
) -> None:
    """Error after 40 exchanges of a node, n = 400, five runs."""
    errors = [
        float(
            gosta.simulate(
                rows(400), "gini-mean-difference", graph=family, protocol=protocol, iterations=8000,
                runs=5
            ).error()["mean"][-1]
        )
        for protocol in ("carried-means", "relay")
    ]  # fmt: skip
    assert errors[0] > factor * errors[1]
