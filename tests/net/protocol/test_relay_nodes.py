"""Relay on nodes of a network: a tree that grows by exchanges, under faults and attacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attack_runs import check_recovery
from attacks import told
from fault_schedules import check_replay, make_schedule, run_schedule
from hostile import Attack, HostileNetwork, HostileNode
from hypothesis import given, settings
from hypothesis import strategies as st
from patients import CASES, EDGES, PATIENTS, N
from virtual_network import VirtualNetwork

import gosta
from gosta import graphs
from gosta.estimation.exchange import Estimator, LocalRows, exchange, first_state
from gosta.estimation.growing_tree import priority_of
from gosta.estimation.setting import make_setting
from gosta.graphs.graph import Graph
from gosta.net.protocol.report import value_of


def make_nodes(
    statistic: str, graph: Graph, seed: int, **options: Any
) -> tuple[list[Estimator], float]:
    """Return nodes with several rows each that know nothing of the others, and the exact value."""
    rows, nodes = np.random.default_rng(seed).lognormal(size=5 * graph.n), graph.n
    if statistic == "variance":
        rows += 1e6  # which takes a common offset
    setting = make_setting("relay", rows, statistic, graph, seed, {}, nodes=nodes, **options)
    parts = [
        LocalRows(setting.estimand.over(x)) for x in setting.placement.split(setting.estimand.x)
    ]
    made = [
        Estimator(f"node-{k}", setting.gossip, own, first_state(own, setting.gossip))
        for k, own in enumerate(parts)
    ]
    return made, float(setting.target[0, 0])


def own_parts(nodes: list[Estimator]) -> Any:
    """Return the number of rows that each node has contributed itself."""
    return [
        node.states[-1].below - sum(sums[-1] for sums in node.growing.received.values())
        for node in nodes
        if node.growing is not None
    ]


@settings(max_examples=5)
@given(
    seed=st.integers(0, 10**6),
    family=st.sampled_from(["watts-strogatz", "barabasi-albert", "cycle", "complete"]),
)
def test_a_tree_grows_without_cycles_and_sums_become_exact(seed: int, family: str) -> None:
    graph = graphs.make(family, 8, seed=seed)
    nodes, target = make_nodes("variance", graph, seed)
    by_name = {node.name: node for node in nodes}
    for i, j in graph.draw(np.random.default_rng(seed), 1500).tolist():
        exchange(nodes[i], nodes[j], 0.5)
        for name in by_name:
            steps = 0
            while (tree := by_name[name].growing) is not None and tree.parent:
                above = by_name[tree.parent].growing
                assert above is not None
                assert (above.root, above.distance) < (tree.root, tree.distance)
                name, steps = tree.parent, steps + 1
                assert steps < len(nodes)
        assert own_parts(nodes) == pytest.approx([node.rows.count for node in nodes])
    trees = [node.growing for node in nodes if node.growing is not None]
    assert {tree.root for tree in trees} == {min(priority_of(node.name) for node in nodes)}
    assert (
        sum(len(tree.sent) for tree in trees)
        == sum(len(tree.received) for tree in trees)
        == len(nodes) - 1
    )
    assert [node.row_count for node in nodes] == pytest.approx([40] * 8)
    assert all(node.has_all_rows for node in nodes)
    values: list[Any] = [value_of(node) for node in nodes]
    np.testing.assert_allclose(values, target, rtol=1e-9)


def test_snapshots_hold_the_tree() -> None:
    graph = graphs.make("watts-strogatz", 8)
    nodes, _ = make_nodes("gini-mean-difference", graph, 0)
    edges = graph.draw(np.random.default_rng(0), 200).tolist()
    for i, j in edges[:100]:
        exchange(nodes[i], nodes[j], 0.5)
    again, _ = make_nodes("gini-mean-difference", graph, 0)
    for node, copy in zip(nodes, again, strict=True):
        copy.restore(node.snapshot())
    for one in (nodes, again):
        for i, j in edges[100:]:
            exchange(one[i], one[j], 0.5)
    assert [node.snapshot() for node in nodes] == [node.snapshot() for node in again]


@pytest.mark.parametrize("statistic", ["auc", "variance", "gini-mean-difference"])
def test_all_nodes_find_the_exact_value(statistic: str) -> None:
    options = dict(CASES[statistic])
    interval = options.pop("interval", None)
    setting = make_setting(
        "relay", PATIENTS, statistic, "complete", 0, {}, nodes=4, interval=interval, **options
    )
    parts, level = setting.placement.split(setting.estimand.x), interval
    network = VirtualNetwork(
        parts,
        EDGES,
        statistic=statistic,
        protocol="relay",
        confidence_level=level,
        exchanges_per_second=20.0,
    )
    network.clock.run(60.0)
    network.check()
    check_replay(network)
    exact = gosta.exact(PATIENTS, statistic, columns=options.get("columns"))
    np.testing.assert_allclose(network.estimates()[:, 0], exact, rtol=0.02)
    reports = [peer.report() for peer in network.peers.values()]
    assert all(
        report is not None and report.expected_error is not None and report.rows == N
        for report in reports
    )
    if interval is not None:
        ends = np.array([(report.low, report.high) for report in reports if report is not None])
        np.testing.assert_allclose(
            ends, np.tile(setting.estimand.pooled_intervals()[0], (4, 1)), rtol=0.05
        )


def test_nothing_is_lost_or_duplicated_under_faults() -> None:
    """After faults of all kinds, each node counts each row once."""
    for seed in range(5):
        graph, faults = make_schedule(seed)
        network = run_schedule(graph, faults, seed, "relay")
        network.clock.run(network.clock.now + 20.0)
        rows = sum(len(network.parts[name]) for name in network.names)
        counts = [node.peer.estimator.row_count for node in network.nodes.values()]
        assert counts == pytest.approx([rows] * len(counts)), (seed, graph)


def sums(change: Callable[[HostileNode, list[float]], list[float]]) -> Attack:
    """Return an attack that changes the numbers that are told, which are those of the node
    itself.
    """
    return told(
        lambda node: change(node, [*node.peer.estimator.contribution("node-0", 0.5).payload])
    )


def scaled(factor: float) -> Attack:
    """Return an attack that multiplies all sums, and the counts with them."""
    return sums(lambda _, payload: [factor * number for number in payload[:-3]] + payload[-3:])


def placed(*place: float) -> Attack:
    """Return an attack with a false place in the tree."""
    return sums(lambda _, payload: [*payload[:-3], *place])


def at_random(node: HostileNode, payload: list[float]) -> list[float]:
    """Return a payload with a place in the tree that is drawn at random."""
    return [
        *payload[:-3],
        float(node.rng.randrange(4)),
        float(node.rng.randrange(4)),
        node.rng.choice([0.0, 1.0]),
    ]


SUM_ATTACKS: dict[str, tuple[Attack, str]] = {
    "a thousand times its rows": (scaled(1000.0), ""),
    "a negative number of rows": (scaled(-1.0), "values"),
    "sums beyond the range": (
        sums(lambda _, own: [30.0 * own[0] + 99.0, 30.0 * own[1] + 99.0, *own[2:]]),
        "values",
    ),
    "a child of all": (placed(0.0, 1.0, 1.0), ""),
    "a place beyond all": (placed(2.0**49, 0.0, 0.0), "values"),
    "places at random": (sums(at_random), ""),
}


@pytest.mark.parametrize("name", SUM_ATTACKS)
def test_attacks(name: str) -> None:
    """Honest nodes go on and are not blamed, and forget the malicious one once it is removed."""
    attack, reason = SUM_ATTACKS[name]
    network = HostileNetwork(
        5, [(a, b) for a in range(5) for b in range(a)], attacker=2, protocol="relay"
    )
    network.run(5.0)
    network.hostile.attack = attack
    before = sum(node.peer.estimator.exchanges for node in network.honest.values())
    network.run(15.0)
    assert network.nodes["node-0"].peer.epoch > 1 or before + 15 < sum(
        node.peer.estimator.exchanges for node in network.honest.values()
    )
    found = {
        (one.neighbour, one.reason)
        for node in network.honest.values()
        for one in node.status().rejections
    }
    assert not reason or (network.attacker, reason) in found
    assert {why for neighbour, why in found if neighbour != network.attacker} <= {"late"}
    check_recovery(network)
