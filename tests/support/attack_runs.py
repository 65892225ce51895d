"""Runs of a network under attack, and the check that it recovers once the attacker is removed."""

from __future__ import annotations

from collections import Counter

from hostile import Attack, HostileNetwork

ATTACK_SECONDS = 20.0


def exchanges(network: HostileNetwork) -> int:
    """Return how often honest nodes have exchanged with each other, as far as their initiators
    count.
    """
    honest = network.honest
    return sum(node.peer.exchanges_with(other) for node in honest.values() for other in honest) // 2


def attack_network(
    attack: Attack, nodes: int = 5, seconds: float = ATTACK_SECONDS, seed: int = 0
) -> HostileNetwork:
    """Run a network with one malicious node, and check what must hold meanwhile."""
    edges = [(a, b) for a in range(nodes) for b in range(a)]
    network = HostileNetwork(nodes, edges, attacker=2, seed=seed)
    network.run(5.0)
    epoch, done = network.nodes["node-0"].peer.epoch, Counter[str]()
    network.hostile.attack = attack
    for _ in range(int(seconds)):
        before = exchanges(network), network.nodes["node-0"].peer.epoch
        network.run(1.0)
        if network.nodes["node-0"].peer.epoch == before[1]:
            done["exchanges"] += max(0, exchanges(network) - before[0])
    assert done["exchanges"] > seconds, "honest nodes go on exchanging"
    epochs = {node.peer.epoch for node in network.honest.values()}
    assert max(epochs) < epoch + 12 + seconds / 3.0 or max(epochs) <= network.now() / 10.0 + 1
    for node in network.honest.values():
        others = [one for one in node.status().neighbours if one.name != network.attacker]
        assert [one.name for one in others if one.suspended_seconds] == [], (
            "no honest node is suspended"
        )
    lines = Counter((name, *map(fields.get, ("neighbour", "reason")))
                    for name, event, fields in network.lines if event == "rejected")  # fmt: skip
    assert max(lines.values(), default=0) <= 1 + seconds / 60.0, "logged once a minute at most"
    return network


def check_recovery(network: HostileNetwork) -> None:
    """Remove the malicious node: all others find the value over their rows, also after a restart of
    all.
    """
    journals = dict(network.journals)
    network.expel()
    network.run(40.0)
    assert {node.status().state for node in network.nodes.values()} == {"running"}
    assert len({node.peer.epoch for node in network.nodes.values()}) == 1
    assert network.error() < 0.02
    for name in network.names:
        network.crash(name, 1.0)
    network.run(15.0)
    network.check()
    assert {node.status().state for node in network.nodes.values()} == {"running"}
    assert network.error() < 0.02
    assert all(network.journals[name] is journals[name] for name in network.names)
