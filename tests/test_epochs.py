"""Rows that change, nodes that leave, journals that are lost: a new epoch, and the right number in the end."""

from __future__ import annotations

from random import Random

import msgspec
import numpy as np
import pytest
from world import HERE, Fault, World

import gosta
from gosta.net.node.source import fingerprint

RNG = np.random.default_rng(11)
PARTS = [RNG.gamma(2.0, 1.0, (rows, 1)) for rows in (4, 20, 1, 9, 15)]
RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (1, 3)]


def settled(world: World, seconds: float = 60.0) -> float:
    """Let it run on in peace, and give the largest error of a node against the value over all rows there are."""
    world.clock.run(world.clock.now + seconds)
    world.check()
    assert len({peer.epoch for peer in world.peers.values()}) == 1
    exact = gosta.exact(np.concatenate([world.parts[name] for name in world.names]), "gini-mean-difference")
    return float(np.abs(world.estimates() / exact - 1.0).max())


def test_changed_rows_begin_an_epoch_and_the_old_estimate_stands_until_the_new_one_is_better() -> None:
    world = World(PARTS, RING)
    assert settled(world) < 0.02
    old = world.estimates()
    world.change("node-1", PARTS[1] * 3.0)
    world.clock.run(world.clock.now + 1.0)
    reports = [peer.report() for peer in world.peers.values()]
    assert {peer.epoch for peer in world.peers.values()} == {2}
    assert [report.epoch for report in reports if report is not None] == [1] * 5
    np.testing.assert_allclose(world.estimates(), old, rtol=1e-3)
    assert settled(world) < 0.02
    reports = [peer.report() for peer in world.peers.values()]
    assert [report.epoch for report in reports if report is not None] == [2] * 5


def test_rows_that_changed_while_the_node_was_down() -> None:
    world = World(PARTS, RING)
    world.clock.run(20.0)
    world.crash("node-4", 5.0)
    world.change("node-4", PARTS[4] + 1.0)
    assert settled(world) < 0.02
    assert world.peers["node-0"].epoch == 2


def test_a_node_that_lost_its_journal_begins_an_epoch() -> None:
    """Otherwise its visitor would exist twice."""
    world = World(PARTS, RING)
    world.clock.run(20.0)
    world.lose_journal("node-3")
    assert settled(world) < 0.02
    assert world.peers["node-0"].epoch >= 2


@pytest.mark.parametrize("records", [1, 2, 5, 20])
def test_a_machine_that_lost_power_and_the_end_of_its_journal_begins_an_epoch(records: int) -> None:
    """Its neighbours remember meetings that it does not: going on as if nothing had happened would be wrong."""
    world = World(PARTS, RING)
    world.clock.run(20.0)
    world.lose_power("node-1", records)
    assert settled(world) < 0.02
    assert world.peers["node-0"].epoch >= 2


@pytest.mark.parametrize("seed", range(12))
def test_a_journal_that_lost_some_records_is_noticed_in_the_end(seed: int) -> None:
    """However few: the one it met then remembers."""
    world = World(PARTS, RING, seed=seed)
    for _ in range(3):
        world.clock.run(world.clock.now + 5.0)
        world.restore_backup(f"node-{seed % 5}", 1 + seed // 2)
    assert settled(world) < 0.02


def test_an_old_journal_after_a_new_one_begins_a_few_epochs_and_no_more() -> None:
    world = World(PARTS, RING)
    world.clock.run(5.0)
    old = world.disks["node-1"]
    world.births["node-1"] = 10**9
    world.lose_journal("node-1")
    world.clock.run(15.0)
    world.crash("node-1", 1.0)
    world.disks["node-1"] = old
    assert settled(world) < 0.02
    epoch = world.peers["node-0"].epoch
    assert epoch < 12
    assert settled(world) < 0.02
    assert world.peers["node-0"].epoch == epoch


@pytest.mark.parametrize("records", [1, 2, 7, 30])
@pytest.mark.parametrize("name", ["node-0", "node-1"])
def test_a_journal_from_a_backup_is_noticed_by_neighbours(name: str, records: int) -> None:
    """Unless it only lost the answer to an offer, which it gets again."""
    world = World(PARTS, RING)
    world.clock.run(20.0)
    world.restore_backup(name, records)
    assert settled(world) < 0.02
    assert world.peers["node-2"].epoch >= (1 if records == 1 else 2)


def test_a_node_that_computes_something_else_does_not_hold_up_the_others() -> None:
    world = World(PARTS, RING)
    world.clock.run(5.0)
    world.fingerprint = "another"
    world.crash("node-4", 0.5)
    world.clock.run(15.0)
    before = {name: node.peer.site.meetings for name, node in world.nodes.items()}
    world.clock.run(25.0)
    met = [node.peer.site.meetings - before[name] for name, node in world.nodes.items()]
    assert min(met[:4]) > 10
    assert met[4] == 0
    assert world.nodes["node-0"].counts["declined: statistic"] > 0
    world.fingerprint = world.nodes["node-0"].peer.identity.statistic
    world.crash("node-4", 0.5)
    assert settled(world) < 0.02


def test_a_node_that_leaves_for_good() -> None:
    world = World(PARTS, RING)
    world.clock.run(20.0)
    world.forget("node-1")
    assert settled(world) < 0.02
    assert world.peers["node-0"].epoch >= 2
    assert all("node-1" not in peer.site.homes for peer in world.peers.values())


def test_epochs_by_the_clock() -> None:
    world = World(PARTS, RING, renew=15.0)
    world.clock.run(50.0)
    assert {peer.epoch for peer in world.peers.values()} == {4}
    world.change("node-1", PARTS[1] * 3.0)
    world.clock.run(52.0)
    assert world.peers["node-1"].epoch == 4  # not before it is time
    world.clock.run(75.0)
    world.check()
    assert world.peers["node-1"].site.table.x[0, 0] == 3.0 * PARTS[1][0, 0]


@pytest.mark.parametrize("seed", range(40))
def test_epochs_in_the_midst_of_faults(seed: int) -> None:
    """Nothing is lost or doubled in whatever epoch all arrive at."""
    chance = Random(seed)
    faults = [
        Fault(chance.choice(["lose", "repeat", "delay", "crash after message"]), chance.randrange(1, 300), "", 0.5)
        for _ in range(30)
    ]
    faults += [Fault("crash after write", chance.randrange(1, 60), f"node-{k}") for k in range(5)]
    world = World(PARTS, RING, faults, seed, loss=0.1)
    for _ in range(4):
        world.clock.run(world.clock.now + 3.0)
        name = chance.choice(world.names)
        what = chance.randrange(3)
        if what == 0:
            world.change(name, world.parts[name] * 2.0)
        elif what == 1:
            world.lose_journal(name)
        else:
            world.lose_power(name, chance.randrange(4))
    world.faults.clear()
    world.loss = 0.0
    assert settled(world) < 0.03
    assert world.peers["node-0"].epoch >= 3


def test_a_report_of_another_statistic_is_not_shown_as_one_of_this() -> None:
    world = World(PARTS, RING)
    world.clock.run(30.0)
    assert all(peer.report() is not None for peer in world.peers.values())
    world.task = msgspec.structs.replace(world.task, statistic="variance")
    world.fingerprint = fingerprint(world.task, HERE)
    for name in world.names:
        world.crash(name, 0.5)
    world.clock.run(30.6)
    assert [peer.report() for peer in world.peers.values()] == [None] * 5
    world.clock.run(60.0)
    exact = gosta.exact(np.concatenate(PARTS), "variance")
    np.testing.assert_allclose(world.estimates()[:, 0], exact, rtol=0.02)
