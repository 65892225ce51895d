"""A network in virtual time: real nodes and journals, and a world that loses, delays, repeats, cuts and crashes."""

from __future__ import annotations

import heapq
import itertools
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from gosta.net.audit import consistency as audit
from gosta.net.config import NodeFile, Place, Task
from gosta.net.node.node import Node
from gosta.net.node.source import Source, fingerprint
from gosta.net.protocol.peer import Identity, Peer
from gosta.net.storage.journal import AnyRecord, Journal
from gosta.runtime.arrays import Floats

HERE = Path(__file__).parent


class Crash(BaseException):
    """The process is no more."""


class Fault(NamedTuple):
    """Something that goes wrong: which, at what (a message's number, a write's number, a time), to whom, how long."""

    kind: str
    at: float
    node: str = ""
    seconds: float = 0.0


class Clock:
    """Virtual time."""

    def __init__(self) -> None:
        self.now, self._queue, self._order = 0.0, [], itertools.count()  # type: ignore[var-annotated]

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer:
        timer = Timer(callback, args)
        heapq.heappush(self._queue, (self.now + max(0.0, delay), next(self._order), timer))
        return timer

    def run(self, until: float) -> None:
        while self._queue and self._queue[0][0] <= until:
            self.now, _, timer = heapq.heappop(self._queue)
            if not timer.cancelled:
                timer.callback(*timer.args)
        self.now = until


class Timer:
    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.callback, self.args, self.cancelled = callback, args, False

    def cancel(self) -> None:
        self.cancelled = True


class Disk(Journal):
    """A journal in memory that outlives its node, and whose writes can fail or be the last thing that a node does."""

    def __init__(self) -> None:
        self.writes = 0
        self.fate: Callable[[int], str] = lambda write: ""
        super().__init__(":memory:")

    def append(self, records: Sequence[AnyRecord]) -> None:
        self.writes += 1
        fate = self.fate(self.writes)
        if fate == "crash before":
            raise Crash
        if fate == "full":
            raise sqlite3.OperationalError("database or disk is full")
        super().append(records)
        if fate == "crash after":
            raise Crash

    def close(self) -> None:
        pass


class Wire:
    """A node's transport: it speaks through the world."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.life = world, name, world.lives[name]

    def dial(self, neighbour: str, address: str) -> None:  # noqa: ARG002
        self.world.clock.call_later(0.01, self.world.connect, self, neighbour)

    def close(self) -> None:
        pass


class Line:
    """A link."""

    def __init__(self, wire: Wire, neighbour: str) -> None:
        self.wire, self.neighbour = wire, neighbour

    def send(self, message: bytes) -> bool:
        self.wire.world.post(self.wire.name, self.neighbour, message)
        return True

    def close(self) -> None:
        self.wire.world.disconnect(self)


class Alive:
    """The clock of one life of a node: what it planned does not happen after its death."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.life = world, name, world.lives[name]

    def time(self) -> float:
        return self.world.clock.now

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer:
        return self.world.clock.call_later(delay, self._call, callback, args)

    def _call(self, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if self.world.lives[self.name] == self.life:
            self.world.living(self.name, callback, *args)


class World:
    """Nodes, and all that lies between them."""

    def __init__(
        self,
        parts: Sequence[Floats],
        edges: Sequence[tuple[int, int]],
        faults: Sequence[Fault] = (),
        seed: int = 0,
        statistic: str = "gini-mean-difference",
        protocol: str = "tracking",
        interval: float | None = None,
        rate: float = 4.0,
        loss: float = 0.0,
        renew: float = 0.0,
    ) -> None:
        self.clock, self.chance, self.faults, self.loss = Clock(), Random(seed), list(faults), loss
        self.task = Task("0123456789abcdef", statistic, protocol, interval, encoded=parts[0].shape[1])
        self.fingerprint = fingerprint(self.task, HERE)
        self.names = [f"node-{k}" for k in range(len(parts))]
        self.neighbours: dict[str, dict[str, str]] = {name: {} for name in self.names}
        for i, j in edges:
            self.neighbours[self.names[i]][self.names[j]] = self.neighbours[self.names[j]][self.names[i]] = "there"
        self.rate, self.renew, self.posted = rate, renew, 0
        self.lives = dict.fromkeys(self.names, 0)
        self.disks = {name: Disk() for name in self.names}
        self.nodes: dict[str, Node] = {}
        self.parts = dict(zip(self.names, parts, strict=True))
        self.births = dict.fromkeys(self.names, 1)
        self.boots = dict.fromkeys(self.names, "first boot")
        self.log: list[str] = []
        for name in self.names:
            self.disks[name].fate = self._fate(name)
            self.start(name)
        for fault in self.faults:
            if fault.kind == "crash":
                self.clock.call_later(fault.at, self.crash, fault.node, fault.seconds)

    def _fate(self, name: str) -> Callable[[int], str]:
        mine = [fault for fault in self.faults if fault.node == name and "write" in fault.kind]
        crashes = {int(fault.at): fault.kind.removesuffix(" write") for fault in mine if fault.kind != "full write"}
        full = {k for fault in mine if fault.kind == "full write" for k in range(int(fault.at), int(fault.at) + 5)}

        def fate(write: int) -> str:
            return "full" if write in full else crashes.get(write, "")

        return fate

    def source(self, name: str) -> Source:
        return Source(name, self.task, self.parts[name], self.neighbours[name], HERE)

    def start(self, name: str) -> None:
        """A life of a node begins."""
        place = Place(name, "here", rate=self.rate, renew=self.renew)
        disk = self.disks[name]
        birth = disk.birth(name, self.births[name])
        identity = Identity(name, self.task.id, self.fingerprint, birth)
        file = NodeFile(self.task, place, self.neighbours[name])
        seed = Random(f"{self.chance.random()} {name}")
        node = Node(file, identity, self.source(name), disk, Alive(self, name), seed, lambda event, **more: None)
        self.nodes[name] = node
        self.living(name, node.start, Wire(self, name), self.boots[name])

    def living(self, name: str, what: Callable[..., Any], *args: Any) -> None:
        """Let a node do something, which may be its last."""
        try:
            what(*args)
        except Crash:
            self.crash(name, 1.0 + self.chance.random())

    def crash(self, name: str, seconds: float) -> None:
        """End a node's life at once; another begins later."""
        if name in self.nodes:
            del self.nodes[name]
            self.lives[name] += 1
            for other, node in list(self.nodes.items()):
                for link in list(node.links.values()):
                    if link.neighbour == name:
                        self.clock.call_later(0.02, self._lose, other, link)
            self.clock.call_later(seconds, self.start, name)

    def _lose(self, name: str, link: Any) -> None:
        if name in self.nodes and link.wire.life == self.lives[name]:
            self.living(name, self.nodes[name].closed, link, "gone")

    def apart(self, first: str, second: str) -> bool:
        """Whether there is a partition between two nodes now."""
        now = self.clock.now
        return any(
            fault.kind == "partition"
            and fault.at <= now < fault.at + fault.seconds
            and (first in fault.node.split()) != (second in fault.node.split())
            for fault in self.faults
        )

    def connect(self, wire: Wire, neighbour: str) -> None:
        if wire.life != self.lives[wire.name] or wire.name not in self.nodes:
            return
        if neighbour not in self.nodes or self.apart(wire.name, neighbour):
            self.living(wire.name, self.nodes[wire.name].failed, neighbour, "not there")
            return
        theirs = Wire(self, neighbour)
        self.living(neighbour, self.nodes[neighbour].opened, Line(theirs, wire.name))
        if wire.name in self.nodes:
            self.living(wire.name, self.nodes[wire.name].opened, Line(wire, neighbour))

    def disconnect(self, line: Line) -> None:
        self.clock.call_later(0.0, self._lose, line.wire.name, line)
        other = self.nodes.get(line.neighbour)
        back = None if other is None else other.links.get(line.wire.name)
        if back is not None:
            self.clock.call_later(0.02, self._lose, line.neighbour, back)

    def post(self, sender: str, receiver: str, message: bytes) -> None:
        """A message: it may be lost, come late or twice, and be the last thing that its sender says."""
        self.posted += 1
        fates = [fault for fault in self.faults if fault.at == self.posted]
        lost = self.apart(sender, receiver) or any(fault.kind == "lose" for fault in fates)
        delays = [] if lost or self.chance.random() < self.loss else [0.005 + 0.01 * self.chance.random()]
        for fault in fates:
            if fault.kind == "repeat":
                delays.append(fault.seconds)
            elif fault.kind == "delay" and delays:
                delays[0] += fault.seconds
        for delay in delays:
            self.clock.call_later(delay, self._arrive, sender, receiver, message)
        if any(fault.kind == "crash after message" for fault in fates):
            raise Crash

    def _arrive(self, sender: str, receiver: str, message: bytes) -> None:
        node = self.nodes.get(receiver)
        if node is not None:
            link = node.links.get(sender) or Line(Wire(self, receiver), sender)
            self.living(receiver, node.received, link, message)

    def change(self, name: str, rows: Floats | None = None, without: str = "") -> None:
        """Other rows at a node, or one neighbour less, as its files would say."""
        if rows is not None:
            self.parts[name] = rows
        self.neighbours[name] = {other: at for other, at in self.neighbours[name].items() if other != without}
        if name in self.nodes:
            file = NodeFile(self.task, self.nodes[name].file.node, self.neighbours[name])
            self.living(name, self.nodes[name].change, file, self.source(name))

    def lose_journal(self, name: str) -> None:
        """A node's disk is replaced by an empty one."""
        self.crash(name, 1.0)
        self.disks[name] = Disk()
        self.births[name] += 1

    def restore_backup(self, name: str, records: int) -> None:
        """Somebody puts an older copy of a node's journal back, of which nobody could know."""
        self.lose_power(name, records)
        self.boots[name] = "first boot"

    def lose_power(self, name: str, records: int) -> None:
        """A node's machine goes off, and with it the last records that were not on the disk yet."""
        self.crash(name, 1.0)
        disk = self.disks[name]
        disk._db.execute("DELETE FROM records WHERE number > ?", (disk.last - records,))
        disk.last -= records
        self.boots[name] += " and another"

    def forget(self, name: str) -> None:
        """A node leaves for good."""
        self.crash(name, float("inf"))
        self.names.remove(name)
        for other in self.neighbours.pop(name):
            self.change(other, without=name)

    @property
    def peers(self) -> dict[str, Peer]:
        """All nodes, the dead as their journals have them."""
        found = {name: node.peer for name, node in self.nodes.items()}
        for name in self.names:
            if name not in found:
                disk = self.disks[name]
                identity = Identity(name, self.task.id, self.fingerprint, disk.birth(name, self.births[name]))
                found[name] = Peer(identity, self.source(name), self.neighbours[name], self.task.interval)
                found[name].restore(*self.disks[name].load())
        return {name: found[name] for name in self.names}

    def check(self) -> None:
        """Every visitor exists once, those on their way counted; both sides of every meeting are the same."""
        peers = self.peers
        if len({peer.epoch for peer in peers.values()}) == 1:
            assert audit.lost_or_doubled(peers) == []
            audit.meetings({name: self.disks[name].epoch()[1] for name in self.names}, peers)

    def estimates(self) -> Floats:
        """What all nodes report."""
        return np.array([peer.report().value for peer in self.peers.values()])  # type: ignore[union-attr]
