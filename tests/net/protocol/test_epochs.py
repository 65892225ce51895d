"""Changed rows, removed nodes, lost journals: a new epoch, and the exact value in the end."""

from __future__ import annotations

from random import Random

import msgspec
import numpy as np
import pytest
from virtual_network import HERE, Fault, VirtualNetwork

import gosta
from gosta.net.config import Task
from gosta.net.members import OpenTrust
from gosta.net.node.source import RowSource, fingerprint

RNG = np.random.default_rng(11)
PARTS = [RNG.gamma(2.0, 1.0, (rows, 1)) for rows in (4, 20, 1, 9, 15)]
RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (1, 3)]


def settle(network: VirtualNetwork, seconds: float = 60.0) -> float:
    """Run without faults and return the largest relative error of a node."""
    network.clock.run(network.clock.now + seconds)
    network.check()
    assert len({peer.epoch for peer in network.peers.values()}) == 1
    exact = gosta.exact(
        np.concatenate([network.parts[name] for name in network.names]), "gini-mean-difference"
    )
    return float(np.abs(network.estimates() / exact - 1.0).max())


def test_changed_rows_start_an_epoch_and_the_old_estimate_is_kept_until_the_new_one_is_better() -> (
    None
):
    network = VirtualNetwork(PARTS, RING)
    assert settle(network) < 0.02
    old = network.estimates()
    network.change("node-1", PARTS[1] * 3.0)
    network.clock.run(network.clock.now + 1.0)
    reports = [peer.report() for peer in network.peers.values()]
    assert {peer.epoch for peer in network.peers.values()} == {2}
    assert [report.epoch for report in reports if report is not None] == [1] * 5
    np.testing.assert_allclose(network.estimates(), old, rtol=1e-3)
    assert settle(network) < 0.02
    reports = [peer.report() for peer in network.peers.values()]
    assert [report.epoch for report in reports if report is not None] == [2] * 5


def test_rows_that_changed_while_the_node_was_stopped() -> None:
    network = VirtualNetwork(PARTS, RING)
    network.clock.run(20.0)
    network.crash("node-4", 5.0)
    network.change("node-4", PARTS[4] + 1.0)
    assert settle(network) < 0.02
    assert network.peers["node-0"].epoch == 2


def test_a_lost_journal_starts_an_epoch() -> None:
    """Otherwise its visitor would exist twice."""
    network = VirtualNetwork(PARTS, RING)
    network.clock.run(20.0)
    network.lose_journal("node-3")
    assert settle(network) < 0.02
    assert network.peers["node-0"].epoch >= 2


@pytest.mark.parametrize("records", [1, 2, 5, 20])
def test_a_loss_of_power_and_of_the_last_records_starts_an_epoch(records: int) -> None:
    """Its neighbours have exchanges that it lost: continuing without a new epoch would be wrong."""
    network = VirtualNetwork(PARTS, RING)
    network.clock.run(20.0)
    network.lose_power("node-1", records)
    assert settle(network) < 0.02
    assert network.peers["node-0"].epoch >= 2


@pytest.mark.parametrize("seed", range(12))
def test_a_journal_that_lost_records_is_detected(seed: int) -> None:
    """However few: the partner of a lost exchange has it."""
    network = VirtualNetwork(PARTS, RING, seed=seed)
    for _ in range(3):
        network.clock.run(network.clock.now + 5.0)
        network.restore_backup(f"node-{seed % 5}", 1 + seed // 2)
    assert settle(network) < 0.02


def test_an_old_journal_after_a_new_one_starts_only_a_few_epochs() -> None:
    network = VirtualNetwork(PARTS, RING)
    network.clock.run(5.0)
    old = network.journals["node-1"]
    network.lose_journal("node-1")
    network.clock.run(15.0)
    network.crash("node-1", 1.0)
    network.journals["node-1"] = old
    assert settle(network) < 0.02
    epoch = network.peers["node-0"].epoch
    assert epoch < 12
    assert settle(network) < 0.02
    assert network.peers["node-0"].epoch == epoch


@pytest.mark.parametrize("records", [1, 2, 7, 30])
@pytest.mark.parametrize("name", ["node-0", "node-1"])
def test_a_journal_from_a_backup_is_detected_by_neighbours(name: str, records: int) -> None:
    """Unless it lost only confirmations, which it gets again."""
    network = VirtualNetwork(PARTS, RING)
    network.clock.run(20.0)
    journal = network.journals[name]
    lost = journal._db.execute(
        "SELECT kind FROM records WHERE number > ?", (journal.last_number - records,)
    ).fetchall()
    network.restore_backup(name, records)
    assert settle(network) < 0.02
    assert network.peers["node-2"].epoch >= (2 if ("exchange-completed",) in lost else 1)


def test_a_node_with_another_statistic_does_not_block_the_others() -> None:
    network = VirtualNetwork(PARTS, RING)
    network.clock.run(5.0)
    network.fingerprint = "another"
    network.crash("node-4", 0.5)
    network.clock.run(15.0)
    before = {name: node.peer.estimator.exchanges for name, node in network.nodes.items()}
    network.clock.run(25.0)
    exchanges = [
        node.peer.estimator.exchanges - before[name] for name, node in network.nodes.items()
    ]
    assert min(exchanges[:4]) > 10
    assert exchanges[4] == 0
    assert network.nodes["node-0"].counters["mismatches: statistic"] > 0
    network.fingerprint = network.nodes["node-0"].peer.identity.fingerprint
    network.crash("node-4", 0.5)
    assert settle(network) < 0.02


def test_a_node_that_leaves_for_good() -> None:
    network = VirtualNetwork(PARTS, RING)
    network.clock.run(20.0)
    network.remove("node-1")
    assert settle(network) < 0.02
    assert network.peers["node-0"].epoch >= 2
    assert all("node-1" not in peer.estimator.homes for peer in network.peers.values())


def test_epochs_of_fixed_length() -> None:
    network = VirtualNetwork(PARTS, RING, epoch_seconds=15.0)
    network.clock.run(50.0)
    assert {peer.epoch for peer in network.peers.values()} == {4}
    network.change("node-1", PARTS[1] * 3.0)
    network.clock.run(52.0)
    assert network.peers["node-1"].epoch == 4  # not before epoch_seconds have passed
    network.clock.run(75.0)
    network.check()
    assert network.peers["node-1"].estimator.rows.estimand.x[0, 0] == 3.0 * PARTS[1][0, 0]


@pytest.mark.parametrize("seed", range(40))
def test_epochs_under_faults(seed: int) -> None:
    """Nothing is lost or duplicated in the last epoch."""
    rng = Random(seed)
    faults = [
        Fault(
            rng.choice(["lose", "repeat", "delay", "crash after message"]),
            rng.randrange(1, 300),
            "",
            0.5,
        )
        for _ in range(30)
    ]
    faults += [Fault("crash after write", rng.randrange(1, 60), f"node-{k}") for k in range(5)]
    network = VirtualNetwork(PARTS, RING, faults, seed, loss=0.1)
    for _ in range(4):
        network.clock.run(network.clock.now + 3.0)
        name = rng.choice(network.names)
        what = rng.randrange(3)
        if what == 0:
            network.change(name, network.parts[name] * 2.0)
        elif what == 1:
            network.lose_journal(name)
        else:
            network.lose_power(name, rng.randrange(4))
    network.end_faults()
    assert settle(network) < 0.03
    assert network.peers["node-0"].epoch >= 3


def test_a_report_of_another_statistic_is_not_used() -> None:
    network = VirtualNetwork(PARTS, RING)
    network.clock.run(30.0)
    assert all(peer.report() is not None for peer in network.peers.values())
    network.task = msgspec.structs.replace(network.task, statistic="variance")
    network.fingerprint = fingerprint(network.task, HERE)
    for name in network.names:
        network.crash(name, 0.5)
    network.clock.run(30.51)  # restarted, before the first exchange
    assert [peer.report() for peer in network.peers.values()] == [None] * 5
    network.clock.run(60.0)
    exact = gosta.exact(np.concatenate(PARTS), "variance")
    np.testing.assert_allclose(network.estimates()[:, 0], exact, rtol=0.02)


def test_an_exchange_that_cannot_be_computed_starts_an_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also after a restart: it is in the journal."""
    network = VirtualNetwork(PARTS, RING)
    network.clock.run(5.0)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(network.nodes["node-1"].peer.estimator, "exchange", fail)
    assert settle(network) < 0.02
    assert network.peers["node-1"].epoch >= 2


def test_a_nodes_own_visitor_as_the_first_one() -> None:
    """Only a hostile neighbour sends that."""
    task = Task("0123456789abcdef", "auc", confidence_level=0.95, encoded_columns=2)
    rows = np.column_stack([RNG.normal(size=20), np.arange(20) % 2 * 2.0 - 1.0])
    node = RowSource("node-0", task, rows, ["node-1"], HERE, OpenTrust()).estimator()
    node.exchange("other", node.contribution("other", 1.0), 1.0)
    assert np.isfinite(node.estimates()).all()
