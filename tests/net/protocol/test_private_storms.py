"""Storms over networks of private sums in virtual time: a member that signs anything.

Faults of all kinds at once.
"""

from __future__ import annotations

import hashlib
import os
from random import Random
from typing import Any

import numpy as np
import pytest
from private_schedules import RNG, strict
from spies import AUC, SPY, change_parts, complete
from sum_network import SumNetwork
from virtual_network import START_TIME, Fault

from gosta.net.node.status import explain
from gosta.net.node.sum_node import SumNode
from gosta.net.protocol import messages as wire
from gosta.net.protocol import statements
from gosta.net.protocol.messages import Signed
from gosta.net.protocol.statements import (
    AnyStatement,
    Commit,
    Join,
    Nonce,
    Opening,
    Part,
    Refusal,
    Roster,
    Slot,
)
from gosta.net.protocol.sums import SumPeer
from gosta.net.storage.contributions import find_break
from gosta.private import masks
from gosta.private.policy import MODES, Policy
from gosta.private.settings import PrivateSettings

SEEDS = int(os.environ.get("GOSTA_SCHEDULES", "200")) // 50
NAMES = (
    "node-0",
    "node-1",
    "node-2",
    "node-3",
    "x" * 64,
    "\u202e\x1b[2J",
    "é;ls",
    "node-9",
    "../../etc",
)


def rows_of(count: int) -> np.ndarray:
    return np.column_stack([RNG.random(count).round(3), np.arange(count) % 2])


def settings_of(has_noise: bool, find_edges: bool) -> PrivateSettings:
    noise: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6} if has_noise else {}
    return PrivateSettings(
        bins=8, ranges={"": (0.0, 1.0)}, find_edges=find_edges, deadline_seconds=2.0, **noise
    )


# A member that signs anything.


def any_words(rng: Random, peer: SumPeer) -> bytes:
    size = peer.source.layout.size
    count = rng.choice([0, 1, 8, 24, size, size + 8, size + 9, 272])
    odd = 3 * (rng.random() < 0.1)
    return rng.choice(
        [bytes(8 * count + odd), rng.randbytes(8 * count + odd), b"\xff" * (8 * count)]
    )


def any_id(rng: Random, peer: SumPeer) -> bytes:
    known = list(peer.current.pool.statements)[-3:]
    if peer.current.roster is not None:
        known += [peer.current.roster_id] * 3
    return rng.choice([bytes(16), rng.randbytes(16), *known])


def any_roster(rng: Random, peer: SumPeer, head: tuple[int, str, str]) -> Roster:
    names = (
        rng.sample(NAMES, rng.choice([2, 3, 5]))
        if rng.random() < 0.3
        else sorted(rng.sample(NAMES[:4], 3))
    )
    held = {name: peer.slots.get(Slot("join", name)) for name in names}
    ids = [
        one[0] if one is not None and rng.random() < 0.9 else any_id(rng, peer)
        for one in held.values()
    ]
    return Roster(*head, tuple(zip(names, ids, strict=True)))


def any_statement(rng: Random, peer: SumPeer) -> AnyStatement:
    head = *rng.choice([peer.current.id] * 9 + [(0, "-"), (2**53, "node-0"), (1, "node-0")]), SPY
    about, number, words = any_id(rng, peer), rng.choice([1, 2]), any_words(rng, peer)
    has_all = bool(peer.current.participants) and not peer.current.lacking(
        Slot("commit", "", number)
    )
    commits = peer.current.commits(number) if has_all and rng.random() < 0.8 else any_id(rng, peer)
    key = rng.choice([b"", bytes(32), b"\xff" * 32, bytes(5), masks.public_key(masks.new_key())])
    agrees, cell, serial = (
        rng.random() < 0.5,
        rng.choice([0, 5, 51, 2**53]),
        rng.choice([0, 1, 2, 2**53]),
    )
    tag, nonce = rng.randbytes(rng.choice([0, 1, 16])), rng.randbytes(32)
    made: list[AnyStatement] = [
        Join(*head, key, tag, nonce, agrees, cell, serial, b"\0" * 32),
        any_roster(rng, peer, head),
        Nonce(*head, about, rng.randbytes(32)),
        Commit(
            *head, about, number, rng.choice([rng.randbytes(32), hashlib.sha256(words).digest()])
        ),
        Part(*head, about, number, commits, words),
        Opening(*head, about, number, words),
        Refusal(*head, about, tuple(rng.sample(NAMES, rng.choice([0, 1, 3])))),
    ]
    return rng.choice(made)


def send_anything(rng: Random, network: SumNetwork, name: str) -> None:
    """Let a node get a statement of the spy, now and then with a wrong bit.

    It is not suspended for that.
    """
    node = network.nodes.get(name)
    if node is None or SPY not in node.links:
        return
    assert isinstance(node, SumNode)
    trust, id = network.trusts[SPY], network.task.id
    signed = statements.sign(any_statement(rng, node.peer), id, trust)
    if rng.random() < 0.1:
        body = bytearray(signed.body)
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        signed = Signed(bytes(body), trust.sign(statements._signed_bytes(id, bytes(body))))
    node._hostility._left.clear()
    node.on_message(node.links[SPY], wire.encode(wire.Give(signed)))


def far_too_many(vector: np.ndarray) -> np.ndarray:
    vector[0] += np.uint64(10**8 << 24)
    return vector


@pytest.mark.parametrize("seed", range(2 * SEEDS))
def test_a_member_that_signs_anything_crashes_and_names_nobody(seed: int) -> None:
    """Without it, and once all agree that its sums may be computed, the others complete."""
    rng = Random(seed)
    network = strict(
        [rows_of(40) for _ in range(4)],
        complete(4),
        settings=settings_of(seed & 1 > 0, seed & 2 > 0),
        **AUC,
    )
    if seed % 3 == 0:
        change_parts(network.sum_peers[SPY], far_too_many)
    while network.clock.now < 8.0:
        network.clock.run(network.clock.now + rng.choice([0.005, 0.01, 0.05, 0.3]))
        for name in ("node-0", "node-2", "node-3"):
            send_anything(rng, network, name)
        if rng.random() < 0.02:
            network.nodes[SPY].request_epoch()
            network.crash("node-2", 0.5)
            network.change("node-0", rows_of(40))
        for node in network.nodes.values():
            assert isinstance(node, SumNode)
            node.status()
    network.crash(SPY, float("inf"))
    for name in ("node-0", "node-2", "node-3"):
        network.agree(name, SPY)
    network.clock.run(120.0)
    honest = [peer for name, peer in network.sum_peers.items() if name != SPY]
    assert {peer.state() for peer in honest} == {"complete"}
    assert {name for peer in honest for name in peer.memory.deviating} <= {SPY}


# Faults of all kinds at once.


def make_storm(rng: Random, names: list[str]) -> list[Fault]:
    kinds = ["crash"] * 4 + ["partition"] * 2 + ["full write"] * 2
    kinds += [
        "crash before write",
        "crash after write",
        "lose",
        "repeat",
        "delay",
        "crash after message",
    ]
    faults = []
    for _ in range(rng.randrange(3, 14)):
        kind = rng.choice(kinds)
        node = rng.choice(names) if "write" in kind or kind == "crash" else ""
        at: float = rng.randrange(1, 30) if "write" in kind else rng.randrange(1, 1500)
        if kind in ("crash", "partition"):
            at = rng.uniform(0, 25)
        if kind == "partition":
            node = " ".join(rng.sample(names, rng.choice([1, 2])))
        faults.append(Fault(kind, at, node, rng.choice([0.02, 0.3, 1.0, 3.0, 6.0])))
    return faults


class Watcher:
    """What must hold at every moment."""

    def __init__(self, network: SumNetwork) -> None:
        self.network = network
        self.totals: dict[object, bytes] = {}
        self.parts: dict[object, bytes] = {}
        self.spent = dict.fromkeys(network.names, 0.0)

    def check(self) -> None:
        for name, peer in self.network.sum_peers.items():
            if (report := peer.report) is not None:
                key = report.tags, report.participants, report.layout
                assert self.totals.setdefault(key, report.vector) == report.vector, (
                    "other noise of the same rows"
                )
            for slot, (id, one) in peer.slots.items():
                if isinstance(one, Part):
                    assert (
                        self.parts.setdefault((one.home, peer.current.id, slot.round), id) == id
                    ), "two parts"
            paid = sum(one.spent.epsilon for one in peer.history() if one.spent is not None)
            assert paid >= self.spent[name] - 1e-9, f"the budget of {name} came back"
            self.spent[name] = paid
            assert find_break(self.network.journals[name].contributions()) is None
            made = [
                (one.epoch, one.origin, one.round)
                for one in peer.log
                if one.event == "contribution"
            ]
            assert len(made) == len(set(made)), f"{name} contributed twice"
            assert not peer.memory.deviating, "nobody is named who only failed"
            explain(peer)


@pytest.mark.parametrize("seed", range(2 * SEEDS))
def test_storms(seed: int) -> None:
    """Kills, full disks, partitions, lost and late messages, changed rows, requested epochs, clocks
    minutes apart.
    """
    rng, (has_noise, find_edges) = Random(seed), (seed & 1 > 0, seed & 2 > 0)
    nodes = rng.choice([4, 5])
    names = [f"node-{k}" for k in range(nodes)]
    edges = rng.choice([complete(nodes), [(k, k + 1) for k in range(nodes - 1)]])
    policy = Policy(
        modes=MODES,
        min_rows=0,
        min_sites=0 if has_noise else 3,
        min_share=0.51,
        epsilon_budget=50.0,
    )
    network = SumNetwork(
        [rows_of(60) for _ in names], edges, make_storm(rng, names), seed,
        settings=settings_of(has_noise, find_edges),
        policies=dict.fromkeys(names, policy), loss=rng.choice([0, 0.1]), late=rng.choice([0, 0.2]),
        **AUC,
    )  # fmt: skip
    ahead = {name: rng.uniform(-300, 300) for name in names}
    watcher, sums = Watcher(network), [network.plain_sums(names)]
    while network.clock.now < 30.0:
        for name, node in network.nodes.items():
            node.clock = lambda name=name: START_TIME + network.clock.now + ahead[name]  # type: ignore[misc]
        network.clock.run(network.clock.now + 0.5)
        watcher.check()
        name = rng.choice(names)
        if rng.random() < 0.06:
            network.change(name, rows_of(60))
            sums.append(network.plain_sums(names))
        if rng.random() < 0.04 and name in network.nodes:
            network.nodes[name].request_epoch()
    network.end_faults()
    network.clock.run(160.0)
    watcher.check()
    peers = network.sum_peers.values()
    assert {peer.state() for peer in peers} == {"complete"}
    assert len({peer.epoch for peer in peers}) == 1
    for peer in peers:
        assert peer.report is not None
        if not (has_noise or find_edges) and peer.report.participants == tuple(names):
            assert peer.report.vector in map(statements.pack, sums)
