"""A malicious neighbour with valid keys: honest nodes go on, and forget it once it is removed.

Each line of the table in SECURITY.md names tests.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attack_runs import attack_network, check_recovery
from attacks import ATTACKS, Exchanged, kept, replace, storm
from hostile import HostileNetwork, HostileNode, Sent

from gosta.net.protocol.messages import AnyMessage, Offer, Ping


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(name: str) -> None:
    attack, reason = ATTACKS[name]
    network = attack_network(attack)
    found = {
        (one.neighbour, one.reason)
        for node in network.honest.values()
        for one in node.status().rejections
    }
    assert not reason or (network.attacker, reason) in found
    blamed = {reason for neighbour, reason in found if neighbour != network.attacker}
    assert blamed <= {"late"}, "what honest nodes send is not rejected"
    check_recovery(network)


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_all_attacks(seed: int) -> None:
    """One of eight for a minute, all attacks in random order."""
    network = attack_network(storm, nodes=8, seconds=60.0, seed=seed)
    check_recovery(network)


def test_thousands_of_epochs_at_once() -> None:
    network = HostileNetwork(3, [(0, 1), (0, 2), (1, 2)], attacker=2)
    network.run(5.0)
    network.hostile.send_all(*(network.hostile.ping_from(2 + k) for k in range(3000)))
    network.run(5.0)
    assert {node.peer.epoch for node in network.honest.values()} == {9}, "eight at once"
    check_recovery(network)


def test_epochs_of_honest_nodes_after_the_highest_one() -> None:
    """There is always a later number within ten seconds."""
    network = HostileNetwork(4, [(a, b) for a in range(4) for b in range(a)], attacker=2)
    network.run(5.0)
    for _ in range(6):
        network.hostile.send_all(network.hostile.ping_from(int(network.now() / 10.0)))
        network.change("node-1", network.parts["node-1"] + [0.1, 0.0])
        network.run(2.0)
        assert max(node.peer.epoch for node in network.honest.values()) <= network.now() / 10.0
    network.run(10.0)
    check_recovery(network)


def test_a_visitor_of_an_earlier_epoch_is_rejected() -> None:
    network = HostileNetwork(4, [(a, b) for a in range(4) for b in range(a)], attacker=2)
    network.hostile.attack = kept
    network.run(10.0)
    assert network.hostile.booty is not None
    network.change("node-1", network.parts["node-1"] + [0.1, 0.0])
    network.run(10.0)
    found = {
        (one.neighbour, one.reason)
        for node in network.honest.values()
        for one in node.status().rejections
    }
    assert (network.attacker, "signature") in found
    check_recovery(network)


@pytest.mark.parametrize(
    "name", ["own visitors for everybody", "a visitor of another node for everybody"]
)
def test_second_visitors_are_found(name: str) -> None:
    network = attack_network(ATTACKS[name][0])
    reasons = {fields["reason"] for _, event, fields in network.lines if event == "epoch started"}
    assert any("second visitor" in reason or "came back" in reason for reason in reasons)


def test_a_node_whose_only_neighbour_announces_other_epochs_says_that_it_is_alone() -> None:
    network = HostileNetwork(2, [(0, 1)], attacker=1)
    network.run(5.0)

    def attack(node: HostileNode, _to: str, message: AnyMessage) -> Sent:
        return (
            [node.ping_from(2**45)]
            if isinstance(message, Ping)
            else []
            if isinstance(message, Offer)
            else [message]
        )

    network.hostile.attack = attack
    network.run(8.0)
    assert network.nodes["node-0"].status().state == "alone"


def test_values_that_spoil_a_node_start_an_epoch() -> None:
    """Where a statistic has no range, a node can be told numbers that others then reject: it starts
    anew.
    """
    network = HostileNetwork(
        4, [(a, b) for a in range(4) for b in range(a)], 2, statistic="gini-mean-difference"
    )
    network.run(5.0)

    def attack(node: HostileNode, _to: str, message: AnyMessage) -> Sent:
        if isinstance(message, Exchanged):
            payload = (node.rng.choice([1e18, 9e18]),) * len(message.contribution.payload)
            return [replace(message, contribution=message.contribution._replace(payload=payload))]
        return [message]

    network.hostile.attack = attack
    network.run(20.0)
    reasons = {fields["reason"] for _, event, fields in network.lines if event == "epoch started"}
    assert any("rejected the values of" in reason for reason in reasons)
    check_recovery(network)


def test_every_attack_is_in_the_table_of_security() -> None:
    page = (Path(__file__).parents[3] / "SECURITY.md").read_text(encoding="utf-8")
    named = {
        name
        for found in re.findall(r"`test_attacks` \[(.+?)\]", page)
        for name in ATTACKS
        if name in found
    }
    assert len(named) > 25
    for name in re.findall(r"`(test_[a-z_]+)`", page):
        assert name in globals() or name == "test_attacks"
