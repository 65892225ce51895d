"""A network in virtual time: real nodes and journals on the shipped memory transport, with faults
and crashes.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

import faulty_transport as faults
import numpy as np
from faulty_transport import FaultyTransport
from memory_transport import MemoryNetwork
from virtual_clock import Timer, VirtualClock

from gosta.net.audit import consistency
from gosta.net.config import NodeConfig, NodeSettings, Task
from gosta.net.members import OpenTrust, Trust
from gosta.net.node.node import Environment
from gosta.net.node.row_node import RowNode
from gosta.net.node.source import RowSource, fingerprint
from gosta.net.node.sum_node import SumNode
from gosta.net.protocol.epochs import Identity
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.records import Record
from gosta.net.storage.journal import Journal
from gosta.net.storage.ledger import Shown
from gosta.net.transport.base import Greeting, Link
from gosta.private.log import LogEntry
from gosta.private.settings import PrivateSettings

HERE = Path(__file__).parent
LATENCY_SECONDS = 0.01
RETRANSMISSION_SECONDS = 0.2, 0.6  # by which a message is late whose packets were lost once
START_TIME = 1.8e9  # seconds since 1970


class Crash(BaseException):
    """The process is killed."""


class Fault(NamedTuple):
    """A fault: its kind, when (the number of a message or of a write, or a time), at which nodes,
    for how long.
    """

    kind: str
    at: float
    node: str = ""
    seconds: float = 0.0


class MemoryJournal(Journal):
    """A journal in memory that outlives its node; a write can fail, or be the last thing that a
    node does.
    """

    def __init__(self, **options: Any) -> None:
        self.writes = 0
        self.fault: Callable[[int], str] = lambda write: ""
        super().__init__(":memory:", **options)

    def append(
        self, new: Sequence[Record], shown: Sequence[Shown] = (), entries: Sequence[LogEntry] = ()
    ) -> None:
        self.writes += 1
        fault = self.fault(self.writes)
        if fault == "crash before":
            raise Crash
        if fault == "full":
            raise sqlite3.OperationalError("database or disk is full")
        super().append(new, shown, entries)
        if fault == "crash after":
            raise Crash

    def close(self) -> None:
        pass


class NodeLife:
    """One life of a node, from start to crash: its clock, and the handler of its transport.

    Timers and callbacks after the crash are dropped; an exception `Crash` inside a callback ends
    the life.
    """

    def __init__(self, network: VirtualNetwork, name: str) -> None:
        self.network, self.name = network, name
        self.node: RowNode | None = None

    def call(self, callback: Callable[..., Any], *args: Any) -> None:
        if self.node is not None:
            try:
                callback(*args)
            except Crash:
                self.network.crash(self.name, 1.0 + self.network.rng.random())

    def time(self) -> float:
        return self.network.clock.now

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer:
        return self.network.clock.call_later(delay, self.call, callback, *args)

    def is_neighbour(self, name: str) -> bool:
        return self.node is not None and self.node.is_neighbour(name)

    def on_connected(self, link: Link) -> None:
        if self.node is not None:
            self.call(self.node.on_connected, link)

    def on_message(self, link: Link, message: bytes) -> None:
        if self.node is not None:
            self.call(self.node.on_message, link, message)

    def on_disconnected(self, link: Link, reason: str) -> None:
        if self.node is not None:
            self.call(self.node.on_disconnected, link, reason)

    def on_dial_failed(self, neighbour: str, reason: str) -> None:
        if self.node is not None:
            self.call(self.node.on_dial_failed, neighbour, reason)

    @property
    def greeting(self) -> Greeting:
        assert self.node is not None
        return self.node.greeting

    def on_mismatch(self, neighbour: str, setting: str, detail: str) -> None:
        if self.node is not None:
            self.call(self.node.on_mismatch, neighbour, setting, detail)

    def on_rejected(self, reason: str, detail: str) -> None:
        if self.node is not None:
            self.call(self.node.on_rejected, reason, detail)


class VirtualNetwork:
    """Nodes with their journals, and the faults between them."""

    node_type: type[RowNode] | type[SumNode] = RowNode
    journal_options: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        parts: Sequence[np.ndarray[Any, Any]],
        edges: Sequence[tuple[int, int]],
        schedule: Sequence[Fault] = (),
        seed: int = 0,
        statistic: str = "gini-mean-difference",
        protocol: str = "tracking",
        confidence_level: float | None = None,
        exchanges_per_second: float = 4.0,
        loss: float = 0.0,
        late: float = 0.0,
        epoch_seconds: float = 0.0,
        trusts: Mapping[str, Trust] | None = None,
        hostile: Mapping[str, type[RowNode] | type[SumNode]] | None = None,
        private: PrivateSettings | None = None,
        **task_fields: Any,
    ) -> None:
        self.clock, self.rng, self.schedule = VirtualClock(), Random(seed), list(schedule)
        # shares of messages that are lost for good, or arrive late
        self.loss, self.late = (loss, late)
        self.memory, self.messages = MemoryNetwork(self.clock, LATENCY_SECONDS), 0
        self.fault = faults.combine(
            faults.numbered(
                {
                    int(one.at): _delays(one)
                    for one in schedule
                    if one.kind in ("lose", "repeat", "delay")
                }
            ),
            faults.partition(self.is_separated),
            lambda *message: faults.loss(self.loss, self.rng)(*message),
            lambda *_: [
                self.rng.uniform(*RETRANSMISSION_SECONDS) if self.rng.random() < self.late else 0.0
            ],
        )
        self.task = Task(
            "0123456789abcdef",
            statistic,
            protocol,
            confidence_level,
            encoded_columns=task_fields.pop("encoded_columns", 0 if private else parts[0].shape[1]),
            private=private,
            **task_fields,
        )
        self.fingerprint = fingerprint(self.task, HERE)
        self.names = [f"node-{k}" for k in range(len(parts))]
        self.trusts: dict[str, Trust] = dict(trusts or dict.fromkeys(self.names, OpenTrust()))
        self.node_types = dict.fromkeys(self.names, self.node_type) | dict(hostile or {})
        self.neighbours: dict[str, dict[str, str]] = {name: {} for name in self.names}
        for i, j in edges:
            first, second = self.names[i], self.names[j]
            self.neighbours[first][second] = self.neighbours[second][first] = "address"
        self.exchanges_per_second, self.epoch_seconds = exchanges_per_second, epoch_seconds
        self.journals = {name: MemoryJournal(**self.journal_options) for name in self.names}
        self.events: Counter[str] = Counter()  # of all nodes' logs
        self.lives: dict[str, NodeLife] = {}
        self.transports: dict[str, FaultyTransport] = {}
        self.parts = dict(zip(self.names, parts, strict=True))
        self.boot_ids = dict.fromkeys(self.names, "first boot")
        for name in self.names:
            self.journals[name].fault = self._write_fault(name)
            self.start(name)
        for one in self.schedule:
            if one.kind == "crash":
                self.clock.call_later(one.at, self.crash, one.node, one.seconds)

    def _write_fault(self, name: str) -> Callable[[int], str]:
        mine = [one for one in self.schedule if one.node == name and "write" in one.kind]
        crashes = {
            int(one.at): one.kind.removesuffix(" write") for one in mine if one.kind != "full write"
        }
        full = {
            k
            for one in mine
            if one.kind == "full write"
            for k in range(int(one.at), int(one.at) + 5)
        }
        return lambda write: "full" if write in full else crashes.get(write, "")

    def _apply_faults(self, sender: str, receiver: str, message: bytes) -> Iterator[float]:
        """Yield 0 for each copy of a message to send now; then crash the sender if that is on the
        schedule.

        A late copy is sent over the connection that is open then, which may belong to a later life
        of either node.
        """
        for delay in self.fault(sender, receiver, message):
            if delay:
                self.clock.call_later(delay, self._send_late, sender, receiver, message)
            else:
                yield delay
        if message:
            self.messages += 1
            if any(
                one.kind == "crash after message" and one.at == self.messages
                for one in self.schedule
            ):
                raise Crash

    def _send_late(self, sender: str, receiver: str, message: bytes) -> None:
        self.transports[sender].send_late(receiver, message)

    @property
    def nodes(self) -> dict[str, RowNode]:
        """The running nodes."""
        return {name: life.node for name, life in self.lives.items() if life.node is not None}

    def source(self, name: str) -> RowSource:
        return RowSource(
            name, self.task, self.parts[name], self.neighbours[name], HERE, self.trusts[name]
        )

    def restore_peer(self, name: str) -> Peer:
        """Restore a node's state from its journal."""
        identity, source = Identity(name, self.task.id, self.fingerprint), self.source(name)
        self.journals[name].check_owner(name)
        peer = Peer(
            identity, source, self.neighbours[name], source.trust, self.task.confidence_level
        )
        peer.restore(*self.journals[name].load())
        return peer

    def start(self, name: str) -> None:
        """Start a node from its journal."""
        settings = NodeSettings(
            name,
            "address",
            exchanges_per_second=self.exchanges_per_second,
            epoch_seconds=self.epoch_seconds,
        )
        config = NodeConfig(self.task, settings, self.neighbours[name])
        life, rng = NodeLife(self, name), Random(f"{self.rng.random()} {name}")
        self.lives[name] = life
        peer = self.restore_peer(name)
        journal, clock = self.journals[name], lambda: START_TIME + self.clock.now
        environment = Environment(life, rng, partial(self._log, name), clock)
        made: Any = self.node_types[name](config, peer, journal, environment)  # type: ignore[arg-type]
        life.node = node = made
        self.transports[name] = FaultyTransport(
            name,
            life,
            self.clock,
            self._apply_faults,
            lambda handler: self.memory.attach(name, handler),
        )
        life.call(node.start, self.transports[name], self.boot_ids[name])

    def _log(self, node: str, event: str, **_: Any) -> None:  # noqa: ARG002
        self.events[event] += 1

    def crash(self, name: str, seconds: float) -> None:
        """Kill a node, and start it again later."""
        if name in self.nodes:
            self.lives.pop(name).node = None
            self.memory.detach(name, flush=True)
            self.clock.call_later(seconds, self.start, name)

    def is_separated(self, first: str, second: str) -> bool:
        """Return whether a partition separates two nodes now."""
        return any(
            one.kind == "partition"
            and one.at <= self.clock.now < one.at + one.seconds
            and (first in one.node.split()) != (second in one.node.split())
            for one in self.schedule
        )

    def end_faults(self) -> None:
        """Let everything work from now on."""
        self.schedule.clear()
        self.loss = self.late = 0.0
        self.fault = faults.combine()
        for journal in self.journals.values():
            journal.fault = lambda write: ""

    def change(
        self, name: str, rows: np.ndarray[Any, Any] | None = None, without: str = ""
    ) -> None:
        """Give a node other rows, or remove one of its neighbours, as its files would say."""
        if rows is not None:
            self.parts[name] = rows
        self.neighbours[name] = {
            other: at for other, at in self.neighbours[name].items() if other != without
        }
        if name in self.nodes:
            node = self.nodes[name]
            config = NodeConfig(self.task, node.config.node, self.neighbours[name])
            self.lives[name].call(node.change, config, self.source(name))

    def lose_journal(self, name: str) -> None:
        """Crash a node and replace its journal with an empty one."""
        self.crash(name, 1.0)
        self.journals[name] = MemoryJournal(**self.journal_options)

    def restore_backup(self, name: str, records: int) -> None:
        """Replace a node's journal with an older copy, without the node's knowledge."""
        self.lose_power(name, records)
        self.boot_ids[name] = "first boot"

    def lose_power(self, name: str, records: int) -> None:
        """Crash a node's machine, and lose the last records, which were not on the disk yet."""
        self.crash(name, 1.0)
        journal = self.journals[name]
        journal._db.execute(
            "DELETE FROM records WHERE number > ?", (journal.last_number - records,)
        )
        journal.last_number -= records
        self.boot_ids[name] += " and another"

    def remove(self, name: str) -> None:
        """Let a node leave for good."""
        self.crash(name, float("inf"))
        self.names.remove(name)
        for other in self.neighbours.pop(name):
            self.change(other, without=name)

    @property
    def peers(self) -> dict[str, Peer]:
        """The peers of all nodes; those of stopped nodes are restored from their journals."""
        nodes = self.nodes
        return {
            name: nodes[name].peer if name in nodes else self.restore_peer(name)
            for name in self.names
        }

    def check(self) -> None:
        """Check that every visitor exists once, and that both sides have the same exchanges.

        Not so between the time at which a node abandoned an exchange that its partner had
        completed, and the new epoch.
        """
        for name, node in self.nodes.items():
            Journal.append(self.journals[name], node._unwritten)
            node._unwritten = []
        peers = self.peers
        if self.events["exchange abandoned"] and any(
            peers[a].exchanges_with(b) > peers[b].exchanges_with(a)
            and (waiting is None or waiting.partner != a)
            for a in peers
            for b, waiting in ((b, consistency.unconfirmed(peers, b)) for b in self.neighbours[a])
        ):
            return
        if len({peer.epoch for peer in peers.values()}) == 1:
            assert consistency.find_lost_or_duplicated(peers) == []
            records = {name: self.journals[name].load_epoch()[1] for name in self.names}
            consistency.order_exchanges(records, peers)

    def estimates(self) -> np.ndarray[Any, Any]:
        """Return the estimates that all nodes report."""
        return np.array([peer.report().value for peer in self.peers.values()])  # type: ignore[union-attr]


def _delays(fault: Fault) -> list[float]:
    """Return the delays of the copies of a message."""
    return {"lose": [], "repeat": [0.0, fault.seconds], "delay": [fault.seconds]}[fault.kind]
