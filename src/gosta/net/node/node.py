"""The driver of a node: connections, heartbeats, timers, and steps, written before they are sent.

It is the handler of a transport and drives a peer, whatever that computes, on any event loop. What
is special about exchanges of rows is in `row_node`, and about private sums in `sum_node`.
"""

# ruff: noqa: B027 (a kind of node need not implement every hook)

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

import gosta
from gosta.errors import InputError
from gosta.net.config import NodeConfig
from gosta.net.limits import MAX_MESSAGE_BYTES, SECONDS_PER_EPOCH, Budget
from gosta.net.node.contact import Contact, Log, Rejections
from gosta.net.node.credentials import ListFolder
from gosta.net.node.source import Source
from gosta.net.node.status import Neighbour, Status, make_status
from gosta.net.protocol import messages as wire
from gosta.net.protocol.epochs import MAX_EPOCHS_AT_ONCE, Moment, NodePeer, Step
from gosta.net.protocol.records import EpochStarted, Record, SumEpochStarted
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import Greeting, Link, Loop, Transport

# Seconds between pings to each neighbour.
HEARTBEAT_SECONDS = 1.0
# Seconds without a message after which a connection is closed.
SILENCE_SECONDS = 10.0
# Seconds between attempts to connect: the first time, then doubled each time up to the longest.
FIRST_DIAL_SECONDS = 0.2
LONGEST_DIAL_SECONDS = 20.0
# Of two neighbours, the one whose name comes second waits for this time before it dials.
DIAL_PRIORITY_SECONDS = 1.0
# Seconds between attempts to write to a disk that failed.
PROBE_SECONDS = 1.0
# Records between snapshots: a restart applies fewer than these.
SNAPSHOT_RECORDS = 512
# A longer member list has to be taken to the sites.
MAX_SENT_LIST_BYTES = MAX_MESSAGE_BYTES - 64
# Messages of a neighbour that may be rejected at once; after that one in this time.
MAX_REJECTIONS = 20
REJECTION_SECONDS = 3.0
# Time for which a neighbour is suspended that sends more of them.
SUSPENSION_SECONDS = 60.0
# Connections of one neighbour that are accepted at once; after that one in this time.
CONNECTIONS_AT_ONCE = 20
CONNECTION_SECONDS = 3.0
# Messages that a neighbour may send for an exchange, at the most exchanges per second.
MESSAGES_PER_EXCHANGE = 5
# Exchanges per second for which messages are accepted, whatever the node's own limit is.
LEAST_RATE = 1000.0
# Reasons of epochs.
REQUESTED = "requested by the operator"
BACK = "the site is back"
GOSTA_VERSION = gosta.__version__  # read once: that takes a millisecond


def backoff(first: float, longest: float, attempts: int, random: float) -> float:
    """Return the seconds before the next attempt: doubled each time, and half of it random."""
    return float(min(longest, first * 2 ** min(attempts, 20)) * (0.5 + random / 2))


class Environment(NamedTuple):
    """What a node has of the process that it runs in."""

    loop: Loop
    rng: Random
    log: Log
    clock: Callable[[], float] = time.time  # seconds since 1970


class Node(ABC):
    """A node of a network, and the handler of its transport."""

    def __init__(
        self, config: NodeConfig, peer: NodePeer, journal: Journal, environment: Environment
    ) -> None:
        self.config, self.peer, self.journal = config, peer, journal
        self.loop, self.rng, self.log, self.clock = environment
        self.greeting = Greeting(peer.name, peer.identity.network, peer.identity.fingerprint)
        self.lists: ListFolder | None = None  # None: there are no member lists
        self.transport: Transport | None = None
        self.contacts = {name: Contact() for name in config.neighbours}
        self.counters: Counter[str] = Counter()
        self.rejections = Rejections(self.log)
        self.disk_error = ""  # why the journal cannot be written
        self.reload_error = ""  # why changed files are not in use
        self.credentials_error = ""  # why changed credentials are not in use
        # Why the member list cannot be trusted: the coordinator signed another one like it.
        self.list_conflict = ""
        self.certificate_ends: dict[str, float] = {}  # as the status has them
        self._hostility = Budget(MAX_REJECTIONS, REJECTION_SECONDS)  # by neighbour
        self._connections = Budget(CONNECTIONS_AT_ONCE, CONNECTION_SECONDS)  # by neighbour
        self._timers: dict[str, Any] = {}
        self._snapshot_number = journal.last_number
        self._started_at = self._epoch_at = self.loop.time()

    # What depends on the kind of peer.

    @abstractmethod
    def _continue(self) -> None:
        """Do what can be done next, after a message or a disk error."""

    @abstractmethod
    def _reason_for_epoch(self, now: Moment) -> str:
        """Return why the peer needs a new epoch; empty if it does not."""

    @abstractmethod
    def _may_start_epoch(self, reason: str, now: Moment) -> bool:
        """Return whether an epoch may start now, and count that it does."""

    @abstractmethod
    def _state_in_epoch(self) -> str:
        """Return the state of a node that has connections and can write its journal."""

    def pause(self) -> None:
        """Begin nothing new, since the node is about to stop."""

    @property
    def is_idle(self) -> bool:
        """Whether the node can stop without a neighbour waiting for it."""
        return True

    def _prepare(
        self,
        link: Link,  # noqa: ARG002
        contact: Contact,  # noqa: ARG002
        message: wire.AnyMessage,  # noqa: ARG002
    ) -> str:
        """Note what a message tells of the neighbour; return why an offer is refused, if it is."""
        return ""

    def _on_change(self) -> None:
        """Act on rows, neighbours or members that the peer has just been given."""

    def _on_link(self, link: Link) -> None:
        """Act on a new connection."""

    def _write(self, step: Step) -> None:
        """Write what a step records; raises `sqlite3.Error` if that is not possible."""
        self.journal.append(step.records, (), step.entries)

    def _write_waiting(self) -> None:
        """Write records that were not written yet; raises `sqlite3.Error` as `_write` does."""

    def _on_disk_resolved(self) -> None:
        """Act on a disk that can be written again."""

    def _differences(self) -> Mapping[str, float | None]:
        """Return the relative distances of neighbours' estimates from the node's own."""
        return {}

    # Start, changes and end.

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

    def change(self, config: NodeConfig, source: Source) -> None:
        """Apply changed settings, rows, policy, neighbours or members."""
        was_withdrawn = self.peer.is_withdrawn
        self._change_neighbours(config)
        reason = self.peer.change_source(source, config.neighbours)
        self._find_conflict()
        self._on_change()
        self._start_epoch_if_due(BACK if was_withdrawn else reason)
        self._continue()

    def withdraw(self) -> None:
        """Take the node's rows out of the network: it takes part in nothing."""
        if not self.peer.is_withdrawn:
            self._execute(self.peer.withdraw())

    def stop(self) -> None:
        """Close all connections, save a snapshot and close the journal."""
        for name in list(self._timers):
            self._cancel(name)
        if self.transport is not None:
            self.transport.close()
            self.transport = None
        self._save_snapshot()
        self.journal.close()

    def _change_neighbours(self, config: NodeConfig) -> None:
        """Disconnect neighbours that were removed, and dial those that were added."""
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

    # Callbacks of the transport.

    def is_neighbour(self, name: str) -> bool:
        return name in self.contacts

    def on_connected(self, link: Link) -> None:
        contact = self.contacts.get(link.neighbour)
        if contact is None or self.disk_error or self.loop.time() < contact.suspended_until:
            link.close()
            return
        now = self.loop.time()
        if not self._connections.take(link.neighbour, now):
            self._reject(link, wire.Rejected("connections", "it connects too often"), now)
            link.close()
            return
        self.log("connected", neighbour=link.neighbour, **({"via": link.via} if link.via else {}))
        contact.link, contact.mismatch = link, ""
        contact.connected_at = contact.last_heard = now
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
            rate = max(LEAST_RATE, self.config.node.max_exchanges_per_second)
            if contact.messages > MESSAGES_PER_EXCHANGE * rate * HEARTBEAT_SECONDS:
                raise wire.Rejected("flood", "it sends more messages than exchanges need")
            message = wire.decode(raw)
            self._note_heartbeat(link, contact, message)
            refusal = self._prepare(link, contact, message)
            for step in self.peer.handle(link.neighbour, message, self._now(), refusal):
                if not self._execute(step):
                    break
        except wire.Rejected as rejected:
            self._reject(link, rejected, now)
        self._continue()

    def _note_heartbeat(self, link: Link, contact: Contact, message: wire.AnyMessage) -> None:
        """Keep what a message tells of round trips, the neighbour's epoch and member lists."""
        trust = self.peer.trust
        match message:
            case wire.Pong():
                contact.measure(self.loop.time() - message.sent / 1e6)
            case wire.Ping():
                contact.epoch = message.announcement.epoch
                is_older = message.list_serial < trust.serial
                is_same = message.list_digest == trust.list_digest
                is_other = message.list_serial == trust.serial and not is_same
                if (is_older or is_other) and contact.list_sent != trust.serial:
                    contact.list_sent = trust.serial
                    if self.lists is not None:
                        self._send_list(link, self.lists.content())
            case wire.Members():
                self._take_list(message.content)

    def _take_list(self, content: bytes) -> None:
        """Propose a member list to the operator; warn neighbours if it contradicts this node's."""
        trust = self.peer.trust
        try:
            if self.lists is None:
                raise InputError("this node has no member list")
            self.lists.propose(content, trust.serial, trust.list_digest)
        except (InputError, OSError) as error:
            raise wire.Rejected("signature", f"it sent a member list: {error}") from None
        if not self.list_conflict and self._find_conflict():
            self.log("conflicting member lists", reason=self.list_conflict)
            for link in self.links.values():
                self._send_list(link, content)

    def _find_conflict(self) -> str:
        """Return whether the coordinator signed another list with the serial number of this one."""
        if self.lists is not None:
            trust = self.peer.trust
            self.list_conflict = self.lists.conflict(trust.serial, trust.list_digest)
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
        self.counters[f"mismatches: {setting}"] += 1
        if contact is None or contact.mismatch == setting:
            return
        if self._connections.take(neighbour, self.loop.time()):
            contact.mismatch = setting
            self.log("mismatch", neighbour=neighbour, setting=setting, detail=detail)

    def on_rejected(self, reason: str, detail: str) -> None:
        self.counters[f"rejected: {reason}"] += 1
        self.rejections.add("", reason, detail, self.loop.time())

    def on_forwarding(self, first: str, second: str, forwarded: int | None) -> None:
        """Note the start of forwarding between two members, or its end and the bytes forwarded."""
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
        contact = self.contacts.get(neighbour)
        if contact is None or contact.link is not None or self.transport is None:
            return
        address = self.config.neighbours.get(neighbour, "")
        forwarders = {} if address or self.config.node.listen else self.config.forwarders
        if not (address or forwarders):
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
            seconds = backoff(FIRST_DIAL_SECONDS, LONGEST_DIAL_SECONDS, attempts, self.rng.random())
            self._schedule_dial(neighbour, seconds)

    def _heartbeat(self) -> None:
        """Do what is due, ping all neighbours, and close connections that are silent for long."""
        self._on_heartbeat()
        now = self.loop.time()
        for neighbour, contact in list(self.contacts.items()):
            contact.messages = 0
            if contact.link is not None and now - (contact.last_heard or now) > SILENCE_SECONDS:
                contact.link.close()
            elif contact.link is not None:
                self._ping(neighbour)
        self._schedule("heartbeat", HEARTBEAT_SECONDS, self._heartbeat)

    def _on_heartbeat(self) -> None:
        """Do what is due once a second."""
        self._start_epoch_if_due()
        self._continue()

    def _ping(self, neighbour: str) -> None:
        self._execute(self.peer.ping(neighbour, int(self.loop.time() * 1e6)))

    def _now(self) -> Moment:
        return Moment(self.loop.time(), self.clock())

    # Epochs.

    def _start_epoch_if_due(self, reason: str = "") -> None:
        """Start an epoch if it is allowed, for the given reason, or for another one if there is."""
        if self.disk_error or self.peer.is_withdrawn:
            return
        now, epoch_seconds = self._now(), self.config.node.epoch_seconds
        reason = reason or self._reason_for_epoch(now)
        if not reason and epoch_seconds and now.running - self._epoch_at >= epoch_seconds:
            reason = "epoch_seconds have passed"
        if reason and self._may_start_epoch(reason, now):
            self._execute(self.peer.start_epoch(reason, now))

    def request_epoch(self) -> str:
        """Start an epoch for the operator; return why that is not possible, or nothing."""
        epoch = self.peer.epoch
        if self.links:
            self._start_epoch_if_due(REQUESTED)
        if self.peer.epoch > epoch:
            return ""
        if self.disk_error:
            return f"its journal cannot be written: {self.disk_error}"
        if self.peer.is_withdrawn:
            why = "its data file is not there, or its policy forbids what runs"
            return f"its rows are withdrawn: {why}"
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

    # Execution of the peer's steps.

    def _execute(self, step: Step) -> bool:
        """Write the records of a step, send its messages, apply its records.

        If writing fails, nothing is sent or applied, and False is returned.
        """
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

    def _on_record(self, record: Record) -> None:
        """Act on a record that was applied."""
        if isinstance(record, EpochStarted | SumEpochStarted):
            self._log_epoch(record.announcement)

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
            # No record is lost, but a restart takes longer.
            self.log("snapshot failed", reason=str(error))

    @property
    def links(self) -> dict[str, Link]:
        return {
            name: contact.link
            for name, contact in self.contacts.items()
            if contact.link is not None
        }

    # Status.

    def release(self) -> object:
        """Return the report of the last release of private sums; None if there is none."""
        return None

    def status(self) -> Status:
        """Return the state of the node, its estimate and its neighbours."""
        now, serial, lists = self.loop.time(), self.peer.trust.serial, self.lists
        differences = self._differences()
        neighbours = tuple(
            self._view(name, contact, differences.get(name))
            for name, contact in self.contacts.items()
        )
        return make_status(
            self.config,
            self.peer,
            neighbours,
            self._state(),
            rejections=self.rejections.list(now),
            reload_error=self.reload_error or self.credentials_error,
            proposed_list=lists.proposed(serial) if lists is not None else 0,
            disk_error=self.disk_error,
            counters=dict(sorted(self.counters.items())),
            uptime_seconds=now - self._started_at,
            version=GOSTA_VERSION,
            list_serial=serial,
            list_fingerprint=lists.fingerprint() if lists is not None else "",
            list_conflict=self.list_conflict,
            epoch_time=self.clock() - (now - self._epoch_at),
            journal_bytes=self.journal.size_bytes,
            certificate_ends=self.certificate_ends,
        )

    def _state(self) -> str:
        if self.disk_error:
            return "disk error"
        if self.peer.is_withdrawn:
            return "withdrawn"
        if not self.links:
            has_mismatch = any(contact.mismatch for contact in self.contacts.values())
            return "mismatch" if has_mismatch else "disconnected"
        return self._state_in_epoch()

    def _view(self, name: str, contact: Contact, difference: float | None) -> Neighbour:
        """Return a neighbour as the status shows it."""
        now = self.loop.time()
        return Neighbour(
            name,
            connected=contact.link is not None,
            alive=contact.is_alive(now),
            exchanges=self.peer.exchanges_with(name),
            silent_seconds=None if contact.last_heard is None else now - contact.last_heard,
            round_trip_seconds=contact.round_trip or None,
            difference=difference,
            epoch=contact.epoch,
            mismatch=contact.mismatch,
            suspended_seconds=max(0.0, contact.suspended_until - now),
            via=contact.link.via if contact.link is not None else "",
        )
