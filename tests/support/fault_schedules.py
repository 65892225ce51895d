"""Schedules of faults for networks of rows in virtual time, drawn from a seed."""

from __future__ import annotations

from random import Random

import numpy as np
from virtual_network import HERE, Fault, VirtualNetwork

from gosta.net.audit.verify import Journals, replay

# Virtual time with faults, and then without.
FAULT_SECONDS = 6.0
QUIET_SECONDS = 6.0


RNG = np.random.default_rng(5)


PARTS = [RNG.gamma(2.0, 1.0, (rows, 1)) for rows in (2, 9, 1, 12)]


GRAPHS = {
    "pair": (2, [(0, 1)]),
    "path": (3, [(0, 1), (1, 2)]),
    "cycle": (4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "complete": (4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
}


def make_schedule(seed: int) -> tuple[str, list[Fault]]:
    """Draw a graph and faults on it."""
    rng = Random(seed)
    graph = rng.choice(list(GRAPHS))
    names = [f"node-{k}" for k in range(GRAPHS[graph][0])]
    faults = []
    for _ in range(rng.randrange(1, 9)):
        kind = rng.choice(
            ["lose", "repeat", "delay", "crash after message"] * 2
            + ["crash before write", "crash after write", "full write", "partition", "crash"]
        )
        at = (
            rng.uniform(0, FAULT_SECONDS)
            if kind in ("partition", "crash")
            else rng.randrange(1, 120)
        )
        node = "" if "message" in kind else rng.choice(names)
        faults.append(Fault(kind, at, node, rng.choice([0.02, 0.3, 1.0, 3.0])))
    return graph, faults


def run_schedule(
    graph: str, faults: list[Fault], seed: int, protocol: str = "tracking"
) -> VirtualNetwork:
    """Run a schedule of faults, then a quiet time; check the invariants several times."""
    nodes, edges = GRAPHS[graph]
    rows = 1 if protocol == "carried-means" else None  # at each node
    network = VirtualNetwork(
        [part[:rows] for part in PARTS[:nodes]], edges, faults, seed, protocol=protocol
    )
    for second in np.linspace(1.0, FAULT_SECONDS, 4):
        network.clock.run(second)
        network.check()
    network.end_faults()
    before = {name: (peer.epoch, peer.estimator.exchanges) for name, peer in network.peers.items()}
    network.clock.run(FAULT_SECONDS + QUIET_SECONDS)
    network.check()
    assert sorted(network.nodes) == network.names
    after = {
        name: (node.peer.epoch, node.peer.estimator.exchanges)
        for name, node in network.nodes.items()
    }
    assert all(after[name] > before[name] and after[name][1] for name in network.names), (
        "a node is stuck"
    )
    epochs = {peer.epoch for peer in network.peers.values()}
    assert len(epochs) == 1
    assert epochs == {1} or network.events["exchange abandoned"], "a new epoch without a reason"
    check_replay(network)
    return network


def check_replay(network: VirtualNetwork) -> None:
    """Check that replaying the exchanges leads to the same states."""
    records = {name: network.journals[name].load_epoch()[1] for name in network.names}
    found = replay(Journals(network.task, HERE, network.peers, records))
    assert found.differing == []
    assert found.nodes > 0
