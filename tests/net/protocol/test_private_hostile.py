"""A member that lies about private sums: no wrong sum is reported, and without it the others have
the right one.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from fault_schedules import GRAPHS
from sum_network import SumNetwork

from gosta.net.node.status import explain
from gosta.net.node.sum_node import SumNode
from gosta.net.protocol import messages as wire
from gosta.net.protocol import statements
from gosta.net.protocol.epochs import Moment, Step
from gosta.net.protocol.messages import Signed
from gosta.net.protocol.statements import AnyStatement, Join, Part, Roster
from gosta.private.policy import MODES, Policy

RNG = np.random.default_rng(7)
PARTS = [RNG.random((rows, 1)) for rows in (12, 19, 31, 14)]
LIAR = "node-1"
replace = msgspec.structs.replace
Tamper = Callable[["Liar", str, Signed, AnyStatement], Signed | None]


class Liar(SumNode):
    """A node that sends what `tamper` makes of each statement that it is asked for."""

    tamper: Tamper

    def _execute(self, step: Step) -> bool:
        sent = []
        for to, raw in step.messages:
            message = wire.decode(raw)
            if isinstance(message, wire.Give):
                changed = type(self).tamper(
                    self, to, message.signed, statements.read(message.signed)
                )
                if changed is None:
                    continue
                raw = wire.encode(wire.Give(changed))
            sent.append((to, raw))
        return super()._execute(step._replace(messages=tuple(sent)))

    def signed(self, statement: AnyStatement) -> Signed:
        return statements.sign(statement, self.peer.identity.network, self.peer.trust)


def altered_parts(_node: Liar, _to: str, signed: Signed, statement: AnyStatement) -> Signed:
    """Alter contributions of others."""
    if isinstance(statement, Part) and statement.home != LIAR:
        return Signed(signed.body[:-1] + bytes([signed.body[-1] ^ 1]), signed.signature)
    return signed


def short_part(node: Liar, _to: str, signed: Signed, statement: AnyStatement) -> Signed:
    """Contribute a vector of the wrong length."""
    if isinstance(statement, Part) and statement.home == LIAR:
        return node.signed(replace(statement, vector=statement.vector[8:]))
    return signed


def part_for_each(node: Liar, to: str, signed: Signed, statement: AnyStatement) -> Signed:
    """Send every neighbour another contribution."""
    if isinstance(statement, Part) and statement.home == LIAR:
        vector = statements.unpack(statement.vector)
        vector[0] += np.uint64(int(to[-1]) << 24)
        return node.signed(replace(statement, vector=statements.pack(vector)))
    return signed


def key_for_each(node: Liar, to: str, signed: Signed, statement: AnyStatement) -> Signed:
    """Send every neighbour another key."""
    if isinstance(statement, Join) and statement.home == LIAR:
        return node.signed(replace(statement, key=bytes(31) + bytes([int(to[-1]) + 9])))
    return signed


def bad_key(node: Liar, _to: str, signed: Signed, statement: AnyStatement) -> Signed:
    """Join with a point of low order, so that all secrets would be zero."""
    if isinstance(statement, Join) and statement.home == LIAR:
        return node.signed(replace(statement, key=bytes(32)))
    return signed


def silent(_node: Liar, _to: str, signed: Signed, statement: AnyStatement) -> Signed | None:
    """Keep the own contribution back."""
    return None if isinstance(statement, Part) and statement.home == LIAR else signed


def forged_roster(node: Liar, _to: str, signed: Signed, statement: AnyStatement) -> Signed:
    """Change the roster of others."""
    if isinstance(statement, Roster):
        return node.signed(replace(statement, participants=statement.participants[1:]))
    return signed


def earlier_epoch(node: Liar, _to: str, signed: Signed, statement: AnyStatement) -> Signed:
    """Send contributions of the first epoch again, as those of a later one."""
    kept: dict[str, Signed] = node.__dict__.setdefault("kept", {})
    if isinstance(statement, Part):
        return kept.setdefault(statement.home, signed)
    return signed


ATTACKS = [
    altered_parts,
    short_part,
    part_for_each,
    key_for_each,
    bad_key,
    silent,
    forged_roster,
    earlier_epoch,
]


def is_right(network: SumNetwork, name: str, versions: list[dict[str, np.ndarray]]) -> bool:
    """Return whether what a node reports is the total of honest rows, or has the liar among its
    participants.
    """
    report = network.sum_peers[name].report
    if report is None or LIAR in report.participants:
        return True
    return report.vector in [
        statements.pack(network.plain_sums(report.participants, rows)) for rows in versions
    ]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("graph", ["cycle", "complete"])
def test_attacks(attack: Tamper, graph: str) -> None:
    liar = type("Attacker", (Liar,), {"tamper": attack})
    network = SumNetwork(PARTS, GRAPHS[graph][1], hostile={LIAR: liar})
    honest = [name for name in network.names if name != LIAR]
    network.clock.run(15.0)
    versions = [dict(network.parts)]
    network.change("node-0", RNG.random((20, 1)))
    versions.append(dict(network.parts))
    for second in range(20, 60, 5):
        network.clock.run(second)
        assert all(is_right(network, name, versions) for name in honest)
        totals = {
            (report.epoch, report.origin): report.vector
            for name in honest
            if (report := network.sum_peers[name].report) is not None
        }
        for name in honest:
            report = network.sum_peers[name].report
            assert (
                report is None
                or totals[report.epoch, report.origin] == report.vector
                or attack is part_for_each
            )
    network.remove_member(LIAR)
    network.clock.run(130.0)
    network.check()
    peers = network.sum_peers
    assert {peers[name].state() for name in honest} == {"complete"}
    assert {peers[name].current.participants for name in honest} == {tuple(honest)}


def test_messages_tell_nothing_of_the_rows_but_their_masked_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two sites move a difference between each other: only their contributions change, and nothing
    else does.
    """

    def messages_of(
        parts: list[np.ndarray],
    ) -> tuple[list[tuple[str, str, int]], dict[tuple[str, str], bytes]]:
        rng = np.random.default_rng(3)
        monkeypatch.setattr("gosta.private.masks.new_key", lambda: rng.bytes(32))
        monkeypatch.setattr("secrets.token_bytes", rng.bytes)
        network = SumNetwork(
            parts,
            GRAPHS["complete"][1],
            statistic="auc",
            score="score",
            label="label",
            classes=(0, 1),
        )
        seen, held = [], {}
        original = network.fault

        def record(sender: str, receiver: str, message: bytes) -> object:
            if message:
                seen.append((sender, receiver, len(message)))
                decoded = wire.decode(message)
                if isinstance(decoded, wire.Give):
                    statement = statements.read(decoded.signed)
                    held[statement.home, statement.slot.kind] = decoded.signed.body
            return original(sender, receiver, message)

        network.fault = record  # type: ignore[assignment]
        network.clock.run(6.0)
        network.check()
        assert {peer.state() for peer in network.sum_peers.values()} == {"complete"}
        return seen, held

    first = [np.column_stack([RNG.random(20), RNG.integers(0, 2, 20)]) for _ in range(4)]
    second = [first[0], first[2], first[1], first[3]]  # the total is the same
    (sizes, held), (other_sizes, other_held) = messages_of(first), messages_of(second)
    assert sorted(sizes) == sorted(other_sizes)
    assert {slot for slot in held if slot[1] == "part"} == {(f"node-{k}", "part") for k in range(4)}
    joins = {
        slot: body
        for slot, body in held.items()
        if slot in {("node-0", "join"), ("node-3", "join")}
    }
    assert joins == {slot: other_held[slot] for slot in joins}


def test_a_roster_of_accomplices() -> None:
    """The origin takes in one honest site and two accomplices: the honest site refuses."""
    parts = [RNG.random((12, 1)) for _ in range(7)]
    names = [f"node-{k}" for k in range(7)]
    network = SumNetwork(
        parts,
        [(i, j) for i in range(7) for j in range(i)],
        policies=dict.fromkeys(names, Policy(modes=MODES)),
    )
    origin = network.sum_peers["node-0"]
    made = origin._next_roster

    def of_accomplices(now: Moment) -> Roster | None:
        roster = made(now)
        return roster and replace(
            roster, participants=(*roster.participants[:2], roster.participants[6])
        )

    origin._next_roster = of_accomplices  # type: ignore[method-assign]
    network.clock.run(3.0)
    victim = network.sum_peers["node-6"]
    assert victim.current.participants == ("node-0", "node-1", "node-6")
    assert explain(victim) == "declined by this site: 3 of 7 members, 5 needed"
    assert all(peer.report is None for peer in network.sum_peers.values())
