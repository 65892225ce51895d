"""Nodes in virtual time: estimates of all statistics by both protocols, against the exact
values.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from fault_schedules import check_replay
from patients import CASES, PATIENTS, N, make_network
from virtual_network import Fault, VirtualNetwork

import gosta


@pytest.mark.parametrize("statistic", CASES)
def test_all_nodes_find_the_exact_value(statistic: str) -> None:
    network, estimand = make_network(statistic, **CASES[statistic])
    network.clock.run(60.0)
    network.check()
    check_replay(network)
    exact = gosta.exact(PATIENTS, statistic, columns=CASES[statistic].get("columns"))
    np.testing.assert_allclose(network.estimates()[:, 0], exact, rtol=0.02)
    reports = [peer.report() for peer in network.peers.values()]
    assert all(report is not None and report.expected_error is not None for report in reports)
    if "interval" in CASES[statistic]:
        ends = np.array([(report.low, report.high) for report in reports if report is not None])
        np.testing.assert_allclose(ends, np.tile(estimand.pooled_intervals()[0], (4, 1)), rtol=0.05)
    assert {peer.estimator.known_rows for peer in network.peers.values()} == {N}


@pytest.mark.parametrize("statistic", ["auc", "gini-mean-difference"])
def test_gosta_async_finds_the_exact_value(statistic: str) -> None:
    network, _ = make_network(statistic, "gosta-async", columns=CASES[statistic].get("columns"))
    network.clock.run(120.0)
    network.check()
    check_replay(network)
    exact = gosta.exact(PATIENTS, statistic, columns=CASES[statistic].get("columns"))
    np.testing.assert_allclose(network.estimates()[:, 0], exact, rtol=0.05)


def test_errors_after_faults_equal_those_of_a_simulation() -> None:
    """Faults cost exchanges, but not accuracy after as many exchanges.

    The mean error of thirty networks has a standard deviation of some 20 %, so 1.7 times the
    simulation's error would be exceeded at random once in some hundred times for other seeds.
    """
    sizes = np.array([3, 12, 20, 5, 20])
    rows = np.random.default_rng(0).gamma(2.0, 1.0, (sizes.sum(), 1))
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)]
    exact = gosta.exact(rows, "gini-mean-difference")
    errors, exchanges = [], []
    for seed in range(30):
        faults = [Fault("crash", 2.0 * k, f"node-{k % 5}", 1.5) for k in range(10)]
        network = VirtualNetwork(
            np.split(rows, np.cumsum(sizes)[:-1]), edges, faults, seed, loss=0.2
        )
        network.clock.run(20.0)
        network.end_faults()
        network.clock.run(40.0)
        network.check()
        errors.append(np.abs(network.estimates() / exact - 1.0).mean())
        exchanges.append(sum(peer.estimator.exchanges for peer in network.peers.values()) // 2)
    site = np.repeat(np.arange(5), sizes)
    trace = gosta.simulate(
        rows,
        "gini-mean-difference",
        by=site,
        graph=np.array(edges),
        iterations=int(np.mean(exchanges)),
        runs=200,
        checkpoints=1,
    )
    assert np.mean(errors) < 1.7 * float(trace.error()["mean"][-1])


def test_max_exchanges_per_second_is_a_limit() -> None:
    network, _ = make_network("auc", columns=None)
    for node in network.nodes.values():
        settings = msgspec.structs.replace(node.config.node, max_exchanges_per_second=5.0)
        node.config = msgspec.structs.replace(node.config, node=settings)
    network.clock.run(100.0)
    network.check()
    exchanges = [node.peer.estimator.exchanges for node in network.nodes.values()]
    assert 200 < max(exchanges) <= 510  # five at the start, and then five per second
    assert sum(node.counters["offers answered with busy"] for node in network.nodes.values()) > 100
