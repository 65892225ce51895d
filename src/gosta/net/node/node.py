"""A node: a peer with a journal, a clock and connections. It knows a loop and a transport, not which."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from gosta.errors import InputError
from gosta.net.config import NodeFile
from gosta.net.node.source import Source
from gosta.net.node.status import Doubt, Neighbour, Status
from gosta.net.protocol import messages as wire
from gosta.net.protocol.peer import Identity, Peer, Step
from gosta.net.protocol.report import value_of
from gosta.net.storage.journal import Began, Journal, Met
from gosta.net.transport.base import Link, Loop, Transport

PATIENCE = 4.0  # times as long as answers usually take: until an offer is repeated
REPEAT = 0.05, 0.5  # seconds until then, at least and at most: an offer costs little, waiting much
CALL = 0.2, 20.0  # seconds until a neighbour is called again
DOUBT = 1.0  # seconds without an answer after which a node says so
COURTESY = 3.0  # seconds that the one of two neighbours waits who is to be called
ASK = 10.0  # seconds of silence after which a neighbour is asked whether it is there
GIVE_UP = 3 * ASK  # and after which a connection is closed
LASTING = ("network", "statistic", "version", "visitor")  # reasons for a no that will not pass by themselves
REMEMBER = 512  # records after which all is remembered, so that a restart need not go through them again

Log = Callable[..., None]  # of an event and what belongs to it


def backoff(first: float, longest: float, tries: int, chance: float) -> float:
    """How long to wait before trying again: twice as long each time, half of it by chance."""
    return float(min(longest, first * 2 ** min(tries, 20)) * (0.5 + chance / 2))


class Node:
    """One node of a network; its transport calls it, as an `Ear`."""

    def __init__(
        self, file: NodeFile, identity: Identity, source: Source, journal: Journal, loop: Loop, chance: Random, log: Log
    ) -> None:
        self.file, self.source, self.journal, self.loop = file, source, journal, loop
        self.chance, self.log, self.name = chance, log, identity.name
        self.peer = Peer(identity, source, file.neighbours, file.network.interval)
        self.peer.restore(*journal.load())
        self.transport: Transport | None = None
        self.links: dict[str, Link] = {}
        self.counts: Counter[str] = Counter()
        self.trouble = ""  # what keeps it from writing its journal
        self._heard: dict[str, float] = {}
        self._calls: Counter[str] = Counter()  # since there was a connection
        self._disagrees: dict[str, str] = {}
        self._repeats, self._usual = 0, 0.05  # of the pending offer; seconds that answers take
        self._timers: dict[str, Any] = {}
        self._remembered = journal.last
        self._room, self._counted = file.node.most, loop.time()  # meetings it may still take part in, and since when
        self._started = self._began = self._offered = loop.time()

    def start(self, transport: Transport, boot: str = "") -> None:
        """Go on where the journal ends, if that is its end."""
        self.transport = transport
        if self.journal.may_lack_its_end(boot):
            self._do(
                self.peer.begin("the machine was started anew, and the journal is not durable", after=self.peer.birth)
            )
        if not self.trouble:
            self.journal.opened(boot)
        self._look_after()
        for neighbour in self.file.neighbours:
            self._later(f"call {neighbour}", self._first_call(neighbour), self._call, neighbour)
        self._arrange()

    def pause(self) -> None:
        """Begin no more meetings."""
        self.file = msgspec.structs.replace(self.file, node=msgspec.structs.replace(self.file.node, rate=0.0))
        self._cancel("tick")

    def stop(self) -> None:
        """Stop at once, with all remembered."""
        for name in list(self._timers):
            self._cancel(name)
        if self.transport is not None:
            self.transport.close()
            self.transport = None
        self._remember()
        self.journal.close()

    def change(self, file: NodeFile, source: Source) -> None:
        """Go by other settings, rows or neighbours from now on."""
        gone = set(self.file.neighbours) - set(file.neighbours)
        new = set(file.neighbours) - set(self.file.neighbours)
        self.file, self.source = file, source
        self.peer.source, self.peer.neighbours = source, file.neighbours
        for neighbour in gone:
            self._cancel(f"call {neighbour}")
            if neighbour in self.links:
                self.links[neighbour].close()
        for neighbour in new:
            self._later(f"call {neighbour}", self._first_call(neighbour), self._call, neighbour)
        self._look_after(changed=bool(gone or new))
        self._arrange()

    # What the transport calls.

    def knows(self, name: str) -> bool:
        """Whether that is a neighbour."""
        return name in self.file.neighbours

    def opened(self, link: Link) -> None:
        """A connection."""
        self.log("connected", neighbour=link.neighbour)
        self.links[link.neighbour] = link
        self._calls[link.neighbour] = 0
        self._heard[link.neighbour] = self.loop.time()
        if self.peer.pending is not None and self.peer.pending.to == link.neighbour:
            self._do(self.peer.repeat())

    def received(self, link: Link, message: bytes) -> None:
        """A message: what it leads to is written down, then said."""
        self._heard[link.neighbour] = self.loop.time()
        if self.transport is None:
            return
        self.peer.resting = not self._has_room()
        try:
            for step in self.peer.receive(link.neighbour, message):
                self._note_disagreement(link.neighbour, step.note)
                if not self._do(step):
                    break
        except wire.Refusal as refusal:
            self.counts[f"refused: {refusal}"] += 1
            if str(refusal) in ("garbage", "version"):
                self.log("refused", neighbour=link.neighbour, reason=str(refusal))
                link.close()
        self._arrange()

    def _note_disagreement(self, neighbour: str, note: str) -> None:
        """Say once what keeps a neighbour and this node from meeting: somebody has to mend a file."""
        what, _, reason = note.partition(": ")
        if reason in LASTING and self._disagrees.get(neighbour) != reason:
            self._disagrees[neighbour] = reason
            self.log("disagreement", neighbour=neighbour, about=reason, offer=what)

    def closed(self, link: Link, why: str) -> None:
        """A connection is no more."""
        if self.links.get(link.neighbour) is link:
            del self.links[link.neighbour]
            self.log("disconnected", neighbour=link.neighbour, why=why)
            self._call_again(link.neighbour)

    def failed(self, neighbour: str, why: str) -> None:
        """A call came to nothing."""
        if self._calls[neighbour] == 1:
            self.log("cannot reach", neighbour=neighbour, why=why)
        self._call_again(neighbour)

    def refused(self, reason: str, detail: str) -> None:
        """A stranger was turned away."""
        self.counts[f"refused: {reason}"] += 1
        if self.counts[f"refused: {reason}"] <= 100:  # nobody can fill the log
            self.log("refused", reason=reason, detail=detail)

    # Time.

    def _later(self, name: str, delay: float, what: Callable[..., None], *args: Any) -> None:
        """Do something later, instead of what was to be done under that name."""
        self._cancel(name)

        def now() -> None:
            del self._timers[name]
            what(*args)

        self._timers[name] = self.loop.call_later(delay, now)

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _arrange(self) -> None:
        """See to it that there is a next thing to do: to meet somebody, or to ask for an answer again."""
        if self.peer.pending is not None:
            self._cancel("tick")
            if "answer" not in self._timers:
                first = max(REPEAT[0], PATIENCE * self._usual)
                wait = backoff(first, REPEAT[1], self._repeats, self.chance.random())
                self._later("answer", wait, self._repeat)
        else:
            if "answer" in self._timers and self._repeats == 0:
                self._usual += (self.loop.time() - self._offered - self._usual) / 8
            self._repeats = 0
            self._cancel("answer")
            if "tick" not in self._timers and self.file.node.rate > 0:
                wait = self.chance.expovariate(self.file.node.rate)
                least = 1.0 if self.trouble else 0.0 if self.links else 0.05
                self._later("tick", max(wait, least), self._tick)

    def _has_room(self) -> bool:
        """Whether it may take part in one more meeting now."""
        now, most = self.loop.time(), self.file.node.most
        self._room, self._counted = min(max(1.0, most), self._room + most * (now - self._counted)), now
        return self._room >= 1.0

    def _tick(self) -> None:
        """Offer somebody a meeting."""
        neighbours = list(self.file.neighbours)
        if neighbours and self._has_room():
            to = self.chance.choice(neighbours)
            if to in self.links:
                self._offered = self.loop.time()
                self._do(self.peer.offer(to))
            else:
                self.counts["neighbour away"] += 1
        self._arrange()

    def _repeat(self) -> None:
        if self.peer.pending is not None and self.peer.pending.to in self.links:
            self._repeats += 1
            self._do(self.peer.repeat())
        self._arrange()

    def _first_call(self, neighbour: str) -> float:
        """Of two who could call each other, the one whose name comes first does."""
        return 0.0 if self.name < neighbour else COURTESY

    def _call(self, neighbour: str) -> None:
        address = self.file.neighbours.get(neighbour)
        if address and neighbour not in self.links and self.transport is not None:
            self._calls[neighbour] += 1
            try:
                self.transport.dial(neighbour, address)
            except InputError as error:
                self.failed(neighbour, str(error))

    def _call_again(self, neighbour: str) -> None:
        if neighbour in self.file.neighbours and self.transport is not None:
            wait = backoff(*CALL, self._calls[neighbour], self.chance.random())
            self._later(f"call {neighbour}", wait + self._first_call(neighbour), self._call, neighbour)

    def _look_after(self, changed: bool = True) -> None:
        """Begin an epoch if it is time to; ask silent neighbours whether they are there."""
        now, renew = self.loop.time(), self.file.node.renew
        if self.peer.epoch == 0:
            self._do(self.peer.begin("first start"))
        elif self.peer.digest != self.source.digest and (changed or not renew):
            self._do(self.peer.begin("rows, neighbours or settings changed"))
        elif renew and now - self._began >= renew:
            self._do(self.peer.begin("it was time"))
        for neighbour, link in list(self.links.items()):
            silent = now - self._heard[neighbour]
            if silent > GIVE_UP:
                link.close()
            elif silent > ASK:
                self._do(self.peer.ping(neighbour))
        self._later("look after", min(ASK / 2, renew or ASK), self._look_after, False)

    # What is done.

    def _do(self, step: Step) -> bool:
        """Write down, say, and let it have happened; nothing of it where it cannot be written down."""
        if step.records:
            try:
                self.journal.append(step.records)
            except sqlite3.Error as error:
                if not self.trouble:
                    self.log("cannot write the journal", why=str(error))
                self.trouble = str(error)
                self.counts["not written"] += 1
                return False
            if self.trouble:
                self.log("the journal can be written again")
            self.trouble = ""
        for to, message in step.sends:
            if to not in self.links or not self.links[to].send(message):
                self.counts["not sent"] += 1
        for record in step.records:
            self.peer.apply(record)
            if isinstance(record, Met):
                self._disagrees.pop(record.partner, None)
                self._room -= 1.0
            if isinstance(record, Began):
                self._began = self.loop.time()
                self.log("epoch", epoch=record.epoch, why=record.why)
        if step.note:
            self.counts[step.note] += 1
        if self.journal.last - self._remembered >= REMEMBER:
            self._remember()
        return True

    def _remember(self) -> None:
        self._remembered = self.journal.last
        try:
            self.journal.remember(self.peer.memory())
        except sqlite3.Error as error:
            self.log("cannot remember", why=str(error))  # the records are there: it only takes longer to read them

    # What it says of itself.

    def status(self) -> Status:
        """The node as it is now."""
        peer, now = self.peer, self.loop.time()
        waiting = None if peer.pending is None else Doubt(peer.pending.to, now - self._offered)
        state = "running" if self.links else "alone"
        if self.links and set(self.links) <= set(self._disagrees):
            state = "at odds"
        if waiting is not None and waiting.since > DOUBT:
            state = "in doubt"
        mine = value_of(peer.site) if peer.site.meetings else None
        neighbours = tuple(
            Neighbour(
                name,
                name in self.links,
                peer.meetings.get(name, 0),
                now - self._heard[name] if name in self._heard else None,
                _differs(mine, peer, name),
                self._disagrees.get(name, ""),
            )
            for name in self.file.neighbours
        )
        return status_of(
            self.file,
            peer,
            state="cannot write" if self.trouble else state,
            doubt=waiting,
            neighbours=neighbours,
            counts=dict(sorted(self.counts.items())),
            uptime=now - self._started,
        )


def status_of(file: NodeFile, peer: Peer, **more: Any) -> Status:
    """What can be said of a node from its records, and more."""
    found, site, task = peer.report(), peer.site, file.network
    neighbours: tuple[Neighbour, ...] = more["neighbours"]
    return Status(
        node=peer.identity.name,
        network=task.id,
        statistic=task.statistic,
        protocol=task.protocol,
        epoch=peer.epoch,
        exchanges=site.meetings,
        rows=site.table.count,
        rows_met=site.rows_met,
        nodes_met=len(site.homes),
        estimate=found.value if found else None,
        low=found.low if found else None,
        high=found.high if found else None,
        level=task.interval,
        expected_error=found.expected_error if found else None,
        estimate_epoch=found.epoch if found else peer.epoch,
        agreement=max((one.differs for one in neighbours if one.differs is not None), default=None),
        **more,
    )


def _differs(mine: tuple[float, ...] | None, peer: Peer, neighbour: str) -> float | None:
    """How far what a neighbour told last is from the node's own estimate, relative to that."""
    theirs = value_of(peer.site, peer.told[neighbour]) if neighbour in peer.told else None
    if mine is None or theirs is None or not any(mine):
        return None
    return math.dist(mine, theirs) / math.hypot(*mine)
