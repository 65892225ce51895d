"""What nodes of every kind have in common: connections, heartbeats, timers, and steps, written before they are sent."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import gosta
from gosta.errors import InputError
from gosta.net.config import NodeConfig
from gosta.net.limits import MAX_MESSAGE_BYTES, SECONDS_PER_EPOCH, Budget
from gosta.net.node.contact import Contact
from gosta.net.node.lists import ListFolder, NoLists
from gosta.net.node.rejections import Rejections
from gosta.net.node.status import Neighbour, Status
from gosta.net.protocol import messages as wire
from gosta.net.protocol.epochs import MAX_EPOCHS_AT_ONCE, AnyPeer, Step
from gosta.net.protocol.records import Record
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import Greeting, Link, Loop, Transport

HEARTBEAT_SECONDS = 1.0  # between pings to each neighbour
SILENCE_SECONDS = 10.0  # after which a connection is closed
DIAL_SECONDS = (
    0.2,
    20.0,
)  # between attempts to connect: the first time, doubled each time, and at most
DIAL_PRIORITY_SECONDS = (
    1.0  # of two neighbours, the one whose name comes second waits so long before it dials
)
PROBE_SECONDS = 1.0  # between attempts to write to a disk that failed
SNAPSHOT_RECORDS = 512  # records between snapshots: a restart applies fewer than these
MAX_SENT_LIST_BYTES = MAX_MESSAGE_BYTES - 64  # a longer member list has to be taken to the sites
MAX_REJECTIONS, REJECTION_SECONDS = (
    20,
    3.0,
)  # of a neighbour's messages at once, and one per so many seconds; then
SUSPENSION_SECONDS = 60.0  # it is suspended for so long
CONNECTIONS_AT_ONCE, CONNECTION_SECONDS = (
    20,
    3.0,
)  # of one neighbour, and then one per so many seconds
MESSAGES_PER_EXCHANGE = 5  # that a neighbour may send, at the most exchanges per second
REQUESTED = "requested by the operator"  # the reason of an epoch
GOSTA_VERSION = gosta.__version__  # read once: that takes a millisecond
Log = Callable[..., None]  # log(event, **fields)


def backoff(first: float, longest: float, attempts: int, random: float) -> float:
    """Return the seconds before the next attempt: doubled each time, and half of it random."""
    return float(min(longest, first * 2 ** min(attempts, 20)) * (0.5 + random / 2))


class BaseNode(ABC):
    """A node of a network, and the handler of its transport."""

    def __init__(
        self,
        config: NodeConfig,
        peer: AnyPeer,
        journal: Journal,
        loop: Loop,
        rng: Random,
        log: Log,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config, self.peer, self.journal, self.loop, self.rng, self.log = (
            config,
            peer,
            journal,
            loop,
            rng,
            log,
        )
        self.clock = clock  # seconds since 1970
        self.greeting = Greeting(peer.name, peer.identity.network, peer.identity.fingerprint)
        self.lists: ListFolder | NoLists = NoLists()
        self.transport: Transport | None = None
        self.contacts = {name: Contact() for name in config.neighbours}
        self.counters: Counter[str] = Counter()
        self.rejections = Rejections(log)
        self.disk_error = ""  # why the journal cannot be written
        self.reload_error = self.credentials_error = ""  # why changed files are not in use
        self.list_conflict = (
            ""  # why the member list cannot be trusted: the coordinator signed another one like it
        )
        self.certificate_ends: dict[str, float] = {}  # as the status has them
        self._hostility = Budget(MAX_REJECTIONS, REJECTION_SECONDS)  # by neighbour, as the next one
        self._connections = Budget(CONNECTIONS_AT_ONCE, CONNECTION_SECONDS)
        self._timers: dict[str, Any] = {}
        self._snapshot_number = journal.last_number
        self._started_at = self._epoch_at = loop.time()

    # What kinds of nodes differ in.

    @abstractmethod
    def pause(self) -> None:
        """Begin nothing new, since the node is about to stop."""

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether the node can stop without a neighbour waiting for it."""

    @abstractmethod
    def withdraw(self) -> None:
        """Take the node's rows out of the network."""

    @abstractmethod
    def status(self) -> Status: ...

    @abstractmethod
    def _start_epoch_if_due(self, reason: str = "") -> None:
        """Start an epoch if there is a reason and it is allowed; a given reason counts where there is no other."""

    @abstractmethod
    def _handle(self, link: Link, contact: Contact, message: wire.AnyMessage) -> None:
        """Handle a message; raise `Rejected` if it cannot be used."""

    @abstractmethod
    def _ping(self, neighbour: str) -> None: ...

    @abstractmethod
    def _on_heartbeat(self) -> None:
        """Do what is due once a second."""

    @abstractmethod
    def _write(self, step: Step) -> None:
        """Write the records of a step; raises `sqlite3.Error` if that is not possible."""

    @abstractmethod
    def _on_record(self, record: Record) -> None:
        """Act on a record that was applied."""

    @abstractmethod
    def _continue(self) -> None:
        """Do what can be done next, after a message or a disk error."""

    @abstractmethod
    def _on_link(self, link: Link) -> None:
        """Act on a new connection."""

    @abstractmethod
    def _write_waiting(self) -> None:
        """Write records that were not written yet; raises `sqlite3.Error` if that is not possible."""

    @abstractmethod
    def _on_disk_resolved(self) -> None:
        """Act on a disk that can be written again."""

    # Start and end.

    def start(self, transport: Transport, boot_id: str = "") -> None:
        """Continue from the journal; start a new epoch if its last records may be missing."""
        self.transport = transport
        self._find_conflict()
        if self.journal.may_be_truncated(boot_id):
            self._execute(self.peer.start_epoch("the last records of the journal may be missing"))
        if not self.disk_error:
            self.journal.mark_open(boot_id)
        self._heartbeat()
        for neighbour in self.config.neighbours:
            self._schedule_dial(neighbour)
        self._continue()

    def stop(self) -> None:
        """Close all connections, save a snapshot and close the journal."""
        for name in list(self._timers):
            self._cancel(name)
        if self.transport is not None:
            self.transport.close()
            self.transport = None
        self._save_snapshot()
        self.journal.close()

    def _change_neighbours(self, config: NodeConfig) -> bool:
        """Apply changed settings and neighbours; return whether neighbours changed."""
        removed = set(self.contacts) - set(config.neighbours)
        added = set(config.neighbours) - set(self.contacts)
        self.config = config
        for neighbour in removed:
            self._cancel(f"dial {neighbour}")
            link = self.contacts.pop(neighbour).link
            if link is not None:
                link.close()
        for neighbour in added:
            self.contacts[neighbour] = Contact()
            self._schedule_dial(neighbour)
        return bool(removed or added)

    # Callbacks of the transport.

    def is_neighbour(self, name: str) -> bool:
        return name in self.contacts

    def on_connected(self, link: Link) -> None:
        contact = self.contacts.get(link.neighbour)
        if contact is None or self.disk_error or self.loop.time() < contact.suspended_until:
            link.close()
            return
        if not self._connections.take(link.neighbour, self.loop.time()):
            self._reject(
                link, wire.Rejected("connections", "it connects too often"), self.loop.time()
            )
            link.close()
            return
        self.log("connected", neighbour=link.neighbour, **({"via": link.via} if link.via else {}))
        contact.link, contact.mismatch = link, ""
        contact.connected_at = contact.last_heard = self.loop.time()
        self._ping(link.neighbour)
        self._on_link(link)

    def on_message(self, link: Link, raw: bytes) -> None:
        contact = self.contacts.get(link.neighbour)
        if self.transport is None or contact is None:
            return
        contact.last_heard = now = self.loop.time()
        contact.dial_attempts = 0  # not when it connects: it may close the connection at once
        try:
            contact.messages += 1
            if contact.messages > MESSAGES_PER_EXCHANGE * max(
                1000.0, self.config.node.max_exchanges_per_second
            ):
                raise wire.Rejected("flood", "it sends more messages than exchanges need")
            message = wire.decode(raw)
            self._note_lists(link, contact, message)
            self._handle(link, contact, message)
        except wire.Rejected as rejected:
            self._reject(link, rejected, now)
        self._continue()

    def _note_lists(self, link: Link, contact: Contact, message: wire.AnyMessage) -> None:
        """Keep what a message tells of the round trip time, the neighbour's epoch and member lists."""
        serial = self.peer.trust.serial
        match message:
            case wire.Pong():
                contact.measure(self.loop.time() - message.sent / 1e6)
            case wire.Ping():
                contact.epoch = message.announcement.epoch
                is_other = (
                    message.list_serial == serial
                    and message.list_digest != self.peer.trust.list_digest
                )
                if (message.list_serial < serial or is_other) and serial != contact.list_sent:
                    contact.list_sent = serial
                    self._send_list(link, self.lists.content())
            case wire.Members():
                try:
                    self.lists.propose(message.content, serial, self.peer.trust.list_digest)
                except (InputError, OSError) as error:
                    raise wire.Rejected("signature", f"it sent a member list: {error}") from None
                if not self.list_conflict and self._find_conflict():
                    self.log("conflicting member lists", reason=self.list_conflict)
                    for other in self.links.values():
                        self._send_list(other, message.content)

    def _find_conflict(self) -> str:
        """Find out whether the coordinator signed another list with the serial number of this node's; return that."""
        self.list_conflict = self.lists.conflict(
            self.peer.trust.serial, self.peer.trust.list_digest
        )
        return self.list_conflict

    def _send_list(self, link: Link, content: bytes) -> None:
        if 0 < len(content) <= MAX_SENT_LIST_BYTES:
            link.send(wire.encode(wire.Members(content)))

    def _reject(self, link: Link, rejected: wire.Rejected, now: float) -> None:
        """Count a message that was rejected; suspend a neighbour that sends many."""
        reason = rejected.reason
        self.counters[f"rejected: {reason}"] += 1
        self.rejections.add(link.neighbour, reason, rejected.detail, now)
        if rejected.is_blamed and not self._hostility.take(link.neighbour, now):
            self._suspend(link, reason, now)

    def _suspend(self, link: Link, reason: str, now: float) -> None:
        self.log("suspended", neighbour=link.neighbour, seconds=SUSPENSION_SECONDS, reason=reason)
        self.counters["suspensions"] += 1
        self.contacts[link.neighbour].suspended_until = now + SUSPENSION_SECONDS
        link.close()

    def on_disconnected(self, link: Link, reason: str) -> None:
        contact = self.contacts.get(link.neighbour)
        if contact is not None and contact.link is link:
            contact.link = None
            self.log("disconnected", neighbour=link.neighbour, reason=reason)
            self._redial(link.neighbour)

    def on_dial_failed(self, neighbour: str, reason: str) -> None:
        contact = self.contacts.get(neighbour)
        if contact is not None:
            if contact.dial_attempts == 1:
                self.log("dial failed", neighbour=neighbour, reason=reason)
            self._redial(neighbour)

    def on_mismatch(self, neighbour: str, setting: str, detail: str) -> None:
        contact = self.contacts.get(neighbour)
        if (
            contact is not None
            and contact.mismatch != setting
            and self._connections.take(neighbour, self.loop.time())
        ):
            contact.mismatch = setting
            self.log("mismatch", neighbour=neighbour, setting=setting, detail=detail)
        self.counters[f"mismatches: {setting}"] += 1

    def on_rejected(self, reason: str, detail: str) -> None:
        self.counters[f"rejected: {reason}"] += 1
        self.rejections.add("", reason, detail, self.loop.time())

    def on_forwarding(self, first: str, second: str, forwarded: int | None) -> None:
        """Handle the start of forwarding between two members, or its end after so many bytes."""
        if forwarded is None:
            self.counters["connections forwarded"] += 1
            self.log("forwarding", members=[first, second])
        else:
            self.counters["bytes forwarded"] += forwarded
            self.log("forwarding ended", members=[first, second], bytes=forwarded)

    # Timers.

    def _schedule(self, name: str, delay: float, callback: Callable[..., None], *args: Any) -> None:
        self._cancel(name)

        def run() -> None:
            del self._timers[name]
            callback(*args)

        self._timers[name] = self.loop.call_later(delay, run)

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _schedule_dial(self, neighbour: str, delay: float = 0.0) -> None:
        has_priority = self.peer.name < neighbour or not self.config.neighbours.get(neighbour)
        priority = 0.0 if has_priority else DIAL_PRIORITY_SECONDS
        self._schedule(f"dial {neighbour}", delay + priority, self._dial, neighbour)

    def _dial(self, neighbour: str) -> None:
        address, contact = self.config.neighbours.get(neighbour, ""), self.contacts.get(neighbour)
        forwarders = {} if address or self.config.node.listen else self.config.forwarders
        if (
            not (address or forwarders)
            or contact is None
            or contact.link is not None
            or self.transport is None
        ):
            return
        if self.disk_error or self.loop.time() < contact.suspended_until:
            self._redial(neighbour)
            return
        contact.dial_attempts += 1
        try:
            self.transport.dial(neighbour, address, forwarders)
        except InputError as error:
            self.on_dial_failed(neighbour, str(error))

    def _redial(self, neighbour: str) -> None:
        if neighbour in self.contacts and self.transport is not None:
            attempts = self.contacts[neighbour].dial_attempts
            self._schedule_dial(neighbour, backoff(*DIAL_SECONDS, attempts, self.rng.random()))

    def _heartbeat(self) -> None:
        """Do what is due, ping all neighbours, and close connections that have been silent for long."""
        self._on_heartbeat()
        now = self.loop.time()
        for neighbour, contact in list(self.contacts.items()):
            contact.messages = 0
            if contact.link is not None and now - (contact.last_heard or now) > SILENCE_SECONDS:
                contact.link.close()
            elif contact.link is not None:
                self._ping(neighbour)
        self._schedule("heartbeat", HEARTBEAT_SECONDS, self._heartbeat)

    # Execution of the peer's steps.

    def _execute(self, step: Step) -> bool:
        """Write the records of a step, send its messages, apply its records; do nothing if writing fails."""
        if step.records or step.entries or step.shows is not None:
            try:
                self._write(step)
            except sqlite3.Error as error:
                self._on_disk_error(str(error))
                return False
        for to, message in step.messages:
            contact = self.contacts.get(to)
            if contact is None or contact.link is None or not contact.link.send(message):
                self.counters["failed sends"] += 1
            else:
                self.counters["bytes sent"] += len(message)
        for record in step.records:
            self.peer.apply(record)
            self._on_record(record)
        if step.event:
            self.counters[step.event] += 1
        if self.journal.last_number - self._snapshot_number >= SNAPSHOT_RECORDS:
            self._save_snapshot()
        return True

    def request_epoch(self) -> str:
        """Start an epoch because the operator wants one; return why that is not possible, if it is not."""
        epoch = self.peer.epoch
        if self.links:
            self._start_epoch_if_due(REQUESTED)
        if self.peer.epoch > epoch:
            return ""
        if self.disk_error:
            return f"its journal cannot be written: {self.disk_error}"
        if self.peer.is_withdrawn:
            return "its rows are withdrawn: its data file is not there, or its policy forbids what runs"
        if not self.links:
            return "no neighbour is connected"
        limit = (
            f"{MAX_EPOCHS_AT_ONCE} epochs at once, and one in {SECONDS_PER_EPOCH:g} s after that"
        )
        return f"a node starts at most {limit}; try again in {SECONDS_PER_EPOCH:g} s"

    def _log_epoch(self, announcement: wire.Announcement) -> None:
        self._epoch_at = self.loop.time()
        epoch, origin, reason, _ = announcement
        self.log("epoch started", epoch=epoch, origin=origin, reason=reason)
        for neighbour in self.links:
            self._ping(neighbour)

    def _on_disk_error(self, reason: str) -> None:
        """Close all connections: a node that cannot write cannot keep a promise."""
        self.counters["failed writes"] += 1
        if not self.disk_error:
            self.log("disk error", reason=reason)
            self._schedule("probe", PROBE_SECONDS, self._probe)
        self.disk_error = reason
        for link in self.links.values():
            link.close()

    def _probe(self) -> None:
        try:
            self.journal.probe()
        except sqlite3.Error as error:
            self.disk_error = str(error)
            self._schedule("probe", PROBE_SECONDS, self._probe)
            return
        self.disk_error = ""
        self._on_disk_resolved()
        self.log("disk error resolved")
        for neighbour in self.contacts:
            self._dial(neighbour)
        self._continue()

    def _save_snapshot(self) -> None:
        self._snapshot_number = self.journal.last_number
        try:
            self._write_waiting()
            self.journal.save_snapshot(self.peer.snapshot())
        except sqlite3.Error as error:
            self.log(
                "snapshot failed", reason=str(error)
            )  # no record is lost, but a restart takes longer

    @property
    def links(self) -> dict[str, Link]:
        return {
            name: contact.link
            for name, contact in self.contacts.items()
            if contact.link is not None
        }

    def _view(
        self, name: str, contact: Contact, exchanges: int = 0, difference: float | None = None
    ) -> Neighbour:
        """Return a neighbour as the status shows it."""
        now = self.loop.time()
        return Neighbour(
            name,
            connected=contact.link is not None,
            alive=contact.is_alive(now),
            exchanges=exchanges,
            silent_seconds=None if contact.last_heard is None else now - contact.last_heard,
            round_trip_seconds=contact.round_trip or None,
            difference=difference,
            epoch=contact.epoch,
            mismatch=contact.mismatch,
            suspended_seconds=max(0.0, contact.suspended_until - now),
            via=contact.link.via if contact.link is not None else "",
        )

    def _status_fields(self) -> dict[str, Any]:
        """Return what the status of every kind of node has."""
        now = self.loop.time()
        return {
            "rejections": self.rejections.list(now),
            "reload_error": self.reload_error or self.credentials_error,
            "proposed_list": self.lists.proposed(self.peer.trust.serial),
            "disk_error": self.disk_error,
            "counters": dict(sorted(self.counters.items())),
            "uptime_seconds": now - self._started_at,
            "version": GOSTA_VERSION,
            "list_serial": self.peer.trust.serial,
            "list_fingerprint": self.lists.fingerprint(),
            "list_conflict": self.list_conflict,
            "epoch_time": self.clock() - (now - self._epoch_at),
            "journal_bytes": self.journal.size_bytes,
            "certificate_ends": self.certificate_ends,
        }
