"""A malicious neighbour with valid keys: a node that does what it should, except where its attack
says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from virtual_network import HERE, START_TIME, VirtualNetwork

from gosta.estimation.visitor import Visitor
from gosta.net.members import Keyring, Member, MemberList
from gosta.net.node.row_node import RowNode
from gosta.net.node.source import estimand_of
from gosta.net.protocol import messages as wire
from gosta.net.protocol.epochs import Step
from gosta.net.protocol.messages import Announcement
from gosta.net.transport.base import Link

NETWORK = "0123456789abcdef"
Sent = Iterable[wire.AnyMessage | bytes]
# what it sends instead of a message to a neighbour
Attack = Callable[["HostileNode", str, wire.AnyMessage], Sent]


def make_trusts(
    rows: Mapping[str, int], keys: Mapping[str, Ed25519PrivateKey]
) -> dict[str, Keyring]:
    """Return the key and the member list of each of some nodes, with the rows that they declare."""
    public = {name: key.public_key().public_bytes_raw().hex() for name, key in keys.items()}
    members = tuple(Member(name, public[name], count) for name, count in rows.items())
    listed = MemberList(NETWORK, 1, "0" * 16, {}, members)
    return {name: Keyring(keys[name], listed) for name in rows}


class HostileNode(RowNode):
    """A node that sends what its attack makes of each of its messages, and what it likes."""

    attack: Attack | None = None
    booty: tuple[Visitor, wire.Seal] | None = None  # a visitor that it keeps, see `attacks.kept`

    def _execute(self, step: Step) -> bool:
        if self.attack is not None:
            self.inject(self.attack, step)
            step = step._replace(messages=())
        return super()._execute(step)

    def inject(self, attack: Attack, step: Step) -> None:
        for to, raw in step.messages:
            self.send(to, *attack(self, to, wire.decode(raw)))

    def send(self, to: str, *messages: wire.AnyMessage | bytes) -> None:
        link = self.contacts[to].link
        for message in messages:
            if link is not None:
                link.send(message if isinstance(message, bytes) else wire.encode(message))

    def send_all(self, *messages: wire.AnyMessage | bytes) -> None:
        for neighbour in self.contacts:
            self.send(neighbour, *messages)

    def _reject(self, link: Link, *_: Any) -> None:
        """Suspend nobody."""

    def ping_from(self, epoch: int, origin: str = "", reason: str = "an attack") -> wire.Ping:
        """Return a ping that announces an epoch, signed by this node whatever the origin."""
        content = wire.signed_announcement(NETWORK, epoch, origin or self.peer.name, reason)
        return wire.Ping(
            0, Announcement(epoch, origin or self.peer.name, reason, self.peer.trust.sign(content))
        )

    def sealed(self, message: wire.Offer | wire.Accept, **changes: Any) -> wire.Offer | wire.Accept:
        """Return a message with a visitor of this node's rows that has been changed, and signed by
        this node.
        """
        visitor = self.peer.estimator.rows.visitor(self.peer.name, 0)._replace(**changes)
        signature = self.peer.trust.sign(wire.signed_visitor(NETWORK, message.epoch, visitor))
        seal = wire.Seal(self.peer.trips.get(self.peer.name, [0])[0] + self.peer.copies, signature)
        contribution = message.contribution._replace(
            visitor=visitor, rows=changes.get("rows", visitor.rows)
        )
        return msgspec.structs.replace(message, contribution=contribution, seal=seal)


class HostileNetwork(VirtualNetwork):
    """Nodes with keys and a member list, one of them malicious."""

    def __init__(
        self, nodes: int, edges: list[tuple[int, int]], attacker: int, seed: int = 0, **options: Any
    ) -> None:
        statistic, rng = options.pop("statistic", "auc"), np.random.default_rng(7)
        sizes = options.pop("sizes", [4 + 3 * k for k in range(nodes)])
        parts = [np.column_stack([rng.normal(k / nodes, 1.0, n), np.arange(n) % 2 * 2.0 - 1.0])
                 for k, n in enumerate(sizes)]  # fmt: skip
        if statistic != "auc":
            parts = [part[:, :1] for part in parts]
        self.keys = {f"node-{k}": Ed25519PrivateKey.generate() for k in range(nodes)}
        self.rows = {f"node-{k}": n for k, n in enumerate(sizes)}
        self.attacker = f"node-{attacker}"
        self.lines: list[tuple[str, str, dict[str, Any]]] = []  # of all logs: node, event, fields
        trusts = make_trusts(self.rows, self.keys)
        super().__init__(
            parts,
            edges,
            (),
            seed,
            statistic,
            trusts=trusts,
            hostile={self.attacker: HostileNode},
            **options,
        )

    @property
    def hostile(self) -> HostileNode:
        node = self.nodes[self.attacker]
        assert isinstance(node, HostileNode)
        return node

    @property
    def honest(self) -> dict[str, RowNode]:
        return {name: node for name, node in self.nodes.items() if name != self.attacker}

    def now(self) -> float:
        return START_TIME + self.clock.now

    def run(self, seconds: float) -> None:
        self.clock.run(self.clock.now + seconds)

    def expel(self) -> None:
        """Remove the malicious node from the member list and from the network."""
        del self.rows[self.attacker]
        self.trusts |= make_trusts(self.rows, self.keys)
        for name in self.honest:
            if self.attacker not in self.neighbours[name]:
                self.change(name)
        self.remove(self.attacker)

    def _log(self, node: str, event: str, **fields: Any) -> None:
        super()._log(node, event, **fields)
        self.lines.append((node, event, fields))

    def error(self) -> float:
        """Return the largest relative error of an estimate, compared with the value over the rows
        of all nodes.
        """
        rows = np.concatenate([self.parts[name] for name in self.names])
        (exact,) = estimand_of(self.task, rows, HERE).value
        return float(np.abs(self.estimates() / exact - 1.0).max())
